"""The diff of two kernels as lines of a screen, in one column or in two."""

from rich.text import Text

from kevin_env.app.replay.code import code_lines
from kevin_env.app.replay.diffs import DiffLine, base_of, counts, diff_lines, in_pairs
from kevin_env.app.replay.pieces import DIM, coloured, fit, join, speedup, text, wrapped
from kevin_env.app.replay.state import Base, View
from kevin_env.record import Turn

_STYLES = {" ": "", "-": "red", "+": "green"}
_DIGITS = 4
_TWO_COLUMNS = 60
"""Width below which there is no room for two."""


def diff_pane(
    view: View, base: Base, other: View | None, width: int, side_by_side: bool
) -> list[Text]:
    """What changed from another turn's kernel to this one's."""
    name, before = base_of(view, base, other)
    turn = view.turn
    if turn is None or turn.submission is None:
        return [text("this turn has no submission", DIM)]
    if before is None or before.submission is None:
        return [
            text(
                f"nothing to compare with: {name} has no submission; d chooses another, D a turn",
                DIM,
            )
        ]
    lines = diff_lines(before.submission.code, turn.submission.code)
    if not lines:
        return [_title(name, before, turn, lines), Text(), text("the two are the same", DIM)]
    body = (
        _two(lines, turn, width)
        if side_by_side and width >= _TWO_COLUMNS
        else _one(lines, turn, width)
    )
    return [_title(name, before, turn, lines), Text(), *body]


def _title(name: str, before: Turn, turn: Turn, lines: tuple[DiffLine, ...]) -> Text:
    added, removed = counts(lines)
    return join(
        (f"{name}: turn {before.turn} ", "bold"),
        (f"{before.category} {speedup(before.speedup)}".rstrip(), DIM),
        (f"  →  turn {turn.turn} ", "bold"),
        (f"{turn.category} {speedup(turn.speedup)}".rstrip(), DIM),
        ("   +" + str(added), "green"),
        (" -" + str(removed), "red"),
    )


def _one(lines: tuple[DiffLine, ...], turn: Turn, width: int) -> list[Text]:
    done: list[Text] = []
    hang = " " * (2 * _DIGITS + 2) + "│ "
    for line in lines:
        if line.tag == "gap":
            done.append(_gap(line, width))
            continue
        numbers = f"{line.old or '':>{_DIGITS}} {line.new or '':>{_DIGITS}} "
        sign = (f"{line.tag} ", f"bold {_STYLES[line.tag]}")
        done += wrapped(join((numbers, DIM), sign, _body(line, turn)), width, hang)
    return done


def _two(lines: tuple[DiffLine, ...], turn: Turn, width: int) -> list[Text]:
    half = (width - 3) // 2
    done: list[Text] = []
    for pair in in_pairs(lines):
        if pair.old is not None and pair.old.tag == "gap":
            done.append(_gap(pair.old, width))
            continue
        left, right = _half(pair.old, "old", turn, half), _half(pair.new, "new", turn, half)
        height = max(len(left), len(right))
        for part in (left, right):
            part.extend([Text(" " * half)] * (height - len(part)))
        done += [join(a, (" │ ", DIM), b) for a, b in zip(left, right, strict=True)]
    return done


def _half(line: DiffLine | None, side: str, turn: Turn, width: int) -> list[Text]:
    if line is None:
        return []
    number = line.old if side == "old" else line.new
    whole = join(
        (f"{number or '':>{_DIGITS}} ", DIM),
        (f"{line.tag} ", f"bold {_STYLES[line.tag]}"),
        _body(line, turn),
    )
    return [fit(each, width) for each in wrapped(whole, width, " " * (_DIGITS + 3))]


def _body(line: DiffLine, turn: Turn) -> Text:
    """The line itself: what changed in the colour of the change, the rest as code."""
    if line.tag != " ":
        return text(line.text, _STYLES[line.tag])
    code = code_lines(turn.submission.code) if turn.submission else ()
    number = (line.new or 1) - 1
    return coloured(code[number]) if number < len(code) else text(line.text)


def _gap(line: DiffLine, width: int) -> Text:
    return fit(text(f"{'':>{2 * _DIGITS + 2}}⋯ {line.text}", DIM), width)
