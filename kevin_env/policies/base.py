"""What a policy is, and the ways in which one fails to answer."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, Self, runtime_checkable

from kevin_env.record import Message, Reply, StopReason

OnText = Callable[[str], None]
"""Called with each piece of a reply's content as it comes, and with nothing of its reasoning.

Only reasoning that closes with a tag and never opened with one is heard: it looks like the answer
until it ends.
"""


class PolicyError(RuntimeError):
    """A policy that gave no reply. It ends the episode with `stop_reason`; it is no turn and has no
    score.
    """

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
    """Answers a chat. All of ours may be asked from several threads at once."""

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


@runtime_checkable
class Seeded(Protocol):
    """A policy that may have a seed."""

    def for_sample(self, sample: int) -> Self:
        """The same policy for one of several samples, from 0, with a seed of its own if it has one."""
        ...


def for_sample(policy: Policy, sample: int) -> Policy:
    """The policy as one of several samples of a problem should ask it. With one seed for all they
    would be alike.
    """
    return policy.for_sample(sample) if isinstance(policy, Seeded) else policy
