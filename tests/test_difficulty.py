"""The difficulty that ships is what its script makes of the results of others and of our references
as they are.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from kevin_env.difficulty import Measurements, by_difficulty, measured
from kevin_env.problem import Problem, ProblemError, list_problems, parse_problem
from kevin_env.selection import NEAR_COPIES

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
PROBLEMS = list_problems()


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """`benchmarks/difficulty.py`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        import difficulty  # pyright: ignore[reportMissingImports]

        yield difficulty


@pytest.fixture(scope="module")
def shipped() -> Measurements:
    return Measurements.model_validate_json((ROOT / "problems" / "difficulty.json").read_bytes())


@pytest.fixture(scope="module")
def counted(script: ModuleType) -> dict[str, object]:
    """Every reference run once in its case `cpu`."""
    return {problem.id: script.count(problem) for problem in PROBLEMS}


def row(
    seconds: float = 1e-3, flops: float = 0, elements: float = 0, moved_bytes: float = 0
) -> dict[str, float]:
    return {"seconds": seconds, "flops": flops, "elements": elements, "moved_bytes": moved_bytes}


def test_every_problem_was_measured_and_nothing_else(shipped: Measurements) -> None:
    assert set(shipped.problems) == {problem.id for problem in PROBLEMS}
    assert {source.file for source in shipped.sources} >= {"lint.h200.json", "difficulty.py"}
    assert all(measured(problem) == shipped.problems[problem.id] for problem in PROBLEMS)


@pytest.mark.full
def test_the_file_is_of_the_results_and_references_as_they_are(
    script, counted, shipped: Measurements
) -> None:
    """When this fails, run `python benchmarks/difficulty.py --json problems/difficulty.json`."""
    sources, rows = script.read_device("h200")
    known = {source.file: source for source in shipped.sources}
    assert all(known[source.file] == source for source in sources)
    if metadata.version("torch") != known["difficulty.py"].versions["torch"]:
        pytest.skip("another version of torch may dispatch other operators")
    assert script.measure(counted, rows, script.PEAKS["h200"]) == shipped.problems


def test_the_roofline_is_below_every_time(shipped: Measurements) -> None:
    for id, each in shipped.problems.items():
        assert 0 < each.roofline_seconds < each.seconds, id
        assert 0 <= each.difficulty <= 1, id


def test_operators_are_counted_without_views(script) -> None:
    problem = Problem(id="P", name="P", source=SOURCE, cases=("main", "cpu"))
    found = script.count(problem)
    assert found.operators == ("aten.mm", "aten.add", "aten.sin", "aten.sin", "aten.sin")
    assert (found.inputs, found.dtypes) == (("float32",), ("float16", "float32", "int64"))


SOURCE = """
import torch
steps = 1000
CASES = {"cpu": {"steps": 3}}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(4, dtype=torch.int64))
    def forward(self, x):
        y = (x.T.reshape(4, 4) @ x + self.shift)[None].squeeze(0)
        for _ in range(steps):
            y = y.sin()
        return y, x.detach().view(torch.float16)
def get_inputs():
    return [torch.randn(4, 4)]
def get_init_inputs():
    return []
"""


def test_the_roofline_is_the_longer_of_moving_and_computing(script) -> None:
    peaks = script.Peaks(bandwidth=100.0, half_products=1000.0, products=50.0, integers=10.0)

    def roofline(*inputs: str, **counts: float) -> tuple[float, float]:
        return script.roofline(row(**counts), inputs, peaks)

    assert roofline("float32", moved_bytes=200, flops=100, elements=50) == (2.0, 2.0 + 2.0)
    assert roofline("float16", "int64", flops=100, elements=50) == (0.0, 0.1 + 2.0)
    assert roofline("float16", "float32", flops=100) == (0.0, 2.0)
    assert roofline("uint8", "int64", elements=50) == (0.0, 5.0)


def test_more_operators_and_less_room_are_harder(script) -> None:
    counted = {
        id: script.Counted(("sin",) * many, ("float32",), ("float32",))
        for id, many in {"a": 1, "b": 1, "c": 9, "d": 9}.items()
    }
    rows = {id: row(moved_bytes=2.4e9) for id in counted}  # a roofline of half of the time
    found = script.measure(counted, rows | {"b": row(moved_bytes=1.2e9)}, script.PEAKS["h200"])
    assert {id: each.difficulty for id, each in found.items()} == {
        "a": 0.1667,
        "b": 0.0833,
        "c": 0.5,
        "d": 0.5,
    }
    known = {"a": rows["a"] | {"slowest_speedup": 4.0}, "d": rows["d"] | {"slowest_speedup": 0.5}}
    found = script.measure(counted, rows | known, script.PEAKS["h200"])
    assert {id: each.difficulty for id, each in found.items()} == {
        "a": 0.0833,
        "b": 0.1667,
        "c": 0.5,
        "d": 0.6667,
    }


def test_the_slowest_kernel_that_is_right_counts(script) -> None:
    rows = [
        {"name": name, "value": value}
        for name, value in (("P.cuda", 3.0), ("P.triton", 1.5), ("Q.cuda", None))
    ]
    assert script.slowest_speedups(rows) == {"P": 1.5}


def test_what_dispatches_the_same_operators_is_a_near_copy(counted) -> None:
    alike: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for id, each in counted.items():
        alike[each.operators].add(id)
    for ids in alike.values():
        assert len(ids) == 1 or any(ids <= set(group) for group in NEAR_COPIES), ids


def test_the_order_is_by_difficulty_and_the_unknown_come_last() -> None:
    unknown = [Problem(id=id, name=id, source="") for id in ("y", "x")]
    ordered = by_difficulty([*unknown, *PROBLEMS])
    assert ordered[-2:] == unknown
    figures = [each.difficulty for problem in ordered[:-2] if (each := measured(problem))]
    assert figures == sorted(figures) and len(figures) == len(PROBLEMS)


def test_a_broken_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "level1").mkdir()
    path = tmp_path / "level1" / "1_P.py"
    path.write_text(SOURCE)
    assert measured(parse_problem(path)) is None
    other = tmp_path / "other" / "level1"
    other.mkdir(parents=True)
    (other / "1_P.py").write_text(SOURCE)
    (tmp_path / "other" / "difficulty.json").write_text(json.dumps({"problems": {}}))
    with pytest.raises(
        ProblemError, match=r"cannot read .*difficulty\.json.*write it anew with benchmarks"
    ) as caught:
        measured(parse_problem(other / "1_P.py"))
    assert "\n" not in str(caught.value)
