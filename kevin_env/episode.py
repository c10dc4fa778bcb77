"""The framework-free core: one conversation about one problem, turn by turn."""

import copy
import logging
import os
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, Self

from kevin_env.context import build_messages, load_counter, with_remark
from kevin_env.extract import fenced
from kevin_env.feedback import resolve_language
from kevin_env.judge.api import Facts, JudgePool, OnStage
from kevin_env.languages import obstacle
from kevin_env.problem import KernelFile, Problem, baseline_of
from kevin_env.record import Message, ProblemRef, Reply, StopReason, Trajectory, Turn
from kevin_env.recorder import Recorder, best_kernel
from kevin_env.score import SCORES, discounted_returns, require_payable
from kevin_env.settings import Settings
from kevin_env.turn import Question, begin_turn, map_future, turn_secret

_LOG = logging.getLogger(__name__)
BuildMessages = Callable[[Problem, Facts, Sequence[Turn], Settings], tuple[Message, ...]]
"""Builds the chat of the next turn, as `kevin_env.context.build_messages` does."""


class EpisodeError(RuntimeError):
    """A call out of order: before the start, while a turn is judged, or after the end."""


class Episode:
    """A conversation of up to `settings.max_turns` turns about one problem.

    The constructor asks the judge to describe the problem; `start` waits for that and returns the
    first chat. Then `submit` takes a reply and returns its `Turn`, until `done`. Of several threads
    that submit at once, one takes the turn, and the others get `EpisodeError`.

    Args:
        problem: the problem to solve.
        pool: the judges; the caller closes it.
        settings: how the episode is played.
        recorder: writes the episode to a trajectory file as it goes.
        model: name of the policy, for the record.
        sample: number of this sample of the problem, from 0, for the record.
        build: builds the chat of the next turn, such as `partial(build_messages, count=len)`. The
            first of its turns is the start kernel if there is one, as turn 0.

    Raises:
        ValueError: if the tokenizer of the settings cannot be loaded.
    """

    def __init__(
        self,
        problem: Problem,
        pool: JudgePool,
        settings: Settings | None = None,
        *,
        recorder: Recorder | None = None,
        model: str = "",
        sample: int | None = None,
        build: BuildMessages = build_messages,
    ) -> None:
        self.problem = problem
        self.pool = pool
        self.settings = settings or Settings()
        load_counter(self.settings.tokenizer)
        self.recorder, self.model, self.sample, self._build = recorder, model, sample, build
        self.base_url: str | None = None
        self.parent: str | None = None
        self.turns: tuple[Turn, ...] = ()
        self.stop_reason: StopReason | None = None
        self._describing = pool.describe(problem, self.settings.options())
        self._facts: Facts | None = None
        self.start_kernel = self._kernel_to_start_from()
        self._start: Turn | None = None
        self._messages: tuple[Message, ...] = ()
        self._pending: Future[Turn] | None = None
        self._submitting = threading.Lock()
        self._renew_identity()

    @classmethod
    def resume(
        cls,
        trajectory: Trajectory,
        pool: JudgePool,
        *,
        settings: Settings | None = None,
        recorder: Recorder | None = None,
        build: BuildMessages = build_messages,
    ) -> Self:
        """Continues a recorded episode after its last turn.

        An interrupted episode keeps its ID; one that was finished early becomes the parent of a new
        one. The secret is new. `settings` replace the recorded ones, which is needed if the score
        was a function.

        Raises:
            ProblemError: if the problem has changed or is gone.
            EpisodeError: if the episode has all its turns.
            ValueError: if the recorded settings are not valid in this version.
        """
        if trajectory.stop_reason in ("max_turns", "stop_on"):
            raise EpisodeError(
                f"episode {trajectory.episode_id} has all its turns; there is nothing to resume"
            )
        problem = trajectory.problem.load()
        score = trajectory.config.get("score", "kevin")
        if settings is None and score not in SCORES:
            raise ValueError(f"unknown score {score!r}: if it was your own, pass settings= with it")
        settings = settings or Settings.recorded(trajectory.config)
        episode = cls(
            problem, pool, settings, recorder=recorder, model=trajectory.model, build=build
        )
        episode.turns, episode.sample = trajectory.turns, trajectory.sample
        episode.base_url, episode.parent = trajectory.base_url, trajectory.episode_id
        if trajectory.stop_reason is None:
            episode.episode_id, episode.created = trajectory.episode_id, trajectory.created
            episode.parent = trajectory.parent
        return episode

    def start(self) -> tuple[Message, ...]:
        """The first chat to send.

        Raises:
            ProblemError: if the problem's reference fails on the device.
            JudgeError: if the judge fails.
            ValueError: if the score cannot be paid on the device that `auto` means, or kernels in
                the language cannot run there.
        """
        if self._facts is not None:
            raise EpisodeError("the episode has been started already")
        facts = self._describing.result()
        require_payable(self.settings.score, dict(self.settings) | {"device": facts.device.device})
        on_gpu, versions = facts.device.device.startswith("cuda"), facts.device.versions
        if why := obstacle(self.settings.language, on_gpu, versions):
            raise ValueError(why)
        if self.start_kernel is not None:
            question = Question(
                self.problem, 0, (), self.settings, turn_secret(self._secret, 0), on_gpu=on_gpu
            )
            reply = Reply(content=fenced(self.start_kernel.code, "python"))
            self._start = begin_turn(question, reply, self.pool).result()
        self._facts = facts
        self._messages = self._chat_after(self.turns, self._build)
        self._begin_record()
        self._end_if_over()
        return self._messages

    def submit(self, reply: str | Reply, on_stage: OnStage | None = None) -> Turn:
        """Judges a reply and waits for its turn. If interrupted (Ctrl-C), the turn does not count.

        Raises:
            EpisodeError: before the start, after the end, or while another turn is judged.
            JudgeError: if the judge fails; the turn has not happened and may be submitted again.
        """
        future = self.submit_later(reply, on_stage)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit_later(self, reply: str | Reply, on_stage: OnStage | None = None) -> Future[Turn]:
        """As `submit`, without waiting. When the future has its turn, the episode has it too."""
        with self._submitting:
            self._require_open()
            if not isinstance(reply, str | Reply):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"a reply is a str or a Reply, not {type(reply).__name__}")
            reply = Reply(content=reply) if isinstance(reply, str) else reply
            number = len(self.turns) + 1
            question = Question(
                problem=self.problem,
                number=number,
                messages=self._messages,
                settings=self.settings,
                secret=turn_secret(self._secret, number),
                earlier=self.turns,
                start=self._start,
                on_gpu=self._on_gpu,
            )
            turn = begin_turn(question, reply, self.pool, on_stage)
            self._pending = map_future(turn, self._take)
            return self._pending

    def remark(self, text: str) -> None:
        """Puts a person's words below the next chat, for that turn alone. Raises as `submit`."""
        self._require_open()
        self._messages = with_remark(self._messages, text)

    def finish(self, reason: StopReason = "interrupted") -> Trajectory:
        """Ends the episode, unless it has ended, and returns its trajectory."""
        if not self.done:
            self._end(reason)
        return self.trajectory

    def fork(self, sample: int | None = None, *, turns: int | None = None) -> Self:
        """A copy with its own ID and secret, and the same turns, pool and recorder.

        With `turns`, the copy has only that many of them, and can also be made after the end.

        Raises:
            EpisodeError: before the start; if no turn is left out, also after the end or while a
                turn is judged.
            ValueError: if `turns` is negative.
        """
        if turns is not None and turns < 0:
            raise ValueError(f"turns is {turns}; it must be at least 0")
        if self._facts is None or turns is None or turns >= len(self.turns):
            self._require_open()
        other = copy.copy(self)
        other.sample, other.parent, other._submitting = sample, self.episode_id, threading.Lock()
        if turns is not None:
            other.turns, other.stop_reason, other._pending = self.turns[:turns], None, None
            other._messages = self._chat_after(other.turns, self._build)
        other._renew_identity()
        other._begin_record()
        return other

    @property
    def messages(self) -> tuple[Message, ...]:
        """The chat to send next; after the end, the one that would have followed."""
        return self._messages

    def messages_by(self, build: BuildMessages) -> tuple[Message, ...]:
        """The chat to send next as another `build` makes it."""
        return self._chat_after(self.turns, build)

    @property
    def done(self) -> bool:
        """Whether the episode has ended."""
        return self.stop_reason is not None

    @property
    def returns(self) -> tuple[float, ...]:
        """The discounted return of each turn so far."""
        return discounted_returns(
            [turn.score for turn in self.turns], self.settings.gamma, self.settings.returns
        )

    @property
    def trajectory(self) -> Trajectory:
        """The episode as a value, finished or not."""
        return Trajectory(
            episode_id=self.episode_id,
            created=self.created,
            problem=ProblemRef.of(self.problem),
            config=self._config(),
            model=self.model,
            base_url=self.base_url,
            hardware=self._facts.device if self._facts else None,
            turns=self.turns,
            returns=self.returns,
            stop_reason=self.stop_reason,
            secret=self._secret,
            sample=self.sample,
            parent=self.parent,
        )

    def _take(self, turn: Turn) -> Turn:
        # Everything that can fail comes first, so that the turn is added completely or not at all.
        turns = (*self.turns, turn)
        messages = self._chat_after(turns, self._build)
        if self.recorder and self._in_record:
            self.recorder.add(self.episode_id, turn)
        elif self.recorder:
            self.recorder.begin(self.trajectory.model_copy(update={"turns": turns}))
        self.turns, self._messages = turns, messages
        self._end_if_over()
        return turn

    def _end_if_over(self) -> None:
        if self.turns and self.settings.ends_with(self.turns[-1].outcome):
            self._end("stop_on")
        elif len(self.turns) >= self.settings.max_turns:
            self._end("max_turns")

    @property
    def _in_record(self) -> bool:
        """Whether it is in the file: samples from the start, others from their first turn on."""
        return bool(self.turns) or self.sample is not None

    def _begin_record(self) -> None:
        if self.recorder and self._in_record:
            self.recorder.begin(self.trajectory)

    def _end(self, reason: StopReason) -> None:
        self.stop_reason = reason
        if self.recorder and (self._in_record or reason in ("refused", "context_length")):
            self.recorder.finish(self.trajectory)

    def _require_open(self) -> None:
        if self._facts is None:
            raise EpisodeError("the episode has not been started; call start() first")
        if self.done:
            raise EpisodeError(
                f"the episode ended after turn {len(self.turns)} ({self.stop_reason}); "
                "start a new one"
            )
        if self._pending is not None and not self._pending.done():
            raise EpisodeError(f"turn {len(self.turns) + 1} is still being judged; wait for it")

    def _renew_identity(self) -> None:
        self.episode_id = uuid.uuid4().hex
        self.created = datetime.now(UTC).isoformat(timespec="seconds")
        # Never from a seed: answers to known inputs could be precomputed.
        self._secret = os.urandom(16).hex()

    @property
    def _on_gpu(self) -> bool:
        """Whether kernels run on a GPU, as they do until the device is known."""
        return self._facts is None or self._facts.device.device.startswith("cuda")

    def _config(self) -> dict[str, Any]:
        settings = self.settings
        if self._facts is not None:
            known = {
                "language": resolve_language(settings.language, self._facts.device),
                "baseline": baseline_of(settings, self.problem, self._on_gpu),
                "start": self.start_kernel,
            }
            settings = settings.model_copy(update=known)
        return settings.model_dump(mode="json")

    def _chat_after(self, turns: tuple[Turn, ...], build: BuildMessages) -> tuple[Message, ...]:
        known = turns if self._start is None else (self._start, *turns)
        return build(self.problem, self._describing.result(), known, self.settings)

    def _kernel_to_start_from(self) -> KernelFile | None:
        """The kernel to begin with: of the settings, else the problem's own."""
        start = self.settings.start
        if isinstance(start, str):
            file, start = start, best_kernel(start, self.problem)
            if start is None:
                _LOG.warning(
                    "start=%s has no timed kernel for %s as it is now", file, self.problem.id
                )
        return start or self.problem.start
