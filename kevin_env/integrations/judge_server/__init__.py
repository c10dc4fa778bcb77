"""A judge pool served over HTTP, so that training and judging run on different machines.

`kevin_env.pools.http.HttpPool` is its client. Any client can run code on this machine, since a
problem's reference is not sandboxed: without a token it listens on the loopback interface only. It
has no TLS; use a proxy for that. Needs the extra `openenv`.

    PUT    /v1/requests/{id}                    202, also if it has this ID already; 429 if full
    GET    /v1/requests/{id}?wait=20&seen=1     {"stages": [...]} after these, or the answer; 404
    DELETE /v1/requests/{id}                    cancels it, and forgets its answer
    GET    /v1/device?name=auto
    GET    /healthz                             200 while it serves
    GET    /metrics                             for Prometheus; needs the extra `prometheus`

A client names itself in the header `Kevin-Client`. Clients take turns; the requests of one start in
the order in which they arrive.
"""

from .app import LOOPBACK, RequireToken, make_app
from .connections import is_loopback, listen, make_server, require_token_for
from .requests import Requests

__all__ = [
    "LOOPBACK",
    "Requests",
    "RequireToken",
    "is_loopback",
    "listen",
    "make_app",
    "make_server",
    "require_token_for",
]
