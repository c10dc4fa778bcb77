"""The lint of one problem, in the lint process of its device."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from kevin_env.judge.api import OnStage, Options, Submission
from kevin_env.judge.compare.accumulator import OneAccumulator
from kevin_env.judge.compare.tolerance import FEW
from kevin_env.judge.device import event_seconds
from kevin_env.judge.inputs.cases import NOT_FINITE, open_cases, require_memory, timed_case
from kevin_env.judge.inputs.process_state import RANDOM
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.workers.usage import charged
from kevin_env.lint.answers import (
    Survivors,
    accepted_answers,
    accepted_elsewhere,
    outlive_first,
)
from kevin_env.lint.influence import find_inert, input_names
from kevin_env.lint.report import Check, Cost, Finding, Limits, LintReport
from kevin_env.lint.target import SECRET, InputSet
from kevin_env.outcome import Correct, Outcome
from kevin_env.parsing import as_submission
from kevin_env.problem import Problem, ProblemError
from kevin_env.profile.roofline import Counting

if TYPE_CHECKING:
    from kevin_env.judge.server import Judge


def untimed(*_: object) -> Correct:
    """The clock of a judge that only says what is wrong."""
    return Correct(kind="timed", message="all outputs are right")


def screen(judge: "Judge", problem: Problem, code: str, options: Options) -> Outcome | None:
    """What is wrong with a submission on all input sets of a verdict; None if it is accepted.

    Args:
        judge: With the clock `untimed`.
        problem: The problem.
        code: The submission.
        options: How it is judged.

    Raises:
        ProblemError: if the reference fails in the judge.
        JudgeError: if the judge fails.
    """
    options = options.model_copy(update={"secret": SECRET})
    outcome = judge.judge(problem, Submission(code=code), options, lambda _: None).outcome
    return None if outcome.category == "correct" else outcome


CALLS = 5
GPU_CALLS = 20


def measure(case: Case, drawn: InputSet, peak: int) -> Cost:
    """Counts and times the reference on an input set; `peak` bytes were held while it was drawn."""
    call = case.runner(drawn.skeleton, [tensor.clone() for tensor in drawn.tensors])
    with Counting(case.precision) as counted:
        call()
    with RANDOM:
        if case.device.type == "cuda":
            seconds = event_seconds(call, GPU_CALLS)
        else:  # the shortest: what disturbs on a CPU only ever lengthens
            seconds = min(_clocked(call) for _ in range(CALLS))
    weights = list(case.model.state_dict().values())
    return Cost(
        seconds=seconds,
        peak_bytes=peak,
        flops=sum(counted.products.values()),
        elements=counted.elements,
        moved_bytes=_bytes([*drawn.tensors, *weights, *drawn.outputs]),
    )


def _clocked(call: Callable[[], object]) -> float:
    """Seconds of one call on a CPU, without those for which others had the processor."""
    began, ran = time.perf_counter(), time.process_time()
    call()
    return charged(time.perf_counter() - began, time.process_time() - ran)


def draw_watched(case: Case) -> tuple[InputSet, int]:
    """The first input set, and the bytes held at once for it: on a CPU those of its inputs.

    Raises:
        ProblemError: when the reference fails.
    """
    if case.device.type != "cuda":
        drawn = InputSet.draw(case, "own", 0)
        return drawn, _bytes(drawn.tensors)
    torch.cuda.reset_peak_memory_stats(case.device)
    drawn = InputSet.draw(case, "own", 0)
    return drawn, torch.cuda.max_memory_allocated(case.device)


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


LEAST_VARYING = 0.05
"""The share of an output's elements that must be further from its median than the tolerance."""


def examine(
    judge: "Judge",
    problem: Problem,
    options: Options,
    limits: Limits,
    on_stage: OnStage = lambda _: None,
) -> LintReport:
    """Everything that is wrong with a problem; what its own code raises is a finding too.

    It reports the stage `load` when the problem's first calls begin, and `verify` when they have
    ended: `Limits.first_seconds` is for its client, as the problem's code may hold up this process.

    Raises:
        JudgeError: when the judge fails.
    """
    start = time.monotonic()
    OneAccumulator()  # torch imports decompositions for the first: 2 s that are not the problem's
    examination = Examination(judge, problem, options, limits, on_stage)
    with judge.bench.lane.entered():
        examination.take(examination.look_at_timed_case)
        if examination.cost is not None:
            examination.take(examination.look_at_influence)
        _give_back(judge.device)
    if examination.runs:
        examination.take(examination.judge_reference)
        with judge.bench.lane.entered():
            _give_back(judge.device)
    return examination.report(time.monotonic() - start)


class Examination:
    """The steps of a lint, and what they found so far.

    Attributes:
        cost: Known once the timed case has been run.
        runs: False once the reference itself has failed before that.
    """

    def __init__(
        self, judge: "Judge", problem: Problem, options: Options, limits: Limits, on_stage: OnStage
    ) -> None:
        self.cost: Cost | None = None
        self.runs = True
        self._on_stage = on_stage
        self._judge, self._problem, self._options, self._limits = judge, problem, options, limits
        self._findings: list[Finding] = []
        self._reference = "failed"
        self._varied = self._shipped = Survivors()
        self._doing = ""

    def take(self, step: Callable[[], None]) -> None:
        """Takes a step. An error of the problem's own code is a finding.

        Not a generator: since Python 3.12 a context manager that raises another error leaves the
        first, and all that its frames hold, in a cycle until the next collection.
        """
        try:
            step()
        except ProblemError as error:
            self.runs, self._reference = self.cost is not None, "failed"
            self._add("reference", str(error))
        except torch.OutOfMemoryError:
            self._reference = "not judged"  # until it is, which is the last step
            self._add(
                "memory", f"not enough device memory for {self._doing}; this step did not finish"
            )

    def look_at_timed_case(self) -> None:
        """What its outputs are like, what it costs and which trivial answers it accepts."""
        self._doing = "running the reference and its float64 oracle"
        self._on_stage("load")
        name = timed_case(self._problem, self._judge.device)
        if self._judge.device.type == "cpu":
            require_memory(self._problem, name)
        case = self._open(name)
        first, peak = draw_watched(case)
        self._on_stage("verify")
        if not first.finite:
            raise ProblemError(NOT_FINITE)
        self._look_at_inputs(case, first)
        self._look_at_outputs(case, first)
        self.cost = measure(case, first, peak)
        self._look_at_cost(self.cost)
        self._doing = "trying trivial answers"
        start = outlive_first(case, first)
        del first  # before others are drawn
        self._varied, self._shipped = accepted_answers(case, start)
        del case
        self._look_elsewhere()

    def _look_elsewhere(self) -> None:
        """Which of the trivial answers that are left the other cases accept as well."""
        others = [] if self._varied.none_left and self._shipped.none_left else self._others()
        self._varied = accepted_elsewhere(others, self._varied, further=True)
        self._shipped = accepted_elsewhere(others, self._shipped, further=False)
        for name in (self._shipped if self._options.inputs == "shipped" else self._varied).names:
            self._add("answers", f"a verdict accepts {name}")

    def look_at_influence(self) -> None:
        """Finds inputs and weights that change nothing, on the CPU if there is a case `cpu`.

        There an invalid index is an error; on a GPU it would end the process.
        """
        self._doing = "changing inputs and weights one by one"
        device = torch.device("cpu") if "cpu" in self._problem.cases else self._judge.device
        inert: set[str] | None = None
        for case in open_cases(self._problem, device):
            case.draw_weights(seed_from(SECRET, case.name, "weights"))
            names = find_inert(case)
            inert = names if inert is None else inert & names
            if not inert:
                return
        for name in sorted(inert or ()):
            self._add("inputs", f"{name} does not matter: changing it alone changes no output")

    def judge_reference(self) -> None:
        """Whether the real judge accepts the reference as a submission."""
        self._doing = "judging the reference as its own submission"
        code = as_submission(self._problem.source)
        outcome = screen(self._judge, self._problem, code, self._options)
        self._reference = "accepted" if outcome is None else f"{outcome.category}/{outcome.kind}"
        if outcome is not None:
            where = getattr(outcome, "input_set", None)
            text = f"as its own submission: {self._reference}: {outcome.message}"
            self._add("reference", f"{text} ({where})" if where else text)

    def report(self, took: float) -> LintReport:
        """The report so far."""
        return LintReport(
            problem=self._problem.id,
            device=self._judge.info.device,
            findings=tuple(self._findings),
            reference=self._reference,
            accepted=self._varied.names,
            accepted_as_shipped=self._shipped.names,
            cost=self.cost,
            took=took,
        )

    def _open(self, name: str) -> Case:
        case = Case(self._problem, name, self._judge.device)
        case.draw_weights(seed_from(SECRET, name, "weights"))
        return case

    def _others(self) -> list[Case]:
        """The cases that are not timed, without weights yet."""
        return list(open_cases(self._problem, self._judge.device))[:-1]

    def _look_at_inputs(self, case: Case, first: InputSet) -> None:
        if not first.tensors:
            self._add("inputs", "get_inputs returns no tensor: calls cannot get new inputs")
        for name, tensor in zip(input_names(case, first), first.tensors, strict=True):
            if not tensor.numel():
                self._add("inputs", f"{name} has no elements: its shape is {list(tensor.shape)}")

    def _look_at_outputs(self, case: Case, first: InputSet) -> None:
        again = first.again(case)
        if not first.targets:
            self._add("outputs", "no output has elements: every answer of that shape is right")
        for target in first.targets:
            where = f"output {target.path}" if target.path else "the output"
            if target.other and target.integers == "exact":
                few = f"{target.other} of {target.reference.numel()} integers"
                self._add(
                    "outputs",
                    f"{where} depends on how floats are rounded: {few} differ in float64; set "
                    'INTEGERS = "rounded" if they may be off by one, or "chosen" if by more',
                )
            if not target.accepts(again[target.index]):
                self._add("outputs", f"{where} differs when the reference is run again")
            elif target.reference.numel() >= FEW and (share := target.varying()) < LEAST_VARYING:
                self._add(
                    "outputs",
                    f"{where} is nearly constant: {share:.1%} of elements differ from the median",
                )

    def _look_at_cost(self, cost: Cost) -> None:
        limits, gpu = self._limits, self._judge.device.type == "cuda"
        most = limits.cuda_bytes if gpu else limits.cpu_bytes
        if cost.peak_bytes > most:
            what = "it holds up to" if gpu else "its inputs take"
            self._add(
                "memory", f"{what} {cost.peak_bytes / 1e6:.0f} MB; the limit is {most / 1e6:.0f} MB"
            )
        if gpu and cost.seconds < limits.cuda_seconds:
            self._add(
                "time",
                f"a call takes {cost.seconds * 1e6:.0f} us, "
                f"less than {limits.cuda_seconds * 1e6:.0f} us",
            )
        if not gpu and cost.seconds > limits.cpu_seconds:
            self._add(
                "time", f"a call takes {cost.seconds:.2f} s, more than {limits.cpu_seconds:.2f} s"
            )

    def _add(self, check: Check, message: str) -> None:
        self._findings.append(Finding(check=check, message=message))


def _give_back(device: torch.device) -> None:
    """Memory that is held no more and that torch keeps for later: candidates need it."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
