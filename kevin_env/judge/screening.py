"""Whether a submission is right in a case: its answers on fresh inputs of several distributions."""

import math

from kevin_env.judge.compare.check import unwritten
from kevin_env.judge.handshake.handshake import Answer, Drawn
from kevin_env.judge.inputs.cases import plan
from kevin_env.judge.rejected import Rejected
from kevin_env.judge.trial import Trial
from kevin_env.outcome import Incorrect

LEAST_SETS, LEAST_EACH = 5, 2
"""Input sets over all cases, and of each case, that a much slower submission is called on."""
SECONDS = 0.1
"""Seconds of calls in a case after which a much slower submission is called on fewer sets, and the
most that are queued together.
"""
VALUES = ("values", "not_finite")
"""Kinds of wrong answers that differ in the values of tensors."""


def screen(trial: Trial, timed: bool) -> None:
    """Calls a submission in the case that it has entered, and compares every answer.

    One whose launches are played is called several times in one order after its first call.

    Args:
        trial: Of the submission.
        timed: Whether it is timed in this case.

    Raises:
        Rejected: if a call fails, or its answer is wrong.
    """
    planned, checked = _planned(trial, timed), 0
    while planned and not _seen_enough(trial, checked):
        together = trial.together(SECONDS)
        sets = [trial.draw(distribution) for distribution in planned[:together]]
        for answer, drawn in zip(trial.call_in_turn(sets), sets, strict=True):
            wrong = trial.check(answer, drawn)
            if wrong is not None and wrong.kind in VALUES:
                wrong = _classified(trial, answer, wrong, drawn)
            if wrong is not None:
                paired = trial.paired if wrong.kind in VALUES else ()
                raise Rejected(wrong.model_copy(update={"paired": paired}))
        del planned[:together]
        checked += len(sets)


def _planned(trial: Trial, timed: bool) -> list[str]:
    """The distributions that the submission is called on in this case, in a secret order."""
    name, pace, only = trial.case.name, trial.bench.pace, len(trial.cases) == 1
    planned = plan(trial.distributions, timed, trial.secret, name, pace, only)
    if len(planned) == 1 and trial.options.rules != "open":
        planned *= 2  # it may behave differently while it is recorded
    return planned


def _seen_enough(trial: Trial, checked: int) -> bool:
    """Whether a much slower submission has been called often enough in this case."""
    least = max(LEAST_EACH, math.ceil(LEAST_SETS / len(trial.cases)))
    return trial.much_slower and checked >= least and checked * trial.seconds > SECONDS


def _classified(trial: Trial, answer: Answer, wrong: Incorrect, drawn: Drawn) -> Incorrect | None:
    """Why values are wrong: written late, nondeterministic or uninitialized; None if they pass.

    On a GPU the inputs of the second call are complete before it begins. If its answer is right,
    the submission uses streams that do not wait for torch's current one, and is called this way
    from then on.
    """
    if trial.changes(answer, drawn):
        text = "the call was reported finished while its output was still being written"
        return wrong.model_copy(update={"kind": "early_done", "message": text})
    ordered = not trial.player.unordered
    try:  # only after a wrong answer, as a submission could recognize this call
        second = trial.call_showing_unwritten(drawn)
    except Rejected as rejected:  # such as a kernel that reads an uninitialized index
        if rejected.outcome.kind == "protocol":
            raise
        return wrong
    again = trial.check(second, drawn)
    if again is not None:
        return unwritten(answer, second, again) or wrong
    if ordered and trial.player.unordered:
        return None
    text = f"{wrong.message}; a second call on the same inputs was correct"
    return wrong.model_copy(update={"kind": "nondeterministic", "message": text})
