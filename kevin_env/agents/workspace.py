"""A folder for an agent that edits files and runs commands, and the server of its one episode."""

import asyncio
import errno
import json
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.types import Receive, Scope, Send

from kevin_env.agents import check
from kevin_env.agents.server import PATH, make_app, make_http_server, make_server
from kevin_env.record import Trajectory
from kevin_env.session import AgentSession, Task
from kevin_env.settings import Settings
from kevin_env.templates import render

Agent = Callable[[AgentSession, Path], Awaitable[None]]
"""Works in a folder until it is done, or cancelled because the episode has ended."""


async def serve_workspace(
    session: AgentSession,
    settings: Settings,
    minutes: float,
    folder: Path,
    sock: socket.socket,
    agent: Agent | None = None,
    name: str = "agent",
) -> Trajectory | None:
    """Starts the episode, writes the folder, and serves both until the episode has ended.

    All clients that have the folder's token play the one episode.

    Args:
        session: has one problem, and is closed at the end.
        settings: those of the session.
        minutes: its time, for the guide.
        folder: where to write; may exist, and must be empty.
        sock: where to listen; its address is written into the folder.
        agent: works in the folder. When it is done, the episode ends.
        name: of the agent, for the record.

    Raises:
        OSError: if the folder is not empty or cannot be written.
        EpisodeError, ProblemError, JudgeError: as `AgentSession.start`.
        Exception: any error of `agent`.
    """
    require_empty(folder)
    token = secrets.token_urlsafe(32)

    @asynccontextmanager
    async def shared(_: object) -> AsyncIterator[AgentSession]:
        yield session

    app = make_app(make_server(shared), token, idle=None)

    async def until_over(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        if scope["type"] == "http" and session.over:
            server.should_exit = True

    def stop(finished: asyncio.Future[None]) -> None:
        nonlocal done  # not if it ended because a signal had stopped the server
        done = done or not (server.should_exit or finished.cancelled())
        server.should_exit = True

    server = make_http_server(until_over)
    working: list[asyncio.Future[None]] = []
    done = False
    try:
        task = await session.start(agent=name)
        host, port = sock.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
        write_workspace(folder, task, settings, minutes, url, token)
        working = [asyncio.ensure_future(session.until_time_is_up())]
        working += [asyncio.ensure_future(agent(session, folder))] if agent else []
        for each in working:
            each.add_done_callback(stop)
        await server.serve(sockets=[sock])
    finally:
        for each in working:
            each.cancel()
        try:  # Ctrl-C may cancel this, too
            ended = await asyncio.gather(*working, return_exceptions=True)
        finally:
            trajectory = session.close("agent_ended" if done else "interrupted")
    for each in ended:
        if isinstance(each, Exception):
            raise each
    return trajectory


def require_empty(folder: Path) -> None:
    """Makes a folder, unless it is there.

    Raises:
        OSError: if it is not empty or cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise OSError(errno.ENOTDIR, "it is a file; name a new folder", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise OSError(errno.ENOTEMPTY, "the folder is not empty; name a new one", str(folder))


def write_workspace(
    folder: Path, task: Task, settings: Settings, minutes: float, url: str, token: str
) -> None:
    """Writes the files, `check` last: once it is there, it works.

    Raises:
        OSError: if the folder cannot be written.
    """
    guide = render(
        "agents/guide.j2",
        max_turns=settings.max_turns,
        minutes=f"{minutes:g}",
        rules=settings.rules,
    )
    client = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}
    files = {
        "reference.py": task.reference,
        "kernel.py": task.first_kernel,
        "TASK.md": f"{task.task}\n",
        "AGENTS.md": f"{guide.strip()}\n",
        ".mcp.json": json.dumps({"mcpServers": {"kevin-env": client}}, indent=2) + "\n",
    }
    for name, text in files.items():
        path = folder / name
        path.touch(0o600 if name == ".mcp.json" else 0o644)
        path.write_text(text, encoding="utf-8")
    scratch = folder / ".check"
    scratch.write_bytes(Path(check.__file__).read_bytes())
    scratch.chmod(0o755)
    scratch.rename(folder / "check")
