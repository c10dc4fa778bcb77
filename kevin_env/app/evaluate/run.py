"""What a run tells to whoever looks on."""

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from kevin_env.advantage import returns_of
from kevin_env.app.evaluate.config import EvalConfig
from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.folder import Compared, RunFolder, compare
from kevin_env.app.evaluate.players import Player, policy_name
from kevin_env.app.evaluate.search import Past, Play, Shape, fork, plan
from kevin_env.app.evaluate.workers import Workers
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgeError, JudgePool, Options
from kevin_env.policies.base import PolicyError
from kevin_env.problem import Problem, ProblemError
from kevin_env.record import StopReason, Trajectory, Turn
from kevin_env.settings import Settings

Waiting = Literal["model", "judge"]


class Watch(Protocol):
    """Is told what happens, from several threads."""

    def waits(self, problem: str, sample: int, whom: Waiting | None) -> None:
        """A sample waits for the model or the judge, or for nobody any more."""
        ...

    def turn(self, problem: str, sample: int, turn: Turn) -> None:
        """A turn has been judged."""
        ...

    def ended(self, problem: str, sample: int, turns: int, reason: StopReason, why: str) -> None:
        """A sample ended with that many turns. `why` is empty unless something failed."""
        ...

    def compared(self, problem: str, compared: Compared) -> None:
        """torch.compile has been compared with eager."""
        ...

    def failed(self, problem: str, why: str) -> None:
        """A problem cannot be played at all."""
        ...

    def trouble(self, message: str) -> None:
        """Something else that a person should know."""
        ...


class Log(Protocol):
    """Keeps what becomes of a run for whoever looks at it elsewhere."""

    def follow(self) -> None:
        """Episodes may have ended. Called from several threads.

        Raises:
            OSError: if it cannot be kept.
        """
        ...

    def conclude(self, metrics: RunMetrics) -> None:
        """The figures of what there is.

        Raises:
            OSError: if they cannot be kept.
        """
        ...


RETRY_SECONDS = (1.0, 5.0)
"""Pauses after which a judge that failed is asked again."""

T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """What a run needs."""

    config: EvalConfig
    problems: Sequence[Problem]
    folder: RunFolder
    pool: JudgePool
    player: Player
    watch: Watch
    log: Log | None = None

    @property
    def shape(self) -> Shape:
        """Of the search."""
        return self.config.search.shape(self.config.samples, self.config.settings.max_turns)

    @property
    def settings(self) -> Settings:
        """Of each episode."""
        return self.config.settings.model_copy(update={"max_turns": self.shape.turns})


class Stopped(Exception):
    """No further turn is to be begun; what there is stays as it is, to be taken up later."""


class Seat:
    """Plays one sample.

    Args:
        setup: of the run.
        workers: whose thread this is.
        pacer: says when the model may be asked.
        problem: what is to be solved.
        play: which sample, and how far.
    """

    def __init__(
        self, setup: Setup, workers: Workers, pacer: "Pacer", problem: Problem, play: Play
    ) -> None:
        self.setup = setup
        self.problem = problem
        self.play = play
        self._workers = workers
        self._pacer = pacer

    def open(self) -> Episode:
        """The episode, new or taken up.

        Raises:
            Stopped: if the run is stopped meanwhile.
            JudgeError: if the judge fails again and again.
            ProblemError: if the reference fails, or the problem is not there as it was recorded.
        """
        return retried(self._open, self._workers)

    def take_turns(self, episode: Episode) -> str:
        """Plays on, and says why it ended early, if something failed.

        Raises:
            Stopped: if the run is stopped meanwhile.
            ProblemError: if the reference fails.
        """
        try:
            policy = self.setup.player(self.problem, self.play.sample, len(episode.turns))
            while not episode.done and len(episode.turns) < self.play.until:
                self._waits("model")
                self._pacer.wait()
                reply = policy.reply(episode.messages)
                self._waits("judge")
                turn = retried(lambda reply=reply: episode.submit(reply), self._workers)
                self.setup.watch.turn(self.problem.id, self.play.sample, turn)
        except (PolicyError, JudgeError) as error:
            if self._workers.abandoned.is_set():  # nobody knows whose failure it is
                raise Stopped from error
            episode.finish(error.stop_reason if isinstance(error, PolicyError) else "judge_error")
            return str(error) or type(error).__name__
        return ""

    def _open(self) -> Episode:
        own, play = self.setup, self.play
        if play.past is None:
            episode = Episode(
                self.problem, own.pool, own.settings,
                recorder=own.folder.recorder, model=policy_name(own.config), sample=play.sample,
            )  # fmt: skip
        else:
            trajectory = own.folder.recorder.episode(play.past.episode_id)
            if play.fork_at is not None:
                trajectory = fork(trajectory, play.fork_at, play.sample)
            episode = Episode.resume(trajectory, own.pool, recorder=own.folder.recorder)
        episode.start()
        return episode

    def _waits(self, whom: Waiting) -> None:
        stop = self._workers.stopping if whom == "model" else self._workers.abandoned
        if stop.is_set():
            raise Stopped
        self.setup.watch.waits(self.problem.id, self.play.sample, whom)


class Pacer:
    """Spreads requests evenly over a minute.

    Args:
        per_minute: how many; None: as they come.
        workers: whose threads wait.
    """

    def __init__(self, per_minute: float | None, workers: Workers) -> None:
        self._seconds = 60 / per_minute if per_minute else 0.0
        self._workers = workers
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Waits until the next request may be sent.

        Raises:
            Stopped: if the run is stopped meanwhile.
        """
        with self._lock:
            now = time.monotonic()
            at = max(now, self._next)
            self._next = at + self._seconds
        if at > now and not self._workers.pause(at - now):
            raise Stopped


def retried(attempt: Callable[[], T], workers: Workers) -> T:
    """Asks a judge that failed again, a few times.

    Raises:
        Stopped: if the run is stopped meanwhile.
        JudgeError: if it goes on failing.
    """
    for pause in RETRY_SECONDS:
        try:
            return attempt()
        except JudgeError:
            if not workers.pause(pause):
                raise Stopped from None
    return attempt()


LEAST_STRIKES = 3
"""Fewer failures in a row than this never end a run."""
ATTEMPTS = 2
"""How often a process plays a sample whose model or judge fails; a later one may take it up again.
"""


class Run:
    """One process's part of an evaluation: from what there is in the folder to the end, or until it
    is stopped.

    Args:
        setup: what it needs. The folder must be locked.
        recorded: the episodes that there are.
    """

    def __init__(self, setup: Setup, recorded: Sequence[Trajectory]) -> None:
        self.setup = setup
        self.failed: dict[str, str] = {}
        """Why a problem could not be played, by its id."""
        self.left: list[str] = []
        """Stop reasons of the samples that failed; a later run takes them up again."""
        self.gave_up: str | None = None
        """Why the run was stopped before its end."""
        self._workers = Workers(setup.config.concurrency)
        self._pacer = Pacer(setup.config.requests_per_minute, self._workers)
        self._pasts: dict[str, dict[str, Past]] = {problem.id: {} for problem in setup.problems}
        for each in recorded:
            if each.problem.id in self._pasts and each.sample is not None:
                self._pasts[each.problem.id][each.episode_id] = Past.of(each)
        self._device = next((each.hardware.name for each in recorded if each.hardware), None)
        """What the run was begun on, until it is known to be the same here."""
        self._ranks = {problem.id: number for number, problem in enumerate(setup.problems)}
        # One problem after the other: judges keep few references ready.
        self._taken: set[tuple[str, int]] = set()
        """Samples that are played or waiting to be, and those that failed and are left to a later
        run.
        """
        self._failures: Counter[tuple[str, int]] = Counter()
        self._compared = setup.folder.compared()
        self._strikes = 0
        self._lock = threading.RLock()

    def play(self) -> None:
        """Plays until nothing is left, or nothing goes any more (`gave_up`).

        Raises:
            KeyboardInterrupt: after Ctrl-C; whatever was judged is on disk.
            OSError: if the folder cannot be written.
        """
        for problem in self.setup.problems:
            self._plan(problem)
        if "compile" in self.setup.config.baselines:
            for problem in self.setup.problems:
                self._workers.put(functools.partial(self._compare, problem), len(self._ranks) + 1)
        said = "stopping: turns that are running are waited for, Ctrl-C again drops them"
        self._workers.wait(lambda: self.setup.watch.trouble(said))

    def _plan(self, problem: Problem) -> None:
        """Puts what can be played now."""
        with self._lock:
            pasts = self._pasts[problem.id]
            now = plan(self.setup.shape, list(pasts.values()))
            for past in now.prunes:
                pasts[past.episode_id] = self._prune(past)
            for play in now.plays:
                key = (problem.id, play.sample)
                if key not in self._taken:
                    self._taken.add(key)
                    rank = len(self._ranks) if self._failures[key] else self._ranks[problem.id]
                    self._workers.put(functools.partial(self._play, problem, play), rank)

    def _prune(self, past: Past) -> Past:
        trajectory = self.setup.folder.recorder.episode(past.episode_id)
        pruned = trajectory.model_copy(
            update={"stop_reason": "pruned", "returns": returns_of(trajectory)}
        )
        self.setup.folder.recorder.finish(pruned)
        return Past.of(pruned)

    def _play(self, problem: Problem, play: Play) -> None:
        """Plays one sample as far as planned, then plans again."""
        if problem.id in self.failed:
            return
        seat, watch = Seat(self.setup, self._workers, self._pacer, problem, play), self.setup.watch
        try:
            self._require_device(problem)
            episode = seat.open()
            why = seat.take_turns(episode)
        except Stopped:
            return
        except ProblemError as error:
            self._give_up_on(problem, error)
            return
        except JudgeError as error:  # before the first turn: there is nothing to be recorded
            self._fail(problem, play, "judge_error", str(error), play.begin)
            self._plan(problem)
            return
        finally:
            watch.waits(problem.id, play.sample, None)
        self._take(problem, play, episode.trajectory, why)

    def _take(self, problem: Problem, play: Play, trajectory: Trajectory, why: str) -> None:
        """Takes note of what was played, and plans on."""
        reason, turns = trajectory.stop_reason, len(trajectory.turns)
        with self._lock:
            self._pasts[problem.id][trajectory.episode_id] = Past.of(trajectory)
            self._strikes = 0 if turns > play.begin else self._strikes
        if reason in ("judge_error", "model_error"):
            self._fail(problem, play, reason, why, turns)
        elif reason == "interrupted":
            self._stop(why)
        else:
            self._taken.discard((problem.id, play.sample))
            if reason is not None:
                self.setup.watch.ended(problem.id, play.sample, turns, reason, why)
        if self.setup.log:
            self.setup.log.follow()
        self._plan(problem)

    def _fail(self, problem: Problem, play: Play, reason: StopReason, why: str, turns: int) -> None:
        """A sample failed: it is played again later, or left. So many in a row as are played at a
        time end the run.
        """
        key, whose = (
            (problem.id, play.sample),
            "the judge" if reason == "judge_error" else "the model",
        )
        with self._lock:
            self._failures[key] += 1
            self._strikes += 1
            if self._failures[key] < ATTEMPTS:
                self._taken.discard(key)
                self.setup.watch.trouble(
                    f"{problem.id} sample {play.sample} is played again later: {why}"
                )
            else:
                self.left.append(reason)
                self.setup.watch.ended(problem.id, play.sample, turns, reason, why)
            if self._strikes >= max(LEAST_STRIKES, self.setup.config.concurrency):
                self._stop(f"{whose} failed {self._strikes} times in a row, at last so: {why}")

    def _require_device(self, problem: Problem) -> None:
        """Figures of two devices are not to be mixed. Raises Stopped; errors as `Seat.open`."""
        begun_on = self._device
        if begun_on is None:
            return
        own = self.setup.settings
        options = Options(device=own.device, baseline=own.baseline, inputs=own.inputs)
        facts = retried(lambda: self.setup.pool.describe(problem, options).result(), self._workers)
        if facts.device.name != begun_on:
            self._stop(
                f"the run was begun on {begun_on}, and this is {facts.device.name}; give another --out here"
            )
            raise Stopped
        self._device = None

    def _stop(self, why: str) -> None:
        self.gave_up = self.gave_up or why
        self._workers.stopping.set()

    def _give_up_on(self, problem: Problem, error: ProblemError) -> None:
        with self._lock:
            known = problem.id in self.failed
            self.failed[problem.id] = str(error)
        if not known:
            self.setup.watch.failed(problem.id, str(error))

    def _compare(self, problem: Problem) -> None:
        """Measures torch.compile on one problem, unless that is known, and keeps what is told at
        once.
        """
        known = self._compared.get(problem.id)
        if problem.id in self.failed or (known and known.sha256 == problem.sha256):
            return
        try:
            found = retried(
                lambda: compare(problem, self.setup.settings, self.setup.pool), self._workers
            )
        except Stopped:
            return
        except (JudgeError, ProblemError) as error:
            self.left.append("judge_error")
            self.setup.watch.trouble(f"{problem.id}: torch.compile could not be measured: {error}")
            return
        with self._lock:
            self._compared[problem.id] = found
            self.setup.folder.write_compared(self._compared)
        self.setup.watch.compared(problem.id, found)
