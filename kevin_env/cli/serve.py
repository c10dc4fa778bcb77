"""`kevin-env serve`: episodes for OpenEnv clients."""

from typing import Annotated

import typer

from kevin_env.cli.options import (
    EPISODE,
    Given,
    Override,
    of_problems,
    of_server,
    open_socket,
    settings_options,
)

Problems = Annotated[list[str] | None, of_problems("; by default all")]
Host = Annotated[str, of_server("Address to listen on; 0.0.0.0 for all interfaces.")]
Port = Annotated[int, of_server("Port to listen on; 0 picks a free one.", min=0, max=65535)]
Sessions = Annotated[int, of_server("Limit of concurrent sessions.", min=1)]
StepTimeout = Annotated[
    float, of_server("Seconds for a step, including the wait for a judge.", min=1)
]
IdleTimeout = Annotated[float, of_server("Seconds after which an idle session ends.", min=1)]


@settings_options(EPISODE)
def serve(
    settings: Given,
    problem: Problems = None,
    override: Override = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    sessions: Sessions = 32,
    step_timeout: StepTimeout = 900,
    idle_timeout: IdleTimeout = 1800,
) -> None:
    """Serve episodes to OpenEnv clients.

    Speaks OpenEnv's protocol and MCP, over HTTP and WebSocket, until Ctrl-C. Needs the extra
    openenv.
    """
    from kevin_env.app.arguments import open_pool, read_settings, require_available
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.errors import BadInput
    from kevin_env.selection import find_problems

    try:
        from kevin_env.integrations.openenv.server import app as openenv
        from kevin_env.integrations.openenv.server.sessions import ServerLimits
    except ImportError as error:
        raise BadInput(str(error)) from error
    load_env_file()
    chosen = read_settings(override, **settings)
    require_available(chosen)
    problems = find_problems(problem) if problem else None
    try:
        limits = ServerLimits(
            sessions=sessions, step_timeout=step_timeout, idle_timeout=idle_timeout
        )
    except ValueError as error:
        raise BadInput("give --step-timeout and --idle-timeout in seconds") from error
    with open_socket(host, port) as sock, open_pool(chosen.device) as pool:
        served = openenv.make_app(pool, chosen, problems=problems, limits=limits)
        server = openenv.make_server(served, limits, before_stop=pool.close)
        typer.echo(f"serving on http://{host}:{sock.getsockname()[1]}; Ctrl-C stops it", err=True)
        server.run(sockets=[sock])
