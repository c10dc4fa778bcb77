"""The list of trajectories."""

from rich.text import Text

from kevin_env.app.replay.layout import list_height
from kevin_env.app.replay.pieces import (
    DIM,
    GAP,
    Column,
    ends,
    fit,
    heading,
    join,
    marks,
    rule,
    sparkline,
    speedup,
    table_line,
    text,
    that_fit,
)
from kevin_env.app.replay.rows import Row
from kevin_env.app.replay.state import Listing, Size, State

_NAMES = 44
"""Characters that problem and model have at least, with the gaps round them, where there is room
for that.
"""


def list_screen(state: State, size: Size) -> list[Text]:
    """Every line of the list but the foot."""
    listing, height = state.listing, list_height(size)
    columns = _columns(listing, size.columns - 2)
    top = min(max(listing.at - height // 2, 0), max(len(listing.shown) - height, 0))
    lines = [_title(state, size.columns), rule(size.columns), join("  ", heading(columns))]
    for at, number in enumerate(listing.shown[top : top + height], start=top):
        lines.append(_row(listing, number, columns, at == listing.at, size.columns))
    if not listing.shown:
        lines += [Text(), text(_nothing(listing), DIM)]
    lines += [Text()] * (3 + height - len(lines))
    return [*lines, _summary(listing, size.columns)]


def _title(state: State, width: int) -> Text:
    listing = state.listing
    many = (
        f"{len(listing.shown):,} of {len(listing.rows):,}"
        if listing.words
        else f"{len(listing.rows):,}"
    )
    left = join((" kevin-env replay  ", "bold"), (state.title, DIM))
    parts = [f"{many} trajectories" if len(listing.rows) != 1 else "1 trajectory"]
    if listing.progress < 1:
        parts.append(f"reading {listing.progress:.0%}")
    elif listing.query.text and listing.searched < len(listing.rows):
        parts.append(f"searching {listing.searched / len(listing.rows):.0%}")
    if listing.bad:
        parts.append(f"{len(listing.bad)} unreadable")
    return ends(left, text("  ".join(parts) + " ", DIM), width)


def _summary(listing: Listing, width: int) -> Text:
    """What the list is filtered and sorted by, and the id of the row under the cursor."""
    arrow = "↑" if listing.reverse else "↓"
    left = join(
        ("─ sorted by ", DIM),
        f"{listing.sort} {arrow}" if listing.sort != "file" or listing.reverse else "file order",
    )
    if listing.words:
        left = join(left, ("  filter ", DIM), listing.words)
    if listing.query.trouble:
        left = join(left, (f"  {listing.query.trouble}", "yellow"))
    if listing.marked:
        left = join(left, ("  marked ", DIM), listing.marked.problem)
    place = f"{listing.at + 1:,}/{len(listing.shown):,} " if listing.shown else ""
    left = join(left, " ")
    room = width - left.cell_len - len(place) - 1
    return fit(join(left, ("─" * max(room, 0) + " ", DIM), (place, DIM)), width)


def _nothing(listing: Listing) -> str:
    if listing.words:
        return "  nothing passes the filter; esc clears it"
    return "  reading ..." if listing.progress < 1 else "  no trajectory yet"


def _columns(listing: Listing, width: int) -> tuple[Column, ...]:
    """The columns there is room for; problem and model share what is left."""
    longest = max((len(listing.rows[n].marks) for n in listing.shown[:200]), default=4)
    turns = min(max(longest, 5), 8 if width < 100 else 16 if width < 160 else 32)
    fixed = [
        Column("turns", turns),
        Column("best", 7, "right"),
        Column("return", 7, "right"),
        Column("speedups", max(turns, 8)),
        Column("ended", 11),
        Column("id", 8),
        Column("recorded", 16),
        Column("device", 16),
    ]
    number = Column("#", max(len(f"{len(listing.rows):,}"), 3), "right")
    kept = that_fit(fixed, width - number.width - min(_NAMES, width * 3 // 5))
    left = width - sum(column.width + GAP for column in (number, *kept)) - GAP
    problem = max(min(left * 3 // 5, 48), 8)
    model = max(min(left - problem, 40), 6)
    return (number, Column("problem", problem), Column("model", model), *kept)


def _row(
    listing: Listing, number: int, columns: tuple[Column, ...], chosen: bool, width: int
) -> Text:
    row = listing.rows[number]
    line = table_line(columns, _cells(row, number, columns))
    sign = "●" if listing.marked and listing.marked.key == row.key else "▌" if chosen else " "
    if not chosen:
        return fit(join((sign, "cyan"), " ", line), width)
    return fit(Text(f"{sign} {line.plain}", "reverse", no_wrap=True, end=""), width)


def _cells(row: Row, number: int, columns: tuple[Column, ...]) -> dict[str, Text]:
    best, width = row.best, next((column.width for column in columns if column.name == "turns"), 0)
    return {
        "#": text(f"{number + 1:,}", DIM),
        "problem": text(row.problem),
        "model": text(row.model or "-", "" if row.model else DIM),
        "turns": marks(row.marks, width),
        "best": text(speedup(best) or "-", _best_style(best)),
        "return": text("-", DIM) if row.value is None else text(f"{row.value:.3f}"),
        "speedups": text(sparkline(row.speedups[-width:]), "cyan"),
        "ended": text(row.stop_reason or "running", DIM if row.stop_reason else "cyan"),
        "device": text(row.device, DIM),
        "recorded": text(row.created[:16].replace("T", " "), DIM),
        "id": text(row.episode_id[:8], DIM),
    }


def _best_style(best: float | None) -> str:
    if best is None:
        return DIM
    return "bold green" if best >= 1 else ""
