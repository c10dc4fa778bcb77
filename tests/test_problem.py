"""Problems are found, named, ordered and parsed without being run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kevin_env.problem import ProblemError, data_folder, list_problems, load_problem, parse_problem, problem_paths

SOURCE = '''"""Add one.

    y = x + 1

x is (size,).
"""

import torch

size = 8

CASES: dict[str, dict] = {"cpu": {"size": 4}, "odd": {"size": 3}}
TAGS: tuple[str, ...] = ("elementwise", "toy")


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(size)]


def get_init_inputs():
    return []
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that stands for `problems/`."""
    monkeypatch.setenv("KEVIN_ENV_PROBLEMS", str(tmp_path))
    problem_paths.cache_clear()
    yield tmp_path
    problem_paths.cache_clear()


def write(path: Path, source: str = SOURCE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return path


def test_loads_by_id() -> None:
    problem = load_problem("L1_23_Softmax")
    assert (problem.id, problem.level, problem.number, problem.name) == ("L1_23_Softmax", 1, 23, "Softmax")
    assert problem.statement.startswith("Softmax along the rows")
    assert problem.source == Path(problem.path).read_text(encoding="utf-8")


def test_the_file_name_keeps_its_trailing_underscore() -> None:
    problem = load_problem("L1_1_Square_matrix_multiplication_")
    assert (problem.number, problem.name) == (1, "Square_matrix_multiplication_")


@pytest.mark.parametrize("wrong", ["L1_23_softmax", "L1_23_Softmaxx", "Softmax"])
def test_an_unknown_id_names_the_nearest(wrong: str) -> None:
    with pytest.raises(ProblemError, match="L1_23_Softmax") as caught:
        load_problem(wrong)
    assert wrong in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_id_like_no_other_says_how_to_list_them() -> None:
    with pytest.raises(ProblemError, match="kevin-env problems"):
        load_problem("????")


def test_any_file_of_the_contract_loads_by_path(tmp_path: Path) -> None:
    problem = load_problem(str(write(tmp_path / "mine.py")))
    assert (problem.id, problem.level, problem.number, problem.name) == ("mine", None, None, "mine")
    assert problem.statement == "Add one.\n\n    y = x + 1\n\nx is (size,)."


def test_cases_and_tags_are_parsed_in_order(tmp_path: Path) -> None:
    problem = parse_problem(write(tmp_path / "mine.py"))
    assert problem.cases == ("main", "cpu", "odd")
    assert problem.tags == ("elementwise", "toy")


def test_cases_tags_and_statement_are_optional(tmp_path: Path) -> None:
    bare = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
    problem = parse_problem(write(tmp_path / "bare.py", bare))
    assert (problem.cases, problem.tags, problem.statement) == (("main",), (), "")


def test_a_numbered_file_in_a_level_folder_gets_an_id(tmp_path: Path) -> None:
    problem = load_problem(str(write(tmp_path / "level3" / "7_Block.py")))
    assert (problem.id, problem.level, problem.number, problem.name) == ("L3_7_Block", 3, 7, "Block")


def test_parsing_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    parse_problem(write(tmp_path / "mine.py", f"open({str(mark)!r}, 'w')\n{SOURCE}"))
    assert not mark.exists()


def test_the_hash_follows_the_source(tmp_path: Path) -> None:
    first = parse_problem(write(tmp_path / "a.py"))
    same = parse_problem(write(tmp_path / "b.py"))
    other = parse_problem(write(tmp_path / "c.py", SOURCE.replace("x + 1", "x + 2")))
    assert first.sha256 == same.sha256 != other.sha256


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ndef broken(:\n", "line 2 does not parse"),
        (SOURCE.replace("class Model(", "class Modell("), "does not define Model$"),
        ("class Model: ...\n", "does not define get_inputs, get_init_inputs$"),
    ],
)
def test_a_file_off_the_contract_gives_one_clear_line(tmp_path: Path, source: str, message: str) -> None:
    path = write(tmp_path / "wrong.py", source)
    with pytest.raises(ProblemError, match=message) as caught:
        load_problem(str(path))
    assert "wrong.py" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "gone.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProblemError, match=r"cannot read problem .*gone\.py"):
        load_problem(str(path))


def test_the_order_is_by_level_and_number_not_by_text(folder: Path) -> None:
    for name in ("level10/1_Z.py", "level2/100_C.py", "level2/9_B.py", "level1/23_A.py"):
        write(folder / name)
    write(folder / "level1" / "notes.py")
    assert [problem.id for problem in list_problems()] == ["L1_23_A", "L2_9_B", "L2_100_C", "L10_1_Z"]
    assert [problem.id for problem in list_problems(level=2)] == ["L2_9_B", "L2_100_C"]
    assert list_problems(level=7) == []


def test_the_environment_variable_replaces_our_problems(folder: Path) -> None:
    write(folder / "level1" / "1_Mine.py")
    assert data_folder("problems") == folder
    assert load_problem("L1_1_Mine").name == "Mine"
    with pytest.raises(ProblemError, match="L1_23_Softmax"):
        load_problem("L1_23_Softmax")


def test_a_folder_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEVIN_ENV_PROMPTS", str(tmp_path / "nowhere"))
    with pytest.raises(ProblemError, match="nowhere"):
        data_folder("prompts")
