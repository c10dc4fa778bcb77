"""Timed turns on the roofline's plane."""

from collections.abc import Iterable

from kevin_env.app.report.values import Mark, Place, RooflinePlot
from kevin_env.roofline import Roofline

MOST_MARKS = 2000
"""Turns that a plot shows."""

Held = tuple[str, int, Place, Roofline]
"""A problem, a turn of it from 1, where that is shown, and its time against the roofline."""


def roofline_plot(turns: Iterable[Held]) -> RooflinePlot | None:
    """The plot of turns; None where there is nothing to show."""
    found, left_out = [], 0
    for problem, turn, place, held in turns:
        if held.intensity and held.rate and len(found) < MOST_MARKS:
            found.append((held, _mark(problem, turn, place, held, held.intensity)))
        else:
            left_out += 1
    if not found:
        return None
    memory, compute = (
        [getattr(held, name) for held, _ in found] for name in ("memory_ceiling", "compute_ceiling")
    )
    return RooflinePlot(
        marks=tuple(mark for _, mark in found),
        memory=(min(memory), max(memory)),
        compute=(min(compute), max(compute)),
        left_out=left_out,
    )


def _mark(problem: str, turn: int, place: Place, held: Roofline, intensity: float) -> Mark:
    return Mark(
        problem=problem,
        turn=turn,
        place=place,
        intensity=intensity,
        rate=held.rate,
        bandwidth=held.bandwidth,
        fraction=held.fraction,
        bound=held.bound,
    )
