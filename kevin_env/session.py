"""One agent's episode: its limits, and the answers to what an agent may ask."""

import asyncio
import math
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import ConfigDict

from kevin_env.context import choose_pairs, count_characters, start_of
from kevin_env.episode import Episode, EpisodeError
from kevin_env.extract import as_reply, is_chat
from kevin_env.feedback import (
    example_language,
    render_profile,
    render_task,
    resolve_language,
)
from kevin_env.frozen import Frozen
from kevin_env.judge.api import Facts, Judgement, JudgePool, Stage
from kevin_env.outcome import ProfileKind
from kevin_env.parsing import as_submission
from kevin_env.problem import Problem, shown_source
from kevin_env.record import Message, Reply, StopReason, Trajectory, Turn, best_turn
from kevin_env.recorder import Recorder
from kevin_env.selection import drawable, named
from kevin_env.settings import Settings

REPORT_SECONDS = 2.0
"""Time between two reports while a kernel is judged."""

T = TypeVar("T")

Report = Callable[[float, str], Awaitable[object]]
"""Called while a kernel is judged, with the seconds so far and what happens."""


class Standing(Frozen):
    """The limits of the episode and its best kernel so far, part of every answer."""

    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    max_turns: int
    turns_left: int
    seconds_left: float | None
    """None if there is no limit."""
    done: bool
    """Whether the episode has ended: no kernel is judged any more."""
    best_turn: int | None
    """The correct turn with the largest speedup; None before the first."""
    best_speedup: float | None


class Task(Standing):
    """The task."""

    problem_id: str
    task: str
    """The task with inputs, rules and score, in Markdown."""
    reference: str
    """The PyTorch module to replace."""
    first_kernel: str
    """A file to begin with: the reference under the name `ModelNew`."""
    device: str
    """The device that kernels are judged on."""
    language: str


class Verdict(Standing):
    """What became of a kernel. `category` and `kind` are those of the trajectory."""

    turn: int
    category: str
    kind: str
    score: float
    speedup: float | None
    speedup_interval: tuple[float, float] | None
    """95 % confidence interval of `speedup`."""
    feedback: str


class PastTurn(Frozen):
    """A turn in short."""

    turn: int
    category: str
    kind: str
    score: float
    speedup: float | None


class Best(Standing):
    """The best kernel so far, and all turns."""

    code: str | None
    """The file of the best turn."""
    turns: tuple[PastTurn, ...]


class Profiled(Standing):
    """Where a kernel's time goes."""

    turn: int
    profile: str


@dataclass(frozen=True, slots=True)
class _Asked(Generic[T]):
    """What the judge was asked for."""

    code: str
    future: Future[T]
    stages: list[Stage]
    """Those that it has reached."""

    @property
    def failed(self) -> bool:
        """Whether it ended without a result."""
        return self.future.done() and (
            self.future.cancelled() or self.future.exception() is not None
        )


class AgentSession:
    """An `Episode` with a limit of time, for one agent whose requests may break off.

    An interrupted request loses nothing: its kernel is judged to the end and takes its turn, and
    the same code, submitted again, gets the same verdict without another turn.

    Args:
        problems: those of which the agent plays one.
        pool: the judges; the caller closes them.
        settings: how the episode is played.
        seconds: time for the whole episode, judging included; may be infinite. A kernel that was
            submitted in time is judged to the end.
        recorder: writes the trajectory, if there is one.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        pool: JudgePool,
        settings: Settings,
        seconds: float,
        recorder: Recorder | None,
    ) -> None:
        self._problems, self._pool, self._settings = problems, pool, settings
        self._seconds, self._recorder = seconds, recorder
        self._submitting = threading.Lock()
        self._opening: asyncio.Future[Episode] | None = None
        self._episode: Episode | None = None
        self._end = 0.0
        self._last: _Asked[Turn] | None = None
        self._profiles: dict[tuple[int, ProfileKind], _Asked[Judgement]] = {}

    async def start(self, problem_id: str | None = None, agent: str = "agent") -> Task:
        """The task. The first call starts the episode and its time.

        Args:
            problem_id: which problem; by default one is drawn, of those that are not held out if
                there are any. It cannot be changed later.
            agent: the policy's name in the record.

        Raises:
            ProblemError: if there is no such problem, or its reference fails.
            EpisodeError: if the episode has another problem.
            JudgeError: if the judge fails; the episode has not started.
        """
        opening = self._opening
        if opening is None or (opening.done() and opening.exception()):
            known = self._problems
            problem = named(known, problem_id) if problem_id else random.choice(drawable(known))
            begun = asyncio.to_thread(self._open, problem, agent)
            opening = self._opening = asyncio.ensure_future(begun)
        episode = await asyncio.shield(opening)
        problem, hardware = episode.problem, episode.trajectory.hardware
        assert hardware is not None
        if problem_id and named(self._problems, problem_id) != problem:
            raise EpisodeError(f"the problem of this episode is {problem.id}")
        source = shown_source(problem).strip() + "\n"
        return Task(
            problem_id=problem.id,
            task=episode.messages[0].content,
            reference=source,
            first_kernel=start.code if (start := episode.start_kernel) else as_submission(source),
            device=hardware.name,
            language=resolve_language(self._settings.language, hardware),
            **self._standing(episode),
        )

    async def submit(self, code: str, report: Report | None = None) -> Verdict:
        """Judges a file and takes a turn, unless its code is that of the last turn.

        Raises:
            EpisodeError: before the start, after the end, or while another file is judged.
            JudgeError: if the judge fails; no turn is taken.
        """
        episode = self._require_episode()
        asked = self._last
        if asked is None or asked.code != code or asked.failed:
            asked = await asyncio.to_thread(self._begin, episode, code, _file_or_chat)
        turn = await _result(asked, report)
        return Verdict(
            **_short(turn),
            speedup_interval=turn.speedup_interval,
            feedback=turn.feedback,
            **self._standing(episode),
        )

    async def take_turn(self, text: str) -> Turn:
        """As `submit`, of a file or a chat's reply, but takes a turn in any case."""
        asked = await asyncio.to_thread(self._begin, self._require_episode(), text, as_reply)
        return await _result(asked)

    async def profile(
        self, number: int | None, kind: ProfileKind, report: Report | None = None
    ) -> Profiled:
        """Profiles the kernel of a correct turn, by default the best. It takes no turn.

        Raises:
            EpisodeError: before the start, after the end, or if there is no such turn.
            JudgeError: if the judge fails.
        """
        episode = self._require_episode()
        self._require_open(episode)
        if number is not None and number not in range(1, len(episode.turns) + 1):
            raise EpisodeError(f"there is no turn {number} yet; only correct kernels are profiled")
        turn = best_turn(episode.turns) if number is None else episode.turns[number - 1]
        if turn is None or turn.submission is None or turn.category != "correct":
            which = "no turn has a" if number is None else f"turn {number} has no"
            raise EpisodeError(f"{which} correct kernel to profile")
        asked = self._profiles.get((turn.turn, kind))
        if asked is None or asked.failed:
            options = self._settings.model_copy(update={"profile": kind}).options()
            stages, code = list[Stage](), turn.submission
            future = self._pool.submit(episode.problem, code, options, stages.append)
            asked = self._profiles[turn.turn, kind] = _Asked(code.code, future, stages)
        profile = (await _result(asked, report)).profile
        found = "\n\n".join(render_profile(profile)) if profile else ""
        return Profiled(
            turn=turn.turn, profile=found or "Nothing was found.", **self._standing(episode)
        )

    def best(self) -> Best:
        """The best kernel so far, and all turns; also after the end.

        Raises:
            EpisodeError: before the start.
        """
        episode = self._require_episode()
        best = best_turn(episode.turns)
        return Best(
            code=best.submission.code if best and best.submission else None,
            turns=tuple(PastTurn(**_short(turn)) for turn in episode.turns),
            **self._standing(episode),
        )

    @property
    def over(self) -> bool:
        """Whether nothing can be submitted any more, and nothing is being judged."""
        if self._episode is None or self._seconds_left():
            return self._episode is not None and self._episode.done
        return self._last is None or self._last.future.done()

    async def until_time_is_up(self) -> None:
        """Waits for the end of the episode's time, and for a kernel that was submitted in time."""
        await asyncio.sleep(self._seconds_left())
        await self.settled()

    async def settled(self) -> None:
        """Waits for the kernel that is being judged, if there is one."""
        if self._last is not None:
            await asyncio.wait([asyncio.wrap_future(self._last.future)])

    @property
    def episode(self) -> Episode | None:
        """The episode; None before the start."""
        return self._episode

    def cancel(self) -> bool:
        """Takes back what is being judged or profiled; False if there is nothing."""
        with self._submitting:
            asked = [*self._profiles.values(), *([self._last] if self._last else [])]
            stopped = [each.future.cancel() for each in asked if not each.future.done()]
        return any(stopped)

    def close(self, reason: StopReason = "interrupted") -> Trajectory | None:
        """Ends the episode, without the kernel that is being judged; None if it never started.

        `reason` says why it ends if it has turns and time left.
        """
        self.cancel()
        with self._submitting:
            if self._last is not None and not self._last.future.cancel():
                wait([self._last.future])  # it has been judged, and is being recorded
            if self._episode is None:
                return None
            return self._episode.finish(reason if self._seconds_left() else "time_limit")

    def _open(self, problem: Problem, agent: str) -> Episode:
        episode = Episode(
            problem, self._pool, self._settings,
            recorder=self._recorder, model=agent, build=task_messages,
        )  # fmt: skip
        episode.start()
        self._end = time.monotonic() + self._seconds
        self._episode = episode
        return episode

    def _begin(
        self, episode: Episode, code: str, read: Callable[[str], str | Reply]
    ) -> _Asked[Turn]:
        """Submits what `read` makes of a text, in a thread: parsing it takes time."""
        stages, reply = list[Stage](), read(code)
        with self._submitting:
            self._require_open(episode)
            future = episode.submit_later(reply, stages.append)
            self._last = _Asked(code, future, stages)
            return self._last

    def _seconds_left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def _require_episode(self) -> Episode:
        if self._episode is None:
            raise EpisodeError("the episode has not started; call get_problem first")
        return self._episode

    def _require_open(self, episode: Episode) -> None:
        if not episode.done and not self._seconds_left():
            raise EpisodeError(f"the time limit of {self._seconds:g} s expired")
        if episode.done:
            raise EpisodeError(f"the episode has ended after turn {len(episode.turns)}")

    def _standing(self, episode: Episode) -> dict[str, Any]:
        best, over = best_turn(episode.turns), self.over
        left = 0.0 if over else self._seconds_left()
        return {
            "max_turns": self._settings.max_turns,
            "turns_left": 0 if over else self._settings.max_turns - len(episode.turns),
            "seconds_left": left if math.isfinite(left) else None,
            "done": over,
            "best_turn": best.turn if best else None,
            "best_speedup": best.speedup if best else None,
        }


def task_messages(
    problem: Problem, facts: Facts, turns: Sequence[Turn], settings: Settings
) -> tuple[Message, ...]:
    """The task of a coding agent, which remembers its turns itself: the same for every turn."""
    language = example_language(settings.language, facts.device)
    room = settings.context_tokens
    task = render_task(
        problem,
        facts,
        settings,
        example=settings.examples != "zero",
        pairs=choose_pairs(problem, language, settings, room, count_characters),
        start=start_of(turns),
        for_agent=True,
    )
    return (Message(role="user", content=task.strip()),)


def _short(turn: Turn) -> dict[str, Any]:
    return {name: getattr(turn, name) for name in PastTurn.model_fields}


async def _result(asked: _Asked[T], report: Report | None = None) -> T:
    """The result. If this is cancelled, as with the request, the judge goes on."""
    waiting, started = asyncio.wrap_future(asked.future), time.monotonic()
    done = False
    while not done:
        # No stage is named: a client that breaks off at `time` would learn that the values are
        # right.
        doing = "judging" if {*asked.stages} - {"queue"} else "waiting for the judge"
        if report is not None:
            await report(time.monotonic() - started, doing)
        done, _ = await asyncio.wait([waiting], timeout=REPORT_SECONDS)
    if waiting.cancelled():
        raise EpisodeError("judging was stopped, and no turn was taken")
    return waiting.result()


def _file_or_chat(text: str) -> Reply:
    """What was submitted as a file, which some agents wrap in words."""
    return Reply(content=text, file=not is_chat(text))
