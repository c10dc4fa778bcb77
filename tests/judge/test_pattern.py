"""Patterns of wrong elements, and errors without one."""

from collections.abc import Callable

import pytest
import torch
from test_check import second_call
from test_hang import SOFTMAX

from kevin_env.candidate.region import POISON
from kevin_env.judge import Options, Submission
from kevin_env.judge.compare import chunked as pieces
from kevin_env.judge.compare.outputs import wrong
from kevin_env.judge.lane.judge import Judge
from kevin_env.outcome import Incorrect, RuntimeFailure, Span
from kevin_env.wording import describe_pattern


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


X, SQUARE, NOISE = drawn(65, 203), drawn(3, 32, 32), drawn(65, 203).roll(1)
SMALL, LONG, MARKED = drawn(8, 8), drawn(4, 32), torch.zeros(8, 8, dtype=torch.bool)


def told(got: torch.Tensor, expected: torch.Tensor) -> str:
    """The pattern in words; empty without any."""
    found = wrong(expected, got)
    assert found is not None
    return "" if found.pattern is None else describe_pattern(found.pattern)


def holding(expected: torch.Tensor, *place: int | slice, value: float = 0.0) -> torch.Tensor:
    """What is expected, with another value in one place."""
    got = expected.clone()
    got[place] = value
    return got


def noisy(*place: slice) -> torch.Tensor:
    """The small tensor, with noise in one place."""
    return torch.where(holding(MARKED, *place, value=True), SMALL + 1 + SMALL.roll(1), SMALL)


def region(where: str, what: str = "") -> str:
    return (
        f"All wrong elements are in `output{where}`.{what and f' Every wrong element is {what}.'}"
    )


ALL = slice(None)
PATTERNS: dict[str, tuple[torch.Tensor, torch.Tensor, str]] = {
    "factor": (SMALL * 0.5, SMALL, "Every wrong element is 0.5 times the expected value."),
    "factor in fp8": ((SMALL * 2).to(torch.float8_e5m2), SMALL.to(torch.float8_e5m2),
                      "Every wrong element is 2 times the expected value."),
    "offset": (SMALL - 0.25, SMALL, "Every wrong element is the expected value minus 0.25."),
    "offset of integers": (torch.arange(64) + 1, torch.arange(64),
                           "Every wrong element is the expected value plus 1."),
    "zero": (SMALL * 0, SMALL, "Every wrong element is 0."),
    "transposed": (SMALL.T.contiguous(), SMALL,
                   "The output is transposed in its last two dimensions."),
    "last columns": (holding(SMALL, ALL, slice(5, None), value=7.0), SMALL, region("[:, 5:]", "7")),
    "last row": (holding(SMALL, 7), SMALL, region("[7]", "0")),
    "a tile": (noisy(slice(2, 5), slice(3, 7)), SMALL, region("[2:5, 3:7]")),
    "every second column": (noisy(ALL, slice(1, None, 2)), SMALL, region("[:, 1::2]")),
    "not the first ones": (holding(LONG.flatten(), slice(20, None)).view(4, 32), LONG,
                           region(".flatten()[20:]", "0")),
    "not finite": (holding(SMALL, slice(3, 6), value=float("nan")), SMALL, region("[3:6]")),
    "bools": (holding(SMALL > 0, slice(3, 6), value=True), SMALL > 0, region("[3:6]")),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got, expected, text = PATTERNS[name]
    for piece in (1 << 18, 7):
        monkeypatch.setitem(pieces.PIECE, "cpu", piece)
        assert told(got, expected) == text


def test_elements_that_are_right_by_chance_are_no_obstacle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor is it one that a region is cut by pieces, or that its elements are transposed in memory."""
    monkeypatch.setitem(pieces.PIECE, "cpu", 500)
    relu = X.relu()
    assert told(holding(relu, ALL, slice(192, None)), relu) == region("[:, 192:]", "0")
    transposed = "The output is transposed in its last two dimensions."
    assert told(X.T.reshape(65, 203), X) == told(SQUARE.mT.contiguous(), SQUARE) == transposed


@pytest.mark.gpu
def test_patterns_are_found_on_a_gpu() -> None:
    for got, expected, text in PATTERNS.values():
        assert told(got.cuda(), expected.cuda()) == text


def some_wrong(share: float) -> torch.Tensor:
    return torch.where(NOISE.abs() > NOISE.abs().flatten().quantile(1 - share), X + NOISE, X)


def corner() -> torch.Tensor:
    got = X.clone()
    got[[0, 10, 30, 39], [0, 30, 10, 39]] += torch.tensor([1.0, 2.0, -3.0, 4.0])
    return got


NONE: dict[str, Callable[[], tuple[torch.Tensor, torch.Tensor]]] = {
    "noise": lambda: (X + NOISE, X),
    "every hundredth by chance": lambda: (some_wrong(0.01), X),
    "half of them by chance": lambda: (some_wrong(0.5), X),
    "four of 13,195": lambda: (some_wrong(4 / X.numel()), X),
    "four far apart in a corner": lambda: (corner(), X),
    "a bias that varies": lambda: ((X.half() + 0.0035 + 0.0025 * NOISE.sigmoid()).half(), X.half()),
    "one": lambda: (holding(X, 64, 202, value=9.0), X),
    "a factor but for one element": lambda: (holding(X * 0.5, 3, 3, value=9.0), X),
    "an offset but for one element": lambda: (holding(X + 0.5, 3, 3, value=9.0), X),
    "zero but for one element": lambda: (holding(X * 0, 3, 3, value=9.0), X),
    "transposed but for one element": lambda: (holding(SQUARE.mT, 1, 3, 4, value=9.0), SQUARE),
    "a low precision": lambda: (X.bfloat16().float(), X),
    "another function": lambda: (X.sin(), X),
    "expected values that are all the same": lambda: (X * 0 + 2, X * 0 + 1),
}


@pytest.mark.parametrize("name", NONE)
def test_errors_without_a_pattern_have_none(name: str) -> None:
    assert told(*NONE[name]()) == ""


def test_unwritten_memory_has_a_region() -> None:
    filled = torch.full((65, 203 * 4), POISON, dtype=torch.uint8).view(torch.float32)
    tail = torch.cat((X[:, :192], filled[:, 192:]), dim=1)
    found = second_call(torch.zeros_like(X), tail, X)
    assert found is not None and found.kind == "not_written" and found.pattern is not None
    assert describe_pattern(found.pattern) == "All wrong elements are in `output[:, 192:]`."


WRONG_IN_ONE_CASE = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.softmax(x, dim=1)
        if x.shape[1] == 500:
            out[:, 480:] += 1
        return out
"""


def test_a_wrong_submission_has_its_pattern_and_the_input_sets_that_passed(judge: Judge) -> None:
    outcome = judge.judge(
        SOFTMAX, Submission(code=WRONG_IN_ONE_CASE), Options(device="cpu"), lambda _: None
    ).outcome
    assert (
        isinstance(outcome, Incorrect)
        and outcome.pattern is not None
        and outcome.input_set.startswith("cpu/")
    )
    assert outcome.pattern.where == (Span(dim=1, start=480, stop=500, size=500),)
    assert (outcome.pattern.what, outcome.pattern.value) == ("offset", pytest.approx(1.0))
    assert outcome.passed and {name.partition("/")[0] for name in outcome.passed} == {"odd"}


def test_a_submission_that_fails_has_the_input_sets_that_passed(judge: Judge) -> None:
    code = WRONG_IN_ONE_CASE.replace("out[:, 480:] += 1", "raise ValueError(x.shape)")
    outcome = judge.judge(
        SOFTMAX, Submission(code=code), Options(device="cpu"), lambda _: None
    ).outcome
    assert isinstance(outcome, RuntimeFailure) and {
        name.partition("/")[0] for name in outcome.passed
    } == {"odd"}
