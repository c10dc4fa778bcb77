"""Which problems are for training, and which are held out: decided by a seed, level by level, near
copies together.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from kevin_env.problem import Problem

Side = Literal["train", "held_out"]
SIDES: tuple[Side, ...] = ("train", "held_out")
SEED = 0
"""The seed of the split that is meant where none is given."""
SHARE = 0.25
"""How many of each level's problems are held out."""

NEAR_COPIES: tuple[tuple[str, ...], ...] = (
    # the same product in other shapes
    (
        *("L1_1_Square_matrix_multiplication_", "L1_2_Standard_matrix_multiplication_"),
        *("L1_3_Batched_matrix_multiplication", "L1_4_Matrix_vector_multiplication_"),
        *("L1_8_Matmul_with_irregular_shapes_", "L1_9_Tall_skinny_matrix_multiplication_"),
    ),
    # one convolution each
    (
        *(
            "L1_63_conv_standard_2D__square_input__square_kernel",
            "L1_82_conv_depthwise_2D_square_input_square_kernel",
        ),
        *(
            "L6_3_GaussianBlur_2D",
            "L6_7_BoxFilter",
            "L7_3_Convolution_1D",
            "L7_4_CrossCorrelation_2D",
        ),
    ),
    ("L1_42_Max_Pooling_2D", "L6_6_MorphologyErode"),
    ("L1_47_Sum_reduction_over_a_dimension", "L9_2_Reduction_Sum", "L9_3_Reduction_Max"),
    # an operation and its gradient, or with what is added before it
    ("L1_36_RMSNorm_", "L3_106_RMSNormBackward"),
    ("L1_40_LayerNorm", "L3_109_ResidualAddLayerNorm"),
    ("L1_95_CrossEntropyLoss", "L3_107_CrossEntropyWithGradient"),
    (
        "L3_101_FlashAttentionCausal",
        "L3_102_FlashAttentionBackward",
        "L3_103_SlidingWindowAttention",
    ),
    # the same with other decorations
    ("L2_37_Matmul_Swish_Sum_GroupNorm", "L2_59_Matmul_Swish_Scaling"),
    ("L2_46_Conv2d_Subtract_Tanh_Subtract_AvgPool", "L2_82_Conv2d_Tanh_Scaling_BiasAdd_Max"),
    ("L2_52_Conv2d_Activation_BatchNorm", "L2_73_Conv2d_BatchNorm_Scaling"),
    (
        "L2_86_Matmul_Divide_GELU",
        "L2_98_Matmul_AvgPool_GELU_Scale_Max",
        "L2_99_Matmul_GELU_Softmax",
    ),
    ("L3_43_MinGPTCausalAttention", "L3_44_MiniGPTBlock"),
    ("L4_2_DeepSeek_MoE", "L4_5_MoE_GatedGEMM"),
    ("L4_7_GatedDeltaNet", "L4_8_KimiDeltaAttention"),
    ("L4_9_PagedDecodeAttention", "L4_10_GQADecodeLongKV"),
    ("L5_2_Stencil_2D_Heat", "L5_6_WaveEquation_2D"),
    ("L6_2_Histogram_256", "L6_9_HistogramEqualization"),
    ("L7_1_FFT_1D", "L7_2_FFT_2D"),
    ("L7_6_Resample_Bilinear", "L8_6_ChromaUpsampling"),
    ("L8_3_FrameInterpolation", "L8_4_VideoDenoising_Temporal", "L8_5_VideoStabilization"),
    ("L9_1_PrefixSum_ExclusiveScan", "L9_8_SegmentedScan"),
    ("L9_5_Compact_StreamCompaction", "L9_12_RunLengthEncode"),
    # one hash function
    ("L10_1_SHA256_Single", "L10_2_SHA256_Batch", "L10_3_MerkleTreeRoot", "L10_6_PBKDF2"),
    ("L10_7_Blake3", "L10_9_BLAKE2b_Batch"),
)
"""Problems that whoever has solved one has nearly solved the others of: they are on one side."""


def split(problems: Iterable[Problem], seed: int = SEED, share: float = SHARE) -> dict[str, Side]:
    """The side of each problem, by id.

    Of each level, `round(share * problems)` are held out. Groups of near copies are taken in an
    order that seed and names alone decide, each if all its levels have room for all of it. So a
    group larger than its level's room is always trained on, and a level whose problems are mostly
    in groups may have a few fewer held out.

    Args:
        problems: all that are to be divided; another set may give another side to a problem.
        seed: any whole number.
        share: how much of each level is held out, 0 to 1.

    Raises:
        ValueError: if `share` is not within 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the share held out is {share}; it must lie within 0 and 1")
    problems = list(problems)
    room = {
        level: round(share * many)
        for level, many in Counter(each.level for each in problems).items()
    }
    sides: dict[str, Side] = {each.id: "train" for each in problems}
    for group in sorted(_groups(problems), key=lambda group: _order(seed, group)):
        wanted = Counter(each.level for each in group)
        if all(room[level] >= many for level, many in wanted.items()):
            sides.update({each.id: "held_out" for each in group})
            room = {level: left - wanted[level] for level, left in room.items()}
    return sides


def _groups(problems: Sequence[Problem]) -> list[list[Problem]]:
    """Near copies together, everything else on its own."""
    number = {id: at for at, ids in enumerate(NEAR_COPIES) for id in ids}
    groups: dict[int | str, list[Problem]] = {}
    for each in problems:
        groups.setdefault(number.get(each.id, each.id), []).append(each)
    return list(groups.values())


def _order(seed: int, group: Sequence[Problem]) -> bytes:
    name = min(each.id for each in group)
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()
