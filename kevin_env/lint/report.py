"""What the lint of one problem found, as values that cross from the judge to its client."""

from typing import Literal

from kevin_env.outcome import Frozen, Printable

Check = Literal["reference", "answers", "inputs", "outputs", "memory", "time"]
"""What is looked at: the problem's reference as a submission, trivial answers, whether every input
and weight matters, what the outputs are like, and the two kinds of cost.
"""


class Limits(Frozen):
    """What a problem may cost. Bytes and seconds."""

    cpu_bytes: int = 32 << 20
    """Of the inputs of the timed case on a CPU."""
    cpu_seconds: float = 0.2
    """Of one call of the reference there, at most."""
    cuda_bytes: int = 20_000_000_000
    """The most that the main case holds at once on a GPU, its oracle included."""
    cuda_seconds: float = 200e-6
    """Of one call of the reference there, at least: what is shorter is all launch."""
    first_seconds: float = 10.0
    """Of opening the timed case, drawing an input set, and one more call of the reference and of
    its oracle, at most: a verdict takes dozens of calls. On a CPU it is processor time, and a
    reference that sleeps has ten times as long.
    """


class Finding(Frozen):
    """One thing that is wrong with a problem."""

    check: Check
    message: Printable


class Cost(Frozen):
    """One call of the reference in the timed case, counted and measured."""

    seconds: float
    peak_bytes: int
    """On a GPU the most that was allocated at once, weights and oracle included; on a CPU the bytes
    of the inputs.
    """
    flops: int
    """Of matrix products, convolutions and attention, as torch counts them: a multiply-add is two.
    """
    elements: int
    """Elements that all other operations read or wrote, whichever are more of each."""
    moved_bytes: int
    """Of inputs, weights and outputs, each moved once: the least that any kernel has to move."""


class LintReport(Frozen):
    """What the lint found of one problem on one device."""

    problem: str
    device: str
    findings: tuple[Finding, ...]
    reference: str
    """`accepted`, or category and kind of the outcome of the reference as its own submission;
    `failed` where it does not run at all, `not judged` where the device has no room to judge it or
    the first calls took too long.
    """
    accepted: tuple[Printable, ...]
    """Trivial answers that a verdict accepts, each with the output that it is right for where there
    are several.
    """
    accepted_as_shipped: tuple[Printable, ...]
    """The same if the problem's own inputs were all that was checked."""
    cost: Cost | None = None
    """None when the reference did not run."""
    took: float = 0.0
    """Seconds that the lint took."""

    @classmethod
    def too_slow(cls, problem: str, device: str, limits: Limits) -> "LintReport":
        """Of a problem whose first calls took longer than they may."""
        seconds = limits.first_seconds
        of = " of processor time" if device == "cpu" else ""
        text = (
            f"an input set and the first calls take more than {seconds:g} s{of}; nothing else was"
            " checked"
        )
        return cls(
            problem=problem, device=device, findings=(Finding(check="time", message=text),),
            reference="not judged", accepted=(), accepted_as_shipped=(), took=seconds,
        )  # fmt: skip

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings
