"""Many samples of one problem, played side by side: what is known of them, as frozen values."""

from dataclasses import dataclass, replace

from kevin_env.app.play.events import (
    Asked,
    Ended,
    Event,
    Failed,
    Heard,
    Judged,
    Replied,
    Resized,
    StageBegan,
    Started,
)
from kevin_env.app.play.events import Ticked as Ticked
from kevin_env.app.play.state import Phase
from kevin_env.app.replay.state import USUAL, Size
from kevin_env.app.screen import best_turn
from kevin_env.judge.api import Stage
from kevin_env.record import Trajectory, Turn

_NEWS = 100
"""Turns that are remembered as the latest ones."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the episodes."""

    number: int
    """Which sample it is, from 0."""
    episode: Trajectory
    phase: Phase = "starting"
    since: float = 0.0
    """When the phase began."""
    letters: int = 0
    """Characters of the running reply so far."""
    stage: Stage | None = None
    trouble: str = ""

    @property
    def planned(self) -> int:
        """Turns that it will have taken at its end."""
        taken = len(self.episode.turns)
        return taken if self.phase == "ended" else max(int(self.episode.config["max_turns"]), taken)


@dataclass(frozen=True, slots=True)
class Batch:
    """All of them. Times are seconds of one clock."""

    samples: tuple[Sample, ...]
    begun: float = 0.0
    now: float = 0.0
    before: int = 0
    """Turns that were there at the beginning."""
    news: tuple[tuple[int, Turn], ...] = ()
    """The latest turns with the numbers of their samples, the newest last."""
    size: Size = USUAL
    scroll: int = 0
    leaving: bool = False
    """Whether leaving was asked for once."""
    done: bool = False

    @property
    def taken(self) -> int:
        """Turns that have been judged."""
        return sum(len(sample.episode.turns) for sample in self.samples)

    @property
    def planned(self) -> int:
        """Turns that there will be at the end."""
        return sum(sample.planned for sample in self.samples)

    @property
    def over(self) -> bool:
        """Whether every sample has ended."""
        return all(sample.phase == "ended" for sample in self.samples)

    @property
    def left(self) -> float | None:
        """Seconds until the end, if turns go on to take as long as they did; None before the first
        one.
        """
        new = self.taken - self.before
        return (self.now - self.begun) / new * (self.planned - self.taken) if new else None

    @property
    def best(self) -> tuple[Sample, Turn] | None:
        """The fastest correct turn of all, and whose it is."""
        found = [
            (sample, turn) for sample in self.samples if (turn := best_turn(sample.episode.turns))
        ]
        return max(found, key=lambda pair: pair[1].speedup or 0.0, default=None)


def batch_of(episodes: tuple[Trajectory, ...], now: float) -> Batch:
    """The beginning; episodes without the number of a sample are counted."""
    numbers = [count if each.sample is None else each.sample for count, each in enumerate(episodes)]
    samples = tuple(
        Sample(number, each, since=now) for number, each in zip(numbers, episodes, strict=True)
    )
    return Batch(samples, begun=now, now=now, before=sum(len(each.turns) for each in episodes))


def reduce(batch: Batch, event: Event | str, at: int = 0) -> Batch:
    """The batch after a key (a string), or an event; `at` is the index of the sample that it
    happened to.
    """
    if isinstance(event, str):
        return _pressed(batch, event)
    if isinstance(event, Ticked):
        return replace(batch, now=event.at)
    if isinstance(event, Resized):
        return replace(batch, size=event.size)
    before = batch.samples[at]
    after = _happened(before, event, batch.now)
    new = after.episode.turns[len(before.episode.turns) :] if isinstance(event, Judged) else ()
    samples = (*batch.samples[:at], after, *batch.samples[at + 1 :])
    return replace(
        batch, samples=samples, news=(*batch.news, *((after.number, turn) for turn in new))[-_NEWS:]
    )


def _happened(sample: Sample, event: Event, now: float) -> Sample:
    match event:
        case Started(episode) | Judged(episode) | Ended(episode):
            phase: Phase = "ended" if episode.stop_reason else "waiting"
            return replace(sample, episode=episode, phase=phase, since=now, stage=None)
        case Asked(_, at):
            return replace(sample, phase="replying", since=at, letters=0)
        case Heard(text):
            return replace(sample, letters=sample.letters + len(text))
        case Replied(_, at):
            return replace(sample, phase="judging", since=at)
        case StageBegan(stage):
            return replace(sample, stage=stage)
        case Failed(message):
            return replace(sample, trouble=message)
        case _:
            return sample


def _pressed(batch: Batch, key: str) -> Batch:
    if key == "ctrl-c" or (key in ("q", "Q") and (batch.leaving or batch.over)):
        return replace(batch, done=True)
    by = {"j": 1, "down": 1, "k": -1, "up": -1, "pgdn": 10, "pgup": -10}.get(key, 0)
    scroll = min(max(batch.scroll + by, 0), len(batch.samples) - 1)
    return replace(batch, leaving=key in ("q", "Q"), scroll=scroll)
