"""The client, with the timeouts of the server, and its messages."""

from typing import Any, ClassVar

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Action, Observation, State
from pydantic import ConfigDict, Field
from websockets.exceptions import ConnectionClosed

from kevin_env.outcome import Category

MOST = 10.3
"""Upper end of a reward without one: with the default score, ten times as fast."""


class KevinAction(Action):
    """One answer of the policy."""

    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    code: str
    """The reply as the model wrote it, or a Python file alone with a class `ModelNew` or `Model`.
    """


class KevinObservation(Observation):
    """The task, the outcome of the last turn, and the chat to send next.

    `reward` is the turn's score, clipped to `reward_range`; None after a reset.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    problem_id: str
    problem_description: str
    """The computation, with formula and shapes."""
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
    """The feedback on the last turn."""
    category: Category | None = None
    """The outcome of the last turn, None after a reset; `kind` is more specific."""
    kind: str | None = None
    compilation_success: bool = False
    compilation_error: str | None = None
    """Also what kept a reply from being compiled: no code in it, or code against the rules."""
    correctness_pass: bool | None = None
    """None when it was never run."""
    max_diff: float | None = None
    """The largest absolute error of an output that is wrong."""
    speedup: float | None = None
    """For a correct kernel, unless its time was too noisy."""
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
"""Extra seconds of a client's timeout, so that the server reports its own first."""
FIRST_MESSAGE = 900.0 + MARGIN
"""Seconds to wait before the server's limit is known: enough for the default limit."""


class KevinEnv(EnvClient[KevinAction, KevinObservation, KevinState]):
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
