"""One submission before one problem: every case constructed and screened, then the timed case under
the clock.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import partial
from typing import Any, TypeVar

import torch

from kevin_env.candidate import tree
from kevin_env.judge.api import Limits, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.compare.check import Allowed, check_answer, unwritten
from kevin_env.judge.device import finish, kept_memory
from kevin_env.judge.handshake.answer import Answer
from kevin_env.judge.handshake.claims import read_paired
from kevin_env.judge.handshake.gate import Drawn, Gate, Player
from kevin_env.judge.handshake.memory import Image, SharedRegion, image_size
from kevin_env.judge.inputs.cases import (
    Nature,
    construction,
    handed_over,
    nature_key,
    open_cases,
    plan,
    precompile,
    seconds_of,
    usable_distributions,
)
from kevin_env.judge.inputs.distributions import plant, planted
from kevin_env.judge.inputs.reference import Case, Expected, seed_from
from kevin_env.judge.timing.chain import GpuGate
from kevin_env.judge.verdict import Place
from kevin_env.judge.workers.errors import Broken, Ended, Failed, TimedOut
from kevin_env.judge.workers.patience import Patience
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Incorrect, RulesViolation
from kevin_env.problem import Problem, ProblemError
from kevin_env.rules.recorded import Record, recording, violation

T = TypeVar("T")
Fault = Incorrect | RulesViolation

ALL_CALLS = 10
"""All that it is told, but to build, may take so many times what a first call may: in most of it
nobody is timed.
"""
SLOW = 10
"""A submission whose calls take so many times as long as the reference's is called less often."""
FEW_SETS, SCREENING_SECONDS = 2, 2.0
"""On how many input sets of a case one is screened at least, once that has taken so many seconds.
"""
SLACK = 1 << 20, 256 << 20
"""Bytes that inbox and outbox are larger than the first input set needs: a quarter of that, but
within these bounds.
"""
VALUES = ("values", "not_finite")
"""Kinds of wrong answers that differ in what they hold."""
KEPT = 1 / 16
"""Share of a GPU that torch may keep in the judge: to ask the driver for it again takes
milliseconds.
"""


class Trial:
    """One submission, one problem, one secret. `needs_oracle` is as in `Case`, for each of its
    cases.

    Attributes:
        place: What the submission was last told to do.
        case: The case at hand; after screening, the timed one.
        outputs: What a right answer to it looks like: tensors of its shapes and dtypes, without
            bytes. gate, player: Its gate, and the submission at that gate.
        lately: Seconds of the last window in which it was screened.
        limits: Of the case at hand.
        kept: What is closed with it.
        crowded: Whether others hold device memory that it must be given.
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
        self.gate: Gate
        self.player: Player
        self.lately = 0.0
        self.limits: Limits
        self.crowded = False
        self._needs_oracle = needs_oracle
        self._draws = 0
        self._spent = self._paused = 0.0
        self._called = False
        self._pause: Callable[[], None] = lambda: None
        self._allowed: Allowed = {}
        self._recorded, self._largest = False, 0
        self._record: Record | None = None
        self._paired: tuple[tuple[str, str], ...] = ()
        self._passed: dict[str, None] = {}
        self.kept: list[Player | SharedRegion] = []

    def load(self, code: str) -> None:
        """Imports the submission. Needs no lease.

        Raises:
            Trouble: when it does not import.
        """
        path, headers = self.worker.path, self.options.headers
        patience = Patience(self.options.build_timeout, self.options.build_timeout)
        self.worker.ask("load", patience, path=path, code=code, entry="ModelNew", headers=headers)

    def build(self, code: str) -> None:
        """Imports the submission and compiles its Triton kernels, for all cases. Errors as `load`.

        Hold no lease: a problem's first one takes one.
        """
        start = time.monotonic()
        self.load(code)
        left = self.options.build_timeout - (time.monotonic() - start)
        if self.bench.device.type == "cuda":
            precompile(self.worker, self.bench.sketches.of(self.problem), left)

    def screen(self) -> Fault | None:
        """What `screening` finds wrong first, all at once. Hold the lease; errors as there."""
        return next((wrong for wrong in self.screening() if wrong is not None), None)

    def screening(
        self, verifying: Callable[[], AbstractContextManager[None]] = nullcontext,
        pause: Callable[[], None] = lambda: None,
    ) -> Iterator[Fault | None]:  # fmt: skip
        """Constructs and checks the submission in every case, step by step; ends at the first wrong
        answer.

        Hold the lease, but between the steps.

        Args:
            verifying: Entered while answers are asked for and checked.
            pause: As in `Patience`.

        Yields:
            What was wrong in the step.

        Raises:
            Trouble: when the submission fails.
            ProblemError: when the reference does.
        """
        self._pause = pause
        cases = list(open_cases(self.problem, self.bench.device))
        for case in cases:
            self.enter(case, recorded=self.options.rules != "open")
            yield None
            began = self._spent
            timed, only = case is cases[-1], len(cases) == 1
            planned = plan(self.distributions, timed, self.secret, case.name, self.bench.pace, only)
            if len(planned) == 1 and self._recorded:
                planned *= 2  # it may behave otherwise while it is recorded
            for number, distribution in enumerate(planned):
                if (
                    number >= FEW_SETS
                    and self._spent - began > SCREENING_SECONDS
                    and self.much_slower(self.lately)
                ):
                    break
                with verifying():
                    wrong = self._screened(distribution)
                yield wrong
                if wrong is not None:
                    return
            yield self._against_rules()
        self._pause = lambda: None  # whoever is timed gives way to nobody

    def much_slower(self, seconds: float) -> bool:
        """Whether a call of so many seconds is one of a submission that is much slower than the
        reference.
        """
        return seconds > SLOW * self._nature().seconds

    def _screened(self, distribution: str) -> Incorrect | None:
        answer, wrong = self.checked(distribution)
        if (
            wrong is not None
            and (wrong := self._told_apart(answer, wrong, distribution)) is not None
        ):
            return (
                wrong.model_copy(update={"paired": self._paired}) if wrong.kind in VALUES else wrong
            )
        return None

    def _against_rules(self) -> RulesViolation | None:
        """What a right submission did in its first call in the case that the rules forbid."""
        if not self._recorded:
            return None
        if self._record is None:
            raise Broken("it did not say what its call did")
        found = violation(self._record, self.options.rules, self.options.glue, self._largest)
        return found and found.model_copy(update={"case": self.case.name})

    def checked(self, distribution: str) -> tuple[Answer, Incorrect | None]:
        """One call of the submission on fresh inputs, checked."""
        drawn = self.draw(distribution)
        self.trim()
        answer = self.run(drawn)
        self.lately = answer.seconds - self._paused
        return answer, self.check(answer, drawn)

    def run(self, drawn: Drawn) -> Answer:
        """One call of the submission at the gate. Errors as `screen`."""
        first = not self._called
        answer = self.in_time(
            [drawn], lambda patience: self.gate.call(self.player, drawn, patience), first
        )
        if first:
            self._record = answer.claim.record
        self._called = True
        return answer

    def in_time(
        self, sets: Sequence[Drawn], told: Callable[[Patience], T], first: bool = False
    ) -> T:
        """Calls of the submission on some inputs, given how long one may take. Errors as `screen`."""
        self.place = Place("call", sets[0].input_set, self._passed_but(sets[0].input_set))
        if max(drawn.image.end for drawn in sets) > self.gate.inbox.size:
            raise ProblemError(
                f"{self.problem.id}: get_inputs draws inputs of other sizes than before"
            )
        return self._in_time(told, first)

    def _in_time(self, told: Callable[[Patience], T], first: bool) -> T:
        """Has the submission do something, given how long that may take: no longer than is left for
        everything.
        """
        whole, began, self._paused = ALL_CALLS * self.limits.first, time.monotonic(), 0.0

        def pause() -> None:
            start = time.monotonic()
            self._pause()
            self._paused += time.monotonic() - start

        limit = self.limits.first if first else self.limits.call
        seconds = min(limit, max(0.0, whole - self._spent))
        try:
            return told(Patience(seconds, min(seconds, self.limits.call), pause))
        except TimedOut as late:
            if seconds == limit or late.seconds < seconds:
                raise
            raise TimedOut(whole, "all calls of ModelNew together") from None
        finally:
            self._spent += time.monotonic() - began - self._paused

    def check(self, answer: Answer, drawn: Drawn) -> Incorrect | None:
        """Compares a call with what the reference gives for the same inputs."""
        name = drawn.input_set
        wrong = check_answer(answer, self.expect(drawn), self.case, name, self._allowed)
        if wrong is not None:
            return wrong.model_copy(update={"passed": self._passed_but(name)})
        self._passed[name] = None
        return None

    def _passed_but(self, input_set: str | None = None) -> tuple[str, ...]:
        return tuple(each for each in self._passed if each != input_set)

    def draw(self, distribution: str) -> Drawn:
        """A fresh input set of the case at hand, in private memory."""
        self._draws += 1
        seed = seed_from(self.secret, self.case.name, distribution, self._draws)
        skeleton, tensors = self.case.draw_inputs(distribution, seed)
        image = Image(tensors, self.bench.device)
        if planted(distribution, self.distributions):
            plant(image.tensors, self.case.structures, seed_from(self.secret, "plant", self._draws))
        # what a random model draws in its call is told to the candidate, so it comes from a seed of
        # its own
        call = seed_from(self.secret, "call", self._draws)
        return Drawn(
            skeleton, image, call, f"{self.case.name}/{distribution}", self.case.stochastic
        )

    def expect(self, drawn: Drawn) -> Expected:
        """What the reference gives for an input set."""
        return self.case.expect(drawn.skeleton, drawn.image.tensors, drawn.seed)

    def construct(
        self, worker: Worker, timeout: float | Patience, compiled: bool = False, recorded: bool = False
    ) -> dict[str, Any]:  # fmt: skip
        """Has a worker build its model for the case at hand, with the reference's weights, and
        maybe record a call.
        """
        image = Image([t.to(self.bench.device) for t in handed_over(self.case)], self.bench.device)
        order = construction(
            self.case, image.specs, seed_from(self.secret, self.case.name, "weights"), compiled
        )
        with ExitStack() as lent:
            if image.specs:  # to lend memory takes the driver milliseconds
                region = lent.enter_context(closing(SharedRegion(image.end, self.bench.device)))
                image.write_to(region)
                finish(self.bench.device)
                worker.share("weights", region, timeout)
            record = recording(self.options.rules) if recorded else None
            return worker.ask("construct", timeout, **order, record=record)

    def open_gate(self, inbox: int, outbox: int) -> Gate:
        """A gate for inputs and outputs of so many bytes; closed with the trial."""
        regions: list[SharedRegion] = []
        for size in (inbox, outbox):
            regions.append(
                SharedRegion(size + min(max(size // 4, SLACK[0]), SLACK[1]), self.bench.device)
            )
            self.kept.append(regions[-1])  # at once: there may be no room for what comes next
        kind = GpuGate if self.bench.device.type == "cuda" else Gate
        return kind(self.bench.device, regions[0], regions[1], self.bench.info.l2, outbox)

    def admit(self, worker: Worker, gate: Gate, timeout: float | Patience) -> Player:
        """Lets a worker through a gate; what is mapped of its memory is unmapped with the trial."""
        player = gate.admit(worker, timeout, ours=worker is not self.worker)
        self.kept.append(player)
        return player

    def close(self, keep: float = 0.0) -> None:
        """Gives back memory, but what torch keeps of up to a share of a GPU; the worker stays as it
        is.
        """
        while self.kept:
            self.kept.pop().close()
        self.trim(keep)

    def trim(self, keep: float = KEPT) -> None:
        """Gives back what torch keeps in the judge beyond a share of a GPU: another process may
        lack it.
        """
        if self.bench.room is not None and kept_memory(self.bench.device) > keep * self.bench.room:
            torch.cuda.empty_cache()

    def end(self) -> None:
        """Ends the submission, and gives back what the judge held for it while nobody is timed.
        Hold no lease.
        """
        self.bench.retire(self.worker)
        with self.bench.lease.shared():
            self.close()

    def enter(self, case: Case, recorded: bool = False) -> None:
        """Constructs the submission in a case, behind a gate of its own. Hold the lease; errors as
        `screen`.

        Where it is to be `recorded`, its next call is.
        """
        self.close(keep=KEPT)
        self.case, case.needs_oracle = case, self._needs_oracle
        self.distributions = []  # until they are known for this case: nothing is planted yet
        case.draw_weights(seed_from(self.secret, case.name, "weights"))
        self._find_nature(case, first := self.draw("own"))
        answer = case.answer(first.skeleton, first.image.tensors, first.seed)
        self.outputs = [output.to("meta") for output in tree.take_apart(answer)[1]]
        self._largest = max(
            (t.numel() for t in (*first.image.tensors, *handed_over(case), *self.outputs)),
            default=0,
        )
        self._recorded, self._record = recorded, None
        self.gate = self.open_gate(first.image.end, image_size(self.outputs))
        self.place, self._called = Place("construct", passed=self._passed_but()), False
        self.limits = self.options.limits(self._nature().seconds)
        self._paired = read_paired(
            self._in_time(partial(self.construct, self.worker, recorded=recorded), first=True)
        )
        self.player = self._in_time(partial(self.admit, self.worker, self.gate), first=True)

    def _find_nature(self, case: Case, drawn: Drawn) -> None:
        """What holds for a case whatever is drawn: looked into once for a problem."""
        key, natures = nature_key(self.problem, case.name, self.options.inputs), self.bench.natures
        if key not in natures:
            case.find_randomness(drawn.skeleton, drawn.image.tensors)
            # not from the secret: a recorded turn that is judged again, by another judge, has the
            # same distributions
            probe = seed_from(self.problem.sha256, case.name, "probe")
            usable = usable_distributions(case, probe, self.options.inputs)
            seconds = seconds_of(case, drawn.skeleton, drawn.image.tensors)
            natures[key] = Nature(case.stochastic, usable, seconds, case.structures)
        nature = natures[key]
        case.stochastic, case.structures, self.distributions = (
            nature.stochastic,
            nature.structures,
            nature.distributions,
        )

    def _nature(self) -> Nature:
        return self.bench.natures[nature_key(self.problem, self.case.name, self.options.inputs)]

    def _told_apart(self, answer: Answer, wrong: Incorrect, distribution: str) -> Incorrect | None:
        """A wrong value may change afterwards, be right at a second call, or be uninitialized
        memory.

        On a GPU the inputs of the second call are there before it is called. If that is right, the
        submission works on streams that do not wait for torch's current one, and is called like
        that from then on.
        """
        if wrong.kind not in VALUES:
            return wrong
        if answer.changed_since():
            text = "the call was reported finished while its output was still being written"
            return wrong.model_copy(update={"kind": "early_done", "message": text})
        self._draws -= 1
        ordered, self.player.unordered = not self.player.unordered, self.bench.device.type == "cuda"
        try:  # never before an answer was wrong: it is the one call that a submission could tell from others
            self._in_time(partial(self.worker.ask, "poison"), first=False)
            second, again = self.checked(distribution)
        except (
            Failed,
            Ended,
            TimedOut,
        ):  # such as that of a kernel that takes an index from memory that nobody wrote
            return wrong
        if again is not None:
            return unwritten(answer, second, again) or wrong
        if ordered and self.player.unordered:
            return None
        text = f"{wrong.message}; a second call on the same inputs was correct"
        return wrong.model_copy(update={"kind": "nondeterministic", "message": text})
