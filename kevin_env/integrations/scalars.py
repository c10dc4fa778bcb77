"""Scalars of a batch of episodes and of a run, for experiment trackers.

Names follow kernel-rl's groups, and are the same where they mean the same. Of a batch:

    Reward, RewardComponents   scores and returns of turns, and mean of the score's components
    Kernel, Counts             outcomes of the turns, as shares and as numbers
    MultiTurn                  trajectories: solved, best speedup, improved; and each turn
    PerLevel/LevelN            the most important of these by level
    Batch, Timing              size of the batch, and seconds of each stage of judging
    Advantage                  of the training samples

Signs of an unstable training are `Kernel/NotOkayRate`, reasoning that does not begin with "Okay"
(Kevin's), `Kernel/RepetitionRate`, replies that end in a loop, `Kernel/RepeatedRate`, code that the
episode had before, and `Reward/GroupStdDev`, the spread of returns within a problem, near 0.

Speedups are medians, also where less is paid (`kevin_env.score.at_bound`).

Of a run: `Eval`, its metrics without intervals.
"""

import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, geometric_mean, pstdev

from kevin_env.advantage import returns_of, settings_of
from kevin_env.app.evaluate.figures import Baseline, Figure, GroupMetrics, RunMetrics
from kevin_env.app.evaluate.samples import RATES, mean
from kevin_env.record import Trajectory, Turn, best_speedup
from kevin_env.score import SCORES, at_bound
from kevin_env.turn import as_scored

Named = Iterator[tuple[str, float]]
Figures = Iterator[tuple[str, Figure | None]]

_FOLDERS: dict[Baseline, str] = {"eager": "", "compile": "AgainstCompile/"}
_ROUNDING = 1e-9
_STAGES = ("queue", "build", "load", "verify", "time", "total")


def batch_scalars(
    episodes: Sequence[Trajectory], advantages: Sequence[float] = ()
) -> dict[str, float]:
    """The scalars of one batch by name, such as `Kernel/CorrectRate`, without undefined ones.

    Args:
        episodes: of any number of problems, weighted equally. Those without a turn are skipped.
        advantages: one per training sample, as the training loop computed them.

    Raises:
        ValueError: if no episode has a turn.
    """
    episodes = [each for each in episodes if each.turns]
    turns = [turn for each in episodes for turn in each.turns]
    if not turns:
        raise ValueError("there is nothing to log: no episode has a turn")
    values = dict(_rewards(episodes, turns))
    values |= {f"Kernel/{name}": value for name, value in _kernels(turns)}
    values["Kernel/RepeatedRate"] = mean(
        again for each in episodes for again in _repeated(each.turns)
    )
    values |= {f"MultiTurn/{name}": value for name, value in _multi_turn(episodes)}
    values |= {f"Counts/{name}": value for name, value in _counts(turns)}
    values |= {f"Batch/{name}": value for name, value in _batch(episodes, turns)}
    values |= {f"Timing/{name}": value for name, value in _timing(turns)}
    values |= {f"Advantage/{name}": value for name, value in _spread(advantages)}
    return values | dict(_levels(episodes))


def batch_distributions(
    episodes: Sequence[Trajectory], advantages: Sequence[float] = ()
) -> dict[str, list[float]]:
    """All finite values of a batch by name, such as `Distributions/Rewards`, for histograms."""
    turns = [turn for each in episodes for turn in each.turns]
    values = {
        "Rewards": [turn.score for turn in turns],
        "Returns": [value for each in episodes for value in returns_of(each)],
        "Speedups": _speedups(turns),
        "Advantages": list(filter(math.isfinite, advantages)),
    }
    return {f"Distributions/{name}": each for name, each in values.items() if each}


def run_scalars(metrics: RunMetrics) -> dict[str, float]:
    """The figures of a run by name, such as `Eval/Pass@16` or `Eval/Level2/CorrectRate`."""
    values = dict(_group("Eval", metrics.overall))
    for level, group in metrics.levels.items():
        values |= dict(_group(f"Eval/Level{level}", group))
    return values


def camel(name: str) -> str:
    """`learning_rate` as `LearningRate`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_\s]+", name))


def _rewards(episodes: Sequence[Trajectory], turns: Sequence[Turn]) -> Named:
    for name, value in _spread([turn.score for turn in turns]):
        yield f"Reward/{name}", value
    for name, value in _spread([value for each in episodes for value in returns_of(each)]):
        yield f"Reward/Discounted{name}", value
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        groups[episode.problem.id] += returns_of(episode)
    yield "Reward/GroupStdDev", fmean(map(pstdev, groups.values()))
    paid: defaultdict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        for turn in episode.turns:
            for name, value in _parts(turn, episode):
                paid[name].append(value)
    for name, values in sorted(paid.items()):
        yield f"RewardComponents/{name.capitalize()}", math.fsum(values) / len(turns)


def _parts(turn: Turn, episode: Trajectory) -> tuple[tuple[str, float], ...]:
    """The components of a turn's score; `repeated` is what earlier turns have been paid.

    Empty for scores that are not built in.
    """
    score = SCORES.get(str(episode.config.get("score", "kevin")))
    if score is None:
        return ()
    settings = settings_of(episode)
    outcome = at_bound(turn.outcome, settings.bound)
    scored = as_scored(outcome, turn.submission, turn.as_reply(), settings.tokenizer)
    unpaid = turn.score - score(scored)
    return score.parts(scored) + ((("repeated", unpaid),) if abs(unpaid) > _ROUNDING else ())


def _kernels(turns: Sequence[Turn]) -> Named:
    for name, counts in RATES.items():
        yield f"{name.capitalize()}Rate", mean(map(counts, turns))
    yield "FailureRate", mean(turn.category != "correct" for turn in turns)
    yield "TruncatedRate", mean(turn.truncated for turn in turns)
    yield "RepetitionRate", mean(map(_is_loop, turns))
    if thoughts := [turn.reasoning for turn in turns if turn.reasoning]:
        yield "NotOkayRate", mean(not text.startswith("Okay") for text in thoughts)
    if speedups := _speedups(turns):
        yield "MeanSpeedup", fmean(speedups)
        yield "GeometricMeanSpeedup", geometric_mean(speedups)


def _is_loop(turn: Turn) -> bool:
    """Whether the reply ends in a loop: kernels compress to a fourth, not to a tenth."""
    end = f"{turn.reasoning or ''}{turn.reply}"[-2000:].encode()
    return len(end) >= 500 and 10 * len(zlib.compress(end)) < len(end)


def _repeated(turns: Sequence[Turn]) -> Iterator[bool]:
    """For each turn of an episode, whether an earlier one submitted the same code."""
    seen = set[bytes]()
    for turn in turns:
        yield turn.meaning in seen
        seen |= {turn.meaning} if turn.meaning else set()


def _multi_turn(episodes: Sequence[Trajectory]) -> Named:
    right = [[turn.category == "correct" for turn in each.turns] for each in episodes]
    best = [best_speedup(each.turns) for each in episodes]
    yield "SuccessRate", mean(map(any, right))
    yield "FailureRate", mean(not any(each) for each in right)
    yield "AvgTurns", fmean(map(len, right))
    yield "MaxCorrect", max(map(sum, right))
    yield "BestSpeedupMean", fmean(best)
    yield "BestSpeedupMax", max(best)
    yield "ImprovedRate", mean(not each[0] and each[-1] for each in right)
    yield "RegressedRate", mean(each[0] and not each[-1] for each in right)
    for at in range(max(map(len, right))):
        turns = [each.turns[at] for each in episodes if len(each.turns) > at]
        for name, counts in RATES.items():
            yield f"Turn{at + 1}/{name.capitalize()}Rate", mean(map(counts, turns))
        yield f"Turn{at + 1}/RewardMean", fmean(turn.score for turn in turns)
        yield (
            f"Turn{at + 1}/DiscountedMean",
            fmean(returns_of(each)[at] for each in episodes if len(each.turns) > at),
        )


def _counts(turns: Sequence[Turn]) -> Named:
    for name, counts in RATES.items():
        yield name.capitalize(), sum(map(counts, turns))
    yield "Judged", sum(turn.seconds.total > 0 for turn in turns)
    for category, number in sorted(Counter(turn.category for turn in turns).items()):
        yield f"Category/{category}", number


def _batch(episodes: Sequence[Trajectory], turns: Sequence[Turn]) -> Named:
    yield "NumGroups", len({each.problem.id for each in episodes})
    yield "NumTrajectories", len(episodes)
    yield "TotalSteps", len(turns)
    usages = [turn.usage for turn in turns if turn.usage]
    if usages:
        yield "PromptTokens", sum(each.prompt_tokens or 0 for each in usages)
        yield "CompletionTokens", sum(each.completion_tokens or 0 for each in usages)


def _timing(turns: Sequence[Turn]) -> Named:
    """Of the turns that reached the judge, in seconds."""
    judged = [turn.seconds for turn in turns if turn.seconds.total]
    for stage in _STAGES if judged else ():
        values = [getattr(seconds, stage) for seconds in judged]
        yield f"{stage.capitalize()}Mean", fmean(values)
        yield f"{stage.capitalize()}Max", max(values)


def _levels(episodes: Sequence[Trajectory]) -> Named:
    by_level: defaultdict[int, list[Trajectory]] = defaultdict(list)
    for each in episodes:
        if each.problem.level is not None:
            by_level[each.problem.level].append(each)
    for level, some in sorted(by_level.items()):
        turns = [turn for each in some for turn in each.turns]
        yield f"PerLevel/Level{level}/RewardMean", fmean(turn.score for turn in turns)
        for name, counts in RATES.items():
            yield f"PerLevel/Level{level}/{name.capitalize()}Rate", mean(map(counts, turns))
        best = [best_speedup(each.turns) for each in some]
        yield f"PerLevel/Level{level}/BestSpeedupMean", fmean(best)


def _group(prefix: str, group: GroupMetrics) -> Named:
    for part in (_shares(group), _speeds(group), _each_turn(group)):
        for name, figure in part:
            if figure is not None:
                yield f"{prefix}/{name}", figure.value
    for name, total in group.totals.model_dump(exclude_none=True).items():
        yield f"{prefix}/{camel(name)}", total / group.counts.trajectories


def _shares(group: GroupMetrics) -> Figures:
    yield "FormatRate", group.rates.format
    yield "CompileRate", group.rates.compile
    yield "TurnCorrectRate", group.rates.correct
    yield "HackRate", group.rates.hack
    yield "CorrectRate", group.correct.avg
    for k, figure in group.correct.best.items():
        yield f"Pass@{k}", figure
    yield "ImprovedRate", group.change.improved
    yield "RegressedRate", group.change.regressed
    yield "RewardMean", group.score
    yield "DiscountedMean", group.discounted_return


def _speeds(group: GroupMetrics) -> Figures:
    """Those against eager have plain names."""
    for baseline, speed in group.speed.items():
        folder = _FOLDERS[baseline]
        yield f"{folder}AvgSpeedup", speed.speedup.avg
        yield f"{folder}GeometricMeanSpeedup", speed.geomean_solved
        for k, figure in speed.speedup.best.items():
            yield f"{folder}BestSpeedup@{k}", figure
        for p, curve in speed.fast.items():
            yield f"{folder}Fast{p}x", curve.avg
            if curve.best:
                k = max(curve.best)
                yield f"{folder}Fast{p}x@{k}", curve.best[k]


def _each_turn(group: GroupMetrics) -> Figures:
    for each in group.by_turn:
        yield f"Turn{each.turn}/CorrectRate", each.rates.correct
        yield f"Turn{each.turn}/CompileRate", each.rates.compile
        yield f"Turn{each.turn}/HackRate", each.rates.hack
        yield f"BestByTurn{each.turn}/CorrectRate", each.best_correct
        for baseline, speed in each.best_speed.items():
            yield f"BestByTurn{each.turn}/{_FOLDERS[baseline]}AvgSpeedup", speed.speedup
            yield f"BestByTurn{each.turn}/{_FOLDERS[baseline]}Fast1x", speed.fast["1"]


def _speedups(turns: Sequence[Turn]) -> list[float]:
    return [turn.speedup for turn in turns if turn.speedup is not None]


def _spread(values: Sequence[float]) -> Named:
    if values:
        middle = fmean(values)
        yield "Mean", middle
        # The standard library's raises for values that are not finite, as in a diverging training.
        yield "StdDev", math.sqrt(fmean((value - middle) * (value - middle) for value in values))
        yield "Min", min(values)
        yield "Max", max(values)
