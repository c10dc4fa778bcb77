"""The work of a reference, and outcomes with their roofline."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from judges import ScriptedClock
from torch.utils.flop_counter import FlopCounterMode

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.judge import RETRIES, Judge
from kevin_env.judge.verdict import flag_name
from kevin_env.judge.workers.usage import descendants
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct
from kevin_env.problem import Problem, load_problem
from kevin_env.profile.ceilings import CeilingStore
from kevin_env.profile.roofline import SPECIAL, find_work
from kevin_env.roofline import Ceilings, Work
from kevin_env.score import SCORES

CPU = torch.device("cpu")


SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(1000, 64))
        self.unused = torch.nn.Parameter(torch.randn(50))
    def forward(self, x, *more):
        return {expression}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


X = "torch.randn(256, 128)"


SIZE = 256 * 128 * 4


def work(expression: str, inputs: str = X, head: str = "") -> Work:
    source = f"{head}\n{SOURCE.format(expression=expression, inputs=inputs)}"
    case = Case(Problem(id="x", name="x", source=source), "main", CPU)
    case.draw_weights(1)
    return find_work(case, *case.draw_inputs("own", 1))


@pytest.mark.parametrize(
    ("expression", "inputs", "read", "written", "operations"),
    [
        ("x * 2", X, SIZE, SIZE, 256 * 128),
        ("x.sum(1)", X, SIZE, 256 * 4, 256 * 128),
        ("x.t().contiguous()", X, SIZE, SIZE, 0),
        ("x.softmax(1)", X, SIZE, SIZE, SPECIAL * 256 * 128),
        ("torch.nn.functional.gelu(x)", X, SIZE, SIZE, SPECIAL * 256 * 128),
        ("x[:, ::2] * 2", X, SIZE, SIZE // 2, 256 * 64),  # every sector has elements of both kinds
        ("x[:, :64] + x[:, 64:]", X, SIZE, SIZE // 2, 256 * 64),
        ("x[more[0]]", f"{X}, torch.arange(8)", 8 * 512 + 64, 8 * 512, 0),
        (
            "torch.nn.functional.embedding(x, self.table)", "torch.arange(10)",
            80 + 10 * 256, 10 * 256, 0,
        ),
        ("torch.empty_like(x).copy_(more[0])", f"{X}, torch.randn(128)", 512, SIZE, 0),
        ("x.expand(4, 256, 128) * 2", "torch.randn(256, 128)", SIZE, 4 * SIZE, 4 * 256 * 128),
        ("x.unfold(0, 4, 2).sum(-1)", "torch.randn(64)", 256, 31 * 4, 31 * 4),
    ],
)  # fmt: skip
def test_bytes_and_operations(
    expression: str, inputs: str, read: int, written: int, operations: int
) -> None:
    found = work(expression, inputs)
    assert (found.read, found.written, found.operations, found.products) == (
        read,
        written,
        operations,
        {},
    )


def test_weights_count_where_they_are_read() -> None:
    found = work("x + self.table[:256].sum()")
    assert found.read == SIZE + 256 * 64 * 4


@pytest.mark.parametrize(
    ("expression", "head", "products"),
    [
        ("x @ x.t()", "", {"fp32": 2 * 256 * 256 * 128}),
        ("x @ x.t()", "PRECISION = 'tf32'", {"fp32": 2 * 256 * 256 * 128}),  # a CPU has none
        ("x.half() @ x.t().half()", "", {"fp16": 2 * 256 * 256 * 128}),
        ("x.bfloat16() @ x.t().bfloat16()", "", {"bf16": 2 * 256 * 256 * 128}),
        ("x.double() @ x.t().double() + (x @ x.t())", "", {"fp64": 2**24, "fp32": 2**24}),
        ("torch.nn.functional.linear(x, x)", "", {"fp32": 2**24}),
        (
            "torch.nn.functional.conv1d(x[None], torch.ones(8, 256, 3))",
            "",
            {"fp32": 2 * 8 * 256 * 3 * 126},
        ),
    ],
)
def test_products_by_what_they_are_computed_in(
    expression: str, head: str, products: dict[str, int]
) -> None:
    assert work(expression, head=head).products == products


@pytest.mark.parametrize(
    "problem",
    ["L1_1_Square_matrix_multiplication_", "L3_43_MinGPTCausalAttention", "L4_2_DeepSeek_MoE"],
)
def test_products_are_those_that_torch_counts(problem: str) -> None:
    case = Case(load_problem(problem), "cpu", CPU)
    case.draw_weights(1)
    skeleton, tensors = case.draw_inputs("own", 1)
    with FlopCounterMode(display=False) as theirs:
        case.runner(skeleton, [t.clone() for t in tensors])()
    assert sum(find_work(case, skeleton, tensors).products.values()) == theirs.get_total_flops() > 0


def test_counting_leaves_inputs_and_weights_alone() -> None:
    source = SOURCE.format(expression="(x.mul_(2), self.table.mul_(0) if False else x)", inputs=X)
    case = Case(Problem(id="x", name="x", source=source), "main", CPU)
    case.draw_weights(1)
    skeleton, tensors = case.draw_inputs("own", 1)
    before = [t.clone() for t in (*tensors, *case.model.state_dict().values())]
    find_work(case, skeleton, tensors)
    assert all(map(torch.equal, before, (*tensors, *case.model.state_dict().values())))


LINEAR = """
import torch
N = 8192
CASES = {"cpu": {"N": 4096}}
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 1)
def get_inputs():
    return [torch.randn(N, 16)]
def get_init_inputs():
    return []
"""


HONEST = LINEAR.replace("class Model(", "class ModelNew(")


PROBLEM = Problem(id="x", name="x", source=LINEAR, cases=("main", "cpu"))


PACE = Pace(pairs=(2, 2), seconds=60.0, warm_ups=1, sets=1, sets_of_others=1)


TIMED = Correct(
    kind="timed", message="Right.", speedup=1.0, speedup_interval=(0.9, 1.1),
    reference_seconds=0.01, submission_seconds=0.01,
)  # fmt: skip


LOW = Ceilings(reading=1.0, copying=1.0, rates={"fp32": 1.0})


HIGH = Ceilings(reading=1e15, copying=1e15, rates={"fp32": 1e18})


class Watched(ScriptedClock):
    """A scripted clock.

    Attributes:
        again: Whether each question for the device's ceilings was one to measure them again.
        states: What the submission's processes did meanwhile, as the kernel names it.
    """

    def __init__(self) -> None:
        super().__init__({"cpu": TIMED})
        self.again: list[bool] = []
        self.states: set[str] = set()


@pytest.fixture(scope="module")
def clocked(a_judge: Callable[..., Judge]) -> tuple[Judge, Watched]:
    clock = Watched()
    return a_judge(PACE, clock), clock


@pytest.fixture
def judge(clocked: tuple[Judge, Watched]) -> Judge:
    return clocked[0]


@pytest.fixture
def seen(clocked: tuple[Judge, Watched]) -> Watched:
    clock = clocked[1]
    clock.script, clock.cases, clock.again, clock.states = {"cpu": TIMED}, [], [], set()
    return clock


def judged(
    judge: Judge,
    code: str,
    seen: Watched,
    monkeypatch: pytest.MonkeyPatch,
    *ceilings: Ceilings,
    source: str = LINEAR,
) -> tuple[Correct, Judgement]:
    def of(self: CeilingStore, work: Work, again: bool = False) -> Ceilings:
        seen.again.append(again)
        end = time.monotonic() + 10
        while "R" in (found := set(states(seen.worker))) and time.monotonic() < end:
            time.sleep(0.001)  # one that was stopped has to run once to notice
        seen.states |= found
        return ceilings[-1] if again else ceilings[0]

    monkeypatch.setattr(CeilingStore, "of", of)
    problem = PROBLEM.model_copy(update={"source": source})
    judgement = judge.judge(
        problem, Submission(code=code), Options(device="cpu", inputs="shipped"), lambda _: None
    )
    assert isinstance(judgement.outcome, Correct), judgement
    return judgement.outcome, judgement


def states(worker: Worker) -> Iterator[str]:
    for process in descendants(worker.pid):
        with suppress(OSError):  # one that was dismissed may have ended
            yield Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def names(judgement: Judgement) -> list[str]:
    return [flag_name(flag) for flag in judgement.flags]


def test_a_time_below_the_roofline_is_believed_at_once(judge, seen, monkeypatch) -> None:
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, HIGH)
    assert (seen.cases, seen.again, names(judgement)) == (["cpu"], [False], [])
    held = outcome.roofline
    assert held is not None
    assert held.bytes == 2 * 4096 * 16 * 4
    assert 0 < held.fraction < 1
    assert held.fraction * (outcome.submission_seconds or 0) == pytest.approx(held.seconds)


def test_higher_ceilings_explain_a_time_above_the_roofline(judge, seen, monkeypatch) -> None:
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, LOW, HIGH)
    assert (seen.cases, seen.again, names(judgement)) == (["cpu"], [False, True], [])
    assert outcome.roofline is not None and outcome.roofline.fraction < 1


def test_a_time_above_the_roofline_is_paid_with_a_flag(judge, seen, monkeypatch) -> None:
    outcome, judgement = judged(judge, HONEST, seen, monkeypatch, LOW)
    # it does nothing while it is found out what the device reaches
    assert seen.states == {"T"}
    assert seen.cases == ["cpu"]
    assert (outcome.kind, outcome.speedup, names(judgement)) == ("timed", 1.0, ["above_roofline"])
    assert outcome.roofline is not None and outcome.roofline.above
    assert SCORES["roofline"](outcome) == pytest.approx(1.3)


def test_a_reference_that_cannot_be_watched_has_no_roofline(judge, seen, monkeypatch) -> None:
    module = "torch.utils._python_dispatch"
    watched = f"import torch\nfrom {module} import _get_current_dispatch_mode as watched\n"
    source = LINEAR.replace("import torch\n", watched).replace(
        "torch.softmax(x, 1)", "x * 2 if watched() is None else 1 / 0"
    )
    code = HONEST.replace("torch.softmax(x, 1)", "x * 2")
    outcome, judgement = judged(judge, code, seen, monkeypatch, LOW, source=source)
    assert (outcome.kind, outcome.roofline, names(judgement)) == ("timed", None, [])


@pytest.mark.parametrize(("retry", "times"), [(False, 1), (True, 1 + RETRIES)])
def test_a_noisy_time_is_taken_again_where_that_is_asked_for(
    judge, seen, retry: bool, times: int
) -> None:
    seen.script = {"cpu": TIMED.model_copy(update={"kind": "too_noisy"})}
    options = Options(device="cpu", retry_noisy=retry)
    outcome = judge.judge(PROBLEM, Submission(code=HONEST), options, lambda _: None).outcome
    assert (outcome.kind, seen.cases) == ("too_noisy", ["cpu"] * times)
