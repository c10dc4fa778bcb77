"""What a policy is, and the ways in which one fails to answer."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from kevin_env.record import Message, Reply, StopReason

OnText = Callable[[str], None]
"""Called with each piece of a reply's content as it comes, and with nothing of its reasoning."""


class PolicyError(RuntimeError):
    """A policy that gave no reply. It ends the episode with `stop_reason`; it is no turn and has no score."""

    stop_reason: ClassVar[StopReason] = "model_error"


class ContextOverflow(PolicyError):
    """The chat is longer than the model can read."""

    stop_reason: ClassVar[StopReason] = "context_length"


class Refused(PolicyError):
    """The model, or a filter before or behind it, declined to answer."""

    stop_reason: ClassVar[StopReason] = "refused"


class Quit(PolicyError):
    """The person who plays has left."""

    stop_reason: ClassVar[StopReason] = "interrupted"


class Policy(Protocol):
    """Answers a chat."""

    @property
    def name(self) -> str:
        """What the record calls it, such as the model's name."""
        ...

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """The reply to a chat; `on_text` hears it as it comes.

        Raises:
            PolicyError: if there is no reply.
        """
        ...
