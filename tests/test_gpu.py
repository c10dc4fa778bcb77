"""Judging on a GPU. All of it skips itself where there is none."""

import contextlib
import os
import subprocess
import sys
import time

import pytest
import torch
from corpus import FOLDER, read_entry

from kevin_env.judge import JudgeError, Judgement, Options, Submission
from kevin_env.outcome import CompileError, Correct, Incorrect, Outcome
from kevin_env.parsing import as_submission
from kevin_env.pools.local import LocalPool
from kevin_env.problem import Problem, ProblemError, load_problem

pytestmark = pytest.mark.gpu

CUDA = Options(device="cuda")
SOFTMAX = load_problem("L1_23_Softmax")
GIB = 1 << 30


def judged(
    pool: LocalPool, name: str, options: Options = CUDA, problem: str | None = None
) -> Judgement:
    """One file of the corpus, judged on the GPU."""
    entry = read_entry(FOLDER / f"{name}.py")
    chosen = load_problem(problem) if problem else entry.task
    return pool.submit(chosen, Submission(code=entry.code), options).result(280)


def timed(judgement: Judgement) -> Correct:
    outcome = judgement.outcome
    assert isinstance(outcome, Correct) and outcome.kind == "timed", outcome
    assert outcome.speedup and outcome.speedup_interval
    low, high = outcome.speedup_interval
    assert low <= outcome.speedup <= high
    return outcome


def no_gain(outcome: Outcome) -> bool:
    return not isinstance(outcome, Correct) or outcome.speedup is None or outcome.speedup < 1.1


def test_the_facts_name_the_gpu(pool: LocalPool) -> None:
    info = pool.describe(SOFTMAX, CUDA).result().device
    assert info.device == "cuda:0" and "NVIDIA" in info.name
    assert float(info.capability) >= 7 and info.processors > 0 and info.bandwidth > 1e11
    assert info.memory > GIB and info.l2 >= 1 << 20 and info.shared_memory >= 48 << 10
    assert info.versions["cuda"] and info.versions["driver"]


@pytest.mark.parametrize("name", ["honest/softmax_triton", "honest/softmax_cuda_nvcc"])
def test_a_kernel_is_timed(pool: LocalPool, name: str) -> None:
    outcome = timed(judged(pool, name, problem="L1_23_Softmax"))
    assert outcome.submission_seconds and 1e-4 < outcome.submission_seconds < 0.1 and outcome.queued


def test_an_error_of_tritons_compiler_names_the_line_in_the_kernel(pool: LocalPool) -> None:
    outcome = judged(pool, "hostile/jit_error").outcome
    assert isinstance(outcome, CompileError) and outcome.kind == "jit"
    assert not outcome.message.startswith("CompilationError: at ")
    source = read_entry(FOLDER / "hostile/jit_error.py").code.splitlines()
    assert (
        outcome.line and "tl." in source[outcome.line - 1] and "[(" not in source[outcome.line - 1]
    )


def test_a_tail_that_nobody_wrote_is_uninitialized_memory(pool: LocalPool) -> None:
    outcome = judged(pool, "hostile/leaves_the_tail_unwritten").outcome
    assert isinstance(outcome, Incorrect) and outcome.kind == "not_written"
    assert outcome.wrong and outcome.total and 0.2 < outcome.wrong / outcome.total < 0.3
    assert outcome.pattern and [
        (span.dim, span.stop == span.size) for span in outcome.pattern.where
    ] == [(0, True)]


def test_a_launch_that_cuda_refuses_is_named(pool: LocalPool) -> None:
    outcome = judged(pool, "hostile/launches_too_many_threads").outcome
    assert isinstance(outcome, Incorrect) and "CUDA refused a kernel launch" in outcome.message


@pytest.mark.parametrize(
    "name",
    ["matmul_preallocated", "matmul_cuda_graph", "softmax_graph_static_input", "softmax_side_stream",
     "row_norms_two_streams"],
)  # fmt: skip
def test_calls_are_queued_wherever_they_can_be(pool: LocalPool, name: str) -> None:
    outcome = timed(judged(pool, f"honest/{name}"))
    assert outcome.queued and outcome.speedup is not None and 0.2 < outcome.speedup < 5


@pytest.mark.parametrize("name", ["softmax_looks_at_its_input", "softmax_own_stream_waited_for"])
def test_calls_that_cannot_be_queued_are_timed_with_their_host(pool: LocalPool, name: str) -> None:
    outcome = judged(pool, f"honest/{name}").outcome
    assert (
        isinstance(outcome, Correct)
        and not outcome.queued
        and outcome.speedup is not None
        and outcome.speedup < 5
    )


@pytest.mark.parametrize(
    ("problem", "bound", "least"),
    [
        ("L1_23_Softmax", "memory", 0.3),
        ("L9_2_Reduction_Sum", "memory", 0.6),
        ("L1_1_Square_matrix_multiplication_", "compute", 0.6),
    ],
)
def test_a_reference_is_below_the_roofline(
    pool: LocalPool, problem: str, bound: str, least: float
) -> None:
    task = load_problem(problem)
    judgement = pool.submit(task, Submission(code=as_submission(task.source)), CUDA).result(280)
    outcome = timed(judgement)
    held = outcome.roofline
    assert held is not None and outcome.submission_seconds is not None
    assert (held.bound, least < held.fraction < 1.1) == (bound, True), held
    assert held.fraction == pytest.approx(held.seconds / outcome.submission_seconds)
    assert held.memory_ceiling < judgement.device.bandwidth
    assert outcome.threads is None


COPY = """
import torch
class ModelNew(torch.nn.Module):
    calls, side = 0, torch.cuda.Stream()
    def forward(self, x):
        self.calls += 1
        out = torch.softmax(x, dim=1)
        {also}
        return out
"""
TIMED_CALL = 8
"""More calls of a case than are screened, and fewer than are made in all."""


def test_the_reference_is_as_fast_as_itself(pool: LocalPool) -> None:
    outcome = timed(
        pool.submit(SOFTMAX, Submission(code=COPY.format(also="pass")), CUDA).result(280)
    )
    assert outcome.speedup_interval is not None
    low, high = outcome.speedup_interval
    assert 0.995 * low <= 1.0 <= 1.005 * high and high - low < 0.1


def test_a_reference_that_comes_to_wait_for_the_device_is_timed_call_by_call(
    pool: LocalPool,
) -> None:
    """It is found out beside calls that are queued, and these are not left waiting."""
    problem = Problem(
        id="waits", name="waits", statement="",
        source="import torch\nclass Model(torch.nn.Module):\n    calls = 0\n    def forward(self, x):\n"
        "        self.calls += 1\n        if self.calls > 2 and x.is_cuda:\n            torch.cuda.synchronize()\n"
        "        return torch.softmax(x, dim=1)\n"
        "def get_inputs(): return [torch.randn(8192, 8192)]\ndef get_init_inputs(): return []\n",
    )  # fmt: skip
    outcome = timed(
        pool.submit(problem, Submission(code=COPY.format(also="pass")), CUDA).result(100)
    )
    assert outcome.queued and outcome.speedup is not None and 0.9 < outcome.speedup < 2


def test_a_kernel_that_goes_on_after_its_call_gains_nothing(pool: LocalPool) -> None:
    """It has the device in turn with the reference and with what the reference is held against."""
    code = COPY.format(also="with torch.cuda.stream(self.side): torch.cuda._sleep(20_000_000)")
    outcome = pool.submit(SOFTMAX, Submission(code=code), CUDA).result(280).outcome
    assert no_gain(outcome) and outcome.category in ("correct", "correctness"), outcome


@pytest.mark.timeout(120)
def test_a_hang_in_a_timed_call_ends_soon_and_the_next_judgement_is_right(pool: LocalPool) -> None:
    code = COPY.format(also=f"self.calls == {TIMED_CALL} and torch.cuda._sleep(1 << 40)")
    judgement = pool.submit(SOFTMAX, Submission(code=code), CUDA).result(100)
    assert (judgement.outcome.category, judgement.outcome.kind) == ("runtime", "timeout")
    assert 0.4 < judgement.seconds.time < 4.0
    assert judged(pool, "honest/softmax_triton").outcome.category == "correct"


@pytest.mark.parametrize(
    "crash",
    ["__import__('os')._exit(5)", "out.flatten()[torch.full((4,), 1 << 40, device=x.device)]"],
)
def test_a_crash_in_a_timed_call_is_a_runtime_error(pool: LocalPool, crash: str) -> None:
    code = COPY.format(also=f"self.calls == {TIMED_CALL} and {crash}")
    judgement = pool.submit(SOFTMAX, Submission(code=code), CUDA).result(280)
    assert judgement.outcome.category == "runtime" and judgement.seconds.time > 0
    assert judged(pool, "honest/softmax_triton").outcome.category == "correct"


def test_a_good_kernel_follows_an_illegal_access(pool: LocalPool) -> None:
    assert judged(pool, "hostile/illegal_access").outcome.kind == "illegal_access"
    assert judged(pool, "honest/softmax_triton").outcome.category == "correct"


ASSERTS = Problem(
    id="asserts", name="asserts", statement="",
    source="import torch\nclass Model(torch.nn.Module):\n"
    "    def forward(self, x): return x[torch.full((4,), 10**7, device=x.device)]\n"
    "def get_inputs(): return [torch.rand(64, 64)]\ndef get_init_inputs(): return []\n",
)  # fmt: skip


@pytest.mark.timeout(280)
def test_a_reference_that_loses_the_context_fails_alone(pool: LocalPool) -> None:
    entry = read_entry(FOLDER / "honest/softmax_triton.py")
    code = [Submission(code=f"{entry.code}\n# {i}\n") for i in range(6)]
    good = [pool.submit(SOFTMAX, each, CUDA) for each in code[:3]]
    bad = pool.submit(ASSERTS, Submission(code=entry.code), CUDA)
    good += [pool.submit(SOFTMAX, each, CUDA) for each in code[3:]]
    with pytest.raises(ProblemError, match="asserts: its reference fails"):
        bad.result(280)
    assert [future.result(280).outcome.category for future in good] == ["correct"] * 6


def test_the_gpus_of_a_host_are_counted_whatever_cuda_is_given() -> None:
    code = "import torch; from kevin_env.judge.device import gpus_of_host; print(gpus_of_host(torch.device('cuda:0')))"
    told = subprocess.run([sys.executable, "-c", code], env=os.environ | {"CUDA_VISIBLE_DEVICES": "0"},
                          capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert int(told) >= torch.cuda.device_count()


@pytest.mark.timeout(120)
def test_a_good_kernel_follows_a_hang(pool: LocalPool) -> None:
    hung = judged(pool, "hostile/endless_kernel", CUDA.model_copy(update={"call_timeout": 3.0}))
    assert (hung.outcome.category, hung.outcome.kind) == ("runtime", "timeout")
    assert judged(pool, "honest/softmax_triton").outcome.category == "correct"


SLOW = """
import torch
class ModelNew(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        if {when}:
            torch.cuda._sleep({cycles})
        print("called", flush=True)
        return torch.softmax(x, dim=1)
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("when", "most"), [("self.calls == 1", 8.0), ("self.calls == 2", 4.0)])
def test_a_hang_costs_little_more_than_its_limit(pool: LocalPool, when: str, most: float) -> None:
    """Behind the kernel that hangs in the first call another one is loaded: `forward` does not
    return.
    """
    code = SLOW.format(when=when, cycles=1 << 40)
    judgement = pool.submit(SOFTMAX, Submission(code=code), CUDA).result(100)
    assert (judgement.outcome.category, judgement.outcome.kind) == ("runtime", "timeout")
    assert judgement.seconds.load + judgement.seconds.verify < most


@pytest.mark.timeout(120)
def test_a_kernel_that_is_much_slower_gets_few_timed_calls(pool: LocalPool) -> None:
    code = SLOW.format(when="True", cycles=4 * 10**8)
    judgement = pool.submit(SOFTMAX, Submission(code=code), CUDA).result(100)
    outcome = judgement.outcome
    assert isinstance(outcome, Correct) and outcome.speedup is not None and outcome.speedup < 0.05
    assert judgement.log.count("called") < 20


@pytest.mark.parametrize(
    "name",
    [
        "writes_the_word_early", "says_it_is_through_and_works", "writes_a_later_word", "side_stream_not_joined",
        "leaves_kernels_running", "head_start",
    ],
)  # fmt: skip
def test_the_clock_gives_nothing_away(pool: LocalPool, name: str) -> None:
    outcome = judged(pool, f"hostile/{name}").outcome
    assert no_gain(outcome), outcome


def test_an_early_claim_is_caught(pool: LocalPool) -> None:
    assert judged(pool, "hostile/early_done").outcome.kind == "early_done"


def test_tf32_is_not_float32(pool: LocalPool) -> None:
    outcome = judged(pool, "hostile/tf32_inside").outcome
    assert (outcome.category, outcome.kind) == ("correctness", "values")
    assert judged(pool, "honest/matmul_preallocated").outcome.category == "correct"


def test_memory_comes_back(pool: LocalPool) -> None:
    # what is shared with processes that live on is kept, and torch's cache varies by an input set
    judged(pool, "honest/softmax_triton", problem="L1_23_Softmax")
    before = used_memory()
    for _ in range(6):
        judged(pool, "honest/softmax_triton", problem="L1_23_Softmax")
    assert used_memory() - before < 4 * GIB, "less than an input of each"


def used_memory() -> int:
    """Bytes in use on the device by whomever, once all that ended are gone."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    seen = list[int]()
    while len(seen) < 6 or len(set(seen[-6:])) > 1:
        time.sleep(1)
        seen.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return seen[-1] << 20


NEIGHBOUR = """
import sys, torch
free, _ = torch.cuda.mem_get_info()
kept = [torch.empty(free - int(sys.argv[1]), dtype=torch.uint8, device="cuda")]
print("full", flush=True)
sys.stdin.readline()
"""


def test_a_neighbour_that_fills_the_memory_is_nobodys_verdict() -> None:
    with LocalPool() as pool:
        neighbour = subprocess.Popen(
            [sys.executable, "-c", NEIGHBOUR, str(3 * GIB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert neighbour.stdout and neighbour.stdout.readline().strip() == "full"
            with contextlib.suppress(
                JudgeError
            ):  # the judge needs memory too, and may say that it has none
                outcome = judged(pool, "honest/softmax_triton", problem="L1_23_Softmax").outcome
                assert outcome.category == "correct", outcome
        finally:
            neighbour.communicate("\n")
        outcome = judged(pool, "honest/softmax_triton", problem="L1_23_Softmax").outcome
        assert outcome.category == "correct", outcome


def test_several_devices_share_the_work(pool: LocalPool) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one device here")
    entry = read_entry(FOLDER / "honest" / "softmax_triton.py")
    both = Options(device="cuda:0,1")
    futures = [
        pool.submit(SOFTMAX, Submission(code=f"{entry.code}\n# {i}\n"), both) for i in range(4)
    ]
    judgements = [future.result(280) for future in futures]
    assert {judgement.device.device for judgement in judgements} == {"cuda:0", "cuda:1"}
    for judgement in judgements:
        timed(judgement)


def test_two_clients_on_one_device_do_not_disturb_each_other(pool: LocalPool) -> None:
    entry = read_entry(FOLDER / "honest/softmax_triton.py")
    with LocalPool() as other:
        futures = [
            each.submit(SOFTMAX, Submission(code=entry.code), CUDA)
            for each in (pool, other)
            for _ in range(2)
        ]
        speedups = [timed(future.result(280)).speedup or 0.0 for future in futures]
    assert max(speedups) < 1.1 * min(speedups), speedups
