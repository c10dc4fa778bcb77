"""How scores and returns are computed, written out."""

from kevin_env.advantage import returns_of, settings_of
from kevin_env.outcome import Correct, speedup_of
from kevin_env.record import Trajectory, Turn
from kevin_env.score import CORRECT_SHARE, at_bound


def score_sum(turn: Turn, episode: Trajectory) -> str:
    """A turn's score as the sum it is, such as `0.3 correct + 1.942 speedup = 2.242`."""
    outcome, name = turn.outcome, str(episode.config.get("score", "kevin"))
    if not isinstance(outcome, Correct):
        unpaid = "" if turn.score else f"  ({outcome.category}: nothing is paid)"
        return f"{turn.score:.3f}{unpaid}"
    if (before := turn.full_score - turn.score) > 0:
        return f"{turn.full_score:.3f} - {before:.3f} paid before = {turn.score:.3f}"
    paid = speedup_of(at_bound(outcome, settings_of(episode).bound))
    if name != "kevin" or abs(turn.score - CORRECT_SHARE - (paid or 0.0)) > 1e-6:
        return f"{turn.score:.3f}  (score {name})"
    if paid is None:
        return f"{CORRECT_SHARE} correct = {turn.score:.3f}  (it has no speedup)"
    what = "speedup" if paid == outcome.speedup else f"of its speedup of {outcome.speedup:.3f}"
    return f"{CORRECT_SHARE} correct + {paid:.3f} {what} = {turn.score:.3f}"


def return_sum(episode: Trajectory, at: int) -> str:
    """The return of the turn at index `at` written out, such as `0.541 + 0.4 * 2.242 = 1.438`."""
    settings, scores = settings_of(episode), [turn.score for turn in episode.turns[at:]]
    terms = [_term(settings.gamma, power, score) for power, score in enumerate(scores)]
    value = returns_of(episode)[at]
    if settings.returns == "max":
        return f"max({', '.join(terms)}) = {value:.3f}"
    return f"{' + '.join(terms)} = {value:.3f}" if len(terms) > 1 else f"{value:.3f}"


def formula(episode: Trajectory) -> str:
    """The definition of a return in this episode."""
    settings = settings_of(episode)
    sign = "max" if settings.returns == "max" else "sum"
    return f"R_t = {sign} over i >= t of gamma^(i-t) s_i,  gamma = {settings.gamma:g}"


def _term(gamma: float, power: int, score: float) -> str:
    if power == 0:
        return f"{score:.3f}"
    return f"{gamma:g}{f'^{power}' if power > 1 else ''} * {score:.3f}"
