"""The client, with the timeouts of the server. Needs only openenv."""

import json
from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from .models import KernelAction, KernelObservation, KernelState

MARGIN = 60.0
"""Extra seconds of a client's timeout, so that the server reports its own first."""
FIRST_MESSAGE = 900.0 + MARGIN
"""Seconds to wait before the server's limit is known: enough for the default limit."""


class KernelEnv(EnvClient[KernelAction, KernelObservation, KernelState]):
    """A session with a server. `with` makes it synchronous, `async with` asynchronous.

    Args:
        base_url: address of the server, such as `http://localhost:8000`.
        connect_timeout_s: seconds to connect.
        message_timeout_s: seconds for one answer. None: the server's limit of a step, and a minute.
        options: more keywords of OpenEnv's `EnvClient`.

    Raises:
        ConnectionError: if there is no server.
        ValueError: from `step`, if the action is larger than the server takes; nothing is sent.
        RuntimeError: from `reset` and `step`, with the server's message, if it refuses the
            request or ends the session.
    """

    def __init__(
        self,
        base_url: str | None = None,
        connect_timeout_s: float = 10.0,
        message_timeout_s: float | None = None,
        **options: Any,
    ) -> None:
        first = FIRST_MESSAGE if message_timeout_s is None else message_timeout_s
        super().__init__(base_url, connect_timeout_s, first, **options)
        self._follows_server = message_timeout_s is None
        self._most_bytes: int | None = None
        """The largest message that the server takes; None before it has told."""

    async def _send(self, message: dict[str, Any]) -> None:
        size = len(json.dumps(message))
        if self._most_bytes is not None and size > self._most_bytes:
            raise ValueError(
                f"the action has {size:,} bytes, and the server takes {self._most_bytes:,}: "
                "shorten the reply; the session goes on"
            )
        await super()._send(message)

    async def _receive(self) -> dict[str, Any]:
        try:
            return await super()._receive()
        except ConnectionClosed as error:
            too_big = error.rcvd is not None and error.rcvd.code == CloseCode.MESSAGE_TOO_BIG
            reason = (
                "since the message was larger than it takes: send reset, and a shorter action"
                if too_big
                else "perhaps after a long silence: send reset first"
            )
            raise RuntimeError(f"the server ended this session, {reason}") from error

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = KernelObservation.model_validate(
            {**payload["observation"], "reward": reward, "done": done}
        )
        if self._follows_server:
            self._message_timeout = observation.step_timeout_s + MARGIN
        self._most_bytes = observation.message_bytes
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return KernelState.model_validate(payload)
