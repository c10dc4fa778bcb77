"""What is said about an episode and its turns, as blocks that every medium draws in its own way.

`panes` draws them as lines of a terminal, `markdown` as Markdown, `page` as HTML, which compares
kernels itself. Texts of a model or a compiler are still raw here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from kevin_env.advantage import returns_of, settings_of
from kevin_env.app.replay.code import clean
from kevin_env.app.replay.diffs import DiffLine, diff_lines
from kevin_env.judge.verdict import quoted_lines
from kevin_env.outcome import (
    CompileError,
    Correct,
    Ending,
    Incorrect,
    RuntimeFailure,
    speedup_of,
)
from kevin_env.record import Message, Trajectory, Turn, best_turn
from kevin_env.render import ending_text, speedup_text
from kevin_env.score import CORRECT_SHARE, at_bound
from kevin_env.wording import decimal, duration, profile_lines

Pane = Literal["kernel", "diff", "feedback", "prompt", "reply", "numbers"]
PANES: tuple[Pane, ...] = get_args(Pane)
STAGES = ("queue", "build", "load", "verify", "time")
Base = Literal["previous", "best", "other"] | int
"""What a diff starts from: the turn before, the fastest turn before, the other trajectory, or a
turn by its number.
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading."""

    title: str


@dataclass(frozen=True, slots=True)
class Prose:
    """Text, with code in fences."""

    text: str
    style: Literal["", "wrong", "aside", "thought"] = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with short values."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel, with the numbers of wrong lines (from 1) and the error at the last of them."""

    code: str
    wrong: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes from one kernel to another."""

    name: str
    """Why it starts from `before`, such as `previous`; empty for a turn that was asked for."""
    before: Turn
    after: Turn

    @property
    def codes(self) -> tuple[str, str]:
        """The two kernels."""
        old, new = (
            each.submission.code if each.submission else "" for each in (self.before, self.after)
        )
        return old, new

    @property
    def lines(self) -> tuple[DiffLine, ...]:
        """Empty if the two are the same."""
        return diff_lines(*self.codes)


@dataclass(frozen=True, slots=True)
class Log:
    """Output or diagnostics, whose lines matter."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Seconds by stage, and their sum."""

    seconds: tuple[tuple[str, float], ...]
    total: float


Block = Section | Prose | Facts | Code | Diff | Log | Bars


def episode_facts(episode: Trajectory) -> dict[str, str]:
    """Where an episode comes from, and how it ended."""
    hardware = episode.hardware
    return {
        "problem": episode.problem.id,
        "model": episode.player,
        "device": f"{hardware.name} ({hardware.device})" if hardware else "not recorded",
        "created": episode.created,
        "ended": episode.stop_reason or "not yet",
        **({"judged again": ending_text(episode.final)} if episode.final else {}),
    }


def pane_blocks(
    episode: Trajectory, at: int, pane: Pane, base: Base = "previous", other: Turn | None = None
) -> tuple[Block, ...]:
    """A pane of the turn at index `at`; a diff starts from `base`."""
    if pane == "numbers":
        return tuple(_numbers(episode, at))
    if pane == "diff":
        return (_diff(episode.turns, at, base, other),)
    return tuple(_BLOCKS[pane](episode.turns[at]))


def chat_blocks(messages: Sequence[Message]) -> Iterator[Block]:
    """A chat as it is sent."""
    for message in messages:
        yield Section(f"{message.role}, {len(message.content):,} characters")
        yield Prose(message.content)
    if not messages:
        yield Prose("there are no messages", "aside")


def _kernel(turn: Turn) -> Iterator[Block]:
    if turn.submission is None:
        yield Prose(f"no submission: {turn.outcome.message}", "wrong")
        yield Prose(turn.reply)
    else:
        code = turn.submission.code
        yield Code(code, error_lines(code, turn.outcome), turn.outcome.message)


def _diff(turns: Sequence[Turn], at: int, base: Base, other: Turn | None) -> Diff | Prose:
    earlier, name, before = [turn for turn in turns[:at] if turn.submission], "", None
    if base == "other" and other is not None:
        name, before = "the other trajectory", other
    elif isinstance(base, int):
        before = next((turn for turn in turns if turn.turn == base), None)
    elif base == "best":
        name, before = "best before", best_turn(earlier)
    else:
        name, before = "previous", earlier[-1] if earlier else None
    if turns[at].submission is None:
        return Prose("this turn has no submission", "aside")
    if before is None or before.submission is None:
        said = f"{name or 'that turn'} has no submission; d chooses another, D a turn"
        return Prose(f"nothing to compare with: {said}", "aside")
    return Diff(name, before, turns[at])


def _feedback(turn: Turn) -> Iterator[Block]:
    """The feedback to the policy, followed by further records of the judge."""
    yield Prose(turn.feedback)
    outcome, facts = turn.outcome, list[tuple[str, str]]()
    if isinstance(outcome, RuntimeFailure | Incorrect) and outcome.input_set:
        facts.append(("input set", outcome.input_set))
    facts += [("flag", flag) for flag in turn.flags]
    facts += [("profile", line) for line in (profile_lines(turn.profile) if turn.profile else ())]
    logs = [Log("log", turn.log)] if turn.log.strip() else []
    if isinstance(outcome, CompileError | RuntimeFailure) and outcome.details:
        logs.insert(0, Log("details", outcome.details))
    if facts or logs:
        yield Section("on record")
    if facts:
        yield Facts(tuple(facts))
    yield from logs


def _reply(turn: Turn) -> Iterator[Block]:
    if turn.reasoning:
        yield Section(f"reasoning, {len(turn.reasoning):,} characters")
        yield Prose(turn.reasoning, "thought")
    by_hand, cut = " by hand" * turn.by_person, ", cut off" * turn.truncated
    yield Section(f"reply{by_hand}, {len(turn.reply):,} characters{cut}")
    yield Prose(turn.reply)


def _numbers(episode: Trajectory, at: int) -> Iterator[Block]:
    """Score and return written out, measurements, seconds of each stage, and tokens."""
    turn = episode.turns[at]
    yield Section(f"score of turn {turn.turn}")
    yield Prose(f"s_{turn.turn} = {score_sum(turn, episode)}")
    yield Section(f"return of turn {turn.turn}")
    yield Prose(f"R_{turn.turn} = {return_sum(episode, at)}")
    yield Prose(formula(episode), "aside")
    if facts := measured(turn):
        yield Section("measured")
        yield Facts(tuple(facts.items()))
    stages = ((name, getattr(turn.seconds, name)) for name in (*STAGES, "profile"))
    yield Section("seconds")
    yield Bars(tuple((name, value) for name, value in stages if value), turn.seconds.total)
    used = turn.usage.model_dump(exclude_none=True) if turn.usage else {}
    if used:
        yield Section("tokens")
        yield Facts(tuple((name.replace("_", " "), f"{n:,}") for name, n in used.items()))


_BLOCKS: dict[Pane, Callable[[Turn], Iterator[Block]]] = {
    "kernel": _kernel,
    "feedback": _feedback,
    "prompt": lambda turn: chat_blocks(turn.messages),
    "reply": _reply,
}


def error_lines(code: str, outcome: Ending) -> tuple[int, ...]:
    """Lines of the code (from 1) that an error names by number, or a compiler quotes."""
    named = () if outcome.line is None else (outcome.line,)
    if isinstance(outcome, CompileError) and outcome.kind == "compiler":
        return quoted_lines(clean(outcome.details), code) or named
    return named


def measured(turn: Turn) -> dict[str, str]:
    """The measurements of a correct kernel as text; empty for any other."""
    outcome = turn.outcome
    if not isinstance(outcome, Correct):
        return {}
    low_high, calls = (
        outcome.speedup_interval,
        (
            None if seconds is None else f"{duration(seconds)} a call"
            for seconds in (outcome.reference_seconds, outcome.submission_seconds)
        ),
    )
    facts = {
        "speedup": speedup_text(outcome.speedup) or "too noisy to tell",
        "interval": f"{low_high[0]:.3f}x to {low_high[1]:.3f}x (95 %)" if low_high else "-",
        "baseline": next(calls) or "-",
        "submission": next(calls) or "-",
    }
    if (held := outcome.roofline) is not None:
        peak = decimal(held.memory_ceiling, "B/s")
        top = decimal(held.compute_ceiling, "FLOP/s")
        facts |= {
            "roofline": f"{held.fraction:.1%} of {duration(held.seconds)}, bound by {held.bound}",
            "bandwidth": f"{decimal(held.bandwidth, 'B/s')} of {peak}, {decimal(held.bytes, 'B')}",
            "rate": f"{decimal(held.rate, 'FLOP/s')} of {top}, {decimal(held.flops, 'FLOP')}",
        }
    if outcome.threads is not None:
        facts["threads"] = f"{outcome.threads.busy:.1f} of {outcome.threads.of} busy"
    return facts


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
    what = "speedup" if paid == outcome.speedup else "paid speedup"
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
