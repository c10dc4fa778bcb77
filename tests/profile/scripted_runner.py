"""A runner of tools that runs nothing."""

from collections.abc import Mapping, Sequence

from kevin_env.profile.tools import Ran


class ScriptedRunner:
    """Answers by the first word of a command that is among `answers`; files by their endings."""

    def __init__(self, answers: Mapping[str, Ran], files: Mapping[str, str] | None = None) -> None:
        self.commands: list[list[str]] = []
        self._answers = answers
        self._files = files or {}

    def run(self, command: Sequence[str], seconds: float, environment: Mapping[str, str]) -> Ran:
        self.commands.append(list(command))
        return next((self._answers[word] for word in command if word in self._answers), Ran(0))

    def read(self, path: str) -> str:
        return next((text for end, text in self._files.items() if path.endswith(end)), "")
