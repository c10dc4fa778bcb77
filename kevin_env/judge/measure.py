"""From a contest to an outcome with a speedup.

Gated calls decide, bursts refine: a burst shows several inputs at once, so it is believed no further below the shortest
queued or else gated call than an allowance, and no further below what its own whole windows say.
"""

from collections.abc import Iterator

from kevin_env.judge import timing
from kevin_env.judge.burst import Bursts, demand, first_look, may_have_bursts, open_wide, rehearse, take_bursts
from kevin_env.judge.contest import Contest
from kevin_env.judge.flags import flag
from kevin_env.judge.gate import Player
from kevin_env.judge.patience import Ran
from kevin_env.judge.queued import CALLS, ROUNDS, rehearse_queued
from kevin_env.judge.timing import Speedup
from kevin_env.judge.usage import descendants, run_time, scheduled
from kevin_env.outcome import Correct, Threads

LONG_ENOUGH = 0.5e-3
"""A call on a CPU that is longer than the null kernel's by this tells how many threads it keeps busy."""


def make_ready(contest: Contest) -> Iterator[None]:
    """Draws, and makes room for, what will probably be timed. After each step others may have the device.

    Raises:
        Wrong, Trouble, JudgeError: as `Contest.gated`.
    """
    yield from contest.warm()
    own, contest.foreseen = demand(contest)
    others = contest.turns(few=contest.foreseen > 1)[1]
    contest.hold.fit(contest.lately.beyond_null)
    rehearsed = contest.foreseen > 1 and not contest.lately.slow
    queued = may_have_bursts(contest)  # also where others hold the memory for them now
    own += (ROUNDS * CALLS + 1) * queued
    yield from contest.supply.fill(own + contest.foreseen * rehearsed, contest.foreseen, others)
    open_wide(contest, contest.foreseen, still=False)
    contest.unverified.make_room(own, sum(t.nbytes for t in contest.trial.outputs))
    if rehearsed:
        yield from rehearse(contest, contest.foreseen)
    if queued:
        rehearse_queued(contest)
        yield


def measure(contest: Contest, flags: list[str]) -> Correct:
    """Times a screened submission, to be told when `contest.unverified` has none left. Inside `contest.still`.

    Args:
        contest: The submission and its partners.
        flags: Gets a sentence for each thing that is odd about the times.

    Raises:
        Wrong, Trouble, JudgeError: as `Contest.gated`.
    """
    before = _scheduled(contest)
    contest.unverified.use_room()
    gated = first_look(contest)
    bursts = take_bursts(contest, gated, flags)
    if not _settled(contest, bursts):
        gated = contest.gated()
    if bursts is None:
        return _whole(result(gated, contest.seen.gate_cost, _between(contest, before)), contest)
    outcome = result(_refined(contest, bursts, flags), bursts.allowed(contest), _between(contest, before))
    return _whole(outcome, contest, bursts.queued)


def _settled(contest: Contest, bursts: Bursts | None) -> bool:
    """Whether more gated calls would change nothing: their interval is narrow, or they do not stand against a burst."""
    if bursts is None:
        return contest.seen.settled
    least = contest.seen.shortest - bursts.allowed(contest)
    return contest.seen.queued is not None or least <= timing.speedup_of(bursts.calls).submission


def _refined(contest: Contest, bursts: Bursts, flags: list[str]) -> Speedup:
    """The speedup from bursts, as far as they are believed."""
    plain, least = timing.speedup_of(bursts.calls), bursts.least(contest)
    if least > plain.submission:
        text = f"bursts tell {plain.submission * 1e6:.3g} us a call; what else was seen of it admits no less than"
        flags.append(flag("burst_bounded", f"{text} {least * 1e6:.3g} us"))
    return timing.speedup_of(timing.not_below(bursts.calls, least))


def _scheduled(contest: Contest) -> Ran | None:
    """What the processes that are timed on a CPU have run and waited so far."""
    if contest.trial.bench.device.type != "cpu":
        return None
    workers = (contest.trial.worker, contest.reference.worker, contest.null.worker)
    return scheduled([pid for worker in workers for pid in descendants(worker.pid)])


def _between(contest: Contest, before: Ran | None) -> float:
    """By how much judgements vary between each other, as in `timing.BETWEEN`."""
    now = _scheduled(contest)
    if before and now and now.waited - before.waited > timing.CROWDED * (now.ran - before.ran):
        return timing.BETWEEN_CROWDED
    return timing.BETWEEN[contest.trial.bench.device.type]


def result(speedup: Speedup, allowed: float, between: float) -> Correct:
    """The outcome that a speedup makes.

    Args:
        speedup: With the interval of this judgement alone.
        allowed: What the clock may not have seen of a call, in seconds.
        between: As of `Speedup.widened`.
    """
    speedup = speedup.widened(between)
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
        max_unseen_gain=timing.largest_unseen_gain(speedup.submission, allowed),
    )


def _whole(outcome: Correct, contest: Contest, queued: bool = False) -> Correct:
    """The outcome with what else is known of the submission's calls; `queued` as there."""
    threads = busy_threads(contest)
    contest.require_still()  # before others get the device
    return outcome.model_copy(update={
        "alone_seconds": max(contest.seen.shortest, timing.RESOLUTION), "threads": threads, "queued": queued,
    })  # fmt: skip


def busy_threads(contest: Contest) -> Threads | None:
    """How many threads the submission keeps busy on a CPU; None where calls are too short to tell.

    What serving a call takes besides is the same for the null kernel, and taken away.
    """
    info = contest.trial.bench.info
    if contest.trial.bench.device.type != "cpu":
        return None
    own, null = (_spent(contest, player) for player in (contest.trial.player, contest.null))
    if own[0] - null[0] < LONG_ENOUGH or own[1] <= null[1]:
        return None
    busy = (own[1] - null[1]) / (own[0] - null[0])
    return Threads(busy=min(busy, info.processors), of=info.processors)


def _spent(contest: Contest, player: Player) -> tuple[float, float]:
    """Wall seconds of one gated call on a CPU, and processor seconds of the player in it. Errors as `Contest.gated`."""
    own = player is contest.trial.player
    sets = contest.supply.take(1) if own else contest.supply.stock(1)
    processes = list(descendants(player.worker.pid))
    contest.require_still()
    before = run_time(processes)
    (answer,) = contest.passes(player, [sets])
    contest.require_still()
    processor = (run_time(processes) - before) / 1e9
    if own:
        contest.unverified.add(answer, sets)
    return answer.seconds, processor
