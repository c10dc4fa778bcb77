"""`kevin-env report A B`."""

import json
from pathlib import Path
from typing import Any

import pytest
from trajectories import BROKEN, timed, trajectory, write
from typer.testing import CliRunner

from kevin_env.app.report.comparison import compare
from kevin_env.cli import app
from kevin_env.judge.api import DeviceInfo
from kevin_env.pools.scripted import SCRIPTED_CPU
from kevin_env.record import ProblemRef, Trajectory, Turn


def played(problem: str, id: str, turn: Turn, sha: str = "0") -> Trajectory:
    reference = ProblemRef(id=problem, sha256=sha, level=int(problem[1]))
    return trajectory(turn.model_copy(update={"turn": 1}), id=f"{problem}{id}", problem=reference)


def two_runs(folder: Path) -> tuple[Path, Path]:
    before = write(
        folder / "a.jsonl",
        *(played("L1_1", str(n), timed(1, 1.0)) for n in range(2)),
        played("L1_2", "0", BROKEN),
        played("L2_3", "0", timed(1, 0.5)),
        played("L9_9", "0", timed(1, 0.5)),
    )
    after = write(
        folder / "b.jsonl",
        *(played("L1_1", str(n), timed(1, 1.0 + n)) for n in range(2)),
        played("L1_2", "0", timed(1, 2.0), sha="1"),
        played("L2_3", "0", timed(1, 0.5)),
    )
    return before, after


def never(line: object) -> None:
    raise AssertionError(line)


def test_differences_per_problem_and_level_with_their_intervals(tmp_path: Path) -> None:
    found = compare(two_runs(tmp_path), never)
    first, second, third = found.problems
    speedup = first.changes["speedup"]
    assert (speedup.before, speedup.after, speedup.difference) == (1.0, 1.5, 0.5)
    # Of B's samples 1.0 and 2.0, a draw of two has a mean of 1.0, 1.5 or 2.0.
    assert (speedup.low, speedup.high) == (0.0, 1.0)
    assert (second.changes["correct"].difference, second.changes["correct"].low) == (1.0, None)
    assert third.changes["speedup"].difference == 0
    # Levels are means over problems, resampled over them.
    level, other = found.levels
    assert (level.name, level.problems) == ("level 1", 2)
    assert level.changes["speedup"].difference == pytest.approx((0.5 + 2.0) / 2)
    assert (level.changes["speedup"].low, level.changes["speedup"].high) == (0.5, 2.0)
    assert other.changes["speedup"].low is None
    assert found.overall.changes["correct"].difference == pytest.approx(1 / 3)
    assert (found.left_out, found.other_versions) == (("L9_9",), ("L1_2",))


def test_settings_that_differ_and_speedups_over_different_baselines(tmp_path: Path) -> None:
    def run(name: str, hardware: DeviceInfo | None, *configs: dict[str, Any]) -> Path:
        episodes = [played(f"L{n}_1", "0", timed(1, 2.0)) for n in (1, 2, 3)]
        for at, config in enumerate(configs):
            update = {"config": config, "hardware": hardware}
            episodes[at] = episodes[at].model_copy(update=update)
        return write(tmp_path / name, *episodes)

    kernels = [{"baseline": {"name": "Flash", "code": code}} for code in ("1", "2")]
    before = run("a.jsonl", SCRIPTED_CPU, {"baseline": "eager", "rules": "kernel"}, kernels[0], {})
    after = run("b.jsonl", None, {"baseline": "compile", "rules": "open"}, kernels[1], {})
    found = compare((before, after), never)
    assert found.settings == {
        "device": (SCRIPTED_CPU.name, "not recorded"),
        "rules": ("kernel", "open"),
        "baseline": ("eager, Flash", "compile, Flash"),
    }
    for measure, alike in (("speedup", None), ("fast_1", None), ("correct", 0)):
        changes = [each.changes[measure].difference for each in (*found.problems, found.overall)]
        assert changes == [alike, alike, 0, alike]
    printed = CliRunner().invoke(app, ["report", str(before), str(after)]).stdout
    assert "rules: kernel / open; baseline: eager, Flash / compile, Flash" in printed
    assert "no difference is shown for speedups over different baselines" in printed


def test_trajectories_that_have_not_ended_are_counted(tmp_path: Path) -> None:
    whole = played("L1_1", "0", timed(1, 2.0))
    cut = whole.model_copy(update={"stop_reason": None})
    before, after = write(tmp_path / "a.jsonl", cut), write(tmp_path / "b.jsonl", whole)
    assert compare((before, after), never).unfinished == (1, 0)
    printed = CliRunner().invoke(app, ["report", str(before), str(after)]).stdout
    assert "A: 1 trajectory has not ended" in printed


def test_software_of_which_both_have_another_version_is_named(tmp_path: Path) -> None:
    def run(name: str, **versions: str) -> Path:
        device = SCRIPTED_CPU.model_copy(update={"versions": versions})
        episode = played("L1_1", "0", timed(1, 2.0)).model_copy(update={"hardware": device})
        return write(tmp_path / name, episode)

    before = run("a.jsonl", torch="2.11", triton="3.6", cuda="13.0")
    after = run("b.jsonl", torch="2.13", triton="3.6", compiler="gcc")
    assert compare((before, after), never).settings == {"torch": ("2.11", "2.13")}


def test_it_is_printed_written_and_told_as_json(tmp_path: Path) -> None:
    words = ["report", *map(str, two_runs(tmp_path))]
    printed = CliRunner().invoke(app, words)
    assert printed.exit_code == 0
    assert max(map(len, printed.stdout.splitlines()[:20])) <= 80
    assert "+0.50 [+0.00, +1.00]" in printed.stdout
    told = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert told["problems"][0]["changes"]["speedup"]["difference"] == 0.5
    out = tmp_path / "c.md"
    assert CliRunner().invoke(app, [*words, "--out", str(out)]).exit_code == 0
    assert "| level 1 |" in out.read_text()


def test_runs_without_a_common_problem_are_one_clear_error(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", played("L1_1", "0", timed(1, 1.0)))
    other = write(tmp_path / "b.jsonl", played("L1_2", "0", timed(1, 1.0)))
    done = CliRunner().invoke(app, ["report", str(one), str(other)])
    assert (done.exit_code, "no problem in common" in done.stderr) == (2, True)
