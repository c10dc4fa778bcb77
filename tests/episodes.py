"""What the tests of turns, episodes and environments share: a problem, replies, and every outcome
there is.
"""

from pathlib import Path
from typing import Any, get_args

from kevin_env.fences import Fences
from kevin_env.outcome import OUTCOME, OUTCOME_TYPES, Correct, Incorrect, Outcome
from kevin_env.problem import Problem, parse_problem
from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

SOURCE = '''"""Doubles x."""
import torch

N = 1024

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(N, N)]

def get_init_inputs():
    return []
'''

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
"""

REPLY = (
    f"<think>Double it.</think>\n```python\n{KERNEL}```\nOne program a block of 1024 elements.\n"
)


def another(number: int) -> str:
    """A reply with other code than `REPLY` and than that of any other number."""
    return REPLY.replace("BLOCK=1024", f"BLOCK=1024, num_warps={number}")


def another_file(number: int) -> str:
    """The file in that reply."""
    return next(iter(Fences(another(number)).blocks())).code


def noisy(speedup: float, low: float) -> Correct:
    """A right verdict whose time varies."""
    return Correct(
        message="Correct.", kind="too_noisy", speedup=speedup, speedup_interval=(low, 2 * speedup)
    )


def problem_file(folder: Path, name: str = "7_Double") -> Problem:
    """A problem that lies in a file."""
    path = folder / f"{name}.py"
    path.write_text(SOURCE)
    return parse_problem(path)


def recorded(file: Path) -> list[Trajectory]:
    return [each for each in read_trajectories(file) if isinstance(each, Trajectory)]


def correct(speedup: float) -> Correct:
    return Correct(
        message="Correct.", kind="timed", speedup=speedup,
        speedup_interval=(speedup * 0.9, speedup * 1.1),
        reference_seconds=1e-3, submission_seconds=1e-3 / speedup,
    )  # fmt: skip


WRONG = Incorrect(
    message="512 of 1024 elements differ.", kind="values", input_set="main/own", wrong=512, total=1024,
)  # fmt: skip


def every_outcome() -> list[Outcome]:
    """One outcome of every kind of every type, built from the types themselves."""
    outcomes: list[Outcome] = []
    for kind_of_ending in OUTCOME_TYPES:
        category = kind_of_ending.model_fields["category"].default
        for kind in get_args(kind_of_ending.model_fields["kind"].annotation):
            values = {"category": category, "kind": kind, "message": f"It was {kind}.", "line": 3}
            if category == "correctness":
                values["input_set"] = "main/own"
            if kind == "timed":
                values |= {"speedup": 2.5, "speedup_interval": (2.4, 2.6)}
            outcomes.append(OUTCOME.validate_python(values))
    return outcomes


EXAMPLE = Path(__file__).parents[1] / "prompts" / "examples" / "triton.py"
OTHER_SETTINGS: dict[str, Any] = {
    "max_turns": 3, "gamma": 0.8, "returns": "max", "device": "cuda", "language": "cuda", "rules": "open",
    "glue": 0.05,
    "score": "kernrl", "bound": "lower", "pay": "improvement", "pay_repeats": True, "noisy": "lower",
    "templates": "kevin-paper", "context": "last_n:2", "context_tokens": 9000, "tokenizer": "", "hints": True,
    "examples": "zero", "index": "kernels",
    "baseline": "compile", "start": str(EXAMPLE), "inputs": "shipped", "dtype": "bfloat16", "backward": True,
    "call_timeout": 7.5, "build_timeout": 90.0, "timing_precision": 0.01,
    "profile": "kernels", "sanitize": True, "replay": "never", "require_sandbox": True, "stop_on": 2.5,
}  # fmt: skip
"""Of each setting another value than the one that it has by itself."""
