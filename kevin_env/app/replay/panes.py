"""The contents of a turn as lines of a given width: one function per pane."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

from rich.text import Text

from kevin_env.app.replay.code import Line, clean, code_lines, fenced, lines_of
from kevin_env.app.replay.diffs import diff_pane
from kevin_env.app.replay.numbers_panes import numbers_pane
from kevin_env.app.replay.pieces import DIM, Look, colored, join, paragraph, text, wrapped
from kevin_env.app.replay.reward import return_sum, score_sum
from kevin_env.outcome import CompileError, Ending, Incorrect, RuntimeFailure
from kevin_env.record import Message, Trajectory, Turn, best_turn
from kevin_env.render import speedup_text
from kevin_env.wording import profile_lines

Pane = Literal["kernel", "diff", "feedback", "prompt", "reply", "numbers"]
PANES: tuple[Pane, ...] = get_args(Pane)
_QUOTED = 8
"""Least characters of a quoted source line that is searched for."""


def pane_lines(episode: Trajectory, at: int, pane: Pane, look: Look) -> list[Text]:
    """All lines of a pane, for the turn at index `at`."""
    if at >= len(episode.turns):
        return [text("no turn has been judged yet", DIM)]
    if pane == "diff":
        return diff_pane(episode.turns, at, look)
    if pane == "numbers":
        return numbers_pane(episode, at, look.width)
    return list(_PANES[pane](episode.turns[at], look))


def facts(episode: Trajectory, more: Sequence[str] = ()) -> tuple[Text, Text]:
    """Model, device and turns of an episode, and its best speedup."""
    of = f" of {episode.config['max_turns']}" if "max_turns" in episode.config else ""
    ended = f"ended: {episode.stop_reason}" if episode.stop_reason else "running"
    words = [
        episode.model or "no model",
        episode.hardware.name if episode.hardware else "no device yet",
        f"{len(episode.turns)}{of} turns",
        *(more or [ended]),
    ]
    left, best = text(f" {'  ·  '.join(words)}", DIM), best_turn(episode.turns)
    if best is None:
        return left, text("no speedup yet " if not episode.stop_reason else "no speedup ", DIM)
    where = f" (turn {best.turn}{', noisy' * (best.kind == 'too_noisy')}) "
    return left, join(("best ", DIM), (speedup_text(best.paid_speedup), "bold green"), (where, DIM))


def about_lines(episode: Trajectory, at: int, width: int) -> list[Text]:
    """The text beside a kernel: score and return written out, the summary, the feedback."""
    turn = episode.turns[at]
    lines: list[Text] = []
    for words, style in (
        (f"score {turn.turn} = {score_sum(turn, episode)}", ""),
        (f"return {turn.turn} = {return_sum(episode, at)}", ""),
        (turn.summary, DIM),
    ):
        lines += [Text(), *paragraph(words, width, style)] if words else []
    return [*lines, Text(), *pane_lines(episode, at, "feedback", Look(width))]


def error_lines(code: str, outcome: Ending) -> tuple[int, ...]:
    """Lines of the code (from 1) that an error names by number or quotes in its diagnostics."""
    if outcome.line is not None:
        return (outcome.line,)
    where: dict[str, list[int]] = {}
    for number, line in enumerate(lines_of(code), start=1):
        where.setdefault(line.strip(), []).append(number)
    details = getattr(outcome, "details", "")
    quoted = [line.strip() for line in clean(details).split("\n") if len(line.strip()) >= _QUOTED]
    return tuple(dict.fromkeys(where[line][0] for line in quoted if len(where.get(line, [])) == 1))


def _kernel(turn: Turn, look: Look) -> tuple[Text, ...]:
    """The submission with line numbers; lines named by an error are marked, the error follows."""
    if turn.submission is None:
        return (
            *paragraph(f"no submission: {turn.outcome.message}", look.width, "magenta"),
            Text(),
            *prose(turn.reply, look),
        )
    code = turn.submission.code
    return _numbered(code, error_lines(code, turn.outcome), turn.outcome.message, look)


@functools.lru_cache(maxsize=32)
def _numbered(code: str, wrong: tuple[int, ...], note: str, look: Look) -> tuple[Text, ...]:
    lines = code_lines(code)
    digits = max(len(str(len(lines))), 3)
    done: list[Text] = []
    for number, line in enumerate(lines, start=1):
        marked = number in wrong
        head = (f"▶{number:>{digits}} ", "bold red") if marked else (f" {number:>{digits}} ", DIM)
        gutter = join(head, ("│ ", DIM))
        body = colored(line)
        if marked:
            body.stylize("bold")
        done += _row(join(gutter, body), look, " " * (digits + 2) + "│ ")
        if marked and number == wrong[-1]:
            below = paragraph(note, look.width - digits - 4, "red")
            done += (join((" " * (digits + 2) + "╰ ", "red"), each) for each in below)
    return tuple(done)


def _feedback(turn: Turn, look: Look) -> list[Text]:
    """The feedback to the policy, followed by further records of the judge."""
    done = list(prose(turn.feedback, look))
    outcome = turn.outcome
    facts: list[tuple[str, str]] = []
    if isinstance(outcome, RuntimeFailure | Incorrect) and outcome.input_set:
        facts.append(("input set", outcome.input_set))
    if isinstance(outcome, CompileError | RuntimeFailure) and outcome.details:
        facts.append(("details", outcome.details))
    facts += [("flag", flag) for flag in turn.flags]
    facts += [("profile", line) for line in (profile_lines(turn.profile) if turn.profile else ())]
    if turn.log.strip():
        facts.append(("log", turn.log))
    if facts:
        done += [Text(), *_section("on record", look.width)]
    for name, value in facts:
        body = _fact(name, value, Look(max(look.width - 11, 8), look.wrap))
        done += [join((f"{name if n == 0 else '':<11}", DIM), line) for n, line in enumerate(body)]
    return done


def chat_lines(messages: Sequence[Message], look: Look) -> list[Text]:
    """A chat as it is sent."""
    done: list[Text] = []
    for message in messages:
        done += [*_section(f"{message.role}, {len(message.content):,} characters", look.width)]
        done += [*prose(message.content, look), Text()]
    return done or [text("there are no messages", DIM)]


def _reply(turn: Turn, look: Look) -> list[Text]:
    """The raw reply with its reasoning."""
    done: list[Text] = []
    if turn.reasoning:
        size = f"{len(turn.reasoning):,} characters"
        hidden = ", hidden: r shows it" * (not look.reasoning)
        done += _section(f"reasoning, {size}{hidden}", look.width)
        done += paragraph(turn.reasoning, look.width, "italic") if look.reasoning else ()
        done.append(Text())
    by_hand, cut = " by hand" * turn.by_person, ", cut off" * turn.truncated
    done += _section(f"reply{by_hand}, {len(turn.reply):,} characters{cut}", look.width)
    return [*done, *prose(turn.reply, look)]


@functools.lru_cache(maxsize=64)
def prose(words: str, look: Look) -> tuple[Text, ...]:
    """Prose broken between words, fenced code with its colors."""
    return tuple(prose_lines(fenced(words), look))


def prose_lines(lines: Iterable[Line], look: Look) -> list[Text]:
    """As `prose`, of lines that are colored already."""
    done: list[Text] = []
    for line in lines:
        plain = len(line) == 1 and line[0][0] == ""
        if look.wrap and plain:
            done += paragraph(line[0][1], look.width)
        else:
            done += _row(colored(line), look, "")
    return done


def _row(line: Text, look: Look, hang: str) -> list[Text]:
    return wrapped(line, look.width, hang) if look.wrap else [line]


def _fact(name: str, value: str, look: Look) -> list[Text]:
    """Flags and lines of a profile are sentences; details and logs keep their lines."""
    if name in ("flag", "profile"):
        return paragraph(value, look.width)
    return [piece for line in lines_of(value) for piece in _row(text(line), look, "")]


def _section(title: str, width: int) -> list[Text]:
    return [join(("── ", DIM), (title, "bold"), (" " + "─" * max(width - len(title) - 4, 0), DIM))]


_Paint = Callable[[Turn, Look], "tuple[Text, ...] | list[Text]"]
_PANES: dict[Pane, _Paint] = {
    "kernel": _kernel,
    "feedback": _feedback,
    "prompt": lambda turn, look: chat_lines(turn.messages, look),
    "reply": _reply,
}
