"""One submission to one problem: what it is asked to do in the lane, and whether it is right."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar

from kevin_env.judge.api import Options
from kevin_env.judge.compare.check import check_answer, unwritten
from kevin_env.judge.drawing import draw_set
from kevin_env.judge.handshake.claims import read_paired
from kevin_env.judge.handshake.handshake import Answer, CpuHandshake, Drawn, Handshake
from kevin_env.judge.handshake.memory import Image, SharedRegion, image_size, with_regions
from kevin_env.judge.inputs.cases import construction, model_tensors, plan
from kevin_env.judge.inputs.facts import KnownCase, of_spec
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.lane.bench import Bench
from kevin_env.judge.verdict import Place, verdict
from kevin_env.judge.workers.errors import Broken, CandidateError, TimedOut
from kevin_env.judge.workers.usage import SLEEPING
from kevin_env.judge.workers.worker import Patience, Worker, asleep
from kevin_env.outcome import Incorrect, Outcome
from kevin_env.parsing import imported, parsed
from kevin_env.problem import Problem, ProblemError
from kevin_env.rules.recorded import Record, recording, violation

T = TypeVar("T")

ALL_CALLS = 10
"""All orders together, except building, may take this multiple of what a first call may take."""
SLOW = 10
"""A submission is much slower if its calls take this multiple of the reference's time."""
LEAST_SETS, LEAST_EACH = 5, 2
"""Input sets over all cases, and of each case, that a much slower submission is called on."""
SCREENING_SECONDS = 2.0
"""Seconds of calls in a case after which a much slower submission is called on fewer sets."""
GONE_SECONDS = 0.2
"""Within which the end of a process is noticed whose memory is gone."""
VALUES = ("values", "not_finite")
"""Kinds of wrong answers that differ in the values of tensors."""


class Rejected(Exception):
    """The submission failed.

    Args:
        outcome: How.
        killed: Whether its process was killed by something that is not the judge.
    """

    def __init__(self, outcome: Outcome, killed: bool = False) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome
        self.killed = killed


class Trial:
    """One submission, one problem, one secret. Every method may raise `Rejected`.

    Args:
        bench: Of the device.
        problem: The problem.
        options: How it is judged.
        secret: What its inputs and weights are drawn from.
        worker: A candidate that has run nothing.

    Attributes:
        case: The case that was entered last.
        handshake: Its memory, mapped for all cases.
        seconds: Duration of the shortest call of the case on inputs as timed ones; infinite before
            the first.
    """

    def __init__(
        self, bench: Bench, problem: Problem, options: Options, secret: str, worker: Worker
    ) -> None:
        self.bench = bench
        self.problem = problem
        self.options = options
        self.secret = secret
        self.worker = worker
        self.case: Case
        self.seconds = math.inf
        self._handshakes = list[Handshake]()
        self._draws = self._checked = 0
        self._spent = self._paused = 0.0
        self._called = self._interpreted = False
        self._record: Record | None = None
        self._paired: tuple[tuple[str, str], ...] = ()
        self._passed: dict[str, None] = {}
        self._allowed = bench.problems.facts.tolerances(problem, options.inputs)

    def build(self, code: str) -> None:
        """Imports the submission; compilers run here. Needs no lane."""
        tree = parsed(code)
        self._interpreted = tree is not None and "triton" in imported(tree)
        limit = Patience(self.options.build_timeout, self.options.build_timeout)
        path, headers = self.worker.path, self.options.headers
        with self._asked(Place()):
            self.worker.ask("load", limit, path=path, code=code, entry="ModelNew", headers=headers)

    def admit(self) -> list[KnownCase]:
        """Maps memory that is large enough for every case, and returns the cases."""
        cases = list(self.bench.problems.facts.of(self.problem).cases)
        self._least_sets = max(LEAST_EACH, math.ceil(LEAST_SETS / len(cases)))
        self._only = len(cases) == 1
        inbox, outbox = (
            max(image_size([of_spec(spec) for spec in specs]) for specs in sides)
            for sides in zip(*((each.inputs, each.outputs) for each in cases), strict=True)
        )
        self.handshake = self.open_handshake(inbox, outbox)
        self.limits = self.options.limits(cases[-1].seconds, self._interpreted)
        with self._asked(Place("construct")):
            admit = partial(self.handshake.admit, self.worker, trusted=False)
            self.player = self._limited(admit, True, self._give_way)
        return cases

    def enter(self, known: KnownCase) -> None:
        """Constructs the submission in a case with the reference's weights."""
        name, device = known.told.name, self.bench.device
        self.known, self.distributions = known, known.admitted(self.options.inputs)
        self.case = Case(self.problem, name, device, known.traits)
        self.case.draw_weights(seed_from(self.secret, name, "weights"))
        self.limits = self.options.limits(known.seconds, self._interpreted)
        self.handshake.begin_case(self.outbox_bytes)
        self.player = self.player.in_next_case()
        self._record, self._called, self.seconds, self._checked = None, False, math.inf, 0
        recorded = recording(self.options.rules) if self.options.rules != "open" else None
        with self._asked(Place("construct", passed=self._passed_but())):
            construct = partial(self.construct, self.worker, record=recorded)
            answer = self._limited(construct, True, self._give_way)
            self._paired = read_paired(answer)

    def planned(self, timed: bool) -> list[str]:
        """The distributions that the submission is called on in this case, in a secret order."""
        pace = self.bench.pace
        planned = plan(self.distributions, timed, self.secret, self.case.name, pace, self._only)
        if len(planned) == 1 and self.options.rules != "open":
            planned *= 2  # it may behave differently while it is recorded
        return planned

    @property
    def outbox_bytes(self) -> int:
        """Bytes of an image of a right answer in the case."""
        return image_size([of_spec(spec) for spec in self.known.outputs])

    @property
    def much_slower(self) -> bool:
        """Whether even the shortest call was much slower than the reference's."""
        return SLOW * self.known.seconds < self.seconds < math.inf

    @property
    def seen_enough(self) -> bool:
        """Whether a much slower submission has been called often enough in this case."""
        long = self._checked * self.seconds > SCREENING_SECONDS
        return self._checked >= self._least_sets and long and self.much_slower

    def check(self, distribution: str) -> None:
        """Calls the submission once on fresh inputs, and compares its answer."""
        drawn = self.draw(distribution)
        answer = self.call(drawn)
        if distribution == "own":
            self.seconds = min(self.seconds, answer.seconds - self._paused)
        self._checked += 1
        wrong = self.wrong_with(answer, drawn)
        if wrong is not None and wrong.kind in VALUES:
            wrong = self._classified(answer, wrong, drawn).model_copy(
                update={"paired": self._paired}
            )
        if wrong is not None:
            raise Rejected(wrong)

    def check_rules(self) -> None:
        """Rejects what the first call in the case did against the rules."""
        if self.options.rules == "open":
            return
        with self._asked(Place("call", passed=self._passed_but())):
            if self._record is None:
                raise Broken("it did not say what its call did")
        largest = self.known.largest
        found = violation(self._record, self.options.rules, self.options.glue, largest)
        if found is not None:
            raise Rejected(found.model_copy(update={"case": self.case.name}))

    def call(self, drawn: Drawn, timed: bool = False) -> Answer:
        """Calls the submission once.

        Args:
            drawn: The inputs.
            timed: Whether the call is timed: others then wait even if it takes long.
        """
        if drawn.image.end > self.handshake.inbox.size:
            text = "get_inputs draws inputs of other sizes than before"
            raise ProblemError(f"{self.problem.id}: {text}")
        first, self._called = not self._called, True
        with self._asked(Place("call", drawn.input_set, self._passed_but(drawn.input_set))):
            call = partial(self.handshake.call, self.player, drawn)
            answer = self._limited(call, first, (lambda: None) if timed else self._give_way)
        if first:
            self._record = answer.claim.record
        return answer

    def wrong_with(self, answer: Answer, drawn: Drawn) -> Incorrect | None:
        """Compares an answer with the reference's for the same inputs; None if it is right."""
        expected = self.case.expect(drawn.skeleton, drawn.image.tensors, drawn.seed)
        with self._asked(Place("call", drawn.input_set, self._passed_but(drawn.input_set))):
            wrong = check_answer(answer, expected, self.case, drawn.input_set, self._allowed)
        if wrong is not None:
            return wrong.model_copy(update={"passed": self._passed_but(drawn.input_set)})
        self._passed[drawn.input_set] = None
        return None

    def draw(self, distribution: str) -> Drawn:
        """A fresh input set of the case, in private memory."""
        self._draws += 1
        drawn = draw_set(self.case, distribution, self.distributions, self.secret, self._draws)
        name = f"{self.case.name}/{distribution}"
        return Drawn(drawn.skeleton, drawn.image, drawn.seed, name, self.case.traits.stochastic)

    def construct(
        self, worker: Worker, limit: float | Patience, record: dict[str, Any] | None = None,
        compiled: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Constructs a model in the case, with the reference's weights; errors as `Worker.ask`.

        Args:
            worker: A process that has loaded its class.
            limit: As of `Worker.ask`.
            record: Arguments of a recorder of its next call.
            compiled: Whether it is compiled by torch.
        """
        tensors = [tensor.to(self.bench.device) for tensor in model_tensors(self.case)]
        image = Image(tensors, self.bench.device)
        seed = seed_from(self.secret, self.case.name, "weights")
        order = construction(self.case, image.specs, seed, compiled)
        with closing(SharedRegion(image.end, self.bench.device)) as region:
            image.write_to(region)
            worker.share("weights", region, limit)
            return worker.ask("construct", limit, **order, record=record)

    def open_handshake(self, inbox: int, outbox: int) -> Handshake:
        """A handshake with room for these bytes of inputs and outputs; closed with the trial."""
        device, l2 = self.bench.device, self.bench.info.l2
        make = partial(CpuHandshake, device, l2=l2, answer_bytes=outbox)
        self._handshakes.append(with_regions([inbox, outbox], device, make))
        return self._handshakes[-1]

    def close(self) -> None:
        """Frees its memory; the process is left alone."""
        self.bench.problems.facts.keep_tolerances(self.problem, self.options.inputs)
        while self._handshakes:
            self._handshakes.pop().close()

    @contextmanager
    def _asked(self, place: Place) -> Iterator[None]:
        """Inside, the submission has been asked for something. Ends it if it fails.

        This is the one place where the failure of a process becomes a verdict. It ends before
        others get the device: a kernel that hangs ends only with its process.

        Args:
            place: What it was asked for.
        """
        try:
            yield
        except CandidateError as error:
            if isinstance(error, Broken):  # memory of a process that was killed cannot be read
                error = self.worker.end_within(GONE_SECONDS) or error
            line = self.worker.fault_line
            outcome = verdict(error, place, str(self.worker.folder), line)
            shot = self.worker.shot
            self.worker.close()
            raise Rejected(outcome, shot) from error

    def _limited(self, order: Callable[[Patience], T], first: bool, pause: Callable[[], None]) -> T:
        """Gives an order with its limit: no longer than is left for all orders together."""
        whole, charged, self._paused = ALL_CALLS * self.limits.first, self.worker.charged, 0.0
        limit = self.limits.first if first else self.limits.call
        seconds = min(limit, max(0.0, whole - self._spent))
        try:
            return order(Patience(seconds, SLEEPING * self.limits.call, pause))
        except TimedOut as late:
            if seconds == limit or late.seconds < seconds:
                raise
            raise TimedOut(whole, "all calls of ModelNew together") from None
        finally:
            self._spent += self.worker.charged - charged

    def _give_way(self) -> None:
        """Lets others that wait be judged first, in a call that takes long."""
        start = time.monotonic()
        with asleep(self.worker), self.bench.lane.left():
            self.bench.slots.give_back()
            self.bench.slots.take()
        self._paused += time.monotonic() - start

    def _classified(self, answer: Answer, wrong: Incorrect, drawn: Drawn) -> Incorrect:
        """Why values are wrong: written late, nondeterministic or uninitialized."""
        changed = answer.changed_since()
        with self._asked(Place("call", drawn.input_set, self._passed_but(drawn.input_set))):
            if (end := self.worker.end_within(0.0)) is not None:
                raise end
        if changed:
            text = "the call was reported finished while its output was still being written"
            return wrong.model_copy(update={"kind": "early_done", "message": text})
        try:  # only after a wrong answer, as a submission could recognize this call
            with self._asked(Place("call", drawn.input_set)):
                self._limited(partial(self.worker.ask, "poison"), False, self._give_way)
            second = self.call(drawn)
        except Rejected as rejected:  # such as a kernel that reads an uninitialized index
            if rejected.outcome.kind == "protocol":
                raise
            return wrong
        again = self.wrong_with(second, drawn)
        if again is not None:
            return unwritten(answer, second, again) or wrong
        text = f"{wrong.message}; a second call on the same inputs was correct"
        return wrong.model_copy(update={"kind": "nondeterministic", "message": text})

    def _passed_but(self, input_set: str | None = None) -> tuple[str, ...]:
        return tuple(each for each in self._passed if each != input_set)
