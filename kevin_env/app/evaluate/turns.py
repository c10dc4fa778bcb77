"""The figures of one turn of a group of problems."""

from collections.abc import Sequence

from kevin_env.app.evaluate.figures import BASELINES, AtTurn, Baseline, Rates, TurnSpeed
from kevin_env.app.evaluate.means import Means, Row
from kevin_env.app.evaluate.problems import RATES, mean, share
from kevin_env.app.evaluate.samples import Attempts, whole


def at_turn(problems: Sequence[Attempts], means: Means, turn: int) -> AtTurn:
    """What happened at a turn that at least one problem has, over those that do; and the best by
    then, over all.
    """
    played = [each.at(turn) for each in problems]
    paths = [each.paths(turn) for each in problems]
    rates = {
        name: means.of(share(counts(each.turn) for each in row) if row else None for row in played)
        for name, counts in RATES.items()
    }
    returns = [
        [sample.returns[turn - 1] for sample in each.samples if sample.lasts(turn)]
        for each in problems
    ]
    return AtTurn(
        turn=turn,
        turns=sum(map(len, played)),
        rates=Rates(**rates),
        score=means.of(mean(each.turn.score for each in row) if row else None for row in played),
        discounted_return=means.known(mean(row) if row else None for row in returns),
        speed=_speeds(
            means,
            {
                name: [whole(each.speedup(name) for each in row) for row in played]
                for name in BASELINES
            },
        ),
        best_correct=means.of(share(path.correct_by(turn) for path in row) for row in paths),
        best_speed=_speeds(
            means,
            {
                name: [whole(path.speedup(name, turn) for path in row) for row in paths]
                for name in BASELINES
            },
        ),
    )


def _speeds(means: Means, rows: dict[Baseline, list[Row]]) -> dict[Baseline, TurnSpeed]:
    speeds: dict[Baseline, TurnSpeed | None] = {
        baseline: means.turn_speed(of) for baseline, of in rows.items()
    }
    return {baseline: speed for baseline, speed in speeds.items() if speed}
