"""Figures of a recorded run, such as that of `examples/train_trl_tiny.py --record FILE`.

python benchmarks/recorded.py FILE [--json benchmarks/results/trl_tiny.h200.json]
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from resultfile import Row, device_name, plain_row, write_result

from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories


def figures(episodes: list[Trajectory]) -> Iterator[Row]:
    """Episodes, turns by outcome, scores of the first and the last half, and seconds of the judge
    for a turn.
    """
    turns = [turn for episode in episodes for turn in episode.turns]
    half = len(episodes) // 2
    yield plain_row("episodes", len(episodes))
    yield plain_row("turns", len(turns))
    for outcome, count in Counter(
        f"{turn.outcome.category}/{turn.outcome.kind}" for turn in turns
    ).most_common():
        yield plain_row(f"turns that ended {outcome}", count)
    for name, part in (("first", episodes[:half]), ("second", episodes[half:])):
        scores = [turn.score for episode in part for turn in episode.turns]
        yield plain_row(
            f"score of a turn, {name} half", statistics.mean(scores), "score", len(scores)
        )
    seconds = [turn.seconds.total for turn in turns if turn.secret]
    if seconds:
        yield plain_row("judge's seconds for a turn", statistics.median(seconds), "s", len(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    episodes = [each for each in read_trajectories(options.file) if isinstance(each, Trajectory)]
    device = next((each.hardware for each in episodes if each.hardware), None)
    if device is None:
        raise SystemExit(f"{options.file}: nothing in it was judged")
    rows = list(figures(episodes))
    for row in rows:
        print(f"{row['name']:45} {row['value']:.4g} {row['unit']}")
    write_result(options.json, device_name(device), device.versions, rows)


if __name__ == "__main__":
    main()
