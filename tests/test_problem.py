"""Problems are found, named, ordered and parsed without being run."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from kevin_env import kernelbench
from kevin_env.problem import (
    ProblemError,
    data_folder,
    list_problems,
    load_kernelbench,
    load_problem,
    parse_problem,
    problem_paths,
)
from kevin_env.record import ProblemRef
from kevin_env.selection import find_problems

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


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("CASES = dict(odd={'size': 3})", "CASES must be a literal dict with string keys"),
        ("HIDDEN = [1]", "HIDDEN must be a literal dict"), ("CASES = {1: {}}", "CASES must be a literal dict"),
        ("CASES = {'main': {}}", "case main already exists"),
        ("TAGS = 'toy'", "TAGS must be a literal tuple of strings"),
        ("START = ''", "START must be a string literal that is not empty"),
        ("ADAPTER = str()", "ADAPTER must be a string literal"),
    ],
)  # fmt: skip
def test_what_is_not_written_out_is_not_left_out_either(
    tmp_path: Path, line: str, error: str
) -> None:
    name = line.partition(" ")[0]
    source = "\n".join(each for each in SOURCE.split("\n") if not each.startswith(name))
    with pytest.raises(ProblemError, match=error):
        parse_problem(write(tmp_path / "p.py", f"{source}\n{line}\n"))


def test_loads_by_id() -> None:
    problem = load_problem("L1_23_Softmax")
    assert (problem.id, problem.level, problem.number, problem.name) == (
        "L1_23_Softmax",
        1,
        23,
        "Softmax",
    )
    assert problem.statement.startswith("Softmax along the rows")
    assert problem.source == Path(problem.path).read_text(encoding="utf-8")


@pytest.mark.parametrize("wrong", ["L1_23_softmax", "L1_23_Softmaxx", "Softmax"])
def test_an_unknown_id_names_the_nearest(wrong: str) -> None:
    with pytest.raises(ProblemError, match="L1_23_Softmax") as caught:
        load_problem(wrong)
    assert wrong in str(caught.value)
    assert "\n" not in str(caught.value)


def test_any_file_of_the_contract_loads_by_path(tmp_path: Path) -> None:
    problem = load_problem(str(write(tmp_path / "mine.py")))
    assert (problem.id, problem.level, problem.number, problem.name) == ("mine", None, None, "mine")
    assert problem.statement == "Add one.\n\n    y = x + 1\n\nx is (size,)."


def test_cases_and_tags_are_parsed_in_order(tmp_path: Path) -> None:
    problem = parse_problem(write(tmp_path / "mine.py"))
    assert problem.cases == ("main", "cpu", "odd")
    assert problem.tags == ("elementwise", "toy")


def test_a_numbered_file_in_a_level_folder_gets_an_id(tmp_path: Path) -> None:
    problem = load_problem(str(write(tmp_path / "level3" / "7_Block.py")))
    assert (problem.id, problem.level, problem.number, problem.name) == (
        "L3_7_Block",
        3,
        7,
        "Block",
    )


def test_parsing_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    parse_problem(write(tmp_path / "mine.py", f"open({str(mark)!r}, 'w')\n{SOURCE}"))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ndef broken(:\n", "line 2 does not parse"),
        (SOURCE.replace("class Model(", "class Modell("), "does not define Model$"),
        ("class Model: ...\n", "does not define get_inputs, get_init_inputs$"),
    ],
)
def test_a_file_off_the_contract_gives_one_clear_line(
    tmp_path: Path, source: str, message: str
) -> None:
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


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: f"# -*- coding: latin-1 -*-\n{text}".encode("latin-1"),
    ],
    ids=["byte order mark", "ends of lines", "cookie"],
)
def test_what_python_reads_is_read_as_python_reads_it(
    tmp_path: Path, change: Callable[[str], bytes]
) -> None:
    path = tmp_path / "p.py"
    path.write_bytes(change(SOURCE.replace("Add one.", "Größe.")))
    problem = parse_problem(path)
    assert problem.statement.startswith("Größe.\n")
    assert not set("\ufeff\r") & set(problem.source)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# -*- coding: klingon -*-\n", "unknown encoding"),
        (b"x = " + b"(" * 1000 + b")" * 1000 + b"\n", "does not parse"),
        (b"x = " + b"-" * 3000 + b"1\n", "does not parse: maximum recursion"),
        (b"x = " + b"-" * 100_000 + b"1\n", "does not parse: it is nested too deeply"),
    ],
    ids=["unknown cookie", "parentheses", "deep", "deeper"],
)
def test_what_python_does_not_read_is_one_clear_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "p.py"
    path.write_bytes(content)
    with pytest.raises(ProblemError, match=message) as caught:
        parse_problem(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_order_is_by_level_and_number_not_by_text(folder: Path) -> None:
    for name in ("level10/1_Z.py", "level2/100_C.py", "level2/9_B.py", "level1/23_A.py"):
        write(folder / name)
    write(folder / "level1" / "notes.py")
    assert [problem.id for problem in list_problems()] == [
        "L1_23_A",
        "L2_9_B",
        "L2_100_C",
        "L10_1_Z",
    ]
    assert [problem.id for problem in list_problems(level=2)] == ["L2_9_B", "L2_100_C"]
    assert list_problems(level=7) == []


def test_the_environment_variable_replaces_our_problems(folder: Path) -> None:
    write(folder / "level1" / "1_Mine.py")
    assert data_folder("problems") == folder
    assert load_problem("L1_1_Mine").name == "Mine"
    with pytest.raises(ProblemError, match="L1_23_Softmax"):
        load_problem("L1_23_Softmax")


@pytest.fixture(params=["", "KernelBench"])
def checkout(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """KernelBench's folder, or the root of its repository, with a few problems in its form."""
    for name in (
        "level1/1_One.py",
        "level1/10_Ten.py",
        "level1/2_Two.py",
        "level2/7_Seven.py",
        "level3/4_Four.py",
    ):
        write(tmp_path / request.param / name, SOURCE.replace("CASES: dict", "SHAPES: dict"))
    (tmp_path / request.param / "level1" / "notes.py").write_text("not a problem")
    monkeypatch.setenv(kernelbench.VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "name", ["kernelbench:level1/2", "kernelbench:level1/2_Two", "kernelbench:level1/2_Two.py"]
)
def test_a_problem_of_kernelbench_loads_by_its_number(checkout: Path, name: str) -> None:
    problem = load_problem(name)
    assert problem.id == "kernelbench:level1/2_Two"
    assert (problem.level, problem.number, problem.name, problem.cases) == (1, 2, "Two", ("main",))
    assert Path(problem.path).name == "2_Two.py"
    assert problem.source == Path(problem.path).read_text()
    assert ProblemRef.of(problem).load() == problem


def test_a_level_of_kernelbench_or_all_of_it(checkout: Path) -> None:
    def ids(name: str) -> list[str]:
        return [problem.id.removeprefix("kernelbench:") for problem in find_problems(name)]

    first = ["level1/1_One", "level1/2_Two", "level1/10_Ten"]
    assert ids("kernelbench:level1") == ids("kernelbench:level1/") == first
    assert ids("kernelbench:") == [*first, "level2/7_Seven", "level3/4_Four"]
    with pytest.raises(ProblemError, match="means 3 problems; write kernelbench:level1/23"):
        load_problem("kernelbench:level1")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kernelbench:level1/3", "no problem 3; `kernelbench:level1`"),
        ("kernelbench:level1/2_Tow", "is kernelbench:level1/2_Two, not 2_Tow"),
        ("kernelbench:level4/1", "levels 1 to 3"),
        ("kernelbench:softmax", "write kernelbench:level1/23"),
        ("kernelbench:level1/../../2", "is not a KernelBench name"),
    ],
)
def test_what_kernelbench_does_not_have_is_one_clear_line(
    checkout: Path, name: str, said: str
) -> None:
    with pytest.raises(ProblemError, match=said) as caught:
        load_problem(name)
    assert "\n" not in str(caught.value)


@pytest.fixture
def no_checkout(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(kernelbench.VARIABLE, raising=False)
    kernelbench._rows.cache_clear()
    yield
    kernelbench._rows.cache_clear()


def test_kernelbench_comes_from_the_data_set_where_there_is_no_checkout(
    no_checkout: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def load_dataset(name: str, split: str) -> list[dict[str, object]]:
        asked.append((name, split))
        return [{"problem_id": n, "name": f"{n}_A", "code": SOURCE, "level": 2} for n in (12, 3)]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert [each.id for each in load_kernelbench("kernelbench:level2")] == [
        "kernelbench:level2/3_A",
        "kernelbench:level2/12_A",
    ]
    problem = load_problem("kernelbench:level2/12")
    assert (problem.source, problem.path, problem.number) == (SOURCE, "", 12)
    assert ProblemRef.of(problem).load() == problem
    assert asked == [("ScalingIntelligence/KernelBench", "level_2")]


def test_without_checkout_and_data_set_one_line_says_what_to_do(
    no_checkout: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        ProblemError, match=r"set KEVIN_ENV_KERNELBENCH .* or `pip install datasets`"
    ):
        load_problem("kernelbench:level1/1")

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=offline))
    with pytest.raises(ProblemError, match=r"ConnectionError: no route.*set KEVIN_ENV_KERNELBENCH"):
        load_problem("kernelbench:level1/1")


def test_a_folder_means_the_problems_in_it(tmp_path: Path) -> None:
    for name in ("level2/10_A.py", "level2/9_B.py", "level10/1_C.py"):
        write(tmp_path / name)
    (tmp_path / "level2" / "__init__.py").write_text("")
    assert [problem.id for problem in find_problems(tmp_path)] == ["L2_9_B", "L2_10_A", "L10_1_C"]
    assert [problem.id for problem in find_problems(str(tmp_path / "level2"))] == [
        "L2_9_B",
        "L2_10_A",
    ]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProblemError, match=r"named like 23_Softmax\.py"):
        find_problems(tmp_path / "empty")
