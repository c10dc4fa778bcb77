"""The client: an OpenEnv client that waits as long as the server may take."""

from typing import Any, ClassVar

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Action, Observation, State
from pydantic import ConfigDict, Field
from websockets.exceptions import ConnectionClosed

from kevin_env.outcome import Category

MOST = 10.3
"""What a reward is clipped to where its score has no upper end: with the default score, ten times
as fast.
"""


class KevinAction(Action):
    """One answer of the policy."""

    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    code: str
    """The reply as the model wrote it, or a Python file alone. The file's class may be called
    `ModelNew` or `Model`.
    """


class KevinObservation(Observation):
    """What the policy is told: the task, how the last turn ended, and the chat to send next.

    `reward` is the turn's score, clipped to `reward_range`; None after a reset.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    problem_id: str
    problem_description: str
    """What is computed, with formula and shapes."""
    reference_code: str
    """The PyTorch reference."""
    gpu_info: str
    """The device, a CPU too."""
    messages: list[dict[str, str]]
    """The whole chat to be sent to a model for the next turn: each with `role` and `content`."""
    turn: int
    """How many turns have been taken."""
    max_turns: int
    turn_scores: list[float]
    """The reward of each turn so far."""
    returns: list[float]
    """The discounted return of each turn so far; final when the episode is done."""
    feedback: str = ""
    """What the policy is told of its last turn."""
    category: Category | None = None
    """How the last turn ended, None after a reset; `kind` says it more closely."""
    kind: str | None = None
    compilation_success: bool = False
    compilation_error: str | None = None
    """Also what kept a reply from being compiled: no code in it, or code against the rules."""
    correctness_pass: bool | None = None
    """None when it was never run."""
    max_diff: float | None = None
    """The largest absolute error of an output that is wrong."""
    speedup: float | None = None
    """Of a correct kernel; None when its time was too noisy to tell."""
    speedup_interval: tuple[float, float] | None = None
    """95 % confidence interval of `speedup`."""
    reward_range: tuple[float, float]
    """With the server's default score, what `openenv.yaml` declares."""
    step_timeout_s: float
    """The longest that the server takes over one step, waiting for the device included."""
    idle_timeout_s: float
    """How long the server waits for the next message before it ends the session."""


class KevinState(State):
    """Where the session's episode stands."""

    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    problem_id: str | None = None
    turn: int = 0
    """How many turns have been taken; the same as `step_count`."""
    max_turns: int
    best_speedup: float = 0.0
    """The best of the turns so far; 0 when there is none."""
    solved: bool = False
    """Whether a correct kernel was more than 5 % faster than the reference, as in kernrl."""
    turn_scores: list[float] = Field(default_factory=list[float])
    returns: list[float] = Field(default_factory=list[float])
    reward_range: tuple[float, float]
    step_timeout_s: float
    idle_timeout_s: float


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
