"""The policy interface and its errors, and a scripted policy."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from kevin_env.record import Message, Reply, StopReason

OnText = Callable[[str], None]
"""Called with each piece of a reply's content as it arrives, without its reasoning.

After a retry the content starts over; a `Listener` is notified of that.
Reasoning with a closing but no opening mark is passed: it looks like the answer until it ends.
"""


@runtime_checkable
class Listener(Protocol):
    """An `OnText` that also receives reasoning and retries."""

    def __call__(self, text: str) -> None:
        """A piece of the reply's content."""
        ...

    def thought(self, text: str) -> None:
        """A piece of the reply's reasoning."""
        ...

    def retrying(self, why: str, seconds: float) -> None:
        """The endpoint failed; the request is repeated after `seconds`."""
        ...


def chat_of(messages: Iterable[Message | Mapping[str, Any]]) -> list[dict[str, str]]:
    """A chat as JSON objects; messages may be such objects already, as in `info["messages"]`."""
    return [
        each.model_dump()
        if isinstance(each, Message)
        else Message.model_validate(each).model_dump()
        for each in messages
    ]


class PolicyError(RuntimeError):
    """A policy gave no reply. The episode ends with `stop_reason`, without a turn or score."""

    stop_reason: ClassVar[StopReason] = "model_error"


class ContextOverflow(PolicyError):
    """The chat is longer than the model can read."""

    stop_reason: ClassVar[StopReason] = "context_length"


class Refused(PolicyError):
    """The model, or a filter before or behind it, declined to answer."""

    stop_reason: ClassVar[StopReason] = "refused"


class Quit(PolicyError):
    """The player has quit."""

    stop_reason: ClassVar[StopReason] = "interrupted"


class Policy(Protocol):
    """Answers chats. All policies of this package are thread-safe."""

    @property
    def name(self) -> str:
        """Name for the record, such as the model's."""
        ...

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """The reply to a chat; `on_text` is called with each piece of it.

        Raises:
            PolicyError: if there is no reply.
        """
        ...


def for_sample(policy: Policy, sample: int) -> Policy:
    """The policy for sample number `sample`, from 0.

    Samples with the same seed would be alike, so a policy that has a seed returns one with another
    seed from its method `for_sample(sample)`. Any other policy answers all samples.
    """
    seeded: Callable[[int], Policy] | None = getattr(policy, "for_sample", None)
    return seeded(sample) if seeded else policy


class ScriptedPolicy:
    """Gives fixed replies in order.

    Args:
        replies: one for each turn. An exception among them is raised.
        name: its name in records.
    """

    def __init__(
        self, replies: Iterable[str | Reply | BaseException], name: str = "scripted"
    ) -> None:
        self.name = name
        self.chats: list[tuple[Message, ...]] = []
        """The chats so far."""
        self._replies = deque(replies)
        self._lock = threading.Lock()

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """The next reply of the script.

        Raises:
            PolicyError: at the end of the script.
        """
        with self._lock:
            self.chats.append(tuple(messages))
            if not self._replies:
                raise PolicyError(f"the script has no reply to chat {len(self.chats)}")
            answer = self._replies.popleft()
        if isinstance(answer, BaseException):
            raise answer
        reply = Reply(content=answer) if isinstance(answer, str) else answer
        if on_text:
            on_text(reply.content)
        return reply
