"""Checks the answer to one call: how it came, then its output (`outputs`).

A submission whose answer is wrong is called again after its free memory was filled with a pattern,
which shows what it never wrote.
"""

from collections.abc import Sequence
from functools import partial

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import FILLING
from kevin_env.judge.compare.outputs import (
    Allowed,
    Given,
    Right,
    find_wrong_output,
)
from kevin_env.judge.compare.pattern import pattern_of
from kevin_env.judge.compare.values import Mismatch, counts_of
from kevin_env.judge.handshake.claims import Output
from kevin_env.judge.handshake.handshake import Answer
from kevin_env.judge.inputs.reference import Case, Expected
from kevin_env.judge.workers.errors import Broken
from kevin_env.outcome import Difference, Incorrect


def check_answer(
    answer: Answer, expected: Expected, case: Case, input_set: str, allowed: Allowed
) -> Incorrect | None:  # fmt: skip
    """What is wrong with a call, or None. `allowed` is read and updated."""
    found = _wrong_call(answer, case)
    if found is None:
        right = Right(
            expected.output, lambda: expected.oracle, expected.plain, case.tolerance,
            case.precision, case.integers, case.device.type,
        )  # fmt: skip
        given = [given_of(output) for output in answer.outputs]
        found = find_wrong_output(right, answer.claim.skeleton, given, input_set, allowed)
    return None if found is None else _incorrect(found, input_set, answer)


def _wrong_call(answer: Answer, case: Case) -> Mismatch | None:
    """What is wrong whatever the output is."""
    if not answer.unchanged:
        numbers, what = answer.changed, "its inputs, or memory next to them"
        if numbers is not None:
            names = [f"input {number} (`{case.argument_name(number)}`)" for number in numbers]
            what = ", ".join(names) or "memory next to its inputs"
        return Mismatch("inputs_changed", f"the call modified {what}")
    if answer.early:
        text = "the call was reported finished while its output was still being written"
        return Mismatch("early_done", text)
    if answer.claim.unsupported is not None:
        return Mismatch("type", answer.claim.unsupported)
    return None


def given_of(output: Output) -> Given:
    """An output as it is compared. Its bytes are only needed if its form is right."""
    claim = output.claim
    return Given(claim.device, claim.layout, claim.dtype, claim.shape, partial(_values, output))


def _values(output: Output) -> torch.Tensor:
    tensor = output.tensor()
    if tensor is None:
        raise Broken("an output of the right size was reported as too large to copy")
    return tensor


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
    if now is None or then is None:
        return None
    found = find_unwritten(then, now, wrong.differences)
    if found is None:
        return None
    return _incorrect(found, wrong.input_set, call).model_copy(
        update={"output": wrong.output, "passed": wrong.passed}
    )


def find_unwritten(
    before: torch.Tensor, now: torch.Tensor, differences: Sequence[Difference] = ()
) -> Mismatch | None:
    """What is wrong with an output that holds the filling; None if it holds none.

    Args:
        before: The output of a call on the same inputs, without filling memory.
        now: The output of the call afterwards, which is wrong.
        differences: Its first wrong elements.
    """
    if now.shape != before.shape or now.dtype != before.dtype:
        return None
    count = sum(counts_of(_left_as_filled, now, before))
    if count == 0:
        return None
    shown: list[Difference] = []
    for each in differences:
        at = each.index[: now.dim()]  # a complex element's index ends with its part
        left = _left_as_filled(now[at], before[at])
        shown.append(each.model_copy(update={"got": "uninitialized"}) if left else each)
    some = f"{count} of {now.numel()} elements ({100 * count / now.numel():.3g} %) hold"
    which = "the output holds" if count == now.numel() else some
    what = f"{which} uninitialized memory: never written, or computed from uninitialized memory"
    return Mismatch(
        "not_written", what, wrong=count, total=now.numel(), differences=tuple(shown),
        pattern=pattern_of(_left_as_filled, now, before),
    )  # fmt: skip


def _left_as_filled(now: torch.Tensor, then: torch.Tensor) -> torch.Tensor:
    """The elements that hold the filling and held something else before.

    Vector comparisons store such bytes, and fp8 has a number or NaN of them.
    """
    now_bytes, then_bytes = (
        each.contiguous().unsqueeze(-1).view(torch.uint8) for each in (now, then)
    )
    return (now_bytes == FILLING).all(-1) & (now_bytes != then_bytes).any(-1)


def _incorrect(wrong: Mismatch, input_set: str, answer: Answer) -> Incorrect:
    message = wrong.message
    if error := answer.claim.cuda_error:
        message = f"{message.rstrip('.')}; CUDA refused a kernel launch in this call: {error}"
    return Incorrect.model_validate({
        "kind": wrong.kind, "message": message, "input_set": input_set,
        "output": wrong.output, "wrong": wrong.wrong, "total": wrong.total,
        "worst_error": _finite(wrong.worst_error), "tolerance": _finite(wrong.tolerance),
        "differences": wrong.differences, "pattern": wrong.pattern,
    })  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None
