"""One episode, played in threads. Nothing here blocks."""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from kevin_env.app.play.live import (
    Asked,
    Event,
    Failed,
    Heard,
    Judged,
    Replied,
    Retrying,
    StageBegan,
    Started,
    Thought,
)
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgeError, Stage
from kevin_env.policies.base import Policy, PolicyError
from kevin_env.record import Message, Reply, StopReason, Trajectory, Turn

A = TypeVar("A")


class Session:
    """An episode, not started yet, that one thread controls and polls for events.

    The policy is called in a thread of its own, one call at a time.
    """

    def __init__(self, episode: Episode, policy: Policy) -> None:
        self.episode = episode
        self._policy = policy
        self._attempt = _Attempt()
        self._starting: Future[tuple[Message, ...]] | None = None
        self._replying: Future[Reply] | None = None
        self._judging: Future[Turn] | None = None
        self._reason: StopReason = "interrupted"

    def begin(self) -> None:
        """Starts the episode; `poll` then returns `Started`."""
        self._starting = _in_thread(self.episode.start)

    def ask(self, remark: str = "") -> None:
        """Has the policy take the next turn, with a person's remark in its prompt."""
        self._attempt = attempt = _Attempt()
        if remark:
            self.episode.remark(remark)
        messages = self.episode.messages
        attempt.put(Asked(messages, time.monotonic()))
        self._replying = _in_thread(lambda: self._policy.reply(messages, attempt))

    def answer(self, reply: Reply) -> None:
        """Takes the next turn with this reply."""
        attempt = self._attempt
        attempt.put(Replied(reply.content, time.monotonic()))
        self._judging = self.episode.submit_later(reply, attempt.stage)

    def again(self, turn: int) -> None:
        """Goes back to before turn `turn` (from 1) in a new episode; the episode so far is kept.

        A running turn is cancelled; repeating that turn needs no new episode.
        """
        self._abandon()
        before = self.episode
        if turn <= len(before.turns):
            self.episode = before.fork(before.sample, turns=turn - 1)
            before.finish("interrupted")
        self._reason = "interrupted"
        self._attempt.put(Started(self.episode.trajectory, self.episode.messages, time.monotonic()))

    def finish(self, reason: StopReason | None = None) -> Trajectory:
        """Ends the episode, for `reason` or for the last failure, and returns it so far."""
        self._abandon()
        if self._starting is not None:  # it has no turns, and may not have started
            return self.episode.trajectory
        return self.episode.finish(reason or self._reason)

    def poll(self) -> list[Event]:
        """The events since the last call.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails before the first turn.
        """
        if self._starting is not None and self._starting.done():
            messages, self._starting = self._starting.result(), None
            self._attempt.put(Started(self.episode.trajectory, messages, time.monotonic()))
        if self._replying is not None and self._replying.done():
            future, self._replying = self._replying, None
            self._on_reply(future)
        if self._judging is not None and self._judging.done():
            future, self._judging = self._judging, None
            self._on_turn(future)
        return self._attempt.take()

    def _on_reply(self, future: Future[Reply]) -> None:
        try:
            reply = future.result()
        except PolicyError as error:
            self._fail(f"no reply: {error}", error.stop_reason)
        else:
            self.answer(reply)

    def _on_turn(self, future: Future[Turn]) -> None:
        try:
            future.result()
        except JudgeError as error:
            self._fail(f"the judge failed: {error}", "judge_error")
        else:
            self._reason = "interrupted"
            episode = self.episode
            self._attempt.put(Judged(episode.trajectory, episode.messages, time.monotonic()))

    def _fail(self, message: str, reason: StopReason) -> None:
        self._reason = reason
        self._attempt.put(Failed(message))

    def _abandon(self) -> None:
        """Drops the running reply; cancels the judgement, or waits for it if that is too late."""
        self._attempt.dead = True
        self._attempt = _Attempt()
        if self._judging is not None and not self._judging.cancel():
            wait([self._judging])
        self._replying = self._judging = None


class _Attempt:
    """Collects the events of one reply and its judgement: a `policies.base.Listener`.

    Once it is dead, the policy's next call ends its thread.
    """

    def __init__(self) -> None:
        self.dead = False
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def put(self, event: Event) -> None:
        self._events.put(event)

    def __call__(self, text: str) -> None:
        self._forward(Heard(text))

    def thought(self, text: str) -> None:
        self._forward(Thought(text))

    def retrying(self, why: str, seconds: float) -> None:
        self._forward(Retrying(why, time.monotonic() + seconds))

    def stage(self, stage: Stage) -> None:
        self.put(StageBegan(stage, time.monotonic()))

    def _forward(self, event: Event) -> None:
        if self.dead:
            raise _AbandonedError
        self.put(event)

    def take(self) -> list[Event]:
        """The events since the last call; consecutive pieces of text are joined."""
        events: list[Event] = []
        while not self._events.empty():
            event = self._events.get()
            last = events[-1] if events else None
            if isinstance(event, Heard | Thought) and type(event) is type(last):
                events[-1] = type(event)(last.text + event.text)  # type: ignore[union-attr]
            else:
                events.append(event)
        return events


class _AbandonedError(Exception):
    """Ends the thread of an abandoned reply."""


def _in_thread(function: Callable[[], A]) -> Future[A]:
    """Runs the function in a daemon thread and returns a future of its result."""
    future: Future[A] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:  # raised again by `Future.result`
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
