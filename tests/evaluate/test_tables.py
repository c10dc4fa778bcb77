"""The figures of a run on a terminal, and the rows of its summary."""

import csv
import io
import re

import pytest
from rich.console import Console
from test_metrics import BROKEN, RUN, A, ended, fast, played

from kevin_env.app.evaluate.figures import THRESHOLDS, Prices, RunMetrics
from kevin_env.app.evaluate.metrics import measure
from kevin_env.app.evaluate.tables import metric_tables, show_metrics, summary_row
from kevin_env.outcome import Correct
from kevin_env.pools.scripted import SCRIPTED_CPU, SCRIPTED_GPU
from kevin_env.record import Usage

NOISY = Correct(kind="too_noisy", message="Correct.")


@pytest.fixture(scope="module")
def run() -> RunMetrics:
    return measure(RUN, ratios={"L1_1": 0.5, "L1_2": 0.8})


def screen(metrics: RunMetrics, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), markup=False, highlight=False, emoji=False)
    show_metrics(console, metrics)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def large() -> RunMetrics:
    """As many columns and digits as there ever are."""
    tokens = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
    usage = Usage.model_validate(dict.fromkeys(tokens, 30_000))
    names = [f"L{1 + at % 10}_{at}" for at in range(20)]
    run = [
        played(name, sample, *[fast(12.34 + at, usage=usage)] * 12)
        for at, name in enumerate(names)
        for sample in range(16)
    ]
    prices = Prices(prompt=9, completion=90)
    return measure(run, ratios=dict.fromkeys(names, 1.0), prices=prices)


def test_every_figure_is_whole_in_80_columns() -> None:
    text = screen(large(), 80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "pass@16" in text
    assert "best@16" in text
    assert any(line.startswith("16 ") for line in text.splitlines())  # the last row of the curve


def test_figures_by_hand(run: RunMetrics) -> None:
    text = screen(run, 80)
    assert "3 problems, 6 trajectories, 18 turns" in text
    right = next(line for line in text.splitlines() if line.startswith("correct"))
    assert " ".join(right.split()) == "correct 83.3% [50.0, 100.0] 100.0% [100.0, 100.0]"
    for baseline, mean, best in (("eager", "1.12x", "1.67x"), ("torch.compile", "0.40x", "0.50x")):
        found = re.search(rf"^speedup over {re.escape(baseline)} .*", text, re.MULTILINE)
        assert found and mean in found[0] and best in found[0]


def test_intervals_of_turns_come_where_there_is_room(run: RunMetrics) -> None:
    narrow, wide = (screen(run, width) for width in (80, 220))
    start, end = "Turns, speedup over", "Spent"
    narrow, wide = (text[text.index(start) : text.index(end)] for text in (narrow, wide))
    assert "83.3%" in narrow and "83.3% [" not in narrow
    assert "83.3% [" in wide
    assert not any("…" in screen(run, width) for width in (40, 60, 70)), "no figure is cut off"


def test_what_is_missing_is_said(run: RunMetrics) -> None:
    text = screen(run, 120)
    assert "without a measured time (speedup 0): 1" in text
    assert "comparison to torch.compile, left out of its speedups: 1" in text
    assert "turns without token counts: 18" in text
    assert "comparison to eager" not in text
    cut = screen(measure([*A, played("L1_9", 0, fast(1.0), stop_reason="judge_error")]), 120)
    assert "ended as judge_error: 1" in cut
    turns = (fast(1.0, by_person=True), fast(1.0, truncated=True))
    helped = screen(measure([played("L1_9", 0, *turns)]), 120)
    assert "turns played by a person: 1" in helped
    assert "hit a token limit: 1" in helped


def test_a_run_of_one_problem_has_no_intervals() -> None:
    text = screen(measure([played("L1_9", 0, fast(1.0))]), 80)
    assert text.startswith("1 problem, 1 trajectory, 1 turn\n")
    assert "comparison to torch.compile" not in text
    assert "100.0%" in text
    assert "100.0% [" not in text
    assert "level 1" not in text


def test_the_best_is_of_as_many_samples_as_every_problem_has() -> None:
    text = screen(measure([*A, played("L1_9", 0, fast(1.0))]), 80)
    assert "best@1" in text
    assert "best@2" not in text
    assert any(line.startswith("2 ") for line in text.splitlines())  # the curve goes on


def groups(metrics: RunMetrics) -> dict[str, str]:
    """The rows of the table of groups by their first cell."""
    table = next(each for each in metric_tables(metrics) if "Groups" in str(each.title))
    rows = zip(*(map(str, column.cells) for column in table.columns), strict=True)
    return {name: re.sub(r" \[[^]]*\]", "", " ".join(filter(None, cells))) for name, *cells in rows}


def test_groups_are_levels_where_there_are_several_and_turns(run: RunMetrics) -> None:
    assert "Groups, speedup over eager" in screen(run, 80)
    rows = groups(run)
    assert list(rows) == ["all", "level 1", "level 2", "by turn 1", "by turn 2", "by turn 3"]
    # Fastest correct of level 1: A 2.0, 1.2; B 0, 0. Geometric mean: of A only.
    assert rows["level 1"] == "2 75.0% 100.0% 50.0% 25.0% 0.80x 1.55x 8.3%"
    # First turns: A 0, 0.8; B 0, 0; C 1.0, 0.5. Correct: 1 of 2, none, both.
    assert rows["by turn 1"] == "3 50.0% 16.7% 0.0% 0.38x 0.75x 0.0%"
    assert rows["by turn 3"].split()[:2] == rows["all"].split()[:2]
    assert rows["by turn 3"].split()[2:6] == rows["all"].split()[3:7]


def test_groups_are_models_and_languages_where_there_are_several() -> None:
    gpu, cpu = SCRIPTED_GPU, SCRIPTED_CPU
    rows = groups(
        measure(
            [
                played("L1_1", 0, fast(2.0), model="[b]m", hardware=gpu),
                played("L1_1", 1, fast(1.0), model="n", hardware=cpu),
                played(
                    "L1_1", 2, ended(BROKEN), model="n", hardware=cpu, config={"language": "any"}
                ),
            ]
        )
    )
    assert list(rows) == ["all", "[b]m", "n", "any", "cpp", "triton", "by turn 1"]
    assert rows["all"] == "1 66.7% 100.0% 66.7% 33.3% 1.00x 1.41x 0.0%"
    assert rows["n"].startswith("1 50.0% ") and rows["n"].endswith("50.0% 0.0% 0.50x 1.00x 0.0%")
    assert rows["triton"] == "1 100.0% 100.0% 100.0% 2.00x 2.00x 0.0%"


def test_the_hack_rate_is_defined_by_the_kinds_that_count() -> None:
    text = " ".join(screen(measure([played("L1_9", 0, fast(1.0))]), 80).split())
    assert "the category rules, or as early_done, inputs_changed, not_written, protocol" in text


def test_a_run_without_a_known_eager_time() -> None:
    run = [played("L1_1", 0, fast(1.5), config={"baseline": "compile"})]
    text = screen(measure(run), 80)
    assert "speedup over torch.compile" in text
    assert "Turns, speedup over torch.compile" in text


def test_a_run_of_which_no_time_is_known() -> None:
    # Recorded against different baselines, without a ratio.
    compiled = played("L1_1", 0, fast(1.5), config={"baseline": "compile"})
    run = [compiled, played("L1_1", 1, fast(1.5))]
    text = screen(measure(run), 80)
    assert "100.0%" in text
    assert "1.50x" not in text


def test_spent_shows_what_was_told() -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=500)
    run = [played("L1_1", 0, fast(1.0, usage=usage)), played("L1_2", 0, fast(1.0, usage=usage))]
    text = screen(measure(run, prices=Prices(prompt=1.0, completion=2.0)), 80)
    cost = next(line for line in text.splitlines() if line.startswith("cost"))
    assert cost.split() == ["cost", "0.0020", "0.0040"]
    assert "reasoning" not in text
    assert "2,000" in next(line for line in text.splitlines() if line.startswith("prompt tokens"))


def test_one_row_a_problem(run: RunMetrics) -> None:
    rows = [summary_row(each) for each in run.problems]
    assert [row["problem"] for row in rows] == ["L1_1", "L1_2", "L2_3"]
    a, b, c = rows
    assert (a["best_speedup_eager"], a["best_speedup_compile"]) == (2.0, 1.0)
    assert (a["best_turn"], a["best_sample"]) == (3, 0)
    assert (b["untimed"], b["best_turn"], b["avg_speedup_eager"]) == (1, None, 0)
    assert (c["fast_3_eager"], c["fast_3_compile"]) == (0.5, None)
    assert not any(isinstance(cell, (dict, list, tuple)) for row in rows for cell in row.values())


def test_the_figures_are_means_of_the_columns(run: RunMetrics) -> None:
    rows, overall = [summary_row(each) for each in run.problems], run.overall

    def mean(name: str):
        known = [row[name] for row in rows if row[name] is not None]
        return pytest.approx(sum(known) / len(known))

    assert overall.correct.avg.value == mean("correct")
    assert overall.rates.hack.value == mean("hack_rate")
    assert list(overall.speed) == ["eager", "compile"]
    for baseline, speed in overall.speed.items():
        assert speed.speedup.avg.value == mean(f"avg_speedup_{baseline}")
        assert speed.speedup.best[2].value == mean(f"best_speedup_{baseline}")
        for p in THRESHOLDS:
            assert speed.fast[p].avg.value == mean(f"fast_{p}_{baseline}")


def test_a_problem_of_another_cannot_write_formulas() -> None:
    [problem] = measure([played('=HYPERLINK("x")\x1b[2J', 0, ended(NOISY))]).problems
    row = summary_row(problem)
    file = io.StringIO()
    writer = csv.DictWriter(file, list(row))
    writer.writerow(row)
    assert file.getvalue().startswith("\"'=HYPERLINK")
    assert "\x1b" not in file.getvalue()
