"""The messages of the environment. Needs only openenv."""

from typing import Any, ClassVar

from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.env_server.types import Action, Observation, State
from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, model_validator


class KernelAction(Action):
    """One answer of the policy."""

    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    code: str
    """The reply as the model wrote it, or a Python file alone with a class `ModelNew` or `Model`.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _or_tools(cls, value: Any, handler: ModelWrapValidatorHandler["KernelAction"]) -> Any:
        """OpenEnv validates every action of a request by this class, calls of tools included."""
        match value:
            case {"type": "call_tool"}:
                return CallToolAction.model_validate(value)
            case {"type": "list_tools"}:
                return ListToolsAction.model_validate(value)
            case _:
                return handler(value)


class KernelObservation(Observation):
    """The task, the outcome of the last turn, and the chat to send next.

    `reward` is the turn's score, clipped to `reward_range`. Names and values are kernrl's where it
    has them: after a reset `reward` is 0 and `compilation_success` True, and after a step
    `metadata` has `step` and `solved`.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    problem_id: str
    problem_description: str
    """The computation, with formula and shapes."""
    reference_code: str
    """The PyTorch reference."""
    gpu_info: str
    """The device, also if it is a CPU."""
    messages: list[dict[str, str]]
    """The whole chat to be sent to a model for the next turn: each with `role` and `content`."""
    turn: int
    """Number of turns taken."""
    max_turns: int
    turn_scores: list[float]
    """The reward of each turn so far."""
    returns: list[float]
    """The discounted return of each turn so far; final when the episode is done."""
    feedback: str = ""
    """The feedback on the last turn."""
    category: str | None = None
    """The outcome of the last turn, None after a reset; `kind` is more specific."""
    kind: str | None = None
    compilation_success: bool = False
    compilation_error: str | None = None
    """Also why a reply was not compiled: no code, or code against the rules."""
    correctness_pass: bool | None = None
    """None if it never ran."""
    max_diff: float | None = None
    """The largest absolute error of an output that is wrong."""
    speedup: float | None = None
    """For a correct kernel; `kind` is `too_noisy` if its interval is wide, and then less counts."""
    speedup_interval: tuple[float, float] | None = None
    """95 % confidence interval of `speedup`."""
    reward_range: tuple[float, float]
    """With the server's default score, what `openenv.yaml` declares."""
    step_timeout_s: float
    """Limit of the server for one step, waiting for the device included."""
    idle_timeout_s: float
    """How long the server waits for the next message before it ends the session."""
    message_bytes: int
    """The largest message, an action with its envelope, that the server takes."""


class KernelState(State):
    """The state of the session's episode."""

    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)

    problem_id: str | None = None
    turn: int = 0
    """Number of turns taken; the same as `step_count`."""
    max_turns: int
    best_speedup: float = 0.0
    """The largest median of the turns so far; 0 without a correct one."""
    solved: bool = False
    """Whether a correct kernel was more than 5 % faster than the reference, as in kernrl."""
    turn_scores: list[float] = Field(default_factory=list[float])
    returns: list[float] = Field(default_factory=list[float])
    reward_range: tuple[float, float]
    step_timeout_s: float
    idle_timeout_s: float
    message_bytes: int
