"""Plays what is missing of an evaluation, many episodes at once.

Each turn is written to disk as soon as it is judged.
"""

import functools
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kevin_env.advantage import returns_of
from kevin_env.app.evaluate.board import Board, Waiting
from kevin_env.app.evaluate.config import EvalConfig
from kevin_env.app.evaluate.figures import RunMetrics
from kevin_env.app.evaluate.folder import Compared, RunFolder
from kevin_env.app.evaluate.players import Player, WholePlayer, policy_name, recorded_url
from kevin_env.app.evaluate.search import Past, Play, Shape, fork, plan
from kevin_env.app.evaluate.workers import Pacer, Stopped, Workers
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgeError, JudgePool, Submission
from kevin_env.outcome import interval_of, speedup_of
from kevin_env.parsing import as_submission
from kevin_env.policies.base import PolicyError
from kevin_env.policies.openai import OpenAIPolicy
from kevin_env.problem import Problem, ProblemError
from kevin_env.record import StopReason, Trajectory
from kevin_env.settings import Settings

LEAST_STRIKES = 3
"""Failures in a row that end a run, or its concurrency if that is larger."""
ATTEMPTS = 2
"""Attempts at a sample whose model or judge fails, per process; a later one may continue it."""
_LONG_PAUSE = 5.0
"""Seconds before a retry of a request from which on the pause is reported."""


class Log(Protocol):
    """Mirrors a run elsewhere, such as in TensorBoard. Both methods raise OSError on failure."""

    def follow(self) -> None:
        """Episodes may have ended. Called from several threads."""
        ...

    def conclude(self, metrics: RunMetrics) -> None:
        """Writes the final figures."""
        ...


@dataclass(frozen=True)
class Setup:
    """What a run needs."""

    config: EvalConfig
    problems: Sequence[Problem]
    folder: RunFolder
    pool: JudgePool
    player: Player | WholePlayer
    board: Board
    log: Log | None = None

    @property
    def shape(self) -> Shape:
        """Of the search."""
        return self.config.search.shape(self.config.samples, self.config.settings.max_turns)

    @property
    def settings(self) -> Settings:
        """Of each episode."""
        return self.config.settings.model_copy(update={"max_turns": self.shape.turns})


class Run:
    """One process's part of an evaluation, from the recorded episodes to the end or a stop.

    Args:
        setup: the folder must be locked.
        recorded: the episodes in the folder.
    """

    def __init__(self, setup: Setup, recorded: Sequence[Trajectory]) -> None:
        self.setup = setup
        self.failed: dict[str, str] = {}
        """Why a problem could not be played, by its id."""
        self.left: list[str] = []
        """Stop reasons of failed samples, which a later run continues."""
        self.gave_up: str | None = None
        """Why the run was stopped before its end."""
        self._workers = Workers(setup.config.concurrency)
        self._pacer = Pacer(setup.config.requests_per_minute, self._workers)
        self._pasts: dict[str, dict[str, Past]] = {problem.id: {} for problem in setup.problems}
        for each in recorded:
            if each.problem.id in self._pasts and each.sample is not None:
                self._pasts[each.problem.id][each.episode_id] = Past.of(each)
        # The recorded device, until it is known to be the same here.
        self._device = next((each.hardware.name for each in recorded if each.hardware), None)
        # Problem by problem, since judges cache few references.
        self._ranks = {problem.id: number for number, problem in enumerate(setup.problems)}
        # Samples that are queued or playing, or have failed and are left to a later run.
        self._taken: set[tuple[str, int]] = set()
        self._failures: Counter[tuple[str, int]] = Counter()
        self._compared = setup.folder.compared()
        self._strikes = 0
        self._lock = threading.RLock()

    def play(self) -> None:
        """Plays until nothing is left or the run gives up (`gave_up`).

        Raises:
            KeyboardInterrupt: after Ctrl-C; every judged turn is on disk.
            OSError: if the folder cannot be written.
        """
        for problem in self.setup.problems:
            self._plan(problem)
        if "compile" in self.setup.config.baselines:
            for problem in self.setup.problems:
                self._workers.put(functools.partial(self._compare, problem), len(self._ranks) + 1)
        said = "stopping: waiting for running turns; press Ctrl-C again to discard them"
        self._workers.wait(lambda: self.setup.board.trouble(said))

    def _plan(self, problem: Problem) -> None:
        """Queues the samples that can be played now."""
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
        recorder = self.setup.folder.recorder
        episode = recorder.episode(past.episode_id)
        update = {"stop_reason": "pruned", "returns": returns_of(episode)}
        pruned = episode.model_copy(update=update)
        recorder.finish(pruned)
        return Past.of(pruned)

    def _play(self, problem: Problem, play: Play) -> None:
        """Plays one sample as far as planned, then plans again."""
        if problem.id in self.failed:
            return
        try:
            self._require_device(problem)
            if isinstance(self.setup.player, WholePlayer):
                played, why = self._play_whole(problem, play, self.setup.player), ""
            else:
                episode = self._workers.retry(lambda: self._open(problem, play))
                why = self._take_turns(problem, play, self.setup.player, episode)
                played = episode.trajectory
        except Stopped:
            return
        except ProblemError as error:
            self._give_up_on(problem, error)
            return
        except JudgeError as error:  # before the first turn: nothing to record
            self._fail(problem, play, "judge_error", str(error), play.begin)
            self._plan(problem)
            return
        finally:
            self.setup.board.waits(problem.id, play.sample, None)
        self._note(problem, play, played, why)

    def _open(self, problem: Problem, play: Play) -> Episode:
        """The episode, new, continued or forked."""
        own = self.setup
        recorder = own.folder.recorder
        if play.past is None:
            episode = Episode(
                problem, own.pool, own.settings,
                recorder=recorder, model=policy_name(own.config), sample=play.sample,
            )  # fmt: skip
        else:
            trajectory = recorder.episode(play.past.episode_id)
            if play.fork_at is not None:
                trajectory = fork(trajectory, play.fork_at, play.sample)
            episode = Episode.resume(trajectory, own.pool, recorder=recorder)
        episode.base_url = recorded_url(own.config)
        episode.start()
        return episode

    def _play_whole(self, problem: Problem, play: Play, player: WholePlayer) -> Trajectory:
        """Plays an episode from its start, whatever is recorded of the sample."""
        self._wait_for("model", problem, play)
        own, stopping = self.setup, self._workers.stopping
        on_turn = functools.partial(own.board.turn, problem.id, play.sample)
        played = player.play(problem, play.sample, own.pool, own.settings, on_turn, stopping)
        if played.stop_reason == "interrupted":
            raise Stopped
        return played

    def _take_turns(self, problem: Problem, play: Play, player: Player, episode: Episode) -> str:
        """Plays the planned turns. Returns why it ended early, empty if nothing failed."""
        try:
            policy = player(problem, play.sample, len(episode.turns))
            if isinstance(policy, OpenAIPolicy):
                policy = policy.pausing(self._wait_to_retry)
            while not episode.done and len(episode.turns) < play.until:
                self._wait_for("model", problem, play)
                self._pacer.wait()
                reply = policy.reply(episode.messages)
                self._wait_for("judge", problem, play)
                turn = self._workers.retry(lambda reply=reply: episode.submit(reply))
                self.setup.board.turn(problem.id, play.sample, turn)
        except (PolicyError, JudgeError) as error:
            if self._workers.abandoned.is_set():  # the interrupt may have caused it
                raise Stopped from error
            episode.finish(error.stop_reason if isinstance(error, PolicyError) else "judge_error")
            return str(error) or type(error).__name__
        return ""

    def _wait_to_retry(self, why: str, seconds: float) -> None:
        """Pauses before a request is sent again. Raises Stopped if the run stops meanwhile."""
        if seconds >= _LONG_PAUSE:
            self.setup.board.retries(why, seconds)
        self._workers.pause(seconds)

    def _wait_for(self, target: Waiting, problem: Problem, play: Play) -> None:
        stop = self._workers.stopping if target == "model" else self._workers.abandoned
        if stop.is_set():
            raise Stopped
        self.setup.board.waits(problem.id, play.sample, target)

    def _note(self, problem: Problem, play: Play, trajectory: Trajectory, why: str) -> None:
        """Notes what was played, and plans again."""
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
                self.setup.board.ended(problem.id, play.sample, turns, reason, why)
        if self.setup.log:
            self.setup.log.follow()
        self._plan(problem)

    def _fail(self, problem: Problem, play: Play, reason: StopReason, why: str, turns: int) -> None:
        """Queues a failed sample again, once. Too many failures in a row end the run."""
        key = (problem.id, play.sample)
        with self._lock:
            self._failures[key] += 1
            self._strikes += 1
            if self._failures[key] < ATTEMPTS:
                self._taken.discard(key)
                said = f"{problem.id} sample {play.sample} will be retried: {why}"
                self.setup.board.trouble(said)
            else:
                self.left.append(reason)
                self.setup.board.ended(problem.id, play.sample, turns, reason, why)
            if self._strikes >= max(LEAST_STRIKES, self.setup.config.concurrency):
                whose = "judge" if reason == "judge_error" else "model"
                self._stop(f"the {whose} failed {self._strikes} times in a row; last error: {why}")

    def _require_device(self, problem: Problem) -> None:
        """Raises Stopped if the recorded episodes are of another device."""
        began_on = self._device  # other threads may reset it
        if began_on is None:
            return
        options, ask = self.setup.settings.options(), self.setup.pool.describe
        here = self._workers.retry(lambda: ask(problem, options).result()).device.name
        if here != began_on:
            self._stop(f"the run began on {began_on}, this is {here}; use another --out here")
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
            self.setup.board.failed(problem.id, str(error))

    def _compare(self, problem: Problem) -> None:
        """Measures torch.compile on one problem unless that is recorded, and records it."""
        known = self._compared.get(problem.id)
        if problem.id in self.failed or (known and known.sha256 == problem.sha256):
            return
        own = self.setup
        try:
            found = self._workers.retry(lambda: compare(problem, own.settings, own.pool))
        except Stopped:
            return
        except (JudgeError, ProblemError) as error:
            self.left.append("judge_error")
            own.board.trouble(f"{problem.id}: torch.compile could not be measured: {error}")
            return
        with self._lock:
            self._compared[problem.id] = found
            own.folder.write_compared(self._compared)
        own.board.compared(problem.id, found)


def compare(problem: Problem, settings: Settings, pool: JudgePool) -> Compared:
    """Measures T_compile / T_eager of a problem's reference.

    The reference is judged as a submission with torch.compile as the baseline, so that both times
    are measured together: its speedup is the ratio.

    Raises:
        ProblemError: if the reference fails.
        JudgeError: if the judge fails.
    """
    update = {"baseline": "compile", "rules": "open", "retry_noisy": True, "profile": "none"}
    options = settings.options().model_copy(update=update)
    submission = Submission(code=as_submission(problem.source))
    judgement = pool.submit(problem, submission, options).result()
    outcome = judgement.outcome
    ratio = speedup_of(outcome)
    return Compared(
        sha256=problem.sha256,
        ratio=ratio,
        interval=interval_of(outcome),
        why="" if ratio else f"{outcome.category}/{outcome.kind}: {outcome.message}",
        device=judgement.device,
    )
