"""Filters and sorts the rows of a list."""

import functools
import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from kevin_env.app.errors import BadInput
from kevin_env.app.replay.library import Library, holds, in_file
from kevin_env.app.replay.rows import CATEGORIES, Row, natural

Sort = Literal["newest", "file", "problem", "model", "best", "return", "turns"]
SORTS: tuple[Sort, ...] = get_args(Sort)

HELP = (
    (
        "softmax",
        "problem, model, device or episode id contains the word; all words must match, "
        "-word must not",
    ),
    ("L3  level:3", "problems of level 3"),
    ("problem:norm  model:qwen  id:ddd3", "one of these holds the word"),
    ("category:compile", "a turn ended so: format, rules, compile, runtime, correctness, correct"),
    ("stop:max_turns", "how the episode ended; stop:running for one that has not"),
    ("speedup>1.5  return>=1  turns<4", "best speedup, return of the first turn, number of turns"),
    ("text:atomicAdd", "the record holds it anywhere: prompts, replies, feedback, logs"),
)
"""Every kind of word in a filter, with its meaning."""

_AT_ONCE = 16
"""Rows tested between checks of the clock."""
_NUMBERS: dict[str, Callable[[Row], float | None]] = {
    "speedup": lambda row: row.best,
    "return": lambda row: row.value,
    "turns": lambda row: len(row.marks),
    "level": lambda row: row.level,
}
_FIELDS: dict[str, Callable[[Row], str]] = {
    "problem": lambda row: row.problem,
    "model": lambda row: row.model,
    "id": lambda row: row.episode_id,
    "stop": lambda row: row.stop_reason or "running",
    "category": lambda row: " ".join(CATEGORIES[mark] for mark in row.marks),
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
    ":": lambda a, b: a == b,
}


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed filter."""

    tests: tuple[Callable[[Row], bool], ...] = ()
    """The quick ones first: `text:` reads the record."""
    trouble: str = ""
    """An error message about a word, which is then left out."""

    def matches(self, row: Row) -> bool:
        """Whether a row passes."""
        return all(test(row) for test in self.tests)


EVERYTHING = Query()


def read_query(words: str) -> Query:
    """Parses a filter while it is typed. Invalid words set `trouble` and raise no error."""
    tests: list[Callable[[Row], bool]] = []
    texts: list[Callable[[Row], bool]] = []
    trouble = ""
    for word in re.findall(r'(?:[^\s"]|"[^"]*"?)+', words):
        word = word.replace('"', "")
        if word.startswith("text:"):
            texts.append(functools.partial(holds, text=word.removeprefix("text:")))
        elif isinstance(test := _test(word), str):
            trouble = test
        else:
            tests.append(test)
    return Query((*tests, *texts), trouble)


def require_query(words: str) -> Query:
    """As `read_query`, for a command line.

    Raises:
        BadInput: if a word makes no sense.
    """
    query = read_query(words)
    if query.trouble:
        raise BadInput(f"--filter: {query.trouble}")
    return query


def ordered(rows: Iterable[Row], sort: Sort, reverse: bool = False) -> list[Row]:
    """Rows in order. Numbers are largest first; rows without one come last in both orders."""
    if sort == "file":
        found = sorted(rows, key=in_file)
        return found[::-1] if reverse else found
    if sort == "newest":
        earlier = sorted(sorted(rows, key=in_file), key=lambda row: row.created)
        return earlier if reverse else earlier[::-1]
    if sort in ("problem", "model"):
        return sorted(rows, key=lambda row: natural(_FIELDS[sort](row)), reverse=reverse)
    value = _NUMBERS["speedup" if sort == "best" else sort]
    known = {row: number for row in rows if (number := value(row)) is not None}
    rest = [row for row in rows if row not in known]
    return sorted(known, key=known.__getitem__, reverse=not reverse) + rest


class Listing:
    """The rows of a library that pass a filter, in an order. They are tested in slices."""

    def __init__(self, library: Library, words: str = "") -> None:
        self._library = library
        self.sort: Sort = "newest"
        self.reverse = False
        self.shown: list[Row] = []
        self.filter(words)

    def filter(self, words: str) -> None:
        """Filters by other words."""
        self.words, self.query = words, read_query(words)
        self._passed: list[Row] = []
        self.tested = 0
        """Rows that have been tested."""

    @property
    def progress(self) -> float:
        """The share of the rows that has been tested, 0 to 1."""
        rows = self._library.finished
        return self.tested / len(rows) if rows else 1.0

    def advance(self, seconds: float = math.inf) -> bool:
        """Tests rows for about that long. Returns whether there are more."""
        rows, end = self._library.finished, time.monotonic() + seconds
        if self.tested > len(rows):  # a file was replaced
            self.filter(self.words)
        if not self.query.tests:
            self._passed, self.tested = rows[:], len(rows)
        while self.tested < len(rows):
            batch = rows[self.tested : self.tested + _AT_ONCE]
            self._passed += filter(self.query.matches, batch)
            self.tested += len(batch)
            if time.monotonic() > end:
                break
        return self.tested < len(rows)

    def arrange(self) -> None:
        """Puts what has passed so far in order, as `shown`."""
        running = filter(self.query.matches, self._library.running)
        self.shown = ordered([*self._passed, *running], self.sort, self.reverse)

    def place(self, row: Row | None, otherwise: int) -> int:
        """The position of a row in the list."""
        keys = (n for n, each in enumerate(self.shown) if row and each.key == row.key)
        return next(keys, otherwise)


def _test(word: str) -> Callable[[Row], bool] | str:
    """The test of one word, or an error message."""
    if word.startswith("-") and len(word) > 1:
        test = _test(word[1:])
        return test if isinstance(test, str) else lambda row: not test(row)
    if found := re.fullmatch(r"L(\d+)", word):
        return lambda row: row.level == int(found[1])
    if found := re.fullmatch(r"(\w+)(>=|<=|>|<|=|:)(.*)", word):
        return _field_test(found[1], found[2], found[3])
    return lambda row: (
        word.lower() in f"{row.problem} {row.model} {row.episode_id} {row.device}".lower()
    )


def _field_test(name: str, sign: str, value: str) -> Callable[[Row], bool] | str:
    if name in _FIELDS and sign in ":=":
        return lambda row: value.lower() in _words(name, row)
    if name not in _NUMBERS:
        return f"{name}{sign} is unknown; use {' '.join([*_FIELDS, *_NUMBERS, 'text'])}"
    try:
        limit = float(value.removesuffix("x"))
    except ValueError:
        return f"{name}{sign} wants a number, such as {name}{sign}2"
    number, compare = _NUMBERS[name], _COMPARE[sign]
    return lambda row: (have := number(row)) is not None and compare(have, limit)


def _words(name: str, row: Row) -> str | list[str]:
    """The text of a field; categories are whole words: `correct` is not in `correctness`."""
    have = _FIELDS[name](row).lower()
    return have.split() if name == "category" else have
