"""The files under `submissions`: what each of them is for, read from its docstring."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from kevin_env.outcome import OUTCOME_TYPES, Outcome
from kevin_env.problem import Problem, load_problem
from kevin_env.rules import Rules

FOLDER = Path(__file__).parent / "submissions"
NO_GAIN = 3.0
"""What a cheat may be faster than the reference at most; honest code of its kind is about as fast."""
WORDS = ("correct", "not correct", "no gain")
KINDS = {
    f"{outcome.model_fields['category'].default}/{kind}"
    for outcome in OUTCOME_TYPES
    for kind in get_args(outcome.model_fields["kind"].annotation)
}


@dataclass(frozen=True)
class Entry:
    """One file: the problem it answers, where it runs, the rules it is held to and how it must end."""

    path: Path
    problem: str
    device: str
    rules: Rules
    expect: str

    @property
    def code(self) -> str:
        return self.path.read_text()

    @property
    def task(self) -> Problem:
        """The problem: ours by id, or one of the quick ones beside the submissions by file name."""
        return load_problem(str(FOLDER / "problems" / self.problem) if self.problem.endswith(".py") else self.problem)

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    def met_by(self, outcome: Outcome) -> bool:
        """Whether the outcome is what the file must end with. Whether a time is too noisy to tell decides nothing."""
        speedup = getattr(outcome, "speedup", None)
        match self.expect:
            case "correct":
                return outcome.category == "correct"
            case "not correct":
                return outcome.category != "correct"
            case "no gain":
                return outcome.category == "correct" and (speedup is None or speedup < NO_GAIN)
            case kind:
                return f"{outcome.category}/{outcome.kind}" == kind


def read_entry(path: Path) -> Entry:
    """A file's entry.

    Raises:
        ValueError: when its docstring is not of the form that every file's has.
    """
    text = path.read_text().split('"""')[1]  # one of the files does not parse
    sentence, blank, *fields = text.rstrip("\n").split("\n")
    values = dict(line.split(": ", 1) for line in fields)
    if not sentence.endswith(".") or blank or list(values) != ["problem", "device", "rules", "expect"]:
        raise ValueError(f"{path.name}: a sentence, an empty line, then problem, device, rules, expect")
    if values["expect"] not in KINDS and values["expect"] not in WORDS:
        raise ValueError(f"{path.name}: expects {values['expect']!r}")
    return Entry(path, values["problem"], values["device"], values["rules"], values["expect"])  # type: ignore[arg-type]


def read_corpus(*devices: str) -> list[Entry]:
    """Every file for one of these devices, by name."""
    entries = [read_entry(path) for path in sorted(FOLDER.glob("ho*/*.py"))]
    return [entry for entry in entries if entry.device in devices]
