"""What samples that are played side by side look like: on a screen, and as lines."""

from rich.text import Text

from kevin_env.app.play.batch import Batch, Sample
from kevin_env.app.replay.layout import LEAST
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    clock,
    ends,
    fit,
    heading,
    join,
    marks,
    progress,
    rule,
    sparkline,
    speedup,
    table_line,
    text,
    that_fit,
    verdict,
)
from kevin_env.app.replay.reward import returns_of
from kevin_env.app.replay.rows import MARKS
from kevin_env.app.replay.state import Size
from kevin_env.app.screen import best_turn
from kevin_env.record import Turn
from kevin_env.render import speedup_text

_VERDICT = 24
_AROUND = 6
"""Lines beside the rows: title, facts, bar, rule, heading, foot."""


def render(batch: Batch, size: Size) -> tuple[Text, ...]:
    """The screen: `size.rows` lines of `size.columns` characters. Nothing in them is markup or an
    escape code.
    """
    room = Size(max(size.columns, LEAST.columns), max(size.rows, LEAST.rows))
    width, inside = room.columns, room.rows - _AROUND
    columns = _columns(batch, width - 1)
    shown = min(len(batch.samples), inside if len(batch.samples) >= inside - 2 else inside - 2)
    top = min(batch.scroll, len(batch.samples) - shown)
    done = progress(batch.taken / max(batch.planned, 1), progress_text(batch), width)
    lines = [_title(batch, width), _facts(batch, width), done, rule(width)]
    lines += [join(" ", heading(columns))]
    lines += [
        join(" ", table_line(columns, _row(batch, each)))
        for each in batch.samples[top : top + shown]
    ]
    news = [] if shown + 2 > inside else [rule(width), *_news(batch, inside - shown - 1)]
    lines = [*lines, *news][: room.rows - 1]
    lines += [Text()] * (room.rows - 1 - len(lines))
    return tuple(fit(line, size.columns) for line in [*lines, _foot(batch)][: size.rows])


def progress_text(batch: Batch) -> str:
    """How far it is, how long it took, and how long it will take."""
    left = batch.left
    soon = "" if batch.over or left is None else f", about {clock(left)} left"
    return f"{batch.taken} of {batch.planned} turns, {clock(batch.now - batch.begun)} gone{soon}"


def best_text(batch: Batch) -> str:
    """The running best."""
    if batch.best is None:
        return "best: none timed yet"
    sample, turn = batch.best
    return f"best {speedup(turn.speedup)} (sample {sample.number}, turn {turn.turn})"


def turn_line(number: int, turn: Turn) -> Text:
    """One turn of a sample on one line."""
    told = speedup_text(turn.speedup, turn.speedup_interval)
    line = join(
        f"sample {number:<3} turn {turn.turn:<3} ", fit(verdict(turn.category, turn.kind), _VERDICT)
    )
    return join(
        line, f" score {turn.score:.2f}  ", (told or turn.outcome.message, "" if told else DIM)
    )


def _title(batch: Batch, width: int) -> Text:
    episode = batch.samples[0].episode
    many = f"  {len(batch.samples)} samples of {episode.config['max_turns']} turns"
    style = "bold green" if batch.best else DIM
    return ends(
        join((f" {episode.problem.id}", "bold"), many), text(f"{best_text(batch)} ", style), width
    )


def _facts(batch: Batch, width: int) -> Text:
    episode = next(
        (each.episode for each in batch.samples if each.episode.hardware), batch.samples[0].episode
    )
    device = episode.hardware
    where = f"{device.name} ({device.device})" if device else "the judge starts"
    return fit(text(f" {where}  ·  {episode.model}", DIM), width)


def _columns(batch: Batch, width: int) -> tuple[Column, ...]:
    most = max(int(each.episode.config["max_turns"]) for each in batch.samples)
    found = (
        Column("sample", 6, "right"),
        Column("turns", min(max(most, 5), 16)),
        Column("best", 7, "right"),
        Column("at", 4, "right"),
        Column("return", 6, "right"),
        Column("now", 34),
        Column("speedups", min(max(most, 8), 32)),
    )
    return that_fit(found, width)


def _row(batch: Batch, sample: Sample) -> dict[str, Text]:
    turns, best = sample.episode.turns, best_turn(sample.episode.turns)
    leads = batch.best is not None and batch.best[0] is sample
    returns = returns_of(sample.episode)
    return {
        "sample": text(str(sample.number), "bold" if leads else ""),
        "turns": marks("".join(MARKS[turn.category] for turn in turns), 16),
        "best": text(speedup(best.speedup) if best else "", "bold green" if leads else ""),
        "at": text(str(best.turn) if best else "", DIM),
        "return": text(f"{returns[0]:.2f}" if returns else "", DIM),
        "now": _now(sample, batch.now),
        "speedups": text(sparkline([turn.speedup for turn in turns][-32:]), "cyan"),
    }


def _now(sample: Sample, now: float) -> Text:
    """What goes on with it."""
    seconds, turn = f"{max(now - sample.since, 0.0):.0f} s", len(sample.episode.turns) + 1
    match sample.phase:
        case "replying":
            return text(f"turn {turn}: reply, {sample.letters:,} letters, {seconds}", "cyan")
        case "judging":
            return text(f"turn {turn}: {sample.stage or 'judge'}, {seconds}", "cyan")
        case "ended":
            return text(
                sample.trouble or sample.episode.stop_reason or "", "red" if sample.trouble else DIM
            )
        case _:
            return text(sample.phase, DIM)


def _news(batch: Batch, height: int) -> list[Text]:
    """The latest turns, the newest first."""
    return [
        join(" ", turn_line(number, turn)) for number, turn in list(reversed(batch.news))[:height]
    ]


def _foot(batch: Batch) -> Text:
    if batch.leaving and not batch.over:
        return text(
            " q again stops: turns that run are lost, every finished one is kept", "bold yellow"
        )
    end = "leave" if batch.over else "stop"
    return join((" ↑↓", "bold"), (" scroll   ", DIM), ("q", "bold"), (f" {end}", DIM))
