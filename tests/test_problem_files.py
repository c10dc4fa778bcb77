"""Every problem that ships: its statement and cases are there, and its reference is right. What
`lint/test_lint_problems.py` finds nothing of is not looked at here.
"""

import itertools
import math
from types import ModuleType
from typing import Any

import pytest
import torch

from kevin_env.judge.inputs.source import apply_overrides, overrides_of
from kevin_env.problem import Problem, list_problems, load_problem

PROBLEMS = {problem.id: problem for problem in list_problems()}
EVEN = {
    "L4_6_INT4_Quantized_GEMM",  # two weights share a byte
    "L4_19_MoE_GroupedGEMM_BF16",  # offsets of an odd number of experts
    "L4_20_MoE_GroupedGEMM_FP8",  # the same
    "L4_21_MXFP4_GEMM",  # 32 weights share a scale
    "L4_22_NVFP4_GEMM",  # 16 weights share a scale
    "L4_23_INT4_GEMM_ZeroPoints",  # two weights share a byte
    "L4_26_MXFP4_Quantize",  # 32 values share a scale
    "L4_28_SwiGLU_FP8Quantize",  # two projections side by side
    "L5_5_ParticleInCell_Deposit",  # pairs of coordinates
    "L5_7_MonteCarlo_Pi",  # pairs of coordinates
    "L8_3_FrameInterpolation",  # flows have two components
    "L8_4_VideoDenoising_Temporal",  # the same
    "L10_3_MerkleTreeRoot",  # hashes of 32 bytes
    "L10_4_AES_ECB",  # blocks of 16 bytes
    "L10_5_ChaCha20",  # keys of 8 words
    "L10_14_NumberTheoreticTransform",  # powers of two
}
FIRST = {problem.level: problem.id for problem in reversed(PROBLEMS.values())}
"""One of each level, tested by `make test`."""
every_problem = pytest.mark.parametrize(
    "problem",
    [
        pytest.param(it, id=id, marks=[pytest.mark.full] * (id not in FIRST.values()))
        for id, it in PROBLEMS.items()
    ],
)


def run(problem: Problem, overrides: dict[str, Any]) -> ModuleType:
    """The problem's module, with those constants in the place of its own."""
    module = ModuleType(problem.id)
    exec(compile(apply_overrides(problem.source, overrides), problem.path, "exec"), module.__dict__)
    return module


def case(problem: Problem, name: str) -> ModuleType:
    return run(problem, overrides_of(problem, name))


def draw(module: ModuleType, seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    return module.get_inputs()


def build(module: ModuleType) -> torch.nn.Module:
    """The reference with random weights: what its constructor draws may be constant, as ones and
    zeros are.
    """
    torch.manual_seed(7)
    model = module.Model(*module.get_init_inputs())
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=1 / math.sqrt(parameter.shape[-1]))
    return model


def call(model: torch.nn.Module, inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        result = model(*inputs)
    return result if isinstance(result, tuple) else (result,)


@every_problem
def test_statement_and_cases(problem: Problem) -> None:
    assert len(problem.statement) > 100
    assert {"main", "cpu", "odd"} <= set(problem.cases)
    assert len(problem.cases) >= 4
    assert max(map(len, problem.source.splitlines())) <= 120


@every_problem
def test_every_case_runs_and_differs_in_its_shapes(problem: Problem) -> None:
    shapes = set()
    for name in problem.cases[1:]:
        module = case(problem, name)
        inputs = draw(module, 0)
        assert all(value.is_contiguous() for value in inputs)
        outputs = [
            each.float() if each.element_size() == 1 else each
            for each in call(build(module), inputs)
        ]
        assert all(torch.isfinite(output).all() for output in outputs)
        shapes.add(tuple(value.shape for value in inputs))
    assert len(shapes) == len(problem.cases) - 1


@every_problem
def test_the_odd_case_has_odd_dimensions(problem: Problem) -> None:
    shapes = [tuple(value.shape) for value in draw(case(problem, "odd"), 0)]
    assert problem.id in EVEN or all(size % 2 == 1 for shape in shapes for size in shape), shapes


# Each formula below is written from the problem's statement, in float64, without what the reference
# is made of.


def close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-6)


def small(id: str, **overrides: Any) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    module = run(load_problem(id), overrides)
    return build(module), draw(module, 3)


def erf_gelu(x: torch.Tensor) -> torch.Tensor:
    values = [0.5 * value * (1 + math.erf(value / math.sqrt(2))) for value in x.flatten().tolist()]
    return torch.tensor(values, dtype=torch.float64).reshape(x.shape)


def row_softmax(x: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(x.double() - x.double().max(1, keepdim=True).values)
    return powers / powers.sum(1, keepdim=True)


def test_matmul_is_rows_times_columns() -> None:
    model, (a, b) = small("L1_1_Square_matrix_multiplication_", N=17)
    close(call(model, [a, b])[0], (a.double()[:, :, None] * b.double()[None]).sum(1))


def test_softmax_is_exp_over_its_sum() -> None:
    model, (x,) = small("L1_23_Softmax", batch_size=5, dim=33)
    close(call(model, [x])[0], row_softmax(x))
    huge = torch.tensor([[1e3, -1e3, 999.0]])
    close(call(model, [huge])[0], row_softmax(huge))


def test_gelu_is_the_erf_form() -> None:
    model, (x,) = small("L1_26_GELU_", batch_size=3, dim=101)
    close(call(model, [x])[0], erf_gelu(x))


def test_rms_norm_divides_by_the_root_mean_square_of_the_features() -> None:
    model, (x,) = small("L1_36_RMSNorm_", batch_size=2, features=5, dim1=3, dim2=4)
    x[1] *= 1e-3
    wide = x.double()
    squares = torch.zeros(2, 3, 4, dtype=torch.float64)
    for feature in range(5):
        squares += wide[:, feature] ** 2
    close(call(model, [x])[0], wide / torch.sqrt(squares / 5 + 1e-5)[:, None])


def test_layer_norm_is_over_the_whole_sample() -> None:
    model, (x,) = small("L1_40_LayerNorm", batch_size=3, features=4, dim1=5, dim2=6)
    weight, bias = (
        value.detach().double()
        for value in (model.get_parameter("ln.weight"), model.get_parameter("ln.bias"))
    )
    rows = []
    for sample in x.double():
        mean = sample.sum() / sample.numel()
        variance = ((sample - mean) ** 2).sum() / sample.numel()
        rows.append((sample - mean) / (variance + 1e-5).sqrt() * weight + bias)
    close(call(model, [x])[0], torch.stack(rows))


def test_sum_reduction_keeps_the_middle_dimension() -> None:
    model, (x,) = small("L1_47_Sum_reduction_over_a_dimension", batch_size=2, dim1=7, dim2=3)
    sums = [[[sum(x[b, i, j].item() for i in range(7)) for j in range(3)]] for b in range(2)]
    close(call(model, [x])[0], torch.tensor(sums, dtype=torch.float64))


def test_cross_entropy_is_the_mean_of_log_sum_exp_minus_the_right_score() -> None:
    model, (predictions, targets) = small("L1_95_CrossEntropyLoss", batch_size=6, num_classes=9)
    losses = [
        math.log(sum(math.exp(score) for score in row)) - row[target]
        for row, target in zip(predictions.tolist(), targets.tolist(), strict=True)
    ]
    close(
        call(model, [predictions, targets])[0], torch.tensor(sum(losses) / 6, dtype=torch.float64)
    )


def test_matmul_gelu_softmax_is_the_three_in_turn() -> None:
    model, (x,) = small("L2_99_Matmul_GELU_Softmax", batch_size=4, in_features=11, out_features=13)
    weight = model.get_parameter("linear.weight").detach().double()
    bias = model.get_parameter("linear.bias").detach().double()
    z = (x.double()[:, None, :] * weight).sum(2) + bias
    close(call(model, [x])[0], row_softmax(erf_gelu(z)))


def sobel_slices(image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    height, width = image.shape
    padded = torch.zeros(height + 2, width + 2, dtype=torch.float64)
    padded[1:-1, 1:-1] = image
    at = {
        (r, c): padded[r : r + height, c : c + width]
        for r, c in itertools.product(range(3), repeat=2)
    }
    gx = at[0, 2] + 2 * at[1, 2] + at[2, 2] - at[0, 0] - 2 * at[1, 0] - at[2, 0]
    gy = at[2, 0] + 2 * at[2, 1] + at[2, 2] - at[0, 0] - 2 * at[0, 1] - at[0, 2]
    return gx, gy


def test_sobel_gives_strength_and_direction_of_the_gradient() -> None:
    model, (image,) = small("L6_5_Sobel_EdgeDetect", image_height=7, image_width=11)
    magnitude, angle = call(model, [image])
    gx, gy = sobel_slices(image)
    close(magnitude, torch.hypot(gx, gy))
    close(angle, torch.atan2(gy, gx))


def loop_scan(values: torch.Tensor) -> torch.Tensor:
    sums = list(itertools.accumulate(values.tolist(), initial=0.0))[:-1]
    return torch.tensor(sums, dtype=torch.float64)


def test_exclusive_scan_begins_with_zero_and_leaves_out_its_own_element() -> None:
    model, _ = small("L9_1_PrefixSum_ExclusiveScan", array_size=100)
    values = torch.randn(100)
    close(call(model, [values])[0], loop_scan(values))
