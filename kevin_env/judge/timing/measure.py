"""From a contest to an outcome with a speedup: chains on a GPU, alternating calls on a CPU.

Both take pairs of measurements, one of each side, until the interval of the speedup is as narrow as
was asked for.
"""

import statistics
import time
from dataclasses import dataclass
from functools import partial

from kevin_env.judge.api import STUDY, JudgeError
from kevin_env.judge.handshake.answer import Answer
from kevin_env.judge.handshake.gate import Drawn, Player
from kevin_env.judge.timing import estimates
from kevin_env.judge.timing.chain import WARM_SECONDS, GpuGate
from kevin_env.judge.timing.estimates import Pair, Speedup
from kevin_env.judge.timing.session import Contest, Wrong
from kevin_env.judge.workers.baselines import ours
from kevin_env.judge.workers.patience import Ran
from kevin_env.judge.workers.pauses import awake
from kevin_env.judge.workers.usage import descendants, run_time, scheduled
from kevin_env.outcome import Correct, Incorrect, Threads

LINKS = 12
"""Links of a chain, of which the first does not count. The launch queue has room for some thousand
kernels.
"""
NULL_LINKS = 5
"""Links of the null model that are mixed with a chain of the reference, at least."""
WINDOWS = 3
"""Calls of each side in one turn on a CPU, of which the shortest counts: waking up and other work
only lengthen one. A submission whose calls are long, and much longer than the reference's, has one.
"""
CHAIN_SECONDS = 0.05
"""Calls that take longer together are not in one chain."""
CROWDED = 0.5e-3
"""Seconds that links of a chain are longer than a single one where its own queue disturbs them: on
an H100 a time slice is 2 ms.
"""
WRITING = 100e-6
"""Seconds that writing an input may take longer than usual; what is beyond counts as the
submission's work.
"""
TRIES = 4
"""Times that a chain with processes of the judge's own is tried."""
BUSY = "the judge's own calls could not be queued in time: this machine is too busy"
ENDING = 0.5
"""Seconds in which kernels of a submission that has been killed may still run, before each further
try.
"""
SHAKEN = 10e-6
"""Seconds that links of the null model may be longer than the shortest there were. While some other
process makes a context, on an H100 for 0.1 to 0.4 s, links of all may be 150 us longer, and some a
time slice.
"""
DISTURBED = 1e-3
"""Seconds that a link has besides its call only where others share the device in time slices: some
0.29 ms else.
"""
NEARLY = 1.25
"""Times the least spread that chains can come to, from which on more of them hardly help."""
SLOW = 10
"""A submission that is slower than the reference by this factor, for certain, is not measured any
better.
"""
LONG_ENOUGH = 0.5e-3
"""A call on a CPU that is longer than the null model's by this tells how many threads it keeps
busy.
"""


def ahead(contest: Contest) -> int:
    """Input sets that will be needed at least."""
    if contest.trial.bench.device.type == "cpu":
        return contest.trial.bench.pace.pairs[0] * WINDOWS + 1  # and one for its threads
    return 1 + LINKS


def measure(contest: Contest) -> Correct:
    """Times a screened submission, to be told when `contest.unverified` has none left. Hold the
    device alone.

    Raises:
        Wrong: when a timed call is wrong and is compared now already.
        Trouble: when the submission fails.
        JudgeError: when a partner does.
    """
    with contest.still():
        return (
            Alternating(contest).outcome()
            if contest.trial.bench.device.type == "cpu"
            else Chains(contest).outcome()
        )


def enough(contest: Contest, speedup: Speedup, pairs: int, began: float) -> bool:
    """Whether no further pair is needed of those that began at a time, by `time.monotonic`."""
    pace, asked_for = contest.trial.bench.pace, contest.trial.options.precision
    times = STUDY if asked_for else 1
    least, most = pace.pairs[0], times * pace.pairs[1]
    if pairs >= most or speedup.high < 1 / SLOW:
        return pairs >= min(least, 2)
    wanted = asked_for or pace.precision
    if contest.trial.bench.device.type == "cuda":
        wanted = max(wanted, NEARLY * estimates.least_spread(speedup.reference, speedup.submission))
    precise = pairs >= least and speedup.spread <= wanted
    return precise or (
        pairs >= min(least, estimates.LEAST) and time.monotonic() - began > times * pace.seconds
    )


@dataclass
class Side:
    """One of those that are timed on a GPU.

    Attributes:
        player: It.
        call: About how long a link of it is, in seconds; 0 before the first.
        single: Whether its links are queued one by one. Work that it has on several streams waits
            for the next link then, and the device does not give way to the judge before its time
            slice ends.
    """

    player: Player
    call: float = 0.0
    single: bool = False


class Chains:
    """Pairs of chains on a GPU."""

    def __init__(self, contest: Contest) -> None:
        gate = contest.trial.gate
        assert isinstance(gate, GpuGate)
        self._contest = contest
        self._gate = gate
        self._known = contest.trial.bench.known_seconds
        self._reference, self._own = Side(contest.reference), Side(contest.trial.player)
        self._constants: list[float] = []
        """What a link has besides the call, by links of the null model that are mixed with the
        reference's.
        """

    def outcome(self) -> Correct:
        """Errors as `measure`."""
        contest, began = self._contest, time.monotonic()
        reference, own = list[list[Answer]](), list[list[Answer]]()
        while True:
            for side, chains in contest.draw.sample(
                [(self._reference, reference), (self._own, own)], 2
            ):
                chains.append(self._links(side))
            speedup = self._speedup(reference, own)
            if enough(contest, speedup, len(own), began):
                return result(speedup, queued=not self._own.player.host_driven)

    def _speedup(self, reference: list[list[Answer]], own: list[list[Answer]]) -> Speedup:
        """What the chains of both sides say."""
        constant = self._constant()
        least = self._contest.trial.bench.least_constant(constant)
        usual = (
            statistics.median(answer.writing for answers in reference for answer in answers)
            + WRITING
        )
        speedup = estimates.speedup_of_chains(
            [[answer.seconds - constant for answer in answers] for answers in reference],
            [
                [
                    answer.seconds + max(0.0, answer.writing - usual) - min(constant, least)
                    for answer in answers
                ]
                for answers in own
            ],
        )
        return speedup.widened(estimates.BETWEEN["cuda"])

    def _constant(self) -> float:
        """What a link has besides the call.

        Raises:
            Wrong: when kernels of the submission run on after its calls.
            JudgeError: when those of others do.
        """
        constant = estimates.lower_quartile(self._constants)
        if constant < DISTURBED:
            return constant
        self._contest.trial.worker.close()
        for _ in range(TRIES):  # kernels that were launched may take a while to end
            self._constants = []
            self._links(self._reference)
            if estimates.lower_quartile(self._constants) < DISTURBED:
                text = "kernels of a call ran on after it was reported finished"
                name = f"{self._contest.trial.case.name}/own"
                raise Wrong(Incorrect(kind="early_done", message=text, input_set=name))
            time.sleep(ENDING)
        raise JudgeError("something else runs on this GPU: stop it, or judge elsewhere")

    def _links(self, side: Side) -> list[Answer]:
        """The answers of one chain with as many links as fit."""
        if not side.call:
            side.call = self._timed(side, 1)[0].seconds
        before, fitting = len(self._constants), min(LINKS, self._contest.supply.fitting)
        answers = self._timed(side, max(1, min(fitting, int(CHAIN_SECONDS / side.call))))
        longer = (
            estimates.lower_quartile([answer.seconds for answer in answers[1:] or answers])
            - side.call
        )
        mixed = self._constants[before:] if side is self._reference else [0.0]
        if side.single or (longer < CROWDED and estimates.lower_quartile(mixed) < DISTURBED):
            return answers
        side.single = True
        del self._constants[before:]
        return self._timed(side, len(answers))

    def _timed(self, side: Side, count: int) -> list[Answer]:
        """So many links. Repeated if the null model's links among them show that a context was made
        meanwhile.
        """
        for _ in range(TRIES):
            answers, null = self._chain(side, count)
            if not null or self._is_usual(estimates.lower_quartile(null)):
                break
        if side is self._reference:
            self._constants += null
        return answers

    def _is_usual(self, constant: float) -> bool:
        return constant <= self._contest.trial.bench.least_constant(constant) + SHAKEN

    def _chain(self, side: Side, count: int) -> tuple[list[Answer], list[float]]:
        """So many links, and what those of the null model have besides its call; none where it is
        not called.

        Among the submission's one is on other inputs, at a random place; it does not count.
        """
        contest, own = self._contest, side is self._own
        sets, place = contest.sets_of(side.player, count), contest.draw.randrange(count + 1)
        if own:
            sets.insert(place, contest.supply.other())
        single = side.single or side.player.host_driven or count == 1
        answers, null = list[Answer](), list[Answer]()
        for few in [[drawn] for drawn in sets] if single else [sets]:
            found = (
                self._own_chain(few, not single)
                if own
                else self._chain_of_partners(side.player, few, not single)
            )
            answers += found[0]
            null += found[1]
        for answer, drawn in zip(answers, sets, strict=True) if own else ():
            contest.unverified.add(answer, drawn)
        constants = [answer.seconds - self._known for answer in null]
        return (answers[:place] + answers[place + 1 :] if own else answers), constants

    def _own_chain(self, sets: list[Drawn], mixed: bool) -> tuple[list[Answer], list[Answer]]:
        """Links of the submission, mixed with the null model's as the reference's are.

        A link depends by up to 2.5 us on which process had the device before it.
        """
        contest, player, null = self._contest, self._own.player, self._contest.null
        while null.late < TRIES:
            rows = [(player, sets)] + ([(null, contest.sets_of(null, len(sets)))] if mixed else [])
            with awake(player.worker), awake(null.worker):
                if player.host_driven:
                    drive = partial(self._gate.host_driven, player)
                    return [
                        contest.trial.in_time([each], partial(drive, each)) for each in sets
                    ], []
                if found := contest.trial.in_time(sets, partial(self._gate.chain, rows)):
                    return found[0], found[1] if mixed else []
        raise JudgeError(BUSY)

    def _chain_of_partners(
        self, player: Player, sets: list[Drawn], mixed: bool
    ) -> tuple[list[Answer], list[Answer]]:  # fmt: skip
        """Links of the reference, and of the null model: in one chain, or in a random order where
        they are not mixed.

        The reference's own queue would hold up the null model's links where it does its own.
        """
        contest, null = self._contest, self._contest.null
        other = null, contest.sets_of(null, max(len(sets), NULL_LINKS) if mixed else 1)
        found: dict[int, list[Answer]] = {}
        with ours(), awake(player.worker), awake(null.worker):
            for rows in (
                [[(player, sets), other]]
                if mixed
                else contest.draw.sample([[(player, sets)], [other]], 2)
            ):
                found |= zip([id(each) for each, _ in rows], self._trusted(rows), strict=True)
        return found[id(player)], found[id(null)]

    def _trusted(self, rows: list[tuple[Player, list[Drawn]]]) -> list[list[Answer]]:
        for _ in range(TRIES):
            (player, sets), *others = rows
            if player.host_driven and player is self._reference.player and not others:
                return [[self._gate.host_driven(player, each, WARM_SECONDS) for each in sets]]
            if found := self._gate.chain(rows, WARM_SECONDS):
                return found
        raise JudgeError(BUSY)


class Alternating:
    """Calls on a CPU, in turn."""

    def __init__(self, contest: Contest) -> None:
        self._contest = contest

    def outcome(self) -> Correct:
        """Errors as `measure`."""
        contest, began, before = self._contest, time.monotonic(), _scheduled(self._contest)
        players = (contest.reference, contest.trial.player, contest.null)
        slow = contest.trial.lately > CHAIN_SECONDS and contest.trial.much_slower(
            contest.trial.lately
        )
        places = [0, 1, 2] * WINDOWS if not slow else [0, 2] * WINDOWS + [1]
        turns: list[list[float]] = []
        other = contest.draw.randrange(contest.trial.bench.pace.pairs[0])
        while True:
            if len(turns) == other:
                contest.call(contest.trial.player, contest.supply.other())
            windows: list[list[float]] = [[], [], []]
            for place in contest.draw.sample(places, len(places)):
                windows[place].append(contest.call(players[place]).seconds)
            turns.append([min(each) for each in windows])
            gate = statistics.median(null for _, _, null in turns)
            speedup = estimates.speedup_of(
                [Pair(reference - gate, own - gate) for reference, own, _ in turns]
            )
            if enough(contest, speedup, len(turns), began):
                break
        found = result(speedup.widened(estimates.between(before, _scheduled(contest))))
        return found.model_copy(update={"threads": busy_threads(contest)})


def result(speedup: Speedup, queued: bool = False) -> Correct:
    """The outcome that a speedup makes, whose interval covers other judgements too."""
    text = f"{speedup.ratio:.3g}x the reference's speed"
    if speedup.noisy:
        text = f"the time was noisy: about {text}, {speedup.low:.2g}x to {speedup.high:.2g}x"
    return Correct(
        kind="too_noisy" if speedup.noisy else "timed",
        message=f"all outputs are right; {text}",
        speedup=speedup.ratio,
        speedup_interval=(speedup.low, speedup.high),
        reference_seconds=speedup.reference,
        submission_seconds=speedup.submission,
        max_unseen_gain=0.0,
        queued=queued,
    )


def busy_threads(contest: Contest) -> Threads | None:
    """How many threads the submission keeps busy on a CPU; None where calls are too short to tell.

    What serving a call takes besides is the same for the null model, and taken away.
    """
    own, null = (_spent(contest, player) for player in (contest.trial.player, contest.null))
    if own[0] - null[0] < LONG_ENOUGH or own[1] <= null[1]:
        return None
    busy, processors = (own[1] - null[1]) / (own[0] - null[0]), contest.trial.bench.info.processors
    return Threads(busy=min(busy, processors), of=processors)


def _spent(contest: Contest, player: Player) -> tuple[float, float]:
    """Wall seconds of one call on a CPU, and processor seconds of the player in it. Errors as
    `measure`.
    """
    processes = list(descendants(player.worker.pid))
    contest.require_still()
    before = run_time(processes)
    answer = contest.call(player)
    contest.require_still()
    return answer.seconds, (run_time(processes) - before) / 1e9


def _scheduled(contest: Contest) -> Ran:
    """What the processes that are timed on a CPU have run and waited so far."""
    workers = (contest.trial.worker, contest.reference.worker, contest.null.worker)
    return scheduled([pid for worker in workers for pid in descendants(worker.pid)])
