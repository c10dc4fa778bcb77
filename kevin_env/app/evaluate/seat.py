"""One sample of a problem, played as far as it was planned."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kevin_env.app.evaluate.config import EvalConfig
from kevin_env.app.evaluate.folder import RunFolder
from kevin_env.app.evaluate.players import Player, policy_name
from kevin_env.app.evaluate.search import Play, Shape, fork
from kevin_env.app.evaluate.watch import Log, Waiting, Watch
from kevin_env.app.evaluate.workers import Workers
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgeError, JudgePool
from kevin_env.policies.base import PolicyError
from kevin_env.problem import Problem
from kevin_env.settings import Settings

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
