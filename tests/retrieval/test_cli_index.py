"""`kevin-env index build` and `query`, as they are typed."""

import json
from pathlib import Path

import pytest
from pairs import module
from typer.testing import CliRunner

from kevin_env.cli import app

pytest.importorskip("faiss", reason="needs the extra retrieval")


def run(*words: str):
    return CliRunner().invoke(app, ["index", *words])


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("cli") / "index"
    result = run("build", "solutions", "--model", "token-hash", "--out", str(folder))
    assert result.exit_code == 0, result.stderr
    assert (
        result.stdout.startswith(f"indexed 71 pairs in {folder}: ")
        and "solutions triton" in result.stdout
    )
    return str(folder)


def test_what_is_found_is_a_table(index: str) -> None:
    result = run("query", index, "L1_23_Softmax", "--language", "cuda")
    assert result.exit_code == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if " cuda " in line]
    assert len(rows) == 3 and "L1_23_Softmax" not in result.stdout


def test_json_has_the_kernels(index: str) -> None:
    result = run("query", index, "L9_2_Reduction_Sum", "-k", "5", "--json")
    rows = json.loads(result.stdout)
    assert len(rows) == 5 and all(
        "triton" in row["kernel"] and 0 < row["similarity"] <= 1 for row in rows
    )


def test_a_problem_of_ones_own_may_be_asked_for(index: str, tmp_path: Path) -> None:
    (tmp_path / "1_Mine.py").write_text(module("return torch.softmax(x, dim=1)"))
    rows = json.loads(
        run("query", index, str(tmp_path / "1_Mine.py"), "--language", "cpp", "--json").stdout
    )
    assert rows and not [row for row in rows if "softmax" in row["id"].lower()]


def test_building_tells_what_was_left_out_as_json(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [
        {"python_code": code, "triton_code": "k", "entry_point": "M"}
        for code in (module("return x", "M"), "def (")
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "book.parquet")
    out = tmp_path / "index"
    words = (
        "build", f"kernelbook:{tmp_path / 'book.parquet'}", "--model", "token-hash", "--out",
        str(out), "--json",
    )  # fmt: skip
    assert json.loads(run(*words).stdout) == {
        "index": str(out), "pairs": {"kernelbook triton": 1}, "left_out": {"a reference that does not parse": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["build", "books", "--model", "./none", "--out", "INDEX"], "unknown source 'books'"),
        (
            ["build", "kernelbook:none", "--model", "token-hash", "--out", "INDEX"],
            "no parquet file at none",
        ),
        (
            ["build", "solutions", "--model", "./none", "--out", "INDEX"],
            "./none is not a folder; give a model's folder",
        ),
        (["query", "nowhere", "L1_23_Softmax"], "there is no index at"),
        (["query", "INDEX", "L1_99_Nothing"], "unknown problem"),
    ],
)
def test_wrong_words_are_one_line_and_exit_with_2(
    index: str, words: list[str], message: str
) -> None:
    result = run(*(index if word == "INDEX" else word for word in words))
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1
