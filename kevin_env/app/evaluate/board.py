"""The progress of an evaluation, from the reports of its run."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from rich.console import Console
from rich.text import Text

from kevin_env.app.evaluate.folder import Compared
from kevin_env.app.evaluate.search import AGAIN, Shape
from kevin_env.app.replay.pieces import (
    DIM,
    Column,
    join,
    overview,
    pace_text,
    progress,
    sparkline,
    text,
    that_fit,
)
from kevin_env.app.screen import best_text, counted, on_whole_screen, turn_line
from kevin_env.record import StopReason, Trajectory, Turn, best_turn
from kevin_env.render import speedup_text

_NEWS = 50

Waiting = Literal["model", "judge"]


@dataclass
class Lane:
    """One problem."""

    id: str
    turns: list[int]
    """Number of turns of each sample."""
    over: set[int] = field(default_factory=set[int])
    """The samples that have ended, or are left to a later run."""
    waiting: dict[int, Waiting] = field(default_factory=dict[int, Waiting])
    """What each running sample is waiting for: the model or the judge."""
    correct: bool = False
    best: tuple[int, Turn] | None = None
    """The sample and the turn of the fastest correct kernel so far."""
    failed: bool = False

    def left(self, shape: Shape) -> int:
        """Maximum number of turns still to be played."""
        return sum(
            shape.turns - turns
            for sample, turns in enumerate(self.turns)
            if sample not in self.over
        )

    @property
    def speedup(self) -> float:
        """That of the fastest kernel; 0 without one."""
        return self.best[1].speedup or 0.0 if self.best else 0.0

    def see(self, sample: int, turns: Sequence[Turn]) -> None:
        """Updates `correct` and `best` from judged turns."""
        self.correct |= any(turn.category == "correct" for turn in turns)
        found = best_turn(turns)
        if found is not None and (found.speedup or 0.0) > self.speedup:
            self.best = sample, found


class Board:
    """The state of an evaluation. A run reports to it, from several threads.

    Args:
        title: what is evaluated, in a few words.
        problems: their ids.
        shape: of the search.
        recorded: the episodes that there are, in order.
        say: called with each event as a line, the turns so far, and whether the line should stay
            on the screen.
        clock: seconds.
    """

    def __init__(
        self,
        title: str,
        problems: Sequence[str],
        shape: Shape,
        recorded: Sequence[Trajectory] = (),
        say: Callable[[Text, bool], None] = lambda line, keep: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.shape, self.clock = title, shape, clock
        self.lanes = {problem: Lane(problem, [0] * shape.samples) for problem in problems}
        self.started = clock()
        self.played = 0
        """Turns of this process."""
        self.news: deque[Text] = deque(maxlen=_NEWS)
        self._say = say
        self.lock = threading.RLock()
        """Held while the board changes; readers must hold it too."""
        for each in recorded:
            self._know(each)

    @property
    def planned(self) -> int:
        """Maximum total number of turns."""
        return self.done + self.left

    @property
    def done(self) -> int:
        """Turns played by any process."""
        return sum(sum(lane.turns) for lane in self.lanes.values())

    @property
    def left(self) -> int:
        """Maximum number of turns still to be played."""
        return sum(lane.left(self.shape) for lane in self.lanes.values() if not lane.failed)

    def waits(self, problem: str, sample: int, target: Waiting | None) -> None:
        """A sample waits for the model or the judge; None: it is not being played."""
        with self.lock:
            lane = self.lanes[problem]
            lane.waiting.pop(sample, None)
            if target:
                lane.waiting[sample] = target

    def turn(self, problem: str, sample: int, turn: Turn) -> None:
        """A turn has been judged."""
        with self.lock:
            lane = self.lanes[problem]
            lane.turns[sample] = turn.turn
            lane.see(sample, (turn,))
            self.played += 1
        self._add_news(
            join(_sample_text(problem, sample), f" turn {turn.turn}  ", turn_line(turn, why=True))
        )

    def ended(self, problem: str, sample: int, turns: int, reason: StopReason, why: str) -> None:
        """A sample ended after `turns` turns. `why` is empty unless something failed."""
        with self.lock:
            self.lanes[problem].over.add(sample)
        if why:
            said = (f"ended after {counted(turns, 'turn')}, {reason}: {why}", "red")
            self._add_news(join(_sample_text(problem, sample), " ", said), keep=True)

    def compared(self, problem: str, compared: Compared) -> None:
        """torch.compile has been compared with eager."""
        result = (
            f"takes {compared.ratio:.2f} of eager's time"
            if compared.ratio
            else f"could not be timed: {compared.why}"
        )
        self._add_news(join((problem, "bold"), f"  torch.compile {result}"))

    def failed(self, problem: str, why: str) -> None:
        """A problem cannot be played at all."""
        with self.lock:
            self.lanes[problem].failed = True
        self.trouble(f"{problem} cannot be played: {why}")

    def trouble(self, message: str) -> None:
        """Anything else that the user should know."""
        self._add_news(text(message, "bold red"), keep=True)

    def retries(self, why: str, seconds: float) -> None:
        """A request has failed and will be sent again."""
        self._add_news(text(f"trying again in {seconds:.0f} s: {why}", "yellow"))

    def _know(self, episode: Trajectory) -> None:
        lane = self.lanes.get(episode.problem.id)
        if lane is None or episode.sample is None or episode.sample >= self.shape.samples:
            return
        lane.turns[episode.sample] = len(episode.turns)
        lane.see(episode.sample, episode.turns)
        if episode.stop_reason not in AGAIN and episode.stop_reason != "pruned":
            lane.over.add(episode.sample)

    def _add_news(self, line: Text, keep: bool = False) -> None:
        with self.lock:
            self.news.append(line)
            line = join((f"{self.done:>{len(str(self.planned))}}/{self.planned}  ", DIM), line)
        # Without the lock: a screen that is drawing has the console's lock and waits for this one.
        self._say(line, keep)


def picture(board: Board, width: int, height: int) -> Text:
    """Progress, problems and the latest turns as lines; those being played come first."""
    with board.lock:
        every = list(board.lanes.values())
        head = (
            text(f" {board.title}", "bold"),
            progress(board.done / max(board.planned, 1), progress_text(board), width),
            text(f" {_samples_text(every)}"),
            text(f" {best_of(board)}", "green"),
        )
        busy_first = sorted(every, key=lambda lane: not lane.waiting)
        rows = [_lane_cells(board, lane) for lane in busy_first]
        news = list(reversed(board.news))
    return overview(head, _lane_columns(board, width - 2), rows, news, (width, height))


@contextmanager
def shown(board: Board, console: Console) -> Iterator[None]:
    """Shows the board on the whole screen while the block runs."""
    with on_whole_screen(console, lambda: picture(board, console.width, console.height)):
        yield


def progress_text(board: Board) -> str:
    """Turns played so far, the rate, and the remaining time."""
    return pace_text(board.done, board.planned, board.played, board.clock() - board.started)


def best_of(board: Board) -> str:
    """Number of solved problems, and the fastest kernel of all."""
    lanes = list(board.lanes.values())
    solved = f"{sum(lane.correct for lane in lanes)} of {len(lanes)} problems solved"
    lane = max(lanes, key=lambda lane: lane.speedup, default=None)
    if lane is None or lane.best is None:
        return solved
    sample, turn = lane.best
    return f"{solved}, {best_text(turn, f'{lane.id}, sample {sample}, ')}"


def _sample_text(problem: str, sample: int) -> Text:
    return join((problem, "bold"), f" sample {sample}")


def _samples_text(lanes: Sequence[Lane]) -> str:
    """Numbers of ended samples, and of samples that wait for the model or the judge."""
    over, of = (sum(len(lane.over) for lane in lanes), sum(len(lane.turns) for lane in lanes))
    waiting = _waiting([each for lane in lanes for each in lane.waiting.values()], " for the ")
    return f"{over} of {of} samples ended" + (f"; waiting: {waiting}" if waiting else "")


def _waiting(targets: Sequence[Waiting], link: str = " ") -> str:
    counts = (
        f"{targets.count(each)}{link}{each}" for each in ("model", "judge") if each in targets
    )
    return ", ".join(counts)


def _lane_columns(board: Board, width: int) -> tuple[Column, ...]:
    """The columns that fit."""
    longest = max(map(len, board.lanes), default=0)
    found = (
        Column("problem", min(max(longest, 7), max(width - 46, 16))),
        Column("ended", 7, "right"),
        Column("best", 7, "right"),
        Column("found in", 18),
        Column("turns", min(max(board.shape.samples, 5), 32)),
        Column("waiting for", 16),
    )
    return that_fit(found, width)


def _lane_cells(board: Board, lane: Lane) -> dict[str, Text]:
    """A row of the table of problems."""
    (sample, best), waiting = lane.best or (0, None), list(lane.waiting.values())
    known = "correct" if lane.correct else ""
    turns = sparkline([each or None for each in lane.turns[:32]], board.shape.turns)
    return {
        "problem": text(lane.id, "red" if lane.failed else "bold" if waiting else ""),
        "ended": text(f"{len(lane.over)}/{len(lane.turns)}", DIM),
        "best": text(speedup_text(best.speedup) if best else known, "green"),
        "found in": text(f"sample {sample}, turn {best.turn}" if best else "", DIM),
        "turns": text(turns, "cyan"),
        "waiting for": text(_waiting(waiting), DIM),
    }
