"""What breaks a rule, and what launches kernels, in what `forward` reaches."""

import ast
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["torch_compute", "fallback"]


@dataclass(frozen=True, order=True)
class Finding:
    """One place where what `forward` reaches breaks a rule."""

    line: int
    kind: Kind
    what: str


@dataclass
class Seen:
    """What was seen in one piece of code: findings, and whether it may launch a kernel."""

    findings: list[Finding] = field(default_factory=list[Finding])
    launches: bool = False

    def add(self, other: "Seen") -> None:
        """Takes over what was seen elsewhere."""
        self.findings += [each for each in other.findings if each not in self.findings]
        self.launches = self.launches or other.launches


class Findings:
    """Notes what is seen while `forward` is followed."""

    def __init__(self) -> None:
        self.seen = Seen()

    def report(self, node: ast.AST, what: str, kind: Kind = "torch_compute") -> None:
        """Notes a broken rule."""
        self.seen.add(Seen([Finding(getattr(node, "lineno", 1), kind, what)]))

    def launch(self) -> None:
        """Notes that a kernel may be launched."""
        self.seen.launches = True

    @contextmanager
    def apart(self) -> Generator[Seen]:
        """What is read meanwhile is seen by itself."""
        before, self.seen = self.seen, Seen()
        try:
            yield self.seen
        finally:
            self.seen = before
