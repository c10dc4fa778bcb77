"""The client: an OpenEnv client that waits as long as the server may take."""

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from websockets.exceptions import ConnectionClosed

from kevin_env.integrations.openenv.models import KevinAction, KevinObservation, KevinState

MARGIN = 60.0
"""Seconds that a client waits beyond the server's own limit, so that it is the server that tells of
it.
"""
FIRST_MESSAGE = 900.0 + MARGIN
"""Seconds that it waits before it has heard the server's limit: as long as a server with the
default one needs.
"""


class KevinEnv(EnvClient[KevinAction, KevinObservation, KevinState]):
    """A session with a server of kernels. Used with `with` it is synchronous, with `async with`
    asynchronous.

    Args:
        base_url: where the server is, such as `http://localhost:8000`.
        connect_timeout_s: seconds for making the connection.
        message_timeout_s: seconds for one answer. None: as long as the server says that a step may
            take, and a minute.
        options: further keywords of OpenEnv's `EnvClient`.

    Raises:
        ConnectionError: if there is no server.
        RuntimeError: from `reset` and `step`, for what the server refuses; the message is the
            server's. Also when the server ended the session while it was being asked.
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
            text = "the server ended this session, perhaps because nothing was said for too long: send reset first"
            raise RuntimeError(text) from error

    def _step_payload(self, action: KevinAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KevinObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = KevinObservation.model_validate(
            {**payload["observation"], "reward": reward, "done": done}
        )
        if self._follows_server:
            self._message_timeout = observation.step_timeout_s + MARGIN
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> KevinState:
        return KevinState.model_validate(payload)
