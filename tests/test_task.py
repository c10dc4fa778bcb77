"""The task says of a problem what is true in every call, and no more."""

from typing import Any

import pytest
import torch

from kevin_env.feedback import render_task
from kevin_env.judge.api import CaseFacts, DeviceInfo, Facts, InputFacts, Options
from kevin_env.judge.inputs.facts import find_facts
from kevin_env.pools.scripted import SCRIPTED_CPU, SCRIPTED_GPU
from kevin_env.problem import Problem, data_folder, list_problems
from kevin_env.rules import check_rules
from kevin_env.settings import Settings

SOURCE = '''"""Looks up rows."""
import torch

rows = 8
# The longest rows do not fit.
# Two lines about the checker.
CASES = {"odd": {"rows": 7}}
DISTRIBUTIONS = ("own",)  # fmt: skip

# What the model needs.
SCALE = 2.0
# fmt: off


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("order", torch.arange(3))

    def forward(self, table, index, length, x, y):
        return (table[index][:, self.order] * self.scale + length * SCALE, x + y)  # fmt: skip


def get_inputs():
    index = torch.randint(0, rows, (4096,))
    image = torch.randint(0, 1 << 20, (64,))
    wide = torch.randn(5, 1).expand(5, 4)
    return [torch.randn(rows, 3), index, image[:1], torch.randn(4, 5).t(), wide]


def get_init_inputs():
    return []
'''
PROBLEM = Problem(id="p", name="p", source=SOURCE, statement="Looks up rows.", cases=("main",))


@pytest.fixture(scope="module")
def found() -> Facts:
    return find_facts(PROBLEM, torch.device("cpu")).told(SCRIPTED_CPU, Options())


def task(facts: Facts, device: DeviceInfo = SCRIPTED_GPU, **settings: object) -> str:
    facts = facts.model_copy(update={"device": device})
    return render_task(PROBLEM, facts, Settings.of(settings))


PAPER: dict[str, Any] = {"templates": "kevin-paper"}


def of_dtype(dtype: str) -> Facts:
    x = InputFacts(name="x", dtype=dtype, shape=(8,))
    case = CaseFacts(name="main", inputs=(x,), outputs=(f"{dtype}[8]",))
    return Facts(
        device=SCRIPTED_GPU, cases=(case,), distributions=("own: as drawn",), tolerance="Close.",
        precision="ieee", weights=(),
    )  # fmt: skip


def test_a_range_of_integers_is_stated_where_every_draw_reaches_it(found: Facts) -> None:
    text = task(found)
    assert "`index`: int64[4096], values from 0 to 7;" in text
    assert "`length`: int64[1];" in text and "whole numbers" not in text


def test_the_layout_is_stated_where_the_shape_does_not_tell_it(found: Facts) -> None:
    text = task(found)
    assert "`x`: float32[5, 4] (strides [1, 5]);" in text
    assert (
        "`y`: float32[5, 4] (all slices along dimension 1 are the same, a contiguous copy)." in text
    )
    assert "`table`: float32[8, 3];" in text


def test_comments_on_what_is_for_the_judge_are_hidden_with_it(found: Facts) -> None:
    text = task(found)
    assert "# What the model needs.\nSCALE = 2.0" in text and "rows = 8" in text
    assert not any(word in text for word in ("longest rows", "the checker", "fmt:", "CASES"))
    for problem in list_problems():
        assert "fmt:" not in render_task(problem, found, Settings()), problem.id


def test_weights_and_buffers_are_told_apart(found: Facts) -> None:
    text = task(found)
    assert "Parameters: `scale: float32[3]`. Buffers (optional): `order: int64[3]`." in text
    assert "Your own `load_state_dict`" in text
    assert "load_state_dict" not in task(found, rules="open")


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        ("float32", "3xTF32 is accurate enough"),
        ("complex64", "3xTF32 is accurate enough"),
        ("float16", "Accumulate float16 products in float32; tensor"),
        ("bfloat16", "Accumulate bfloat16 products in float32; tensor"),
        ("int64", ""),
    ],
)
def test_the_precision_that_is_needed_is_that_of_the_dtypes(dtype: str, said: str) -> None:
    text = task(of_dtype(dtype))
    assert said in text
    assert ("float32 accuracy" in text) is (dtype in ("float32", "complex64"))
    assert "3xTF32" not in task(of_dtype(dtype), SCRIPTED_CPU)


def test_inputs_of_one_distribution_need_no_list() -> None:
    assert "Each call gets new inputs from `get_inputs`.\n" in task(of_dtype("int64"))
    two = of_dtype("int64").model_copy(update={"distributions": ("own: a", "wide: b")})
    listed = "one of these distributions:\n- own: a\n- wide: b"
    assert f"Their values have {listed}" in task(two)
    several = two.model_copy(update={"cases": two.cases * 2})
    assert f"An input set is a case and {listed}" in task(several)


def test_what_an_engineer_asks_first_is_answered() -> None:
    cuda = task(of_dtype("float32"), language="cuda")
    assert "-gencode=arch=compute_90a,code=sm_90a" in cuda and "CUB and Thrust are allowed" in cuda
    older = SCRIPTED_GPU.model_copy(update={"capability": "8.0"})
    assert "wgmma" not in task(of_dtype("float32"), older, language="cuda")
    assert "the standard library is allowed" in task(of_dtype("float32"), language="cpp")
    assert "A later failure does not undo a success." in cuda and "what to try next" in cuda


def test_the_papers_prompt_names_what_varies() -> None:
    facts = of_dtype("float32")
    odd = facts.cases[0].model_copy(update={"name": "odd", "overrides": {"n": 7, "kind": "none"}})
    several = facts.model_copy(update={"cases": (*facts.cases, odd)})
    text = task(several, templates="kevin-paper")
    assert "checked with case `main`, timed; case `odd` (n = 7, kind = 'none')." in text
    assert "checked with" not in task(facts, templates="kevin-paper")


def test_a_run_in_another_type_says_so() -> None:
    text = task(of_dtype("bfloat16"), dtype="bfloat16")
    assert "It is judged in bfloat16" in text and "`.to(torch.bfloat16)`" in text
    assert "judged in" not in task(of_dtype("bfloat16"))
    assert "converted to float16" in task(of_dtype("float16"), dtype="float16", **PAPER)
    assert "converted" not in task(of_dtype("float16"), **PAPER)


@pytest.mark.parametrize("language", ["cpp", "cuda", "triton"])
def test_a_run_with_gradients_says_how_and_shows_a_backward_pass(language: str) -> None:
    facts = of_dtype("float32")
    forward = render_task(PROBLEM, facts, Settings.of({"language": language}), example=True)
    settings = Settings.of({"language": language, "backward": True})
    text = render_task(PROBLEM, facts, settings, example=True)
    assert "# Gradients" in text and "In `forward`, `backward` and all they call" in text
    assert "no_grad" not in text and text.count("def backward(ctx, grad_out)") == 1
    assert "# Gradients" not in forward and "no_grad" in forward and "def backward" not in forward
    assert "backward pass" in task(facts, backward=True, **PAPER)


@pytest.mark.parametrize("language", ["cpp", "cuda", "triton"])
def test_the_example_with_a_backward_pass_keeps_the_rules(language: str) -> None:
    code = (data_folder("prompts") / f"examples/backward/{language}.py").read_text()
    assert check_rules(code, "kernel", backward=True) is None
