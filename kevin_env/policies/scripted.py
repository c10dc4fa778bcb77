"""A policy that says what it was told to say: for the demo, for tests and for playing a record
again.
"""

import threading
from collections import deque
from collections.abc import Iterable, Sequence

from kevin_env.policies.base import OnText, PolicyError
from kevin_env.record import Message, Reply


class ScriptedPolicy:
    """Gives fixed replies in order.

    Args:
        replies: one for each turn. An exception takes the place of a reply and is raised.
        name: what the record calls it.
    """

    def __init__(
        self, replies: Iterable[str | Reply | BaseException], name: str = "scripted"
    ) -> None:
        self.name = name
        self.asked: list[tuple[Message, ...]] = []
        """Each chat that it was given."""
        self._replies = deque(replies)
        self._lock = threading.Lock()

    def reply(self, messages: Sequence[Message], on_text: OnText | None = None) -> Reply:
        """The next reply of the script.

        Raises:
            PolicyError: at the end of the script.
        """
        with self._lock:
            self.asked.append(tuple(messages))
            if not self._replies:
                raise PolicyError(f"the script has no reply to chat {len(self.asked)}")
            answer = self._replies.popleft()
        if isinstance(answer, BaseException):
            raise answer
        reply = Reply(content=answer) if isinstance(answer, str) else answer
        if on_text:
            on_text(reply.content)
        return reply
