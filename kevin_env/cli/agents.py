"""`kevin-env mcp`, `workspace` and `agent`: episodes for coding agents."""

import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kevin_env.cli.options import (
    EPISODE,
    TRAJECTORIES,
    Given,
    Override,
    complete_problems,
    extra,
    of_problems,
    of_server,
    open_socket,
    positive,
    settings_options,
)

if TYPE_CHECKING:
    from kevin_env.settings import Settings

IDLE_SECONDS = 60.0
"""A session of an HTTP server ends after the time of an episode and this without a request."""

Problems = Annotated[list[str] | None, of_problems("; by default train")]
Http = Annotated[bool, of_server("Serve many clients over HTTP, instead of one over stdio.")]
Host = Annotated[str, of_server("Address to listen on.")]
Port = Annotated[int, of_server("Port to listen on; 0 picks a free one.", min=0, max=65535)]
Minutes = Annotated[
    float,
    typer.Option(
        help="Minutes per episode, judging included.",
        callback=positive,
        rich_help_panel="Episode",
    ),
]
Folder = Annotated[Path, typer.Option(help="Folder for the trajectories, one file per session.")]
Problem = Annotated[
    str, typer.Argument(help="Problem ID or file.", autocompletion=complete_problems)
]
Workspace = Annotated[Path, typer.Argument(help="Folder to write; new or empty.")]
Out = Annotated[Path, typer.Option(help="Trajectory file to append to, outside of the workspace.")]
TrajectoryFile = Annotated[Path, typer.Option(help="Trajectory file to append to.")]
Played = Annotated[
    list[str],
    typer.Option(
        help="Problems to play, one after another: IDs, levels, files, folders.",
        autocompletion=complete_problems,
    ),
]
Command = Annotated[
    list[str], typer.Argument(metavar="-- COMMAND...", help="The agent; the shell is not used.")
]
Samples = Annotated[int, typer.Option(help="Number of episodes per problem.", min=1)]
Name = Annotated[
    str, typer.Option(help="The agent's name in the record; by default that of its command.")
]
Unconfined = Annotated[
    bool, typer.Option("--unconfined", help="Do not sandbox the agent; the record says so.")
]


@settings_options(EPISODE)
def mcp(
    settings: Given,
    problem: Problems = None,
    override: Override = None,
    minutes: Minutes = 60,
    out: Folder = Path("agent-episodes"),
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8002,
) -> None:
    """Serve episodes to coding agents as MCP tools.

    Each session plays an episode of its own. Over HTTP, an address that other machines can reach
    requires a token: set KEVIN_ENV_MCP_TOKEN here, and send it as a bearer token. There is no TLS;
    use a proxy for that. Needs the extra mcp.
    """
    import asyncio
    import uuid

    from kevin_env.app.arguments import open_pool
    from kevin_env.app.errors import BadInput
    from kevin_env.recorder import Recorder
    from kevin_env.selection import find_problems

    with extra():
        from kevin_env.agents import server as served
        from kevin_env.agents.check import TOKEN
        from kevin_env.integrations.judge_server import require_token_for
        from kevin_env.pools.http import token_of
        from kevin_env.session import AgentSession
    chosen, problems = _settings(settings, override), find_problems(problem or "train")
    token = ""
    if http:
        try:
            token = token_of(os.environ.get(TOKEN, ""), TOKEN)
            require_token_for(host, token, TOKEN)
        except ValueError as error:
            raise BadInput(str(error)) from error
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        sock = opened.enter_context(open_socket(host, port)) if http else None
        pool = opened.enter_context(open_pool(chosen.device))

        def open_session() -> AgentSession:
            recorder = Recorder(out / f"{uuid.uuid4().hex}.jsonl")
            return AgentSession(problems, pool, chosen, 60 * minutes, recorder)

        server = served.make_server(served.one_each(open_session))
        if sock is None:
            asyncio.run(served.serve_stdio(server))
        else:
            where = f"http://{host}:{sock.getsockname()[1]}{served.PATH}"
            typer.echo(f"serving on {where}; Ctrl-C stops it", err=True)
            app = served.make_app(server, token, idle=60 * minutes + IDLE_SECONDS)
            served.make_http_server(app).run(sockets=[sock])


@settings_options(EPISODE)
def workspace(
    settings: Given,
    problem: Problem,
    folder: Workspace,
    override: Override = None,
    minutes: Minutes = 60,
    out: Out = TRAJECTORIES,
    host: Host = "127.0.0.1",
    port: Port = 0,
) -> None:
    """Write a folder for a coding agent, and judge what it submits.

    The folder has the task, a file to begin with and the command `./check kernel.py`, which submits
    it to this process. It serves one episode and ends with it, or with Ctrl-C. For an agent on
    another machine, --host is the address at which that reaches this one. Needs the extra mcp.
    """
    import asyncio

    from kevin_env.app.arguments import open_pool
    from kevin_env.app.errors import BadInput
    from kevin_env.app.screen import make_console, print_turn
    from kevin_env.problem import load_problem
    from kevin_env.record import best_turn

    with extra():
        from kevin_env.agents.run import TurnRecorder
        from kevin_env.agents.workspace import require_empty, serve_workspace
        from kevin_env.session import AgentSession
    chosen, task = _settings(settings, override), load_problem(problem)
    if host in ("0.0.0.0", "::", ""):
        raise BadInput(f"--host {host}: give the address at which the agent reaches this machine")
    if out.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"--out {out} is in the workspace: give a file outside of {folder}")
    require_empty(folder)
    _end_as_interrupted()
    recorder = TurnRecorder(out, partial(print_turn, make_console(stream="stderr")))
    recorder.require()

    async def wait_for_agent(_: AgentSession, where: Path) -> None:
        ready = f"{where} is ready: have your agent read {where}/AGENTS.md"
        typer.echo(f"{ready}. Ctrl-C ends the episode.", err=True)
        await asyncio.Event().wait()

    with open_socket(host, port) as sock, open_pool(chosen.device) as pool:
        session = AgentSession((task,), pool, chosen, 60 * minutes, recorder)
        typer.echo(f"preparing the workspace {folder}", err=True)
        try:
            serving = serve_workspace(session, chosen, minutes, folder, sock, wait_for_agent)
            ended = asyncio.run(serving)
        finally:
            if session.episode and session.episode.turns:
                typer.echo(f"recorded in {out}; kevin-env replay {out} shows it", err=True)
            elif session.episode:
                typer.echo("nothing was submitted, so nothing is recorded", err=True)
    best = best_turn(ended.turns) if ended else None
    typer.echo(f"best turn: {best.turn}, {best.speedup:.2f}x" if best else "no correct kernel")


@settings_options(EPISODE)
def agent(
    settings: Given,
    command: Command,
    problem: Played,
    samples: Samples = 1,
    override: Override = None,
    minutes: Minutes = 60,
    out: TrajectoryFile = TRAJECTORIES,
    name: Name = "",
    unconfined: Unconfined = False,
) -> None:
    """Run a coding agent on problems, each in a new workspace.

    The command runs in a sandbox with the network: it can write to its workspace, and sees neither
    your files, nor other processes, nor a GPU; its home folder is empty. KEVIN_ENV_READABLE names
    more places that it may read. Where it cannot be confined, the record says so. Its best kernel
    is judged once more at the end. What it prints is kept beside the trajectory file. Needs the
    extra mcp.
    """
    from kevin_env.app.arguments import open_pool
    from kevin_env.app.errors import ENDED_EARLY, BadInput
    from kevin_env.app.screen import counted, make_console, print_turn, show
    from kevin_env.render import ending_text
    from kevin_env.selection import find_problems

    with extra():
        from kevin_env.agents.run import Command, play_agent, public_judges
    chosen, problems = _settings(settings, override), find_problems(problem)
    try:
        how = Command.of(command, minutes, not unconfined, name)
    except ValueError as error:
        raise BadInput(str(error)) from error
    _end_as_interrupted()
    errors, played = make_console(stream="stderr"), 0
    with open_pool(chosen.device) as pool:
        if chosen.require_sandbox and (unconfined or public_judges(pool)):
            raise BadInput("--require-sandbox: leave out --unconfined, and judge with a token")
        for each in (each for each in problems for _ in range(samples)):
            most = counted(chosen.max_turns, "turn")
            doing = f"measuring the reference, then running {how.name}, at most {most}"
            show(errors, f"{each.id}: {doing}", "bold")
            one = play_agent(each, pool, chosen, how, out, partial(print_turn, errors))
            ended = one.trajectory
            played += bool(ended.turns)
            final = ending_text(ended.final) if ended.final else "no correct kernel"
            turns = f"{counted(len(ended.turns), 'turn')}, {ended.stop_reason}, {ended.agent}"
            typer.echo(f"{each.id}: {final} ({turns})")
            log = f"{out}.{ended.episode_id}.log"
            nothing = "" if ended.turns else "it submitted nothing; "
            code = f"{how.name} ended with exit code {one.exit_code}; " if one.exit_code else ""
            typer.echo(f"{code}{nothing}what the agent printed is in {log}", err=True)
    typer.echo(f"recorded in {out}; kevin-env report {out} shows the figures", err=True)
    raise typer.Exit(0 if played else ENDED_EARLY)


def _end_as_interrupted() -> None:
    """SIGTERM and a lost terminal end an episode as Ctrl-C does: an agent's cannot be resumed.

    As SIGINT, which asyncio turns into a cancellation. An exception raised by a handler would
    surface in whatever task runs, and again in each that waits for it.
    """

    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` sets it
        signal.signal(signal.SIGHUP, interrupt)


def _settings(given: Given, override: Sequence[str] | None) -> "Settings":
    from kevin_env.app.arguments import read_settings, require_available
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.errors import BadInput

    load_env_file()
    chosen = read_settings(override, **given)
    if chosen.templates != "default":
        raise BadInput(f"--templates {chosen.templates} is for chats; leave it out")
    require_available(chosen)
    return chosen
