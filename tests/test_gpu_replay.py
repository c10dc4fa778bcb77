"""Triton submissions whose recorded launches are played, on a GPU. All skip themselves without one."""

import pytest
from corpus import FOLDER, read_entry

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.outcome import Correct
from kevin_env.pools.local import LocalPool

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(280)]

CUDA = Options(device="cuda", rules="kernel")
OWN = CUDA.model_copy(update={"replay": "never"})
HONEST = read_entry(FOLDER / "honest/softmax_triton.py")


def judged(pool: LocalPool, name: str, options: Options = CUDA) -> Judgement:
    """One file of the corpus."""
    entry = read_entry(FOLDER / f"{name}.py")
    return pool.submit(entry.task, Submission(code=entry.code), options).result(250)


@pytest.mark.parametrize(
    "name",
    [
        "softmax_triton", "relu_triton_autotuned", "column_sums_triton_atomics",
        "linear_split_weights", "gate_bfloat16_triton",
    ],
)  # fmt: skip
def test_what_is_played_is_as_fast_as_in_its_own_process(pool: LocalPool, name: str) -> None:
    played, own = (judged(pool, f"honest/{name}", each) for each in (CUDA, OWN))
    assert (played.run, own.run) == ("replayed", "own process")
    one, other = played.outcome, own.outcome
    assert isinstance(one, Correct) and isinstance(other, Correct)
    assert one.speedup_interval and other.speedup_interval
    assert one.speedup_interval[0] <= other.speedup_interval[1], (one, other)
    assert other.speedup_interval[0] <= one.speedup_interval[1], (one, other)


@pytest.mark.parametrize(
    "name", ["softmax_cuda_nvcc", "log_sum_exp_threads_and_streams", "relu_graph_by_address"]
)
def test_what_a_list_cannot_say_has_a_process_of_its_own(pool: LocalPool, name: str) -> None:
    judgement = judged(pool, f"honest/{name}")
    assert judgement.run == "own process" and judgement.outcome.category == "correct"


def test_submissions_to_problems_that_are_new_are_played_at_once() -> None:
    """What is found out about each meanwhile stops no process that others use."""
    names = ("softmax_triton", "relu_triton_autotuned", "moments_triton", "extremes_triton")
    with LocalPool() as fresh:
        entries = [read_entry(FOLDER / f"honest/{name}.py") for name in names]
        futures = [fresh.submit(each.task, Submission(code=each.code), CUDA) for each in entries]
        assert {each.result(250).run for each in futures} == {"replayed"}


def test_a_kernel_that_does_not_compile_needs_no_device(pool: LocalPool) -> None:
    played, own = (judged(pool, "hostile/jit_error", each) for each in (CUDA, OWN))
    assert played.outcome == own.outcome and played.outcome.kind == "jit"
    assert played.seconds.verify == 0


KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {body}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[({grid},)](x, out, x.numel(), BLOCK=1024)
        return out
"""
WHOLE = "triton.cdiv(x.numel(), 1024)"
COPIES = "tl.store(out + at, tl.load(x + at, mask=at < n), mask=at < n)"
HOSTILE = {
    "never ends": ("while tl.atomic_add(out, 0.0) != 12345.0:\n        pass", "1", "timeout"),
    "writes far away": ("tl.store(out + at + (1 << 42), 1.0)", WHOLE, "illegal_access"),
    "writes before its inputs": (f"tl.store(x - 1 - at, 0.0)\n    {COPIES}", WHOLE, None),
    "writes behind its inputs": (f"tl.store(x + n + at, 0.0)\n    {COPIES}", WHOLE, None),
    "scans the memory": ("tl.store(out + at, tl.load(x + at * 4099), mask=at < n)", WHOLE, None),
    "has a false grid": (COPIES, "1", None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_kernel_in_a_context_of_others_gains_nothing_and_leaves_nothing(
    pool: LocalPool, name: str
) -> None:
    body, grid, kind = HOSTILE[name]
    code = KERNEL.format(body=body, grid=grid)
    outcome = pool.submit(HONEST.task, Submission(code=code), CUDA).result(250).outcome
    assert outcome.category in ("runtime", "correctness"), outcome
    assert kind is None or outcome.kind == kind, outcome
    after = pool.submit(HONEST.task, Submission(code=HONEST.code), CUDA).result(250)
    assert after.outcome.category == "correct" and after.run == "replayed"


def test_memory_of_an_earlier_submission_is_overwritten(pool: LocalPool) -> None:
    """The second returns memory that it has not written, where the first had right answers."""
    assert judged(pool, "honest/softmax_triton").run == "replayed"
    code = KERNEL.format(body="tl.store(out + at, 1.0, mask=at < 0)", grid="1")
    judgement = pool.submit(HONEST.task, Submission(code=code), CUDA).result(250)
    assert judgement.outcome.kind in ("values", "not_written") and judgement.run == "replayed"
