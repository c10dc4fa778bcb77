"""The verdict on a mutant, as the product gives it, and the evidence on those that it accepts."""

import signal
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any

import torch
from comparison import wrong as fault_of  # pyright: ignore[reportMissingImports]

from kevin_env.candidate import tree
from kevin_env.judge.compare.tolerance import tolerance_of
from kevin_env.problem import ProblemError

from .samples import Sample

SECONDS = 20.0
"""Longest call of a mutant, construction included: a changed loop may never end."""
AS_RIGHT = 4.0
"""A mutant whose largest error is no more than this multiple of its original's is as right as that.
By chance the original may err less than rounding does; its error counts as half an ulp of its
largest element at least.
"""


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        family: `code`, `rewrite` (code of a rewrite), `value` or `precision`.
        kind: The class of faults that it belongs to.
        name: What was changed.
        answer: What the changed kernel gives for a sample, a tree of tensors.
        line: Of the source, for changed code.
        original: What the kernel gave before it was changed; None: it was the reference.
    """

    family: str
    kind: str
    name: str
    answer: Callable[[Sample], Any]
    line: int | None = None
    original: Callable[[Sample], Any] | None = None


@dataclass(frozen=True)
class Verdict:
    """How a mutant ended.

    Attributes:
        status: `caught` by its values, `structure` (caught by shape, dtype or number of outputs),
            `crashed` (raised or did not end), or `accepted`.
        where: The input set that decided, or what was raised.
    """

    status: str
    where: str = ""


@dataclass
class Evidence:
    """What further input sets say of an accepted mutant.

    Attributes:
        equivalent: Whether it is as right as its original.
        off: Its largest error, as a multiple of its original's largest on the same case and
            distribution.
        share: Its largest error, as a share of what is allowed.
        rejected: How many of the further sets would have rejected it.
        sets: How many there were.
    """

    equivalent: bool = True
    off: float = 0.0
    share: float = 0.0
    rejected: int = 0
    sets: int = 0
    errors: dict[tuple[str, int], list[float]] = field(
        default_factory=lambda: defaultdict(lambda: [0.0, 0.0])
    )


def judge(mutant: Mutant, samples: Iterable[Sample], seconds: float = SECONDS) -> Verdict:
    """The verdict: the first input set with a wrong answer rejects; a call has so many seconds."""
    for sample in samples:
        try:
            shape, outputs = _run(mutant, sample, seconds)
        except _FAILURES as error:
            return Verdict("crashed", f"{type(error).__name__}: {error}"[:200])
        if shape != sample.shape:
            return Verdict("structure", sample.name)
        for i, output in enumerate(outputs):
            case = sample.case
            plain = partial(sample.plain, i)
            wrong = fault_of(
                sample.outputs[i], output, case.tolerance, case.precision,
                oracle=partial(sample.oracles.__getitem__, i), plain=plain,
            )  # fmt: skip
            if wrong is not None:
                status = "structure" if wrong.kind in ("shape", "dtype") else "caught"
                return Verdict(status, sample.name)
    return Verdict("accepted")


def gather_evidence(mutants: list[Mutant], samples: Iterable[Sample]) -> list[Evidence]:
    """What further input sets say of accepted mutants, each on all of the sets."""
    found = [Evidence() for _ in mutants]
    for sample in samples:
        originals: dict[int, list[torch.Tensor]] = {}
        for mutant, evidence in zip(mutants, found, strict=True):
            evidence.sets += 1
            key = id(mutant.original)
            if key not in originals:
                originals[key] = sample.outputs
                if mutant.original is not None:
                    with sample.case.device:
                        originals[key] = tree.flatten(mutant.original(sample))[1]
            _weigh(evidence, sample, originals[key], mutant)
    for evidence in found:
        _conclude(evidence)
    return found


class Hung(RuntimeError):
    """A mutant did not end."""


# a changed reference may raise anything that is an error; `ProblemError` is how the judge passes it
# on
_FAILURES = (
    ProblemError, ValueError, TypeError, ArithmeticError, LookupError, RuntimeError, AttributeError,
)  # fmt: skip


def _run(
    mutant: Mutant, sample: Sample, seconds: float = SECONDS
) -> tuple[tree.Skeleton, list[torch.Tensor]]:
    with _limited(seconds), sample.case.device:
        return tree.flatten(mutant.answer(sample))


def _weigh(
    evidence: Evidence, sample: Sample, originals: list[torch.Tensor], mutant: Mutant
) -> None:
    try:
        shape, outputs = _run(mutant, sample)
    except _FAILURES:
        shape, outputs = None, []
    if shape != sample.shape or any(
        not _alike(a, b) for a, b in zip(outputs, sample.outputs, strict=True)
    ):
        evidence.rejected += 1
        evidence.equivalent = False
        return
    places = zip(outputs, sample.outputs, sample.oracles, strict=True)
    case = sample.case
    evidence.rejected += any(
        fault_of(
            reference,
            output,
            case.tolerance,
            case.precision,
            oracle=lambda oracle=oracle: oracle,
            plain=partial(sample.plain, i),
        )
        is not None
        for i, (output, reference, oracle) in enumerate(places)
    )
    for i, (output, original) in enumerate(zip(outputs, originals, strict=True)):
        if not torch.equal(_bits(output), _bits(original)):
            _weigh_output(evidence, sample, i, output, original)


def _weigh_output(
    evidence: Evidence, sample: Sample, i: int, output: torch.Tensor, original: torch.Tensor
) -> None:  # fmt: skip
    reference, oracle, case = sample.outputs[i], sample.oracles[i], sample.case
    if oracle is None:
        evidence.equivalent = False
        evidence.off = evidence.share = float("inf")
        return
    own = max(_error(reference, oracle), _error(original, oracle), _rounding(reference))
    error = _error(output, oracle)
    pair = evidence.errors[sample.name, i]
    pair[:] = max(pair[0], own), max(pair[1], error)
    allowed = tolerance_of(_real(reference), _real(oracle), case.tolerance, case.precision)[0].worst
    evidence.share = max(evidence.share, _share(error, allowed))


def _conclude(evidence: Evidence) -> None:
    for own, error in evidence.errors.values():
        evidence.off = max(evidence.off, _share(error, own))
    evidence.equivalent &= evidence.off <= AS_RIGHT


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("inf") if part else 0.0


def _error(output: torch.Tensor, oracle: torch.Tensor) -> float:
    off = (_real(output).double() - _real(oracle)).abs()
    same = (_real(output).double() == _real(oracle)) | ~torch.isfinite(_real(oracle))
    return float(torch.where(same, 0.0, off.nan_to_num(float("inf"))).max()) if off.numel() else 0.0


def _rounding(tensor: torch.Tensor) -> float:
    """Half an ulp of the largest element."""
    real = _real(tensor)
    return (
        float(real.double().abs().nan_to_num(0.0, 0.0, 0.0).max()) * torch.finfo(real.dtype).eps / 2
    )


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return _real(tensor).contiguous().flatten().view(torch.uint8)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises `Hung` when what is inside takes longer. In the main thread only."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hung(f"no end after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
