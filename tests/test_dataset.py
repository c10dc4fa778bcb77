"""`kevin-env export-problems`, read back as trainers and the Hub read it."""

from pathlib import Path

import pytest
import yaml
from episodes import SOURCE
from typer.testing import CliRunner

from kevin_env.cli import app
from kevin_env.problem import load_problem, shown_source
from kevin_env.selection import our_sides

parquet = pytest.importorskip("pyarrow.parquet")


def export(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["export-problems", *map(str, words)])
    assert result.stdout == ""
    return result.stderr


def test_a_file_has_the_training_problems_as_rows_of_verl_and_skyrl(tmp_path: Path) -> None:
    out = tmp_path / "kevin.parquet"
    said = export("--out", out)
    rows = parquet.read_table(out).to_pylist()
    assert said == f"wrote {len(rows)} problems to {out}\n"
    assert [row["problem"] for row in rows] == [
        id for id, side in our_sides().items() if side == "train"
    ]
    row = rows[0]
    assert row["prompt"] == [{"role": "user", "content": row["problem"]}]
    assert (row["agent_name"], row["env_class"], row["level"]) == ("kevin", "kevin", 1)
    assert row["source"] == shown_source(load_problem(row["problem"]))


def test_levels_exclude_held_out_problems_that_are_not_named(tmp_path: Path) -> None:
    out = tmp_path / "kevin.parquet"
    held_out = next(id for id, side in our_sides().items() if side == "held_out")
    export("L1", "--out", out)
    assert held_out not in parquet.read_table(out).column("problem").to_pylist()
    export(held_out, "--out", out)
    assert parquet.read_table(out).column("problem").to_pylist() == [held_out]


def test_the_names_of_problems_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEVIN_ENV_KERNELBENCH", str(tmp_path))
    (tmp_path / "level1").mkdir()
    own, out = tmp_path / "level1" / "7_Double.py", tmp_path / "kevin.parquet"
    own.write_text(SOURCE)
    export("kernelbench:level1", own, "--out", out)
    names = parquet.read_table(out).column("problem").to_pylist()
    assert names == ["kernelbench:level1/7_Double", str(own)]
    assert [load_problem(name).source for name in names] == [SOURCE] * 2


def test_a_folder_has_both_sides_and_a_card(tmp_path: Path) -> None:
    export("L1", "--out", tmp_path / "hub")
    _, head, text = (tmp_path / "hub" / "README.md").read_text().split("---\n", 2)
    files = yaml.safe_load(head)["configs"][0]["data_files"]
    assert [each["split"] for each in files] == ["train", "held_out"]
    for each in files:
        rows = parquet.read_table(tmp_path / "hub" / each["path"]).to_pylist()
        assert {our_sides()[row["problem"]] for row in rows} == {each["split"]}
        assert f"{len(rows)} problems in `{each['split']}`" in text


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    assert "unknown problem 'L1_23_Softmux'" in export("L1_23_Softmux", "--out", tmp_path / "a")
    (tmp_path / "file").touch()
    assert "file: File exists" in export("--out", tmp_path / "file" / "a.parquet")
