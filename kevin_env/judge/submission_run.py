"""One submission to one problem: constructed and screened in every case, then ready to be timed."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import partial
from typing import Any, TypeVar

import torch

from kevin_env.judge.api import Limits, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.compare.check import Allowed, check_answer, unwritten
from kevin_env.judge.device import finish, kept_memory
from kevin_env.judge.drawing import draw_set
from kevin_env.judge.handshake.claims import read_paired
from kevin_env.judge.handshake.handshake import Answer, CpuHandshake, Drawn, Handshake, Player
from kevin_env.judge.handshake.memory import Image, SharedRegion, image_size, with_regions
from kevin_env.judge.inputs.cases import (
    FEW_SETS,
    construction,
    model_tensors,
    plan,
)
from kevin_env.judge.inputs.facts import KnownCase, of_spec
from kevin_env.judge.inputs.reference import Case, Expected, seed_from
from kevin_env.judge.precompile import precompile
from kevin_env.judge.timing.chain import GpuHandshake
from kevin_env.judge.verdict import Place
from kevin_env.judge.workers.errors import Broken, Ended, Failed, TimedOut
from kevin_env.judge.workers.usage import SLEEPING
from kevin_env.judge.workers.worker import Patience, Worker
from kevin_env.outcome import Incorrect, RulesViolation
from kevin_env.parsing import imported, parsed
from kevin_env.problem import Problem, ProblemError
from kevin_env.rules.recorded import Record, recording, violation

T = TypeVar("T")
Fault = Incorrect | RulesViolation

ALL_CALLS = 10
"""All orders together, except building, may take this multiple of what a first call may take."""
SLOW = 10
"""A submission is much slower if its calls take this multiple of the reference's time."""
SCREENING_SECONDS = 2.0
"""Seconds of calls after which `FEW_SETS` sets of a case suffice for a much slower submission."""
VALUES = ("values", "not_finite")
"""Kinds of wrong answers that differ in the values of tensors."""
KEPT = 1 / 16
"""Share of a GPU that torch may cache in the judge: mapping it again takes milliseconds."""


class SubmissionRun:
    """One submission, one problem, one secret.

    Args:
        needs_oracle: As in `Case`, for each of its cases.

    Attributes:
        place: The last order sent to the submission.
        case: The current case; after screening, the timed one.
        outputs: Meta tensors of the shapes and dtypes of a right answer.
        handshake: The handshake of the current case.
        player: The submission at that handshake.
        seconds: Duration of the shortest screened call of the case on inputs as timed ones;
            infinite before the first.
        limits: Limits of the current case.
    """

    def __init__(
        self,
        bench: Bench,
        problem: Problem,
        options: Options,
        secret: str,
        worker: Worker,
        needs_oracle: bool = False,
    ) -> None:
        self.bench = bench
        self.problem = problem
        self.options = options
        self.secret = secret
        self.worker = worker
        self.place = Place()
        self.distributions: list[str] = []
        self.case: Case
        self.outputs: list[torch.Tensor]
        self.handshake: Handshake
        self.player: Player
        self.seconds = math.inf
        self.limits: Limits
        self._known: KnownCase
        self._allowed: Allowed
        self._needs_oracle = needs_oracle
        self._draws = 0
        self._spent = self._paused = 0.0
        self._called = self._recorded = self._interpreted = False
        self._pause: Callable[[], None] = lambda: None
        self._record: Record | None = None
        self._paired: tuple[tuple[str, str], ...] = ()
        self._passed: dict[str, None] = {}
        self._handshakes = list[Handshake]()

    def load(self, code: str) -> None:
        """Imports the submission. Needs no lease.

        Raises:
            CandidateError: if it does not import.
        """
        tree, on_cpu = parsed(code), self.bench.device.type == "cpu"
        self._interpreted = on_cpu and tree is not None and "triton" in imported(tree)
        path, headers = self.worker.path, self.options.headers
        patience = Patience(self.options.build_timeout, self.options.build_timeout)
        self.worker.ask("load", patience, path=path, code=code, entry="ModelNew", headers=headers)

    def build(self, code: str) -> None:
        """Imports it and compiles its Triton kernels for all cases, as `load`. Hold no lease."""
        start = time.monotonic()
        self.load(code)
        left = self.options.build_timeout - (time.monotonic() - start)
        if self.bench.device.type == "cuda":
            precompile(self.worker, self.bench.problems.shapes.of(self.problem), left)

    def screening(
        self, verifying: Callable[[], AbstractContextManager[None]] = nullcontext,
        pause: Callable[[], None] = lambda: None,
    ) -> Iterator[Fault | None]:  # fmt: skip
        """Constructs and checks the submission in every case, until an answer is wrong.

        Hold the lease during each step; it may be released between them.

        Args:
            verifying: Entered while answers are requested and checked.
            pause: As in `Patience`.

        Yields:
            The fault found in each step.

        Raises:
            CandidateError: if the submission fails.
            ProblemError: if the reference does.
        """
        self._pause = pause
        names = [each.told.name for each in self.bench.problems.facts.of(self.problem).cases]
        for name in names:
            self.enter(name, recorded=self.options.rules != "open")
            self.seconds = math.inf
            yield None
            timed, only = name == names[-1], len(names) == 1
            planned = plan(self.distributions, timed, self.secret, name, self.bench.pace, only)
            if len(planned) == 1 and self._recorded:
                planned *= 2  # it may behave differently while it is recorded
            for number, distribution in enumerate(planned):
                long = number >= FEW_SETS and number * self.seconds > SCREENING_SECONDS
                if long and self.much_slower():
                    break
                with verifying():
                    wrong = self._screened(distribution)
                yield wrong
                if wrong is not None:
                    return
            yield self._against_rules()
        self._pause = lambda: None  # a submission that is timed does not pause for others

    @property
    def reference_seconds(self) -> float:
        """Approximate duration of a call of the reference, at least its true one."""
        return self._known.seconds

    def much_slower(self) -> bool:
        """Whether even the shortest such call was much slower than the reference."""
        return SLOW * self.reference_seconds < self.seconds < math.inf

    def _screened(self, distribution: str) -> Incorrect | None:
        answer, wrong = self.checked(distribution)
        if wrong is not None:
            wrong = self._classified(answer, wrong, distribution)
        if wrong is not None and wrong.kind in VALUES:
            return wrong.model_copy(update={"paired": self._paired})
        return wrong

    def _against_rules(self) -> RulesViolation | None:
        """What the first call in the case did that the rules forbid."""
        if not self._recorded:
            return None
        if self._record is None:
            raise Broken("it did not say what its call did")
        largest = self._known.largest
        found = violation(self._record, self.options.rules, self.options.glue, largest)
        return found and found.model_copy(update={"case": self.case.name})

    def checked(self, distribution: str) -> tuple[Answer, Incorrect | None]:
        """Calls the submission once on fresh inputs, and checks the answer."""
        drawn = self.draw(distribution)
        self.trim()
        answer = self.call(drawn)
        if distribution == "own":
            self.seconds = min(self.seconds, answer.seconds - self._paused)
        return answer, self.check(answer, drawn)

    def call(self, drawn: Drawn) -> Answer:
        """Calls the submission once. Errors as `screening`."""
        first = not self._called
        answer = self.within_limits(
            [drawn], lambda patience: self.handshake.call(self.player, drawn, patience), first
        )
        if first:
            self._record = answer.claim.record
        self._called = True
        return answer

    def within_limits(
        self, sets: Sequence[Drawn], call: Callable[[Patience], T], first: bool = False
    ) -> T:
        """Calls the submission on input sets with a limit per call. Errors as `screening`."""
        self.place = Place("call", sets[0].input_set, self._passed_but(sets[0].input_set))
        if max(drawn.image.end for drawn in sets) > self.handshake.inbox.size:
            text = "get_inputs draws inputs of other sizes than before"
            raise ProblemError(f"{self.problem.id}: {text}")
        return self._within_limits(call, first)

    def _within_limits(self, order: Callable[[Patience], T], first: bool) -> T:
        """Gives an order with its limit: no longer than is left for all orders together."""
        whole, began, self._paused = ALL_CALLS * self.limits.first, time.monotonic(), 0.0

        def pause() -> None:
            start = time.monotonic()
            self._pause()
            self._paused += time.monotonic() - start

        limit = self.limits.first if first else self.limits.call
        seconds = min(limit, max(0.0, whole - self._spent))
        on_cpu, charged = self.bench.device.type == "cpu", self.worker.charged
        usual = SLEEPING * self.limits.call if on_cpu else min(seconds, self.limits.call)
        try:
            return order(Patience(seconds, usual, pause))
        except TimedOut as late:
            if seconds == limit or late.seconds < seconds:
                raise
            raise TimedOut(whole, "all calls of ModelNew together") from None
        finally:
            wall = time.monotonic() - began - self._paused
            self._spent += self.worker.charged - charged if on_cpu else wall

    def check(self, answer: Answer, drawn: Drawn) -> Incorrect | None:
        """Compares an answer with the reference's for the same inputs."""
        name = drawn.input_set
        wrong = check_answer(answer, self.expect(drawn), self.case, name, self._allowed)
        if wrong is not None:
            return wrong.model_copy(update={"passed": self._passed_but(name)})
        self._passed[name] = None
        return None

    def _passed_but(self, input_set: str | None = None) -> tuple[str, ...]:
        return tuple(each for each in self._passed if each != input_set)

    def draw(self, distribution: str) -> Drawn:
        """A fresh input set of the current case, in private memory."""
        self._draws += 1
        secret, admitted = self.secret, self.distributions
        drawn = draw_set(self.case, distribution, admitted, secret, self._draws)
        name = f"{self.case.name}/{distribution}"
        return Drawn(drawn.skeleton, drawn.image, drawn.seed, name, self.case.stochastic)

    def expect(self, drawn: Drawn) -> Expected:
        """The reference's answer for an input set."""
        return self.case.expect(drawn.skeleton, drawn.image.tensors, drawn.seed)

    def construct(
        self, worker: Worker, timeout: float | Patience,
        compiled: bool = False, recorded: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Constructs a worker's model in the current case, with the reference's weights.

        With `recorded`, its next call is recorded for the rules.
        """
        tensors = [t.to(self.bench.device) for t in model_tensors(self.case)]
        image = Image(tensors, self.bench.device)
        seed = seed_from(self.secret, self.case.name, "weights")
        order = construction(self.case, image.specs, seed, compiled)
        with ExitStack() as lent:
            if image.specs:  # the driver takes milliseconds to share memory
                region = lent.enter_context(closing(SharedRegion(image.end, self.bench.device)))
                image.write_to(region)
                finish(self.bench.device)
                worker.share("weights", region, timeout)
            record = recording(self.options.rules) if recorded else None
            return worker.ask("construct", timeout, **order, record=record)

    def open_handshake(self, inbox: int, outbox: int) -> Handshake:
        """A handshake with room for these bytes of inputs and outputs; closed with the run."""
        device, l2 = self.bench.device, self.bench.info.l2
        kind = GpuHandshake if device.type == "cuda" else CpuHandshake
        make = partial(kind, device, l2=l2, answer_bytes=outbox)
        self._handshakes.append(with_regions([inbox, outbox], device, make))
        return self._handshakes[-1]

    def close(self, keep: float = 0.0) -> None:
        """Frees memory, except that torch may cache a share of a GPU; the worker is left alone."""
        while self._handshakes:
            self._handshakes.pop().close()
        self.trim(keep)

    def trim(self, keep: float = KEPT) -> None:
        """Frees what torch caches beyond a share of a GPU, which another process may need."""
        memory = self.bench.device_memory
        if memory is not None and kept_memory(self.bench.device) > keep * memory:
            torch.cuda.empty_cache()

    def end(self) -> None:
        """Ends the submission and frees its memory. Call without holding the lease."""
        self.bench.candidates.retire(self.worker)
        self.bench.problems.facts.keep_tolerances(self.problem, self.options.inputs)
        with self.bench.lease.shared():
            self.close()

    def enter(self, name: str, recorded: bool = False) -> None:
        """Constructs the submission in a case that is judged, with a handshake for that case.

        Hold the lease; errors as `screening`. With `recorded`, its next call is recorded.
        """
        self.trim()
        self._open(name)
        self._recorded, self._record = recorded, None
        inbox = image_size([of_spec(spec) for spec in self._known.inputs])
        known = self._enter_handshake(inbox, image_size(self.outputs))
        self.place, self._called = Place("construct", passed=self._passed_but()), False
        self.limits = self.options.limits(self._known.seconds, self._interpreted)
        construct = partial(self.construct, self.worker, recorded=recorded)
        self._paired = read_paired(self._within_limits(construct, first=True))
        admit = partial(self.handshake.admit, self.worker, trusted=False)
        again = known and self.player.in_next_case()
        self.player = again or self._within_limits(admit, first=True)

    def _enter_handshake(self, inbox: int, outbox: int) -> bool:
        """Sets the handshake of a case; whether it is the last one, which is large enough."""
        sizes = self.bench.problems.largest(self.problem, inbox, outbox)
        known = bool(self._handshakes) and self.handshake.has_room(inbox, outbox)
        if not known:
            self.close(keep=KEPT)
            self.handshake = self.open_handshake(*sizes)
        self.handshake.begin_case(outbox)
        return known

    def _open(self, name: str) -> None:
        """Sets the case, with fresh weights, and what is known of it."""
        facts, device = self.bench.problems.facts, self.bench.device
        known = facts.of(self.problem).of(name)
        if known is None:
            raise ProblemError(f"{self.problem.id}: its case {name} is not judged on {device.type}")
        self.case = Case(self.problem, name, device, known.traits, self._needs_oracle)
        self.case.draw_weights(seed_from(self.secret, name, "weights"))
        self._known, self.distributions = known, known.admitted(self.options.inputs)
        self.outputs = [of_spec(spec) for spec in known.outputs]
        self._allowed = facts.tolerances(self.problem, self.options.inputs)

    def _classified(self, answer: Answer, wrong: Incorrect, distribution: str) -> Incorrect | None:
        """Why values are wrong: written late, nondeterministic or uninitialized; None if they pass.

        On a GPU the inputs of the second call are complete before it begins. If its answer is
        right, the submission uses streams that do not wait for torch's current one, and is called
        this way from then on.
        """
        if wrong.kind not in VALUES:
            return wrong
        if answer.changed_since():
            text = "the call was reported finished while its output was still being written"
            return wrong.model_copy(update={"kind": "early_done", "message": text})
        self._draws -= 1
        ordered, self.player.unordered = not self.player.unordered, self.bench.device.type == "cuda"
        try:  # only after a wrong answer, as a submission could recognize this call
            self._within_limits(partial(self.worker.ask, "poison"), first=False)
            with self.handshake.showing_unwritten():
                second, again = self.checked(distribution)
        except (Failed, Ended, TimedOut):  # such as a kernel that reads an uninitialized index
            return wrong
        if again is not None:
            return unwritten(answer, second, again) or wrong
        if ordered and self.player.unordered:
            return None
        text = f"{wrong.message}; a second call on the same inputs was correct"
        return wrong.model_copy(update={"kind": "nondeterministic", "message": text})
