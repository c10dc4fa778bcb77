"""What breaks a rule, and what launches kernels, in what `forward` reaches. Before the first layer of the reader."""

import ast
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One place where what `forward` reaches breaks a rule."""

    kind: Literal["torch_compute", "fallback"]
    line: int
    what: str


class Findings:
    """Findings, with where the reading stands."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.launches = False
        self._captures = False
        self.reached = False
        """Whether what is being read runs when `forward` is called."""

    def report(self, kind: Literal["torch_compute", "fallback"], node: ast.AST, what: str) -> None:
        """Notes a broken rule, when `forward` reaches it."""
        finding = Finding(kind, getattr(node, "lineno", 1), what)
        if self.reached and finding not in self.findings:
            self.findings.append(finding)

    def launch(self) -> None:
        """Notes that an own kernel is launched, when `forward` reaches it."""
        self.launches = self.launches or self.reached

    @contextmanager
    def watching_launches(self) -> Generator[list[bool]]:
        """Gives a list that has an entry afterwards if what was read meanwhile launches a kernel."""
        before, self.launches = self.launches, False
        found: list[bool] = []
        try:
            yield found
        finally:
            if self.launches:
                found.append(True)
            self.launches = self.launches or before

    def capture(self, begins: bool) -> None:
        """What is read between begin and end runs whenever the graph that captures it is replayed."""
        if begins and not self.reached:
            self.reached = self._captures = True
        elif not begins and self._captures:
            self.reached = self._captures = False

    @contextmanager
    def reaching(self) -> Generator[None]:
        """What is read meanwhile runs when `forward` is called."""
        before, self.reached = self.reached, True
        try:
            yield
        finally:
            self.reached = before
