"""Which problems a server offers, by id and by split and index, and how one of them is chosen."""

import asyncio
import difflib
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kevin_env.outcome import Frozen
from kevin_env.problem import Problem, ProblemError
from kevin_env.selection import SIDES, Side, is_held_out

ALL = "all"


class ResetRequest(Frozen):
    """The options of a client's `reset`. By default, a problem that is not held out is drawn."""

    seed: int | None = Field(default=None, ge=0)
    """Draws the problem if none is named. Inputs do not depend on it, or answers could be
    precomputed.
    """
    episode_id: str | None = Field(default=None, max_length=255, pattern=r"^[\x20-\x7e]+$")
    problem_id: str | None = None
    split: str | None = None
    index: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The request as it came.

        Raises:
            ValueError: in one line, for an unknown name or a value out of its range.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])[:100]
            if first["type"] == "extra_forbidden":
                raise ValueError(
                    f"unknown reset option {name!r}; there are {', '.join(cls.model_fields)}"
                ) from error
            raise ValueError(f"reset option {name}: {first['msg']}") from error


@dataclass(frozen=True)
class Tasks:
    """The problems of a server. Clients name them by ID; no path that a client names is read."""

    problems: Sequence[Problem]
    sides: Mapping[str, Side]
    """Which of our problems are held out, by id."""

    def splits(self) -> dict[str, list[Problem]]:
        """The problems of each split in order: all, train, held out, and each level."""
        found: dict[str, list[Problem]] = {ALL: list(self.problems)}
        for side in SIDES:
            found[side] = [
                problem for problem in self.problems if self.sides.get(problem.id) == side
            ]
        for level in sorted(
            {problem.level for problem in self.problems if problem.level is not None}
        ):
            found[f"L{level}"] = [problem for problem in self.problems if problem.level == level]
        return {name: problems for name, problems in found.items() if problems}

    def of_split(self, split: str) -> list[Problem]:
        """The problems of a split, in order.

        Raises:
            ValueError: if there is none of that name.
        """
        splits = self.splits()
        if split not in splits:
            raise ValueError(f"unknown split {split[:100]!r}; there are {', '.join(splits)}")
        return splits[split]

    def rows(self, split: str) -> list[dict[str, Any]]:
        """What the task API returns for each problem of a split."""
        return [
            {
                "id": problem.id,
                "split": split,
                "index": index,
                "level": problem.level,
                "name": problem.name,
                "tags": list(problem.tags),
                "description": problem.statement,
            }
            for index, problem in enumerate(self.of_split(split))
        ]

    def choose(self, request: ResetRequest, source: random.Random) -> Problem:
        """The named problem, or one drawn from `source`.

        Held-out problems are drawn only from the split `held_out`, or if nothing else is served.

        Raises:
            ProblemError: if it is unknown.
            ValueError: for an unknown split, an index out of range, or a problem named twice.
        """
        if request.problem_id is not None:
            if request.split is not None or request.index is not None:
                raise ValueError("give problem_id, or split and index, not both")
            return self._named(request.problem_id)
        if request.index is not None and request.split is None:
            raise ValueError("an index needs a split; give both, or problem_id")
        problems = self.of_split(request.split or ALL)
        if request.index is None:
            free = [each for each in problems if not is_held_out(each)]
            return source.choice(free or problems)
        if not 0 <= request.index < len(problems):
            raise ValueError(
                f"split {request.split} has {len(problems)} tasks; "
                f"there is no index {request.index}"
            )
        return problems[request.index]

    def _named(self, id: str) -> Problem:
        known = {problem.id: problem for problem in self.problems}
        if id not in known:
            near = difflib.get_close_matches(id[:100], known, n=3, cutoff=0.4)
            hint = f"did you mean {', '.join(near)}?" if near else "the task API lists them"
            raise ProblemError(f"unknown problem {id[:100]!r}; {hint}")
        return known[id]


LEFT: ContextVar[asyncio.Event] = ContextVar("LEFT")
"""Set once the client of the WebSocket at hand has left."""


class ServerLimits(Frozen):
    """The limits of one server. Times in seconds, sizes in bytes."""

    sessions: int = Field(default=32, ge=1)
    """Limit of concurrent sessions; further clients get an error."""
    step_timeout: float = Field(default=900.0, gt=0)
    """Limit of one step, waiting for the device included. A longer step fails, without a turn."""
    idle_timeout: float = Field(default=1800.0, gt=0)
    """Limit of a session's silence."""
    message_bytes: int = Field(default=1 << 20, ge=1024)
    """Of one message, and of the body of one request."""


class SocketMiddleware:
    """ASGI middleware for WebSockets: checks origins and ends idle sessions.

    Silence of `seconds` is a disconnect; the time of a step does not count. Browsers from pages of
    another origin are refused, or any page could run code on the user's server.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        messages: asyncio.Queue[Message] = asyncio.Queue(1)
        left = asyncio.Event()

        async def read() -> None:
            while (message := await receive())["type"] != "websocket.disconnect":
                await messages.put(message)
            left.set()
            await messages.put(message)

        async def next_message() -> Message:
            try:
                return await asyncio.wait_for(messages.get(), self.seconds)
            except TimeoutError:
                return {"type": "websocket.disconnect", "code": 1001}

        async def answer(message: Message) -> None:
            # OpenEnv would try again to tell the client that it could not be told; the next receive
            # tells that it left.
            with suppress(OSError):
                await send(message)

        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
        elif _from_elsewhere(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
        else:
            LEFT.set(left)
            reading = asyncio.ensure_future(read())
            try:
                await self.app(scope, next_message, answer)
            finally:
                reading.cancel()


def _from_elsewhere(headers: Headers) -> bool:
    """Whether a page of another host asks; clients that are no browsers name no origin."""
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
