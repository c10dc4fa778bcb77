"""Level 4 (layers of recent language models) against the statements, in float64."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from test_level3 import Array, attend, close, exact, normalized


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def silu(z: Any) -> Any:
    return z * sigmoid(z)


def turned(x: Array, position: int, theta: float = 1e4) -> Array:
    """One head's features, turned in pairs (i, i + half) by its position."""
    half = len(x) // 2
    angles = np.array([position * theta ** (-2 * i / len(x)) for i in range(half)])
    pairs = (x[:half] + 1j * x[half:]) * np.exp(1j * angles)
    return np.concatenate([pairs.real, pairs.imag])


def rms(z: Array, weight: Array) -> Array:
    return z / np.sqrt((z**2).sum(-1, keepdims=True) / z.shape[-1] + 1e-6) * weight


def heads_of(z: Array, heads: int) -> Array:
    return z.reshape(len(z), heads, -1)


def test_latent_attention_rotates_only_the_last_features_and_shares_their_key() -> None:
    sizes = {"batch_size": 2, "seq_len": 5, "hidden_size": 7, "num_attention_heads": 2, "q_lora_rank": 5,
             "kv_lora_rank": 3, "qk_nope_head_dim": 3, "qk_rope_head_dim": 4, "v_head_dim": 5}  # fmt: skip
    w, (x,), (y,) = exact("L4_1_DeepSeek_MLA", **sizes)
    for tokens, result in zip(x, y, strict=True):
        q = heads_of(
            rms(tokens @ w["q_a_proj.weight"].T, w["q_a_layernorm.weight"])
            @ w["q_b_proj.weight"].T,
            2,
        )
        latent = tokens @ w["kv_a_proj_with_mqa.weight"].T
        kv = heads_of(rms(latent[:, :3], w["kv_a_layernorm.weight"]) @ w["kv_b_proj.weight"].T, 2)
        attended = np.zeros((5, 2, 5))
        for t, h in np.ndindex(5, 2):
            query = np.concatenate([q[t, h, :3], turned(q[t, h, 3:], t)])
            keys = np.array(
                [np.concatenate([kv[s, h, :3], turned(latent[s, 3:], s)]) for s in range(t + 1)]
            )
            attended[t, h] = attend(query, keys, kv[: t + 1, h, 3:])
        close(result, attended.reshape(5, 10) @ w["o_proj.weight"].T, atol=1e-6)


def mlp(x: Array, gate: Array, up: Array, down: Array) -> Array:
    return down @ (silu(gate @ x) * (up @ x))


def test_deepseek_moe_takes_the_best_experts_of_the_best_groups() -> None:
    sizes = {
        "batch_size": 2, "seq_len": 40, "hidden_size": 8, "intermediate_size": 3,
        "n_routed_experts": 12,
    }  # fmt: skip
    routing = {"num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "n_shared_experts": 2}
    w, (x,), (y,) = exact("L4_2_DeepSeek_MoE", **sizes, **routing)
    for token, result in zip(x.reshape(-1, 8), y.reshape(-1, 8), strict=True):
        logits = w["gate.weight"] @ token
        choice = list(logits + w["gate.e_score_correction_bias"])
        groups = sorted(range(4), key=lambda g: -sum(sorted(choice[3 * g : 3 * g + 3])[1:]))[:2]
        taken = sorted(
            (e for g in groups for e in range(3 * g, 3 * g + 3)), key=lambda e: -choice[e]
        )[:3]
        scores = [sigmoid(logits[e]) for e in taken]
        expected = mlp(token, *(w[f"shared_{name}_proj.weight"] for name in ("gate", "up", "down")))
        for e, score in zip(taken, scores, strict=True):
            experts = (w[f"{name}_proj"][e] for name in ("gate", "up", "down"))
            expected = expected + 2.5 * score / sum(scores) * mlp(token, *experts)
        close(result, expected)


def test_grouped_queries_share_a_neighbouring_key_head() -> None:
    sizes = {
        "batch_size": 2, "seq_len": 5, "hidden_size": 7, "num_attention_heads": 6,
        "num_key_value_heads": 2,
    }  # fmt: skip
    w, (x,), (y,) = exact("L4_3_GroupedQueryAttention", **sizes, head_dim=4)
    for tokens, result in zip(x, y, strict=True):
        q, k, v = (
            heads_of(tokens @ w[f"{p}_proj.weight"].T, n) for p, n in (("q", 6), ("k", 2), ("v", 2))
        )
        attended = np.zeros((5, 6, 4))
        for t, h in np.ndindex(5, 6):
            keys = np.array([turned(k[s, h // 3], s) for s in range(t + 1)])
            attended[t, h] = attend(turned(q[t, h], t), keys, v[: t + 1, h // 3])
        close(result, attended.reshape(5, 24) @ w["o_proj.weight"].T, atol=1e-6)


def rounded_to_fp8(a: Array, mantissa: int, smallest: int, top: int) -> Array:
    """Nearest values with that many bits after the first one, above exponent `smallest`; ties to
    even; scaled back.
    """
    shift = top - math.frexp(np.abs(a).max())[1]
    scaled = a * 2.0**shift
    exponent = np.maximum(np.frexp(scaled)[1] - 1, smallest)
    unit = 2.0 ** (exponent - mantissa)
    return np.round(scaled / unit) * unit / 2.0**shift


@pytest.mark.parametrize(
    ("use_e4m3", "mantissa", "smallest", "top"), [(True, 3, -6, 8), (False, 2, -14, 15)]
)
def test_fp8_matmul_rounds_both_to_a_power_of_two_grid(
    use_e4m3: bool, mantissa: int, smallest: int, top: int
) -> None:
    sizes = {"batch_size": 2, "seq_len": 3, "K": 1000, "N": 5, "use_e4m3": use_e4m3}
    w, (x,), (y,) = exact("L4_4_FP8_Matmul", **sizes)
    a, b = (rounded_to_fp8(matrix, mantissa, smallest, top) for matrix in (x, w["weight"]))
    close(y, a @ b)
    assert np.abs(y - x @ w["weight"]).max() > 1e-3 * np.abs(y).max()


def test_moe_gated_gemm_weighs_the_chosen_experts() -> None:
    sizes = {
        "batch_size": 2, "seq_len": 4, "hidden_size": 5, "intermediate_size": 3, "num_experts": 4,
        "top_k": 2,
    }  # fmt: skip
    w, (x, indices, weights), (y,) = exact("L4_5_MoE_GatedGEMM", **sizes)
    for place in np.ndindex(2, 4):
        chosen = zip(indices[place], weights[place], strict=True)
        experts = [
            (e, s, *(w[f"{name}_proj"][e] for name in ("gate", "up", "down"))) for e, s in chosen
        ]
        close(y[place], sum(s * mlp(x[place], *matrices) for _, s, *matrices in experts))


def test_int4_weights_lie_low_half_first() -> None:
    w, (x,), (y,) = exact(
        "L4_6_INT4_Quantized_GEMM", batch_size=2, seq_len=3, K=12, N=5, group_size=4
    )
    packed, scales = w["weight_packed"].tolist(), w["scales"]
    weight = [
        [scales[n, k // 4] * (packed[n][k // 2] // 16 ** (k % 2) % 16 - 8) for k in range(12)]
        for n in range(5)
    ]
    close(y, x @ np.array(weight).T)


def delta_net(id: str, gate_size: int) -> None:
    """Token by token, as the statement has it; 140 tokens, so that three chunks of the reference
    meet.
    """
    sizes = {
        "batch_size": 1, "seq_len": 140, "hidden_size": 5, "num_heads": 2, "head_dim_qk": 3,
        "head_dim_v": 4,
    }  # fmt: skip
    w, (x,), (y,) = exact(id, **sizes)
    tokens, streams = x[0], {}
    for name in "qkv":
        u = np.concatenate(
            [np.zeros((3, w[f"{name}_proj.weight"].shape[0])), tokens @ w[f"{name}_proj.weight"].T]
        )
        taps, bias = w[f"{name}_conv.weight"][:, 0].T, w[f"{name}_conv.bias"]
        streams[name] = silu(
            np.array([(u[t : t + 4] * taps).sum(0) + bias for t in range(140)])
        ).reshape(140, 2, -1)
    q, k = (streams[n] / np.sqrt((streams[n] ** 2).sum(-1, keepdims=True) + 1e-6) for n in "qk")
    a = sigmoid(tokens @ w["a_proj.weight"].T + w["a_proj.bias"]).reshape(140, 2, gate_size)
    beta = sigmoid(tokens @ w["b_proj.weight"].T + w["b_proj.bias"])
    o, state = np.zeros((140, 2, 4)), np.zeros((2, 3, 4))
    for t, h in itertools.product(range(140), range(2)):
        faded = a[t, h][:, None] * state[h]
        state[h] = faded + beta[t, h] * np.outer(k[t, h], streams["v"][t, h] - faded.T @ k[t, h])
        o[t, h] = state[h].T @ q[t, h] / math.sqrt(3)
    gate = sigmoid(tokens @ w["g_proj.weight"].T)
    close(
        y[0],
        (normalized(o, w["o_norm.weight"], w["o_norm.bias"]).reshape(140, 8) * gate)
        @ w["o_proj.weight"].T,
    )


def test_gated_delta_net_follows_its_recurrence() -> None:
    delta_net("L4_7_GatedDeltaNet", gate_size=1)


def test_kimi_delta_attention_has_a_gate_for_every_key_feature() -> None:
    delta_net("L4_8_KimiDeltaAttention", gate_size=3)


def test_paged_attention_follows_the_table_up_to_the_length() -> None:
    sizes = {
        "num_seqs": 4, "num_heads": 6, "num_kv_heads": 2, "head_dim": 5, "block_size": 3,
        "max_blocks": 4,
    }  # fmt: skip
    _, (q, k_cache, v_cache, tables, lengths), (o,) = exact("L4_9_PagedDecodeAttention", **sizes)
    assert sorted(tables.flatten()) == list(range(16))
    assert lengths.min() >= 1
    assert lengths.max() <= 12
    for s, h in np.ndindex(4, 6):
        places = [(tables[s, t // 3], t % 3, h // 3) for t in range(lengths[s])]
        keys, values = (
            np.array([cache[place] for place in places]) for cache in (k_cache, v_cache)
        )
        close(o[s, h], attend(q[s, h], keys, values))


def test_decode_attention_gives_the_log_of_the_sum_too() -> None:
    sizes = {"batch_size": 2, "num_heads": 6, "num_kv_heads": 2, "kv_len": 11, "head_dim": 5}
    _, (q, k, v), (o, lse) = exact("L4_10_GQADecodeLongKV", **sizes)
    for b, h in np.ndindex(2, 6):
        close(o[b, h], attend(q[b, h], k[b, h // 3], v[b, h // 3]))
        close(
            lse[b, h],
            math.log(sum(math.exp(sum(q[b, h] * key) / math.sqrt(5)) for key in k[b, h // 3])),
        )


def test_selective_scan_is_a_recurrence() -> None:
    w, (u, dt, B, C, z), (y,) = exact(
        "L4_11_SelectiveScan", batch_size=2, d_inner=3, d_state=4, seq_len=13
    )
    for b, d in np.ndindex(2, 3):
        h = np.zeros(4)
        for t in range(13):
            delta = math.log(1 + math.exp(dt[b, d, t] + w["dt_bias"][d]))
            h = np.exp(-delta * np.exp(w["A_log"][d])) * h + delta * B[b, :, t] * u[b, d, t]
            close(y[b, d, t], (w["D"][d] * u[b, d, t] + sum(C[b, :, t] * h)) * silu(z[b, d, t]))


def test_causal_conv_continues_its_state() -> None:
    w, (x, state), (y,) = exact("L4_12_CausalConv1dSiLU", batch_size=2, dim=3, seq_len=6, width=4)
    for b, d, t in np.ndindex(2, 3, 6):
        samples = [x[b, d, i] if i >= 0 else state[b, d, 3 + i] for i in range(t - 3, t + 1)]
        close(y[b, d, t], silu(w["bias"][d] + sum(w["weight"][d] * samples)))


def test_routing_sorts_experts_by_logit_and_places_by_expert() -> None:
    sizes = {"num_tokens": 20, "num_experts": 7, "top_k": 3}
    _, (logits,), (weights, experts, counts, order) = exact("L4_13_MoE_Routing", **sizes)
    for t, row in enumerate(logits):
        best = sorted(range(7), key=lambda e: -row[e])[:3]
        assert experts[t].tolist() == best
        powers = [math.exp(row[e]) for e in best]
        close(weights[t], [power / sum(powers) for power in powers])
    flat = experts.flatten().tolist()
    assert counts.tolist() == [flat.count(e) for e in range(7)]
    assert order.tolist() == sorted(range(60), key=lambda place: (flat[place], place))
