"""Which trivial answers a verdict accepts: on the input sets of a verdict, straight to the
comparison.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from kevin_env.judge.api import PACES
from kevin_env.judge.inputs.cases import plan, usable_distributions
from kevin_env.judge.inputs.reference import Case, distributions_of, seed_from
from kevin_env.judge.lint.answers import Answer, Scene, trivial_answers
from kevin_env.judge.lint.target import SECRET, InputSet, Target, outputs_of

OWN_SETS = 4
"""Further input sets of the problem's own distribution."""
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


def outlive_first(case: Case, first: InputSet) -> Survivors:
    """Who is right on the first input set of the timed case.

    Args:
        case: The timed case, with its weights drawn.
        first: Its input set number 0 of the distribution `own`.

    Raises:
        ProblemError: when the reference fails.
    """
    other = functools.cache(functools.partial(outputs_of, case, "own", OTHER))
    return _outlive(Survivors(), first, other, other)


def accepted_answers(case: Case, start: Survivors) -> tuple[Survivors, Survivors]:
    """Who is accepted in the timed case: on sets of each distribution, and on some of the problem's
    own alone.

    Args:
        case: The timed case, with its weights drawn.
        start: Who is right on its first input set.

    Raises:
        ProblemError: when the reference fails.
    """
    first = functools.partial(outputs_of, case, "own", 0)
    further = [name for name in distributions_of(case) if name != "own"]
    own = ["own"] * OWN_SETS
    return _outlive_all(case, start, further, first), _outlive_all(case, start, own, first)


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
        before = _outlive_all(
            case, before, plan(names, False, SECRET, case.name, PACES[case.device.type]), None
        )
    return before


def _outlive_all(
    case: Case, before: Survivors, names: Sequence[str], previous: Outputs | None
) -> Survivors:
    """Who is left after input sets of these distributions; those on which the reference is not
    finite do not count.

    What it gave for an input set is found again when it is asked for later: most often nobody does.
    """
    for number, name in enumerate(names, start=1):
        if before.none_left:
            break
        drawn = InputSet.draw(case, name, number)
        if drawn.finite:
            other = functools.cache(functools.partial(outputs_of, case, name, number + OTHER))
            before = _outlive(before, drawn, other, previous or other)
            previous = functools.partial(outputs_of, case, name, number)
            del other
        del drawn  # before the next one
    return before


def _outlive(before: Survivors, drawn: InputSet, other: Outputs, previous: Outputs) -> Survivors:
    """Who of those before is right on another input set as well. What was rejected is not tried
    again.

    Args:
        before: Answers so far.
        drawn: The input set.
        other: What the reference gives for one of the same distribution from another seed.
        previous: What it gave for the one before.
    """
    seen, rejected = set(before.seen), set(before.rejected)
    for i, path, target in drawn.targets():
        scene = Scene(
            drawn.outputs[i], drawn.tensors, lambda i=i: other()[i], lambda i=i: previous()[i]
        )
        for name, answer in trivial_answers(scene):
            label = f"{name} as output {path}" if path else name
            seen.add(label)
            if label not in rejected and not _accepted(answer, target):
                rejected.add(label)
    return Survivors(frozenset(seen), frozenset(rejected))


def _accepted(answer: Answer, target: Target) -> bool:
    made = answer()
    return made is not None and target.accepts_elements(made)
