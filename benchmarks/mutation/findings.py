"""All mutants of one problem, judged: what is found of each, as rows of a result."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch

from kevin_env.problem import Problem

from .code import CodeAnswer, code_mutants, rewrite_mutants, rewrite_of
from .jury import Evidence, Mutant, Verdict, gather_evidence, judge
from .precision import honest_variants, precision_mutants
from .samples import CPU, Sample, Sampler
from .values import value_mutants

OnMutant = Callable[[Mutant, Verdict], None]


@dataclass(frozen=True)
class Judged:
    """A mutant with its verdict; with evidence when it was accepted."""

    mutant: Mutant
    verdict: Verdict
    evidence: Evidence | None = None

    @property
    def status(self) -> str:
        """`caught`, `structure`, `crashed`, `equivalent` or `survived`."""
        if self.evidence is None:
            return self.verdict.status
        return "equivalent" if self.evidence.equivalent else "survived"

    def row(self) -> dict[str, Any]:
        """What there is to say of one that was accepted."""
        evidence = self.evidence or Evidence()
        return {
            "family": self.mutant.family,
            "class": self.mutant.kind,
            "change": self.mutant.name,
            "line": self.mutant.line,
            "error_of_reference": _number(evidence.off),
            "share_of_tolerance": _number(evidence.share),
            "rejected_later": evidence.rejected,
            "further_sets": evidence.sets,
        }


@dataclass
class Tally:
    """How mutants ended. What crashed was never compared, and counts neither way."""

    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("caught", "structure", "crashed", "equivalent", "survived"), 0
        )
    )

    def add(self, status: str, count: int = 1) -> None:
        self.counts[status] += count

    @property
    def wrong(self) -> int:
        """Those that were compared and are not as right as the reference."""
        return self.counts["caught"] + self.counts["structure"] + self.counts["survived"]

    @property
    def rate(self) -> float | None:
        """The share of these that was caught; None when there are none."""
        return None if self.wrong == 0 else 1 - self.counts["survived"] / self.wrong


def examine(
    problem: Problem,
    most: int,
    on_mutant: OnMutant = lambda mutant, verdict: None,
    device: torch.device = CPU,
) -> list[Judged]:
    """Every mutant of a problem with its verdict, at most so many of each source of code.

    Raises:
        ProblemError: when the reference fails.
    """
    sampler = Sampler(problem, device)
    samples = sampler.screened()
    found: list[Judged] = []
    for mutants, limit in _families(problem, samples[-1], most):
        compared = 0
        for mutant in mutants:
            if compared == limit:
                break
            verdict = judge(mutant, samples)
            compared += verdict.status != "crashed"
            on_mutant(mutant, verdict)
            found.append(Judged(mutant, verdict))
    return _with_evidence(found, sampler)


def examine_honest(problem: Problem, device: torch.device = CPU) -> list[Judged]:
    """Honest arithmetic and the rewrite, judged; all of them should be accepted."""
    sampler = Sampler(problem, device)
    samples = sampler.screened()
    variants = honest_variants(samples[-1])
    rewrite = rewrite_of(problem)
    if rewrite is not None:
        variants.append(Mutant("honest", "honest", "rewritten as a kernel", CodeAnswer(rewrite)))
    evidence = gather_evidence(variants, sampler.evidence())
    return [
        Judged(each, judge(each, samples), e) for each, e in zip(variants, evidence, strict=True)
    ]


def _families(problem: Problem, last: Sample, most: int) -> Iterator[tuple[list[Mutant], int]]:
    yield code_mutants(problem), most
    yield rewrite_mutants(problem), most
    for mutants in (list(value_mutants(last)), precision_mutants(last)):
        yield mutants, len(mutants)


def _with_evidence(found: list[Judged], sampler: Sampler) -> list[Judged]:
    accepted = [each.mutant for each in found if each.verdict.status == "accepted"]
    evidence = iter(gather_evidence(accepted, sampler.evidence()) if accepted else ())
    return [
        Judged(j.mutant, j.verdict, next(evidence)) if j.verdict.status == "accepted" else j
        for j in found
    ]


def tallies(judged: list[Judged]) -> dict[str, Tally]:
    """Tallies by `family/class`."""
    found: dict[str, Tally] = {}
    for each in judged:
        found.setdefault(f"{each.mutant.family}/{each.mutant.kind}", Tally()).add(each.status)
    return found


def total(parts: dict[str, Tally] | list[Tally]) -> Tally:
    """The sum of tallies."""
    whole = Tally()
    for status, count in chain.from_iterable(
        part.counts.items() for part in (parts.values() if isinstance(parts, dict) else parts)
    ):
        whole.add(status, count)
    return whole


def _number(value: float) -> float | None:
    return value if value < float("inf") else None
