"""The requests of a judge server: which is next, and what became of each."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kevin_env.judge.api import JudgePool, Options, Stage
from kevin_env.judge.protocol import Answer, Start, answer_of, prepare

AT_ONCE = 64
"""Default limit of requests that the pool has at a time; further ones wait."""
QUEUE_BYTES = 256 << 20
"""Default limit of the bytes of waiting requests."""
OVERHEAD_BYTES = 2048
"""Of a waiting request, besides its body."""
CLIENTS = 1024
"""Limit of clients with waiting requests."""
FORGET_SECONDS = 120.0
"""A request is cancelled and forgotten if its client has not polled it for this long."""
BROKEN_SECONDS = 5.0
"""The same, after a poll whose connection the client closed: it has probably ended."""


@dataclass(eq=False)
class _Entry:
    """A request, its stages so far, and its answer."""

    line: tuple[str, str]
    """Its client, and what it asks for."""
    future: Future[Any] = field(default_factory=Future[Any])
    """Of the pool, once the request has started."""
    answer: Answer | None = None
    stages: list[Stage] = field(default_factory=list[Stage])
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    polls: int = 0
    """Polls that are open."""
    forgetting: asyncio.TimerHandle | None = None
    """Runs while no poll is open."""


@dataclass(frozen=True)
class _Waiting:
    start: Start
    size: int


@dataclass
class Tally:
    """What a server has counted since it started."""

    endings: Counter[str] = field(default_factory=Counter[str])
    """Requests by the category of their judgement, or `problem_error` or `judge_error`."""
    judgements: int = 0
    seconds: Counter[str] = field(default_factory=Counter[str])
    """Of all judgements, by stage."""
    refused: int = 0
    """Requests for which there was no room."""

    def count(self, answer: Answer) -> None:
        """Counts an answer; facts are not counted."""
        if "judgement" in answer:
            self.judgements += 1
            self.endings[answer["judgement"]["outcome"]["category"]] += 1
            self.seconds.update(answer["judgement"]["seconds"])
        self.endings.update({"problem_error", "judge_error"} & answer.keys())


class Requests:
    """The requests of a server, by ID. Use it in the server's event loop.

    Clients take turns. Within a client, requests start in order of arrival; requests for facts are
    a line of their own, so that the prompt of a new episode does not wait for judgements.

    Args:
        pool: judges the requests.
        device: replaces `auto`.
        at_once: limit of requests that the pool has at a time.
        require_sandbox: whether every request requires a complete sandbox.
        queue_bytes: limit of the bytes of waiting requests. A client has room for as many as it
            leaves free, so that there is always some for others.
    """

    def __init__(
        self, pool: JudgePool, device: str = "auto", at_once: int = AT_ONCE,
        require_sandbox: bool = False, queue_bytes: int = QUEUE_BYTES,
    ) -> None:  # fmt: skip
        self.pool = pool
        self.device = device
        self.in_flight = 0
        self.tally = Tally()
        self._at_once = at_once
        self._require_sandbox = require_sandbox
        self._queue_bytes = queue_bytes
        self._entries: dict[str, _Entry] = {}
        self._lines: OrderedDict[tuple[str, str], OrderedDict[str, _Waiting]] = OrderedDict()
        """Those that wait, the line whose turn is next first."""
        self._bytes: Counter[str] = Counter()
        """Of the requests that wait, by client."""
        self._stopping = False

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return sum(map(len, self._lines.values()))

    def begin(self, number: str, body: dict[str, Any], size: int, client: str = "") -> bool:
        """Queues a request unless it is known; False if there is no room for it.

        Raises:
            ValueError: if it is malformed.
        """
        if number in self._entries:
            return True
        start = prepare(body | {"options": self._options(body["options"]).model_dump()})
        size += OVERHEAD_BYTES
        if not self._has_room(client, size):
            self.tally.refused += 1
            return False
        entry = self._entries[number] = _Entry((client, body["do"]))
        self._lines.setdefault(entry.line, OrderedDict())[number] = _Waiting(start, size)
        self._bytes[client] += size
        self._forget_after(FORGET_SECONDS, number, entry)
        self._advance()
        return True

    async def answer(
        self, number: str, seen: int, seconds: float, gone: Callable[[], Awaitable[object]]
    ) -> dict[str, Any] | None:
        """The answer, or the stages after the first `seen`, within `seconds`; None if unknown.

        Args:
            number: the request's ID.
            seen: how many stages the client knows.
            seconds: how long to wait for news.
            gone: returns once the client has closed the connection.
        """
        entry = self._entries.get(number)
        if entry is None:
            return None
        if entry.forgetting is not None:
            entry.forgetting.cancel()
        entry.polls += 1
        patience = FORGET_SECONDS
        try:
            if entry.answer is None and len(entry.stages) <= seen and not self._stopping:
                entry.changed.clear()
                if await _first(entry.changed.wait, gone, seconds) is gone:
                    patience = BROKEN_SECONDS
        finally:
            entry.polls -= 1
            if not entry.polls and self._entries.get(number) is entry:
                self._forget_after(patience, number, entry)
        if entry.answer is not None:
            return entry.answer | {"done": True}
        return {"stages": entry.stages[seen:]}

    def stop(self) -> None:
        """Answers all polls at once from now on; their clients wait for the next server."""
        self._stopping = True
        for entry in self._entries.values():
            entry.changed.set()

    def drop(self, number: str) -> None:
        """Cancels a request, or forgets its answer."""
        entry = self._entries.pop(number, None)
        if entry is None:
            return
        if entry.forgetting is not None:
            entry.forgetting.cancel()
        if self._dequeue(number, entry) is None:
            entry.future.cancel()

    def _forget_after(self, seconds: float, number: str, entry: _Entry) -> None:
        loop = asyncio.get_running_loop()
        entry.forgetting = loop.call_later(seconds, self.drop, number)

    def _has_room(self, client: str, size: int) -> bool:
        if client not in self._bytes and len(self._bytes) >= CLIENTS:
            return False
        return self._bytes[client] + size <= self._queue_bytes - self._bytes.total()

    def _dequeue(self, number: str, entry: _Entry) -> _Waiting | None:
        """Takes a request out of its line; None if it has started."""
        line = self._lines.get(entry.line, OrderedDict())
        waiting = line.pop(number, None)
        if waiting is not None:
            client, _ = entry.line
            self._bytes[client] -= waiting.size
            if not self._bytes[client]:
                del self._bytes[client]
            if not line:
                del self._lines[entry.line]
        return waiting

    def _advance(self) -> None:
        """Starts what waits while the pool may have more."""
        while self._lines and self.in_flight < self._at_once:
            line = next(iter(self._lines))
            self._lines.move_to_end(line)
            number = next(iter(self._lines[line]))
            entry = self._entries[number]
            waiting = self._dequeue(number, entry)
            assert waiting is not None
            self.in_flight += 1
            self._start(entry, waiting.start)

    def _start(self, entry: _Entry, start: Start) -> None:
        loop = asyncio.get_running_loop()

        def on_stage(stage: Stage) -> None:
            entry.stages.append(stage)
            loop.call_soon_threadsafe(entry.changed.set)

        def on_end(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the server has stopped
                loop.call_soon_threadsafe(self._end, entry)

        try:
            entry.future = start(self.pool, on_stage)
        except Exception as error:  # the boundary of a request, which must be answered
            entry.future.set_exception(error)
        entry.future.add_done_callback(on_end)

    def _end(self, entry: _Entry) -> None:
        self.in_flight -= 1
        entry.answer = answer_of(entry.future.result)
        if not entry.future.cancelled():
            self.tally.count(entry.answer)
        entry.changed.set()
        self._advance()

    def _options(self, values: Any) -> Options:
        options = Options.model_validate(values)
        device = self.device if options.device == "auto" else options.device
        sandbox = options.require_sandbox or self._require_sandbox
        return options.model_copy(update={"device": device, "require_sandbox": sandbox})


async def _first(
    news: Callable[[], Awaitable[object]], gone: Callable[[], Awaitable[object]], seconds: float
) -> Callable[[], Awaitable[object]] | None:
    """Which of the two returns first within `seconds`, if any."""
    tasks = {asyncio.ensure_future(each()): each for each in (news, gone)}
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    return next((each for task, each in tasks.items() if task in done), None)
