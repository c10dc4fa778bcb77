"""The command that serves the environment to OpenEnv's clients."""

from typing import Annotated

import typer

from kevin_env.cli.options import (
    Baseline,
    BuildTimeout,
    CallTimeout,
    Device,
    Examples,
    Glue,
    Hints,
    Index,
    Inputs,
    Language,
    Noisy,
    Precision,
    Profile,
    Rules,
    Sanitize,
    Score,
    SettingOverride,
    Templates,
    Turns,
)


def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 is all of them.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8000,
    problem: Annotated[
        list[str] | None,
        typer.Option(
            help="What is offered: ids, levels such as L1, files, folders. Ours when left out."
        ),
    ] = None,
    turns: Turns = 4,
    device: Device = "auto",
    language: Language = "auto",
    rules: Rules = "kernel",
    glue: Glue = 0.0,
    score: Score = "kevin",
    baseline: Baseline = "eager",
    inputs: Inputs = "varied",
    noisy: Noisy = "lower",
    call_timeout: CallTimeout = None,
    build_timeout: BuildTimeout = 300.0,
    precision: Precision = None,
    templates: Templates = "default",
    hints: Hints = False,
    profile: Profile = "none",
    sanitize: Sanitize = False,
    examples: Examples = "one",
    index: Index = "",
    override: SettingOverride = None,
    sessions: Annotated[int, typer.Option(help="Most sessions at once.", min=1)] = 32,
    step_timeout: Annotated[
        float, typer.Option(help="Seconds that a step may take, waiting included.", min=1)
    ] = 900,
    idle_timeout: Annotated[
        float, typer.Option(help="Seconds after which a silent session ends.", min=1)
    ] = 1800,
    require_sandbox: Annotated[
        bool, typer.Option("--require-sandbox", help="Refuse when a protection fails.")
    ] = False,
) -> None:
    """Serve episodes to OpenEnv clients over HTTP and WebSocket, until Ctrl-C. Needs the extra
    openenv.
    """
    from kevin_env.app.arguments import open_pool, read_settings, require_examples
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.errors import BadInput
    from kevin_env.selection import find_problems

    try:
        from kevin_env.integrations.openenv.limits import ServerLimits
        from kevin_env.integrations.openenv.server import (
            RequireSandbox,
            listen,
            make_app,
            make_server,
        )
    except ImportError as error:
        raise BadInput(str(error)) from error
    load_env_file()
    settings = read_settings(
        override, max_turns=turns, device=device, language=language, rules=rules, score=score, baseline=baseline,
        inputs=inputs, templates=templates, hints=hints, examples=examples, index=index, profile=profile,
        sanitize=sanitize, noisy=noisy, call_timeout=call_timeout, build_timeout=build_timeout, precision=precision,
        glue=glue,
    )  # fmt: skip
    require_examples(settings)
    problems = find_problems(problem) if problem else None
    try:
        limits = ServerLimits(
            sessions=sessions, step_timeout=step_timeout, idle_timeout=idle_timeout
        )
        sock = listen(host, port)
    except OSError as error:
        raise BadInput(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadInput("give --step-timeout and --idle-timeout in seconds") from error
    with sock, open_pool(settings.device) as pool:
        judges = RequireSandbox(pool) if require_sandbox else pool
        served = make_app(judges, settings, problems=problems, limits=limits)
        server = make_server(served, limits, before_stop=pool.close)
        typer.echo(f"serving on http://{host}:{sock.getsockname()[1]}; Ctrl-C ends it", err=True)
        server.run(sockets=[sock])
