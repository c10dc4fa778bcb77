"""The client, with the timeouts of the server. Needs only openenv."""

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from websockets.exceptions import ConnectionClosed

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

    async def _receive(self) -> dict[str, Any]:
        try:
            return await super()._receive()
        except ConnectionClosed as error:
            text = "the server ended this session, perhaps after a long silence: send reset first"
            raise RuntimeError(text) from error

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = KernelObservation.model_validate(
            {**payload["observation"], "reward": reward, "done": done}
        )
        if self._follows_server:
            self._message_timeout = observation.step_timeout_s + MARGIN
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return KernelState.model_validate(payload)
