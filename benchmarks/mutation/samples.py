"""Input sets with what the reference gives for them: those of a verdict, and further ones as
evidence.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.judge.api import PACES
from kevin_env.judge.compare.outputs import alike, in_float64
from kevin_env.judge.inputs.cases import open_cases, plan, usable_distributions
from kevin_env.judge.inputs.reference import Case, Expected, seed_from
from kevin_env.problem import Problem

CPU = torch.device("cpu")
SECRET = "mutants"
"""What everything is drawn from: a run is to say the same tomorrow."""
EVIDENCE = 20
"""Least number of further input sets that decide whether a survivor is as right as the reference.
"""
ELSEWHERE = 1 << 20
"""What is added to an input set's number for the one from another seed."""


@dataclass(frozen=True)
class Sample:
    """One input set of a case and what the reference gives for it.

    Attributes:
        number: Of this input set; no two of a problem have the same.
        skeleton: The structure of the inputs.
        tensors: The inputs.
        shape: The structure of the output.
        outputs: The output's tensors.
        oracles: Each of them from float64 arithmetic, where it can be had.
        other: What the reference gives for inputs from another seed.
        previous: What it gave for the input set before, of the same case; of another seed for the
            first one.
        expected: All that the judge knows of the output.
    """

    case: Case
    distribution: str
    number: int
    skeleton: tree.Skeleton
    tensors: list[torch.Tensor]
    shape: tree.Skeleton
    outputs: list[torch.Tensor]
    oracles: list[torch.Tensor | None]
    other: list[torch.Tensor]
    previous: list[torch.Tensor]
    expected: Expected

    @property
    def name(self) -> str:
        return f"{self.case.name}/{self.distribution}"

    def plain(self, number: int, draw: int) -> torch.Tensor | None:
        """An output with one accumulator a sum, where it can be had."""
        return alike(self.expected.plain(draw), self.outputs)[number]

    def answer(self, tensors: list[torch.Tensor] | None = None) -> Any:
        """What the reference gives for these inputs, or for others in their place."""
        return self.case.answer(
            self.skeleton, self.tensors if tensors is None else tensors, self.number
        )


class Sampler:
    """The input sets of one problem, in the cases of a CPU.

    Raises:
        ProblemError: when the reference fails.
    """

    def __init__(self, problem: Problem, device: torch.device, secret: str = SECRET) -> None:
        self.secret = secret
        self.cases = list(open_cases(problem, CPU))
        if device != CPU:
            self.cases = [Case(problem, case.name, device) for case in self.cases]
        self.usable: dict[str, list[str]] = {}
        self._count = 0
        for case in self.cases:
            case.draw_weights(seed_from(secret, case.name, "weights"))
            self.usable[case.name] = usable_distributions(
                case, seed_from(secret, case.name, "probe")
            )

    def screened(self) -> list[Sample]:
        """Those of one verdict, in its order."""
        found: list[Sample] = []
        for case in self.cases:
            last: list[torch.Tensor] | None = None
            timed = case is self.cases[-1]
            for distribution in plan(
                self.usable[case.name], timed, self.secret, case.name, PACES["cpu"]
            ):
                found.append(self._draw(case, distribution, last))
                last = found[-1].outputs
        return found

    def evidence(self) -> Iterator[Sample]:
        """At least `EVIDENCE` further ones, the same number of every usable distribution of every
        case.
        """
        each = -(-EVIDENCE // sum(map(len, self.usable.values())))
        for case in self.cases:
            for distribution in self.usable[case.name]:
                for _ in range(max(2, each)):
                    yield self._draw(case, distribution, None)

    def _draw(self, case: Case, distribution: str, last: list[torch.Tensor] | None) -> Sample:
        self._count += 1
        number = self._count
        skeleton, tensors = case.draw_inputs(
            distribution, seed_from(self.secret, case.name, distribution, number)
        )
        expected = case.expect(skeleton, tensors, number)
        shape, outputs = tree.flatten(expected.output)
        others = case.draw_inputs(
            distribution, seed_from(self.secret, case.name, distribution, number + ELSEWHERE)
        )
        other = tree.flatten(case.answer(*others, number))[1]
        return Sample(
            case, distribution, number, skeleton, tensors, shape, outputs,
            in_float64(expected.oracle, outputs), other, last or other, expected,
        )  # fmt: skip
