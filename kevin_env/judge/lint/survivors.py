"""Which trivial answers a verdict accepts: on the input sets of a verdict, straight to the comparison."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from kevin_env.judge.cases import SETS, plan, usable_distributions
from kevin_env.judge.lint.answers import Scene, trivial_answers
from kevin_env.judge.lint.target import SECRET, InputSet, outputs_of
from kevin_env.judge.reference import Case, distributions_of, seed_from

OTHER = 1000
"""What is added to an input set's number for the one from another seed."""
Outputs = Callable[[], list[torch.Tensor]]
"""The outputs of an input set, found when they are first asked for."""


@dataclass(frozen=True)
class Survivors:
    """Answers by name and output, over the input sets so far."""

    seen: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Those that made sense for some input set and were right on each of these."""
        return tuple(sorted(self.seen - self.rejected))

    @property
    def none_left(self) -> bool:
        """Whether answers were tried and all of them were rejected."""
        return bool(self.seen) and not self.names


def accepted_answers(case: Case, first: InputSet) -> tuple[Survivors, Survivors]:
    """Who is accepted in the timed case: on a verdict's input sets, and on as many of the problem's own alone.

    Args:
        case: The timed case, with its weights drawn.
        first: Its input set number 0 of the distribution `own`.

    Raises:
        ProblemError: when the reference fails.
    """
    other = functools.cache(lambda: outputs_of(case, "own", OTHER))
    start = _outlive(case, Survivors(), first, other, other)
    further = [name for name in distributions_of(case) if name != "own"]
    own = ["own"] * (SETS - 1)
    return _outlive_all(case, start, further, first.outputs), _outlive_all(case, start, own, first.outputs)


def accepted_elsewhere(cases: Iterable[Case], before: Survivors, further: bool) -> Survivors:
    """Who of those before is accepted in the other cases as well.

    Args:
        cases: Those that are not timed.
        before: Answers so far.
        further: Whether distributions other than the problem's own are checked.

    Raises:
        ProblemError: when the reference fails.
    """
    for case in cases:
        if before.none_left:
            break
        seed = seed_from(SECRET, case.name, "weights")
        case.draw_weights(seed)
        names = usable_distributions(case, seed) if further else ["own"]
        before = _outlive_all(case, before, plan(names, False, SECRET, case.name), None)
    return before


def _outlive_all(case: Case, before: Survivors, names: Sequence[str], previous: list[torch.Tensor] | None) -> Survivors:
    """Who is left after input sets of these distributions; those on which the reference is not finite do not count."""
    for number, name in enumerate(names, start=1):
        if before.none_left:
            break
        drawn = InputSet.draw(case, name, number)
        if drawn.finite:
            other = functools.cache(functools.partial(outputs_of, case, name, number + OTHER))
            last = other if previous is None else functools.partial(list[torch.Tensor], previous)
            before = _outlive(case, before, drawn, other, last)
            previous = drawn.outputs
    return before


def _outlive(case: Case, before: Survivors, drawn: InputSet, other: Outputs, previous: Outputs) -> Survivors:
    """Who of those before is right on another input set as well. What was rejected is not tried again.

    Args:
        case: Whose input set it is.
        before: Answers so far.
        drawn: The input set.
        other: What the reference gives for one of the same distribution from another seed.
        previous: What it gave for the one before.
    """
    seen, rejected = set(before.seen), set(before.rejected)
    for i, path, target in drawn.targets(case):
        scene = Scene(drawn.outputs[i], drawn.tensors, lambda i=i: other()[i], lambda i=i: previous()[i])
        for name, answer in trivial_answers(scene):
            label = f"{name} as output {path}" if path else name
            seen.add(label)
            if label not in rejected and not target.accepts(answer()):
                rejected.add(label)
    return Survivors(frozenset(seen), frozenset(rejected))
