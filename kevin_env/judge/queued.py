"""Queued calls of the submission: one input each, and no launch in their windows.

A burst is believed no further below the shorter ones of them than an allowance, as it shows several inputs at once,
which might be computed together. On hosts that launch slowly gated calls are far above what the device needs. Whose
calls can be queued has its bursts queued, too.
"""

import random
from contextlib import suppress

from kevin_env.judge import timing
from kevin_env.judge.contest import Contest
from kevin_env.judge.gated import Gated
from kevin_env.judge.nullkernel import LONG_CALL
from kevin_env.judge.partners import PARTNER_SECONDS, ours
from kevin_env.judge.pauses import asleep
from kevin_env.judge.trial import Trial
from kevin_env.judge.trouble import Failed
from kevin_env.judge.word import Word
from kevin_env.judge.worker import Worker

SHORT = 0.2
"""The quantile of either side's windows that tells a call: of six the second. On an H200 it was -79 to 67 us off in 37
judgements of a softmax of 262 us, with a standard deviation of 24; by the shortest -81 to 82 us, and 29."""
ROUNDS, CALLS, LONG_CALLS = 2, 3, 2
"""Of each side, so many calls a round. Fewer of long calls, which vary by less; one was too few, as on an H200 a
product of 1.3 ms was told 6 % too long in one judgement of ten."""


def rehearse_queued(contest: Contest) -> None:
    """Lends words where the submission's calls can be queued. Its first one is checked at once. Outside `still`.

    Not those of a submission that waits for the device in its calls, or whose kernels run beside torch's current
    stream and so before the inputs are there: on the partners', which lie in the inbox by then. That is none of its
    faults, so that this call is not judged.

    Raises:
        Trouble, JudgeError: as in `Contest.gated`, but for a call that raises.
    """
    trial, sets = contest.trial, contest.supply.take(1)
    with ours(), asleep(trial.worker):
        contest.words = _of_partners(contest)
    if not contest.words:
        return
    own = _lent(trial, trial.worker, trial.limits.first)
    try:
        answer = trial.run(sets, word=own)
    except Failed:
        return
    if answer.queued and trial.check(answer, sets) is None:
        contest.words[trial.worker] = own


def take_queued(contest: Contest) -> None:
    """Notes how long a call is by the submission's queued ones. Inside `contest.still`; errors as `Contest.gated`.

    As among gated calls, one of each round is on inputs of any distribution, and does not count. Called again, it looks
    longer: of either side all windows count that were seen.
    """
    if contest.trial.worker not in contest.words:
        return
    with contest.as_long(contest.seen.turns[-1].hold) as hold:
        own, null = _windows(contest)
    if own and null:
        seen = contest.seen
        seen.queued_windows += own
        seen.queued_gates += [window - hold for window in null]
        seen.queued = queued_call(seen)


def _windows(contest: Contest) -> tuple[list[float], list[float]]:
    """Of queued calls, of the submission and of the null kernel; none where one was not queued after all. Seconds."""
    players = contest.trial.player, contest.null
    windows: tuple[list[float], list[float]] = [], []
    for side in random.SystemRandom().sample((0, 1) * ROUNDS, 2 * ROUNDS):
        word = contest.words[players[side].worker]
        answers = contest.answers(players[side], LONG_CALLS if contest.seen.shortest > LONG_CALL else CALLS, word)
        if not all(answer.queued for answer in answers):
            return [], []
        windows[side].extend(answer.seconds for answer in answers if answer.steady)
    return windows


def queued_call(seen: Gated) -> float | None:
    """How long a call of the submission is by its shorter queued ones; None where they say nothing.

    It does not where it is longer than gated calls were: where kernels on several streams wait for each other, the
    device, which others share, goes on with the next after milliseconds. A queued gate is not believed to cost more
    than a gated one, which has a launch in it.
    """
    window, gate = (timing.low_quantile(each, SHORT) for each in (seen.queued_windows, seen.queued_gates))
    call = max(window - min(gate, *seen.gates), timing.RESOLUTION)
    return min(call, seen.shortest) if call <= seen.shortest + seen.blur + timing.QUEUED_ALLOWANCE else None


def _of_partners(contest: Contest) -> dict[Worker, Word]:
    """Words of those whose calls can be queued; of nobody where the null kernel's cannot: not every driver waits."""
    words: dict[Worker, Word] = {}
    for player in (contest.null, contest.reference):
        word = _lent(contest.trial, player.worker, PARTNER_SECONDS)
        with suppress(Failed):
            if contest.trial.gate.call(player, contest.supply.stock(1), PARTNER_SECONDS, word=word).queued:
                words[player.worker] = word
        if not words:
            break
    return words


def _lent(trial: Trial, worker: Worker, timeout: float) -> Word:
    word = Word(worker, trial.bench.device, timeout)
    trial.kept.append(word)
    return word
