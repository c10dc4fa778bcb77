"""One submission to one problem: what it is asked to do in the lane, and whether it is right."""

import math
import re
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TypeVar

from kevin_env.candidate.region import Spec
from kevin_env.judge.api import Limits, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.compare.check import check_answer
from kevin_env.judge.construct import construct
from kevin_env.judge.device import trim
from kevin_env.judge.drawing import draw_set
from kevin_env.judge.handshake.arena import Arena, Sizes
from kevin_env.judge.handshake.claims import read_paired
from kevin_env.judge.handshake.handshake import Answer, CpuHandshake, Drawn, Handshake, Player
from kevin_env.judge.handshake.memory import image_size, with_regions
from kevin_env.judge.inputs.facts import KnownCase, of_spec
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.job import Allowance
from kevin_env.judge.precompile import Recording, precompile
from kevin_env.judge.rejected import NoContext, Rejected, Unplayed, asked
from kevin_env.judge.replayer import Replayer
from kevin_env.judge.verdict import Place
from kevin_env.judge.workers.errors import Broken, CandidateError
from kevin_env.judge.workers.worker import Patience, Worker, asleep
from kevin_env.outcome import Incorrect
from kevin_env.parsing import imported, parsed
from kevin_env.problem import Problem, ProblemError, baseline_name, baseline_of
from kevin_env.rules.recorded import Record, recording, violation

T = TypeVar("T")


SEVERAL_QUEUES = re.compile("stream|graph|cublas|cudnn|cufft|cusparse", re.IGNORECASE)
"""Code that may use several streams, which would wait for each other in one hardware queue.

The driver creates a context with one queue in half the time.
"""
TOGETHER = 1 / 16
"""Share of a GPU's memory for the inputs and outputs of calls that are queued together."""
KEPT = 1 / 4
"""Share of a GPU that torch may cache in the judge: mapping it again takes milliseconds."""

SLOW = 10
"""A submission is much slower if its calls take this multiple of the reference's time."""
TIMED = "own"
"""The distribution of timed inputs: the time of some kernels depends on the values."""


class Trial:
    """One submission, one problem, one secret. Every method may raise `Rejected`.

    Args:
        bench: Of the device.
        problem: The problem.
        options: How it is judged.
        secret: What its inputs and weights are drawn from.
        worker: A candidate that has run nothing.
        alone: Whether nothing else of the judge has a context on the device.

    Attributes:
        case: The case that was entered last.
        known: What is known of it.
        handshake: The memory that it shares with the judge.
        seconds: Duration of the shortest call in the case that was not timed; infinite before the
            first, which may compile or load kernels.
        paired: Names of weights that were matched by their shapes.
        recording: What it launches, or why that cannot be played without its process.
        played: Whether it is.
    """

    def __init__(
        self, bench: Bench, problem: Problem, options: Options, secret: str, worker: Worker,
        alone: bool = True,
    ) -> None:  # fmt: skip
        self.bench = bench
        self.problem = problem
        self.options = options
        self.secret = secret
        self.worker = worker
        self.alone = alone
        self.case: Case
        self.known: KnownCase
        self.handshake: Handshake
        self.player: Player
        self.paired: tuple[tuple[str, str], ...] = ()
        self.seconds = math.inf
        self._on_gpu = bench.device.type == "cuda"
        self._handshakes = list[Handshake]()
        self._draws = 0
        self._paused = 0.0
        self._allowance = Allowance(self._on_gpu)
        self._called = False
        self.interpreted = False
        self._queues = 0
        self.recording: Recording | str = ""
        self.played = False
        self._record: Record | None = None
        self._passed: dict[str, None] = {}
        self._allowed = bench.facts.tolerances(problem, options.inputs)

    def build(self, code: str) -> None:
        """Imports the submission; compilers run here. Needs no lane."""
        tree, began = parsed(code), time.monotonic()
        triton = tree is not None and "triton" in imported(tree)
        self.interpreted = triton and not self._on_gpu
        self._queues = 0 if SEVERAL_QUEUES.search(code) else 1
        path, build, headers = self.worker.path, self.options.build_timeout, self.options.headers
        if self._on_gpu:  # before its code runs: finding them may wait for the lane
            self.bench.shapes_of(self.problem)
        with asked(self.worker, Place(code=code)):
            self.worker.ask(
                "load", Patience(build, build), path=path, code=code, entry="ModelNew",
                headers=headers,
            )  # fmt: skip
            if self._on_gpu:
                self.recording = self.recorded(self.cases, build - (time.monotonic() - began))

    def recorded(self, cases: Sequence[KnownCase], seconds: float) -> Recording | str:
        """What it launches in these cases, as `precompile`."""
        shapes, rules = self.bench.shapes_of(self.problem), self.options.rules
        names = [each.told.name for each in cases]
        return precompile(self.worker, shapes, names, self.bench.properties, rules, seconds)

    @cached_property
    def cases(self) -> tuple[KnownCase, ...]:
        """The known ones that are judged; the last is timed. Hold no lane at first use."""
        return self.bench.facts_of(self.problem).cases

    @cached_property
    def sizes(self) -> Sizes:
        """Of the memory that the judge shares with it, for the largest case."""
        hidden = self.bench.facts_of(self.problem).hidden
        every = ((a.inputs, a.outputs, a.model) for a in (*self.cases, *hidden))
        return Sizes(*(max(map(_bytes, side)) for side in zip(*every, strict=True)))

    @property
    def memory(self) -> int:
        """Bytes of the device's memory that it takes before it is called."""
        return self.sizes.total + self.sizes.cached(self.bench.device_memory)

    @property
    def baseline(self) -> str:
        """The name of what it is timed against."""
        return baseline_name(baseline_of(self.options, self.problem, self._on_gpu))

    def open(self) -> None:
        """Creates its context and maps memory that is large enough for every case. Needs no lane.

        Raises:
            NoContext: if it gets no context.
            torch.OutOfMemoryError: if it gets no memory.
        """
        self.create_context()
        self.handshake = self.open_handshake(self.sizes)
        self.limits = self._limits_of(self.cases[-1])
        with asked(self.worker, Place("construct")):
            admit = partial(self.handshake.admit, self.worker, trusted=False)
            self.player = self._limited(admit, True)

    def open_recorded(self, replayer: Replayer) -> None:
        """Has its recording played, in place of its process. Needs the lane.

        Raises:
            JudgeError: if no process starts that plays it.
            torch.OutOfMemoryError: if there is no memory.
        """
        assert isinstance(self.recording, Recording)
        self.limits, self.played = self._limits_of(self.cases[-1]), True
        try:
            self.worker, self.handshake, self.player = replayer.load(self.recording, self.sizes)
        except CandidateError as error:
            replayer.close()
            raise Unplayed("a recording could not be loaded") from error

    def create_context(self) -> None:
        """Creates its CUDA context, unless it has one. Errors as `open`.

        Outputs come from memory that torch's allocator has already: none is allocated or mapped
        while it is called.
        """
        if self.worker.has_context:
            return
        try:
            cached = self.sizes.cached(self.bench.device_memory)
            self.worker.create_context(self._queues, cached)
        except CandidateError as error:
            self.worker.close()
            raise NoContext("a submission got no CUDA context") from error

    def enter(self, known: KnownCase) -> None:
        """Constructs the submission in a case with the reference's weights."""
        name, device = known.told.name, self.bench.device
        self.trim()
        self.known, self.distributions = known, known.admitted(self.options.inputs)
        self.case = Case(self.problem, name, device, known.traits)
        self.case.draw_weights(seed_from(self.secret, name, "weights"))
        self.limits = self._limits_of(known)
        self.handshake.begin_case(self.outbox_bytes)
        self.player = self.player.in_next_case()
        self._record, self._called, self.seconds = None, False, math.inf
        recorded = recording(self.options.rules) if self.options.rules != "open" else None
        weights = self.handshake.weights if isinstance(self.handshake, Arena) else None
        several = name if len(self.cases) > 1 else None
        with asked(self.worker, Place("construct", passed=self._passed_but(), case=several)):
            if self.played:
                self.worker.ask("play", self.limits.call, case=name)
            order = partial(
                construct, self.worker, self.case, self.secret, weights=weights, record=recorded
            )
            answer = self._limited(order, True, self._give_way)
            self.paired = read_paired(answer)

    @property
    def playable(self) -> bool:
        """Whether all that it is asked to do in the known cases has been recorded."""
        return isinstance(self.recording, Recording) and self.recording.holds(self.cases)

    @property
    def outbox_bytes(self) -> int:
        """Bytes of an image of a right answer in the case."""
        return _bytes(self.known.outputs)

    @property
    def much_slower(self) -> bool:
        """Whether even the shortest call was much slower than the reference's."""
        return SLOW * self.known.seconds < self.seconds < math.inf

    def check_rules(self) -> None:
        """Rejects what the first call in the case did against the rules."""
        if self.options.rules == "open":
            return
        with asked(self.worker, Place("call", passed=self._passed_but())):
            if self._record is None:
                raise Broken("it did not say what its call did")
            if self.played and isinstance(self.recording, Recording):
                self._record = self.recording.record(self.case.name, self._record)
        rules, glue, backward = self.options.rules, self.options.glue, self.options.backward
        found = violation(self._record, rules, glue, self.known.largest, backward)
        if found is not None:
            raise Rejected(found.model_copy(update={"case": self.case.name}))

    def call(self, drawn: Drawn, timed: bool = False) -> Answer:
        """Calls the submission once.

        Args:
            drawn: The inputs.
            timed: Whether the call is timed: others then wait even if it takes long.
        """
        first, self._called = not self._called, True
        call = partial(self.handshake.call, self.player, drawn)
        answer = self.within_limits([drawn], call, first, *([] if timed else [self._give_way]))
        if first:
            self._record = answer.claim.record
        if not timed:
            self.seconds = min(self.seconds, answer.seconds - self._paused)
        return answer

    def together(self, seconds: float) -> int:
        """How many calls may be queued together, of at most so many seconds; at least 1.

        It is one unless its launches are played: calls of a process may wait for their host, and an
        error must name the inputs on which it appears.
        """
        if not self.played or not self._called or self.player.host_driven:
            return 1
        memory, each = self.bench.device_memory or 0, self.sizes.inputs + self.sizes.outputs
        return max(1, int(min(TOGETHER * memory / each, seconds / max(self.seconds, 1e-6))))

    def call_in_turn(self, sets: Sequence[Drawn]) -> list[Answer]:
        """Calls the submission on each of these sets, of which there may be `together`."""
        handshake, answers = self.handshake, None
        alike = all(drawn.form == sets[0].form for drawn in sets[1:])
        if len(sets) > 1 and alike and isinstance(handshake, Arena):
            chain = partial(handshake.chain, [(self.player, sets)])
            answers = self.within_limits(sets, chain, False)
        if answers is None:
            return [self.call(drawn) for drawn in sets]
        self.seconds = min(self.seconds, *(answer.seconds for answer in answers[0]))
        return answers[0]

    def call_showing_unwritten(self, drawn: Drawn) -> Answer:
        """Calls the submission once with its free memory filled, which shows what it never writes.

        From then on inputs are complete before a call begins, if it may use streams.
        """
        self.player.unordered = self._on_gpu and not self.played
        with asked(self.worker, Place("call", drawn.input_set)):
            self._limited(partial(self.worker.ask, "poison"), False)
        with self.handshake.showing_unwritten():
            return self.call(drawn)

    def changes(self, answer: Answer, drawn: Drawn) -> bool:
        """Whether outputs change after the call; not those of launches in one stream."""
        changed = not self.played and answer.changed_since()
        with asked(self.worker, Place("call", drawn.input_set, self._passed_but(drawn.input_set))):
            if (end := self.worker.end_within(0.0)) is not None:
                raise end
        return changed

    def within_limits(
        self, sets: Sequence[Drawn], order: Callable[[Patience], T], first: bool = False,
        pause: Callable[[], None] = lambda: None,
    ) -> T:  # fmt: skip
        """Gives an order to call the submission on input sets, with a limit for each call."""
        if max(drawn.image.end for drawn in sets) > self.handshake.inbox.size:
            text = "get_inputs draws inputs of other sizes than before"
            raise ProblemError(f"{self.problem.id}: {text}")
        name = sets[0].input_set
        with asked(self.worker, Place("call", name, self._passed_but(name), first=first)):
            return self._limited(order, first, pause)

    def check(self, answer: Answer, drawn: Drawn) -> Incorrect | None:
        """Compares an answer with the reference's for the same inputs; None if it is right."""
        expected = self.case.expect(drawn.skeleton, drawn.image.tensors, drawn.seed)
        with asked(self.worker, Place("call", drawn.input_set, self._passed_but(drawn.input_set))):
            wrong = check_answer(answer, expected, self.case, drawn.input_set, self._allowed)
        if wrong is not None:
            return wrong.model_copy(update={"passed": self._passed_but(drawn.input_set)})
        self._passed[drawn.input_set] = None
        return None

    def draw(self, distribution: str) -> Drawn:
        """A fresh input set of the case, in private memory."""
        self._draws += 1
        return draw_set(self.case, distribution, self.distributions, self.secret, self._draws)

    def open_handshake(self, sizes: Sizes) -> Handshake:
        """A handshake with room for inputs and outputs of these sizes; closed with the trial."""
        device, l2 = self.bench.device, self.bench.info.l2
        if self._on_gpu:
            self._handshakes.append(Arena(device, sizes, l2))
        else:
            make = partial(CpuHandshake, device, l2=l2, answer_bytes=sizes.outputs)
            self._handshakes.append(with_regions([sizes.inputs, sizes.outputs], device, make))
        return self._handshakes[-1]

    def trim(self) -> None:
        """Frees what torch caches in the judge beyond a share of a GPU."""
        trim(self.bench.device, KEPT * (self.bench.device_memory or math.inf))

    def close(self) -> None:
        """Frees its memory; the process is left alone."""
        self.bench.facts.keep_tolerances(self.problem, self.options.inputs)
        while self._handshakes:
            self._handshakes.pop().close()

    def _limits_of(self, known: KnownCase) -> Limits:
        return self.options.limits(known.seconds, self.interpreted, self.bench.device.type)

    def _limited(
        self, order: Callable[[Patience], T], first: bool, pause: Callable[[], None] = lambda: None
    ) -> T:
        """Gives an order with its limit."""
        self._paused = 0.0
        return self._allowance.spent_on(order, self.worker, self.limits, first, pause)

    def _give_way(self) -> None:
        """Lets others that wait be judged first, in a call that takes long.

        Not on a GPU: stopping a process does not stop its kernels.
        """
        if self._on_gpu:
            return
        start = time.monotonic()
        with asleep(self.worker), self.bench.lane.left():
            self.bench.slots.give_back()
            self.bench.slots.take()
        self._paused += time.monotonic() - start

    def _passed_but(self, input_set: str | None = None) -> tuple[str, ...]:
        return tuple(each for each in self._passed if each != input_set)


def _bytes(specs: tuple[Spec, ...]) -> int:
    return image_size([of_spec(spec) for spec in specs])
