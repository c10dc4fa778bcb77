"""Checks the outputs of one call: first their structure, then every tensor."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import POISON
from kevin_env.judge.compare.chunked import counts_of, is_rounded
from kevin_env.judge.compare.pattern import region_of
from kevin_env.judge.compare.tolerance import Tolerance, tolerance_of
from kevin_env.judge.compare.values import Mismatch, find_pattern, find_wrong, near, of_form
from kevin_env.judge.handshake.claims import Output
from kevin_env.judge.handshake.handshake import Answer
from kevin_env.judge.inputs.reference import Case, Expected
from kevin_env.judge.workers.errors import Broken
from kevin_env.outcome import Difference, Incorrect, Pattern

Allowed = dict[tuple[str, int], Tolerance]
"""Tolerances used on earlier input sets, by the set's name and the number of the output tensor."""

CLOSE = 0.5
"""An output within this share of an earlier tolerance, for the same case and distribution, is
right.

For any other the oracle is computed, which takes ten times as long.
"""


def check_answer(
    answer: Answer, expected: Expected, case: Case, input_set: str, allowed: Allowed
) -> Incorrect | None:  # fmt: skip
    """What is wrong with a call, or None. `allowed` is read and updated."""
    if not answer.unchanged:
        return _incorrect(
            Mismatch("inputs_changed", "the call modified its inputs, or memory next to them"),
            input_set,
        )
    if answer.early:
        text = "the call was reported finished while its output was still being written"
        return _incorrect(Mismatch("early_done", text), input_set)
    if answer.claim.unsupported is not None:
        return _incorrect(Mismatch("type", answer.claim.unsupported), input_set)
    skeleton, references = tree.flatten(expected.output)
    claimed = in_order_of(skeleton, answer.claim.skeleton)
    got, wanted = tree.leaves(claimed), tree.leaves(skeleton)
    if len(got) != len(wanted):
        return _incorrect(
            Mismatch("arity", f"expected {count_of(wanted)}, got {count_of(got)}"), input_set
        )
    if shape_of(claimed) != shape_of(skeleton):
        text = f"expected {described(skeleton)}, got {described(claimed)}"
        return _incorrect(Mismatch("type", text), input_set)
    for (path, leaf), (_, value) in zip(wanted, got, strict=True):
        wrong = None
        if "t" in leaf:
            target = _Target(expected, references, leaf["t"], case, (input_set, leaf["t"]))
            wrong = _tensor_wrong(answer.outputs[value["t"]], target, allowed)
        elif repr(leaf) != repr(value):  # True is not 1
            wrong = Mismatch("values", f"expected {described(leaf)}, got {described(value)}")
        if wrong is not None:
            return _incorrect(wrong, input_set, path)
    return None


@dataclass(frozen=True)
class _Target:
    """One expected tensor."""

    expected: Expected
    references: list[torch.Tensor]
    place: int
    case: Case
    name: tuple[str, int]

    @property
    def reference(self) -> torch.Tensor:
        return self.references[self.place]

    def plainly_right(self, tensor: torch.Tensor, allowed: Allowed) -> bool:
        """Whether the tensor is right without computing the oracle."""
        known = allowed.get(self.name)
        return known is not None and near(
            tensor, self.reference, CLOSE * known.worst, CLOSE * known.rms
        )

    def compare(self, tensor: torch.Tensor, allowed: Allowed) -> Mismatch | None:
        """Compares with the oracle."""
        oracle = None
        if is_rounded(self.reference):
            oracle = oracles_of(self.expected, self.references)[self.place]
        tolerance = tolerance_of(self.reference, oracle, self.case.tolerance, self.case.precision)
        wrong, tolerance = find_wrong(tensor, self.reference, oracle, tolerance, self.plain)
        if wrong is not None:
            return replace(
                wrong, pattern=find_pattern(wrong, tensor, self.reference, oracle, tolerance)
            )
        if self.reference.is_floating_point():
            allowed.setdefault(self.name, tolerance)
        return None

    def plain(self) -> torch.Tensor | None:
        """The reference's output with one accumulator per sum, if it can be computed."""
        return alike(self.expected.plain, self.references)[self.place]


def _tensor_wrong(output: Output, target: _Target, allowed: Allowed) -> Mismatch | None:
    if (wrong := _wrong_form(output, target)) is not None:
        return wrong
    tensor = output.tensor()
    if tensor is None:
        raise Broken("an output of the right size was reported as too large to copy")
    return None if target.plainly_right(tensor, allowed) else target.compare(tensor, allowed)


def _wrong_form(output: Output, target: _Target) -> Mismatch | None:
    claim, case = output.claim, target.case
    if claim.device != case.device.type:
        return Mismatch(
            "device", f"expected a tensor on {case.device.type}, got one on {claim.device}"
        )
    if claim.layout is not None:
        return Mismatch("type", f"expected a strided tensor, got layout {claim.layout}")
    return of_form(claim.shape, claim.dtype, target.reference)


def unwritten(before: Answer, call: Answer, wrong: Incorrect) -> Incorrect | None:
    """What is wrong with a call whose output holds the bytes that `poison` filled memory with.

    Args:
        before: A call on the same inputs, without filling memory.
        call: The call.
        wrong: The result of comparing it.

    Returns:
        None if the output holds no such bytes.
    """
    places = {path: leaf["t"] for path, leaf in tree.leaves(call.claim.skeleton) if "t" in leaf}
    place = places.get(wrong.output)
    if wrong.kind not in ("values", "not_finite") or place is None:
        return None
    now, then = (each.outputs[place].tensor() for each in (call, before))
    if now is None or then is None or now.shape != then.shape or now.dtype != then.dtype:
        return None
    count = sum(counts_of(_left_as_filled, now, then))
    if count == 0:
        return None
    shown: list[Difference] = []
    for each in wrong.differences:
        at = each.index[: now.dim()]  # a complex element's index ends with its part
        shown.append(
            each.model_copy(update={"got": "uninitialized"})
            if _left_as_filled(now[at], then[at])
            else each
        )
    some = f"{count} of {now.numel()} elements ({100 * count / now.numel():.3g} %) hold"
    which = "the output holds" if count == now.numel() else some
    what = f"{which} uninitialized memory: never written, or computed from uninitialized memory"
    where = region_of(_left_as_filled, now, then)
    return Incorrect(
        kind="not_written", message=what, input_set=wrong.input_set, output=wrong.output,
        wrong=count, total=now.numel(), differences=tuple(shown),
        pattern=Pattern(where=where) if where else None, passed=wrong.passed,
    )  # fmt: skip


def _left_as_filled(now: torch.Tensor, then: torch.Tensor) -> torch.Tensor:
    """The elements that hold the filling; integers only if they held something else before."""
    now_bytes, then_bytes = (
        each.contiguous().unsqueeze(-1).view(torch.uint8) for each in (now, then)
    )
    filled = (now_bytes == POISON).all(-1)
    return filled if is_rounded(now) else filled & (now_bytes != then_bytes).any(-1)


def oracles_of(expected: Expected, references: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """The oracle's tensors; None for each that is not float64 of the same shape."""
    double = (torch.float64, torch.complex128)
    return [
        o if o is not None and o.dtype in double else None
        for o in alike(expected.oracle, references)
    ]


def alike(output: Any | None, references: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """The tensors of another output of the reference; None for each that has another shape."""
    tensors = [] if output is None else tree.flatten(output)[1]
    if len(tensors) != len(references):
        return [None] * len(references)
    return [o if o.shape == r.shape else None for o, r in zip(tensors, references, strict=True)]


def _incorrect(wrong: Mismatch, input_set: str, path: str = "") -> Incorrect:
    return Incorrect.model_validate({
        "kind": wrong.kind, "message": wrong.message, "input_set": input_set, "output": path,
        "wrong": wrong.wrong, "total": wrong.total, "worst_error": _finite(wrong.worst_error),
        "tolerance": _finite(wrong.tolerance), "differences": wrong.differences,
        "pattern": wrong.pattern,
    })  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


SHOWN = 300
"""Longest structure or value that is shown, in characters; a claim may have megabytes."""


def in_order_of(wanted: tree.Skeleton, got: tree.Skeleton) -> tree.Skeleton:
    """`got` with dict entries in the order of `wanted`: dicts are equal in any order."""
    (tag, expected), (kind, value) = next(iter(wanted.items())), next(iter(got.items()))
    sequences = {tag, kind} <= {"list", "tuple"}
    if not (sequences or tag == kind == "dict") or len(expected) != len(value):
        return got
    if sequences:
        return {kind: [in_order_of(a, b) for a, b in zip(expected, value, strict=True)]}
    entries = dict(value)
    if entries.keys() != dict(expected).keys():
        return got
    return {tag: [[key, in_order_of(child, entries[key])] for key, child in expected]}


def shape_of(skeleton: tree.Skeleton) -> Any:
    """The containers of a skeleton; leaves are reduced to tensor or value.

    A list equals a tuple, since C++ returns a vector as a list.
    """
    tag, value = next(iter(skeleton.items()))
    if tag in ("list", "tuple"):
        return ["sequence", [shape_of(child) for child in value]]
    if tag == "dict":
        return [tag, [[key, shape_of(child)] for key, child in value]]
    return "tensor" if tag == "t" else "value"


def described(skeleton: tree.Skeleton) -> str:
    """A skeleton in words, shortened."""
    text = _describe(skeleton)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def count_of(leaves: list[Any]) -> str:
    """The number of outputs, in words."""
    return f"{len(leaves)} output{'' if len(leaves) == 1 else 's'}"


def _describe(skeleton: tree.Skeleton) -> str:
    tag, value = next(iter(skeleton.items()))
    if tag in ("list", "tuple"):
        return f"a {tag} of ({', '.join(map(_describe, value))})"
    if tag == "dict":
        return f"a dict with {', '.join(repr(key) for key, _ in value) or 'nothing'}"
    return "a tensor" if tag == "t" else repr(tree.unflatten(skeleton, []))
