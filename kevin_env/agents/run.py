"""Runs a command as the agent of a workspace, and judges its best kernel once more at the end."""

import asyncio
import os
import shutil
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kevin_env.agents.workspace import serve_workspace
from kevin_env.integrations.judge_server import listen
from kevin_env.judge.api import JudgeError, JudgePool
from kevin_env.judge.sandbox.readable import NAME as READABLE
from kevin_env.outcome import Outcome
from kevin_env.pools.base import RequestPool
from kevin_env.problem import Problem
from kevin_env.record import Confinement, Trajectory, Turn, best_turn
from kevin_env.recorder import Recorder
from kevin_env.session import AgentSession
from kevin_env.settings import Settings
from kevin_env.turn import begin_verdict

GRACE_SECONDS = 10.0
"""For an agent to exit by itself after its last turn."""
MOST_PRINTED = 64 << 20
"""Bytes that are kept of what an agent prints."""
PROTECTIONS = frozenset({"filesystem", "processes"})
"""Protections that hold for a confined agent."""
TICK_SECONDS = 0.2
"""Between two looks whether an agent has to end."""
_LAST_WORDS_SECONDS = 1.0
_RUNNER = (sys.executable, "-P", "-m", "kevin_env.judge.sandbox.command")

OnTurn = Callable[[Turn], object]


@dataclass(frozen=True, slots=True)
class Command:
    """How an agent is started.

    Attributes:
        words: the program, by its absolute path, and its arguments.
        name: of the agent, for the record.
        minutes: its time, judging included.
        sandbox: whether to confine it as far as this machine allows.
    """

    words: Sequence[str]
    name: str
    minutes: float
    sandbox: bool = True

    @classmethod
    def of(cls, words: Sequence[str], minutes: float, sandbox: bool, name: str = "") -> "Command":
        """With its program as the shell finds it; the default name is that of the program.

        Raises:
            ValueError: if there is no such program.
        """
        program = shutil.which(words[0])
        if program is None:
            there = Path(words[0]).is_file() and os.sep in words[0]
            raise ValueError(f"{words[0]}: {'not executable' if there else 'no such command'}")
        path = Path(program)
        return cls((str(path.absolute()), *words[1:]), name or path.name, minutes, sandbox)


class TurnRecorder(Recorder):
    """Reports each turn once it is written.

    Args:
        path: the trajectory file.
        on_turn: called with each turn.
    """

    def __init__(self, path: Path, on_turn: OnTurn) -> None:
        super().__init__(path)
        self._on_turn = on_turn

    def begin(self, trajectory: Trajectory) -> None:
        """As `Recorder.begin`."""
        super().begin(trajectory)
        self._on_turn(trajectory.turns[-1])

    def add(self, episode_id: str, turn: Turn) -> None:
        """As `Recorder.add`."""
        super().add(episode_id, turn)
        self._on_turn(turn)


class AgentRecorder(TurnRecorder):
    """Writes an agent's episode once its best kernel has been judged again.

    Args:
        path: the trajectory file.
        on_turn: called with each turn.
        sample: number of the episode among those of its problem.
    """

    def __init__(self, path: Path, on_turn: OnTurn, sample: int | None) -> None:
        super().__init__(path, on_turn)
        self._sample = sample
        self.agent: Confinement = "unconfined"
        """How the agent runs; set before its first turn."""

    def begin(self, trajectory: Trajectory) -> None:
        """As `Recorder.begin`, saying how the agent runs."""
        super().begin(self._labelled(trajectory))

    def finish(self, trajectory: Trajectory) -> None:
        """Nothing yet; `conclude` writes the episode."""

    def conclude(self, trajectory: Trajectory, final: Outcome | None) -> Trajectory:
        """Writes the finished episode, also if it has no turn."""
        whole = self._labelled(trajectory).model_copy(update={"final": final})
        super().finish(whole)
        return whole

    def _labelled(self, trajectory: Trajectory) -> Trajectory:
        return trajectory.model_copy(update={"agent": self.agent, "sample": self._sample})


@dataclass(frozen=True, slots=True)
class Played:
    """An agent's episode.

    Attributes:
        trajectory: as it is recorded.
        exit_code: of the command, negative for a signal; None if it was ended with the episode.
    """

    trajectory: Trajectory
    exit_code: int | None


def play_agent(
    problem: Problem,
    pool: JudgePool,
    settings: Settings,
    command: Command,
    out: Path,
    on_turn: OnTurn,
    sample: int | None = None,
    stop: threading.Event | None = None,
) -> Played:
    """Plays one episode with a command in a workspace of its own, and records it.

    What the command prints is in `OUT.EPISODE.log`. Its workspace is removed at the end.

    Args:
        problem: the problem.
        pool: the judges; the caller closes them.
        settings: how the episode is played. With `require_sandbox`, an agent that cannot be
            confined is not started.
        command: the agent.
        out: the trajectory file.
        on_turn: called with each turn.
        sample: number of the episode among those of its problem.
        stop: once set, by another thread, the agent is ended and the episode is interrupted.

    Raises:
        ProblemError, JudgeError, OSError: as `serve_workspace`; turns so far are recorded.
        JudgeError: also if the agent cannot be confined and must be, or if its best kernel could
            not be judged again.
    """
    recorder = AgentRecorder(out, on_turn, sample)
    recorder.require()
    session = AgentSession((problem,), pool, settings, 60 * command.minutes, recorder)
    final, ended, exit_code = None, None, None
    with (
        TemporaryDirectory(prefix="kevin-agent-", ignore_cleanup_errors=True) as scratch,
        listen("127.0.0.1", 0) as sock,
    ):

        async def work(session: AgentSession, folder: Path) -> None:
            nonlocal exit_code
            assert session.episode
            log = out.with_name(f"{out.name}.{session.episode.episode_id}.log")
            watching = asyncio.ensure_future(_cancel_at(stop, asyncio.current_task()))
            try:
                required = settings.require_sandbox
                public = public_judges(pool)
                exit_code = await _run(command, required, public, session, recorder, folder, log)
            finally:
                watching.cancel()

        try:
            serving = serve_workspace(
                session, settings, command.minutes, Path(scratch, "work"), sock, work, command.name
            )
            ended = asyncio.run(serving)
            best = best_turn(ended.turns) if ended else None
            if best and best.submission:
                options = settings.options()
                final = begin_verdict(best.submission, problem, options, pool).result().outcome
        finally:
            # Nothing is recorded of an agent that could not start.
            if session.episode and (session.episode.turns or ended):
                ended = recorder.conclude(session.episode.trajectory, final)
    assert ended is not None
    return Played(ended, exit_code)


def public_judges(pool: JudgePool) -> bool:
    """Whether an agent could use the judges without its session: their address is enough."""
    return isinstance(pool, RequestPool) and pool.public


async def _run(
    command: Command,
    required: bool,
    public: bool,
    session: AgentSession,
    recorder: AgentRecorder,
    folder: Path,
    log: Path,
) -> int:
    """Runs the command until it ends, and returns its exit code; if cancelled, ends it."""
    reader, writer = os.pipe()
    wanted = " ".join(sorted(PROTECTIONS)) if required else ""
    runner = [*_RUNNER, str(writer), wanted, str(folder.parent), str(folder)]
    try:
        process = await asyncio.create_subprocess_exec(
            *(runner if command.sandbox else ()), *command.words,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT, cwd=None if command.sandbox else folder,
            env=_environment(), pass_fds=(writer,) if command.sandbox else (),
            start_new_session=True,
        )  # fmt: skip
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    assert process.stdout
    copying = asyncio.ensure_future(_copy(process.stdout, log))
    try:
        held = await asyncio.to_thread(os.read, reader, 1000)
        confined = {*held.decode().split()} >= PROTECTIONS and not public
        if required and not confined:
            raise JudgeError(f"the agent cannot be confined on this machine; see {log}")
        recorder.agent = "confined" if confined else "unconfined"
        exit_code = await process.wait()
        await session.settled()
        return exit_code
    finally:
        os.close(reader)
        ended = session.episode and session.episode.stop_reason
        if process.returncode is None and ended:
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        # One that is not confined may have left processes, which hold the pipe.
        with suppress(TimeoutError):
            await asyncio.wait_for(copying, _LAST_WORDS_SECONDS)


async def _cancel_at(stop: threading.Event | None, task: "asyncio.Task[None] | None") -> None:
    """Cancels a task once `stop` is set."""
    while stop is not None and not stop.is_set():
        await asyncio.sleep(TICK_SECONDS)
    if stop is not None and task is not None:
        task.cancel()


async def _copy(output: asyncio.StreamReader, log: Path) -> None:
    """Writes what an agent prints to a file: all of it, or the beginning and the end."""
    late, held, left_out = deque[bytes](), 0, 0
    with log.open("wb", buffering=0) as file:
        try:
            while chunk := await output.read(1 << 16):
                room = max(0, MOST_PRINTED // 2 - file.tell())
                file.write(chunk[:room])
                if rest := chunk[room:]:
                    late.append(rest)
                held += len(rest)
                while held > MOST_PRINTED // 2:
                    dropped = len(late.popleft())
                    held, left_out = held - dropped, left_out + dropped
        finally:  # a process that it left may still hold the other end
            if left_out:
                file.write(f"\n... {left_out:,} bytes left out ...\n".encode())
            for chunk in late:
                file.write(chunk)


def _environment() -> Mapping[str, str]:
    """That of this process, with this Python first, and without what is meant for the judge."""
    ours = {name for name in os.environ if name.startswith("KEVIN_ENV_")} - {READABLE}
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"}
