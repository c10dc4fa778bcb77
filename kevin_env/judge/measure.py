"""From a contest to an outcome with a speedup: chains on a GPU, alternating calls on a CPU.

Both take pairs of measurements, one of each side, until the interval of the speedup is as narrow as was asked for.
"""

import statistics
import time
from dataclasses import dataclass
from functools import partial

from kevin_env.judge import timing
from kevin_env.judge.answer import Answer
from kevin_env.judge.api import JudgeError
from kevin_env.judge.calibration import stream_seconds
from kevin_env.judge.chain import GpuGate
from kevin_env.judge.contest import Contest
from kevin_env.judge.gate import Drawn, Player
from kevin_env.judge.partners import PARTNER_SECONDS, ours
from kevin_env.judge.patience import Patience, Ran
from kevin_env.judge.pauses import awake
from kevin_env.judge.timing import Pair, Speedup
from kevin_env.judge.unverified import Wrong
from kevin_env.judge.usage import descendants, run_time, scheduled
from kevin_env.outcome import Correct, Incorrect, Threads

LINKS = 12
"""Links of a chain, of which the first does not count. The launch queue has room for some thousand kernels."""
NULL_LINKS = 5
WINDOWS = 3
"""Calls of each side in one turn on a CPU, of which the shortest counts: waking up and other work only lengthen one. A
submission whose calls are long, and much longer than the reference's, has one."""
CHAIN_SECONDS = 0.05
"""Calls that take longer together are not in one chain."""
CROWDED = 1.2
"""Times as long as a single link, from which on the links of a chain are taken to be disturbed by its own queue."""
DISTURBED = 1e-3
"""Seconds that a link has besides its call only where others share the device in time slices: some 0.29 ms else."""
SLOW = 10
"""A submission that is slower than the reference by this factor, for certain, is not measured any better."""
LONG_ENOUGH = 0.5e-3
"""A call on a CPU that is longer than the null model's by this tells how many threads it keeps busy."""


def ahead(contest: Contest) -> int:
    """Input sets that will be needed at least."""
    if contest.trial.bench.device.type == "cpu":
        return contest.trial.bench.pace.pairs[0] * WINDOWS + 1  # and one for its threads
    return 1 + LINKS


def measure(contest: Contest) -> Correct:
    """Times a screened submission, to be told when `contest.unverified` has none left. Hold the device alone.

    Raises:
        Wrong: when a timed call is wrong and is compared now already.
        Trouble: when the submission fails.
        JudgeError: when a partner does.
    """
    with contest.still():
        return Alternating(contest).outcome() if contest.trial.bench.device.type == "cpu" else Chains(contest).outcome()


def enough(contest: Contest, speedup: Speedup, pairs: int, began: float) -> bool:
    """Whether no further pair is needed of those that began at a time, by `time.monotonic`."""
    pace = contest.trial.bench.pace
    least, most = pace.pairs
    if pairs >= most or speedup.high < 1 / SLOW:
        return pairs >= min(least, 2)
    precise = pairs >= least and speedup.spread <= (contest.trial.options.precision or pace.precision)
    return precise or (pairs >= min(least, timing.LEAST) and time.monotonic() - began > pace.seconds)


@dataclass
class Side:
    """One of those that are timed on a GPU.

    Attributes:
        player: It.
        call: About how long a link of it is, in seconds; 0 before the first.
        single: Whether its links are queued one by one. Work that it has on several streams waits for the next link
            then, and the device does not give way to the judge before its time slice ends.
    """

    player: Player
    call: float = 0.0
    single: bool = False


class Chains:
    """Pairs of chains on a GPU. Links of the null model, which tell the constant, are mixed with the reference's.

    Kernels of the submission that still run then, to slow the reference, slow these, too.
    """

    def __init__(self, contest: Contest) -> None:
        bench, gate = contest.trial.bench, contest.trial.gate
        assert isinstance(gate, GpuGate)
        self._contest = contest
        self._gate = gate
        self._known = bench.stream_seconds(stream_seconds)
        self._reference, self._own = Side(contest.reference), Side(contest.trial.player)
        self._constants: list[float] = []
        """What a link has besides the call."""

    def outcome(self) -> Correct:
        """Errors as `measure`."""
        contest, began = self._contest, time.monotonic()
        chains: dict[int, list[list[float]]] = {id(self._reference): [], id(self._own): []}
        while True:
            for side in contest.draw.sample((self._reference, self._own), 2):
                chains[id(side)].append(self._links(side))
            both = [chains[id(side)] for side in (self._reference, self._own)]
            speedup = timing.speedup_of_chains(both[0], both[1], self._constant())
            speedup = speedup.widened(timing.BETWEEN["cuda"])
            if enough(contest, speedup, len(both[0]), began):
                return result(speedup, queued=not self._own.player.host_driven)

    def _constant(self) -> float:
        """What a link has besides the call.

        Raises:
            Wrong: when kernels of the submission run on after its calls.
            JudgeError: when those of others do.
        """
        constant = statistics.median(self._constants)
        if constant < DISTURBED:
            return constant
        self._contest.trial.worker.close()
        again = [link - self._known for link in self._timed(Side(self._contest.null), LINKS)]
        if statistics.median(again) < DISTURBED:
            text = "kernels of a call ran on after it was reported finished"
            raise Wrong(Incorrect(kind="early_done", message=text, input_set=f"{self._contest.trial.case.name}/own"))
        raise JudgeError("something else runs on this GPU: stop it, or judge elsewhere")

    def _links(self, side: Side) -> list[float]:
        """The links of one chain, in seconds, as many as fit."""
        if not side.call:
            side.call = self._timed(side, 1)[0]
        fitting = min(LINKS, self._contest.supply.fitting)
        links = self._timed(side, max(1, min(fitting, int(CHAIN_SECONDS / side.call))))
        if not side.single and statistics.median(links[1:] or links) > CROWDED * side.call:
            side.single = True
            return self._timed(side, len(links))
        return links

    def _timed(self, side: Side, count: int) -> list[float]:
        """So many links, in seconds."""
        contest, own = self._contest, side is self._own
        sets = contest.sets_of(side.player, count)
        answers: list[Answer] = []
        for few in [[drawn] for drawn in sets] if side.single or side.player.host_driven else [sets]:
            if own:
                with awake(side.player.worker):
                    found = contest.trial.in_time(few, partial(self._called, side.player, few))
            else:
                with ours(), awake(side.player.worker), awake(contest.null.worker):
                    found = self._called(side.player, few, PARTNER_SECONDS)
            if found is None:
                return self._timed(side, count)
            answers += found
        for answer, drawn in zip(answers, sets, strict=True) if own else ():
            contest.unverified.add(answer, drawn)
        return [answer.seconds for answer in answers]

    def _called(self, player: Player, sets: list[Drawn], timeout: float | Patience) -> list[Answer] | None:
        """One chain, mixed with links of the null model if it is the reference's; None where it was late."""
        rows: list[tuple[Player, list[Drawn]]] = [(player, sets)]
        answers: list[Answer] = []
        if player.host_driven:
            rows, answers = [], [self._gate.host_driven(player, drawn, timeout) for drawn in sets]
        null, mixed = self._contest.null, player is self._reference.player
        if mixed:
            rows.append((null, self._contest.sets_of(null, max(len(sets), NULL_LINKS))))
        found = self._gate.chain(rows, timeout) if rows else []
        if null.host_driven:
            raise JudgeError("the judge's own calls could not be queued in time, twice: this machine is too busy")
        if found is None:
            return None
        if mixed:
            self._constants += [answer.seconds - self._known for answer in found[-1]]
        return answers or found[0]


class Alternating:
    """Calls on a CPU, in turn."""

    def __init__(self, contest: Contest) -> None:
        self._contest = contest

    def outcome(self) -> Correct:
        """Errors as `measure`."""
        contest, began, before = self._contest, time.monotonic(), _scheduled(self._contest)
        players = (contest.reference, contest.trial.player, contest.null)
        slow = contest.trial.lately > CHAIN_SECONDS and contest.trial.much_slower(contest.trial.lately)
        places = [0, 1, 2] * WINDOWS if not slow else [0, 2] * WINDOWS + [1]
        turns: list[list[float]] = []
        while True:
            windows: list[list[float]] = [[], [], []]
            for place in contest.draw.sample(places, len(places)):
                windows[place].append(contest.call(players[place]).seconds)
            turns.append([min(each) for each in windows])
            gate = statistics.median(null for _, _, null in turns)
            speedup = timing.speedup_of([Pair(reference - gate, own - gate) for reference, own, _ in turns])
            if enough(contest, speedup, len(turns), began):
                break
        found = result(speedup.widened(timing.between(before, _scheduled(contest))))
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
    """Wall seconds of one call on a CPU, and processor seconds of the player in it. Errors as `measure`."""
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
