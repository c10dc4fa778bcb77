"""Level 3 (attention, blocks, and what else language models are trained with) against the
statements, in float64.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from test_problem_files import call, small

Array = np.ndarray[Any, np.dtype[Any]]


def exact(id: str, **overrides: Any) -> tuple[dict[str, Array], list[Array], list[Array]]:
    """A small case as the judge's oracle runs it: weights, inputs and outputs. No float may stay in
    a narrow type.
    """
    model, inputs = small(id, **overrides)
    model, wide = (
        model.double(),
        [value.double() if value.is_floating_point() else value for value in inputs],
    )
    outputs = call(model, wide)
    assert all(output.dtype in (torch.float64, torch.int64) for output in outputs)
    weights = {name: weight.numpy() for name, weight in model.state_dict().items()}
    return weights, [value.numpy() for value in wide], [output.numpy() for output in outputs]


def close(actual: Array, expected: Any, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, np.array(expected), rtol=1e-9, atol=atol)


def attend(q: Array, keys: Array, values: Array, sink: float = -math.inf) -> Array:
    """One query's average of values, by weights exp(q . k / sqrt(d)); a sink takes weight and has
    no value.
    """
    powers = [math.exp(sum(q * key) / math.sqrt(len(q))) for key in keys]
    weighted = np.sum([power * value for power, value in zip(powers, values, strict=True)], axis=0)
    return weighted / (sum(powers) + math.exp(sink))


def normalized(rows: Array, weight: Array, bias: Array) -> Array:
    mean = rows.sum(-1, keepdims=True) / rows.shape[-1]
    variance = ((rows - mean) ** 2).sum(-1, keepdims=True) / rows.shape[-1]
    return (rows - mean) / np.sqrt(variance + 1e-5) * weight + bias


def causal_layer(
    tokens: Array, heads: int, weights: dict[str, Array], causal: bool = True
) -> Array:
    """Attention of one sequence with packed projections `in` and `out`, each with weight and bias."""
    q, k, v = np.split(tokens @ weights["in.weight"].T + weights["in.bias"], 3, axis=1)
    size, attended = q.shape[1] // heads, np.zeros_like(q)
    for t, h in itertools.product(range(len(tokens)), range(heads)):
        part, seen = slice(h * size, (h + 1) * size), t + 1 if causal else len(tokens)
        attended[t, part] = attend(q[t, part], k[:seen, part], v[:seen, part])
    return attended @ weights["out.weight"].T + weights["out.bias"]


def packed(weights: dict[str, Array], prefix: str) -> dict[str, Array]:
    names = {"in": "c_attn", "out": "c_proj"}
    return {
        f"{a}.{kind}": weights[f"{prefix}{b}.{kind}"]
        for a, b in names.items()
        for kind in ("weight", "bias")
    }


def test_vision_attention_treats_pixels_as_tokens_and_keeps_the_residual() -> None:
    sizes = {"embed_dim": 6, "num_heads": 2, "batch_size": 2, "image_height": 2, "image_width": 3}
    w, (x,), (y,) = exact("L3_31_VisionAttention", **sizes)
    projections = {"in.weight": w["attn.in_proj_weight"], "in.bias": w["attn.in_proj_bias"]}
    projections |= {f"out.{kind}": w[f"attn.out_proj.{kind}"] for kind in ("weight", "bias")}
    for image, result in zip(x, y, strict=True):
        tokens = np.array([image[:, i, j] for i in range(2) for j in range(3)])
        rows = normalized(
            tokens + causal_layer(tokens, 2, projections, causal=False),
            w["norm.weight"],
            w["norm.bias"],
        )
        close(result, rows.T.reshape(6, 2, 3))


def test_min_gpt_attention_sees_no_later_token() -> None:
    w, (x,), (y,) = exact(
        "L3_43_MinGPTCausalAttention", batch_size=2, max_seqlen=9, seq_len=7, n_embd=6, n_head=2
    )
    close(y, [causal_layer(tokens, 2, packed(w, "")) for tokens in x])


def test_mini_gpt_block_is_two_residual_steps() -> None:
    w, (x,), (y,) = exact(
        "L3_44_MiniGPTBlock", batch_size=2, max_seqlen=9, seq_len=5, n_embd=6, n_head=3
    )
    for tokens, result in zip(x, y, strict=True):
        h = tokens + causal_layer(
            normalized(tokens, w["ln_1.weight"], w["ln_1.bias"]), 3, packed(w, "attn.")
        )
        z = (
            normalized(h, w["ln_2.weight"], w["ln_2.bias"]) @ w["mlp.c_fc.weight"].T
            + w["mlp.c_fc.bias"]
        )
        gelu = z / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
        close(result, h + gelu @ w["mlp.c_proj.weight"].T + w["mlp.c_proj.bias"])


def test_flash_attention_averages_values_up_to_the_diagonal() -> None:
    _, (q, k, v), (o,) = exact(
        "L3_101_FlashAttentionCausal", batch_size=2, num_heads=2, seq_len=9, head_dim=5
    )
    for b, h, i in np.ndindex(2, 2, 9):
        close(o[b, h, i], attend(q[b, h, i], k[b, h, : i + 1], v[b, h, : i + 1]))


def test_flash_attention_backward_is_the_slope_of_the_forward_pass() -> None:
    _, inputs, gradients = exact(
        "L3_102_FlashAttentionBackward", batch_size=1, num_heads=2, seq_len=5, head_dim=3
    )
    qkv, do = inputs[:3], inputs[3]

    def loss() -> float:
        q, k, v = qkv
        places = np.ndindex(1, 2, 5)
        return sum(
            sum(attend(q[b, h, i], k[b, h, : i + 1], v[b, h, : i + 1]) * do[b, h, i])
            for b, h, i in places
        )

    for value, gradient in zip(qkv, gradients, strict=True):
        for place in [(0, 0, 0, 0), (0, 0, 2, 1), (0, 1, 3, 2), (0, 1, 4, 0)]:
            kept, losses = value[place], []
            for step in (1e-5, -1e-5):
                value[place] = kept + step
                losses.append(loss())
            value[place] = kept
            assert gradient[place] == pytest.approx(
                (losses[0] - losses[1]) / 2e-5, rel=1e-6, abs=1e-8
            )


def test_sliding_window_attention_sees_its_window_and_a_sink() -> None:
    sizes = {"batch_size": 2, "num_heads": 3, "seq_len": 9, "head_dim": 5, "window": 4}
    w, (q, k, v), (o,) = exact("L3_103_SlidingWindowAttention", **sizes)
    for b, h, i in np.ndindex(2, 3, 9):
        seen = slice(max(0, i - 3), i + 1)
        close(o[b, h, i], attend(q[b, h, i], k[b, h, seen], v[b, h, seen], float(w["sinks"][h])))


def test_rotary_embedding_turns_pairs_by_position_and_leaves_the_rest() -> None:
    sizes = {
        "batch_size": 2, "seq_len": 5, "num_heads": 3, "num_kv_heads": 1, "head_dim": 7,
        "rotary_dim": 4,
    }  # fmt: skip
    _, (q, k, positions), outputs = exact("L3_104_RotaryEmbedding", **sizes, max_position=50)
    for x, y in zip((q, k), outputs, strict=True):
        for b, t, h in np.ndindex(x.shape[:3]):
            for i, rate in ((0, 1.0), (1, 0.01)):
                turned = complex(x[b, t, h, i], x[b, t, h, i + 2]) * np.exp(
                    1j * rate * positions[b, t]
                )
                close(y[b, t, h, [i, i + 2]], [turned.real, turned.imag], atol=1e-6)
        close(y[..., 4:], x[..., 4:])


def test_swiglu_gates_before_it_goes_down() -> None:
    w, (x,), (y,) = exact("L3_105_SwiGLU_MLP", num_tokens=3, hidden_size=5, intermediate_size=7)
    g, u = x @ w["gate_proj.weight"].T, x @ w["up_proj.weight"].T
    close(y, (g / (1 + np.exp(-g)) * u) @ w["down_proj.weight"].T)


def test_rms_norm_backward_is_the_slope_of_the_forward_pass() -> None:
    w, (x, dy), (dx, dweight) = exact("L3_106_RMSNormBackward", num_rows=3, num_features=5)
    weight = w["weight"]

    def loss() -> float:
        return float((dy * x / np.sqrt(1e-5 + (x**2).sum(1, keepdims=True) / 5) * weight).sum())

    for value, gradient in ((x, dx), (weight, dweight)):
        for place in np.ndindex(value.shape):
            kept, losses = value[place], []
            for step in (1e-6, -1e-6):
                value[place] = kept + step
                losses.append(loss())
            value[place] = kept
            assert gradient[place] == pytest.approx(
                (losses[0] - losses[1]) / 2e-6, rel=1e-6, abs=1e-7
            )


def test_cross_entropy_gradient_is_probability_less_one_at_the_target() -> None:
    _, (logits, targets), (loss, grad) = exact(
        "L3_107_CrossEntropyWithGradient", num_tokens=3, vocab_size=11
    )
    total = 0.0
    for t, row in enumerate(logits):
        whole = sum(math.exp(value) for value in row)
        total += (math.log(whole) - row[targets[t]]) / 3
        close(
            grad[t],
            [(math.exp(value) / whole - (c == targets[t])) / 3 for c, value in enumerate(row)],
        )
    close(loss, total)


@pytest.mark.parametrize("step", [1, 10])
def test_adamw_corrects_moments_and_decays_apart_from_the_gradient(step: int) -> None:
    _, inputs, (param, first, second) = exact("L3_108_FusedAdamW", num_parameters=50, step=step)
    for i, (p, g, m, v) in enumerate(zip(*inputs, strict=True)):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        update = m / (1 - 0.9**step) / (math.sqrt(v / (1 - 0.999**step)) + 1e-3)
        close(np.array([param[i], first[i], second[i]]), [p - 3e-3 * 0.1 * p - 3e-3 * update, m, v])


def test_residual_add_layer_norm_returns_both() -> None:
    w, (x, residual), (y, s) = exact("L3_109_ResidualAddLayerNorm", num_tokens=3, hidden_size=9)
    close(s, x + residual)
    close(y, normalized(x + residual, w["norm.weight"], w["norm.bias"]))
