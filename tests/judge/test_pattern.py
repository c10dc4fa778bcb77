"""Patterns of wrong elements, and errors without one."""

from collections.abc import Callable

import pytest
import torch
from test_check import told_apart
from test_hang import SOFTMAX

from kevin_env.candidate.region import POISON
from kevin_env.judge import Options, Submission
from kevin_env.judge.compare import chunked as pieces
from kevin_env.judge.compare.tolerance import tolerance_of
from kevin_env.judge.compare.values import find_pattern, find_wrong
from kevin_env.judge.judge import Judge
from kevin_env.outcome import Incorrect, RuntimeFailure, Span
from kevin_env.wording import describe_pattern


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


X, SQUARE, VECTOR, IDS = (
    drawn(65, 203),
    drawn(3, 32, 32),
    drawn(1021),
    torch.arange(400).view(4, 100),
)
NOISE = drawn(65, 203).roll(1)


def told(got: torch.Tensor, expected: torch.Tensor) -> str:
    """The pattern in words; empty without any."""
    tolerance = tolerance_of(expected, None, 1.0, "ieee")
    wrong, tolerance = find_wrong(got, expected, None, tolerance, lambda: None)
    assert wrong is not None
    found = find_pattern(wrong, got, expected, None, tolerance)
    return "" if found is None else describe_pattern(found)


def holding(expected: torch.Tensor, *place: int | slice, value: float = 0.0) -> torch.Tensor:
    """What is expected, with another value in one place."""
    got = expected.clone()
    got[place] = value
    return got


def flat(expected: torch.Tensor, place: slice) -> torch.Tensor:
    return holding(expected.flatten(), place).view(expected.shape)


ALL, ODD = slice(None), slice(1, None, 2)
PATTERNS: dict[str, tuple[torch.Tensor, torch.Tensor, str]] = {
    "factor": (X * 0.5, X, "Every wrong element is 0.5 times the expected value."),
    "factor in bf16": (
        X.bfloat16() * 3, X.bfloat16(),
        "Every wrong element is 3 times the expected value.",
    ),
    "offset": (X - 0.25, X, "Every wrong element is the expected value minus 0.25."),
    "offset of integers": (IDS + 1, IDS, "Every wrong element is the expected value plus 1."),
    "zero": (X * 0, X, "Every wrong element is 0."),
    "last columns": (holding(X, ALL, slice(192, None), value=7.0), X,
                     "All wrong elements are in `output[:, 192:]`. Every wrong element is 7."),
    "last rows": (holding(X, slice(64, None)) * 1.0, X,
                  "All wrong elements are in `output[64]`. Every wrong element is 0."),
    "tail of a vector": (holding(VECTOR, slice(1000, None)), VECTOR,
                         "All wrong elements are in `output[1000:]`. Every wrong element is 0."),
    "one tile": (
        torch.where(holding(X * 0, slice(32, 48), slice(16, 32), value=1.0).bool(), X + NOISE, X),
        X,
        "All wrong elements are in `output[32:48, 16:32]`.",
    ),
    "every second column": (
        torch.where(holding(X * 0, ALL, ODD, value=1.0).bool(), X + NOISE, X),
        X,
        "All wrong elements are in `output[:, 1::2]`.",
    ),
    "first ones right": (
        flat(X, slice(1000, None)),
        X,
        "All wrong elements are in `output.flatten()[1000:]`. Every wrong element is 0.",
    ),
    "transposed": (
        SQUARE.mT.contiguous(), SQUARE,
        "The output is transposed in its last two dimensions.",
    ),
    "transposed in memory": (
        X.T.reshape(65, 203), X,
        "The output is transposed in its last two dimensions.",
    ),
    "columns after a ReLU": (
        holding(X.relu(), ALL, slice(192, None)),
        X.relu(),
        "All wrong elements are in `output[:, 192:]`. Every wrong element is 0.",
    ),
    "not finite": (
        holding(X, slice(32, 64), value=float("nan")), X,
        "All wrong elements are in `output[32:64]`.",
    ),
    "bools": (
        holding(X > 0, slice(32, 64), value=True), X > 0,
        "All wrong elements are in `output[32:64]`.",
    ),
    "float8": ((X * 2).to(torch.float8_e5m2), X.to(torch.float8_e5m2),
               "Every wrong element is 2 times the expected value."),
}  # fmt: skip


@pytest.mark.parametrize("piece", [1 << 18, 500, 7])
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_found(name: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pieces.PIECE, "cpu", piece)
    got, expected, text = PATTERNS[name]
    assert told(got, expected) == text


@pytest.mark.gpu
@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_found_on_a_gpu(name: str) -> None:
    got, expected, text = PATTERNS[name]
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
    found = told_apart(torch.zeros_like(X), tail, X)
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
