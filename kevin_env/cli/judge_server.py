"""`kevin-env judge-server`: the judges of this machine for clients on others."""

import os
from collections import Counter
from typing import Annotated, Any

import typer

from kevin_env.cli.options import Given, open_socket, settings_options

Host = Annotated[
    str, typer.Option(help="Address to listen on; one that other machines can reach needs a token.")
]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)]
AtOnce = Annotated[
    int, typer.Option(help="Limit of submissions in progress; clients take turns.", min=1)
]

Readable = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="A file or folder that submissions may read besides the system and Python's packages;"
        " repeat it for more. [default: those in KEVIN_ENV_READABLE]",
        show_default=False,
    ),
]


@settings_options(("device", "require_sandbox"))
def judge_server(
    settings: Given,
    host: Host = "127.0.0.1",
    port: Port = 8001,
    at_once: AtOnce = 64,
    readable: Readable = None,
) -> None:
    """Judge submissions for other machines.

    Clients set KEVIN_ENV_POOL=http://HOST:PORT or pass pool="http://HOST:PORT". Any client can run
    code on this machine, so an address that other machines can reach requires a token: set
    KEVIN_ENV_JUDGE_TOKEN on both sides. There is no TLS; use a proxy for that. Needs the extra
    openenv.
    """
    from kevin_env.app.arguments import read_settings
    from kevin_env.app.errors import BadInput
    from kevin_env.pools.http import TOKEN, token_of
    from kevin_env.pools.local import LocalPool
    from kevin_env.pools.remote import Remote

    try:
        from kevin_env.integrations import judge_server as served
    except ImportError as error:
        raise BadInput(f"{error}: pip install 'kevin-env[openenv]'") from error
    chosen = read_settings(**settings)
    starts = Counter[str]()

    def start(device: str, **more: Any) -> Remote:
        starts[device] += 1
        return Remote(device, **more)

    try:
        token = token_of(os.environ.get(TOKEN, ""))
        served.require_token_for(host, token)
        pool = LocalPool(readable=readable or None, start=start)
    except ValueError as error:
        raise BadInput(str(error)) from error
    with open_socket(host, port) as sock, pool:
        info = pool.device(chosen.device)
        requests = served.Requests(pool, chosen.device, at_once, chosen.require_sandbox)
        app = served.make_app(requests, token, ("*",) if token else served.LOOPBACK, starts)
        address = f"http://{host}:{sock.getsockname()[1]}"
        typer.echo(f"judging on {info.name} at {address}; Ctrl-C stops it", err=True)
        served.make_server(app, requests.stop).run(sockets=[sock])
