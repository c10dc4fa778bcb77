"""`kevin-env serve`: episodes for OpenEnv clients."""

from typing import Annotated

import typer

from kevin_env.cli.options import EPISODE, Given, Override, RequireSandbox, settings_options

SERVER = "Server"


@settings_options(EPISODE)
def serve(
    settings: Given,
    problem: Annotated[
        list[str] | None,
        typer.Option(help="Problems to offer: IDs, levels, files, folders; by default all."),
    ] = None,
    override: Override = None,
    require_sandbox: RequireSandbox = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is all.", rich_help_panel=SERVER)
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            help="Port to listen on; 0 picks a free one.",
            min=0,
            max=65535,
            rich_help_panel=SERVER,
        ),
    ] = 8000,
    sessions: Annotated[
        int, typer.Option(help="Limit of concurrent sessions.", min=1, rich_help_panel=SERVER)
    ] = 32,
    step_timeout: Annotated[
        float,
        typer.Option(help="Seconds for one step, waiting included.", min=1, rich_help_panel=SERVER),
    ] = 900,
    idle_timeout: Annotated[
        float,
        typer.Option(
            help="Seconds after which an idle session ends.", min=1, rich_help_panel=SERVER
        ),
    ] = 1800,
) -> None:
    """Serve episodes to OpenEnv clients.

    Speaks HTTP and WebSocket until Ctrl-C. Needs the extra openenv.
    """
    from kevin_env.app.arguments import open_pool, read_settings, require_examples
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.errors import BadInput
    from kevin_env.selection import find_problems

    try:
        from kevin_env.integrations.openenv import server as openenv
        from kevin_env.integrations.openenv.tasks import ServerLimits
    except ImportError as error:
        raise BadInput(str(error)) from error
    load_env_file()
    chosen = read_settings(override, **settings)
    require_examples(chosen)
    problems = find_problems(problem) if problem else None
    try:
        limits = ServerLimits(
            sessions=sessions, step_timeout=step_timeout, idle_timeout=idle_timeout
        )
        sock = openenv.listen(host, port)
    except OSError as error:
        raise BadInput(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadInput("give --step-timeout and --idle-timeout in seconds") from error
    with sock, open_pool(chosen.device) as pool:
        judges = openenv.RequireSandbox(pool) if require_sandbox else pool
        served = openenv.make_app(judges, chosen, problems=problems, limits=limits)
        server = openenv.make_server(served, limits, before_stop=pool.close)
        typer.echo(f"serving on http://{host}:{sock.getsockname()[1]}; Ctrl-C stops it", err=True)
        server.run(sockets=[sock])
