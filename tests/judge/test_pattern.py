"""Regions of wrong elements, and errors without one."""

import pytest
import torch
from comparison import wrong
from rounding import bf16, fp16, tf32
from test_check import second_call
from test_hang import SOFTMAX

from kevin_env.candidate.region import FILLING
from kevin_env.judge import Options, Submission
from kevin_env.judge.compare import values
from kevin_env.judge.judge import Judge
from kevin_env.outcome import Incorrect, Pattern, RuntimeFailure, Span
from kevin_env.wording import describe_pattern

X = torch.randn(8, 32, generator=torch.Generator().manual_seed(1))
NOISE = 1 + X.roll(1).abs()


def told(got: torch.Tensor, expected: torch.Tensor) -> str:
    """The region in words; empty without any."""
    found = wrong(expected, got)
    assert found is not None
    return "" if found.pattern is None else describe_pattern(found.pattern)


def off(*places: int | slice, of: torch.Tensor = X) -> torch.Tensor:
    """The expected output, with noise in one place."""
    got = of.clone()
    got[places] += NOISE[places].to(of.dtype)
    return got


ALL, TAIL, LOST = slice(None), slice(20, None), float("nan")
FLAT = torch.cat((X.flatten()[:50], X.flatten()[50:] + NOISE.flatten()[50:])).view(8, 32)
CASES: dict[str, tuple[torch.Tensor, torch.Tensor, str]] = {
    "last columns": (off(ALL, TAIL), X, "[:, 20:]"),
    "last row": (off(7), X, "[7]"),
    "a tile": (off(slice(2, 5), slice(3, 17)), X, "[2:5, 3:17]"),
    "every second column": (off(ALL, slice(1, None, 2)), X, "[:, 1::2]"),
    "not the first ones": (FLAT, X, ".flatten()[50:]"),
    "not finite": (torch.where(torch.arange(8)[:, None] < 3, X, LOST), X, "[3:]"),
    "integers": (off(ALL, TAIL, of=X.long()), X.long(), "[:, 20:]"),
    "some right by chance": (off(ALL, TAIL, of=X).relu(), X.relu(), "[:, 20:]"),
    "everywhere": (X + NOISE, X, ""),
    "two far apart": (off(slice(0, 8, 7), 3), X, ""),
    "one": (off(3, 5), X, ""),
    "half of them by chance": (torch.where(X.roll(3) > 0, X + NOISE, X), X, ""),
}  # fmt: skip


@pytest.mark.parametrize("piece", [1 << 18, 7])
@pytest.mark.parametrize("name", CASES)
def test_the_region_of_wrong_elements_is_named(
    name: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is cut by pieces."""
    got, expected, where = CASES[name]
    monkeypatch.setitem(values.PIECE, "cpu", piece)
    assert told(got, expected) == (f"All wrong elements are in `output{where}`." if where else "")


EXACT = torch.rand(64, 64, generator=torch.Generator().manual_seed(2)).double() + 1
ROUNDED = {
    "float32": (EXACT.float().double(), EXACT, "float32"),
    "bfloat16": (bf16(EXACT.float()), EXACT.float(), "bfloat16"),
    "float16": (fp16(EXACT.float()), EXACT.float(), "float16 or TF32"),
    "TF32": (tf32(1e6 * EXACT.float()), 1e6 * EXACT.float(), "TF32"),
    "bfloat16 of float16": (EXACT.bfloat16().half(), EXACT.half(), "bfloat16"),
    "a constant": (torch.ones(64, 64), EXACT.float(), ""),
    "of its own type": (EXACT.float() + 1e-3, EXACT.float(), ""),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_a_type_that_a_wrong_output_was_rounded_to_is_named(name: str) -> None:
    got, expected, narrow = ROUNDED[name]
    found = wrong(expected, got)
    assert found is not None
    assert found.message.partition("all values are exact in ")[2] == narrow


@pytest.mark.gpu
def test_regions_are_found_on_a_gpu() -> None:
    for got, expected, where in CASES.values():
        assert where in told(got.cuda(), expected.cuda())


def test_unwritten_memory_has_a_region() -> None:
    filled = torch.full((8, 32 * 4), FILLING, dtype=torch.uint8).view(torch.float32)
    tail = torch.cat((X[:, :20], filled[:, 20:]), dim=1)
    found = second_call(torch.zeros_like(X), tail, X)
    assert found is not None and found.kind == "not_written" and found.pattern is not None
    assert describe_pattern(found.pattern) == "All wrong elements are in `output[:, 20:]`."


def test_a_pattern_of_an_older_line_is_read() -> None:
    older = {"where": [], "what": "factor", "value": 0.5}
    assert describe_pattern(Pattern.model_validate(older)) == ""


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
    assert outcome.passed and {name.partition("/")[0] for name in outcome.passed} == {"odd"}


def test_a_submission_that_fails_has_the_input_sets_that_passed(judge: Judge) -> None:
    code = WRONG_IN_ONE_CASE.replace("out[:, 480:] += 1", "raise ValueError(x.shape)")
    outcome = judge.judge(
        SOFTMAX, Submission(code=code), Options(device="cpu"), lambda _: None
    ).outcome
    assert isinstance(outcome, RuntimeFailure) and {
        name.partition("/")[0] for name in outcome.passed
    } == {"odd"}
