"""Selection of problems by ID, level, side of the split, or path."""

import difflib
import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from numpy.random import Generator

from kevin_env.kernelbench import PREFIX
from kevin_env.outcome import Outcome
from kevin_env.problem import (
    Problem,
    ProblemError,
    data_folder,
    list_problems,
    load_kernelbench,
    load_problem,
    parse_problem,
    problem_paths,
)

Side = Literal["train", "held_out"]
SIDES: tuple[Side, ...] = ("train", "held_out")
SEED = 0
"""Default seed of the split."""
SHARE = 0.25
"""Share of each level's problems that is held out."""

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
    # an operation, and its gradient or a version with an addition before it
    ("L1_36_RMSNorm_", "L3_106_RMSNormBackward"),
    ("L1_40_LayerNorm", "L3_109_ResidualAddLayerNorm"),
    ("L1_95_CrossEntropyLoss", "L3_107_CrossEntropyWithGradient"),
    (
        "L3_101_FlashAttentionCausal",
        "L3_102_FlashAttentionBackward",
        "L3_103_SlidingWindowAttention",
        "L4_17_FP8_CausalAttention",
    ),
    # the same with different elementwise operations
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
    ("L4_9_PagedDecodeAttention", "L4_10_GQADecodeLongKV", "L4_18_FP8_KVCacheDecode"),
    # products of operands of eight bits, and of weights of four
    (
        *("L4_4_FP8_Matmul", "L4_14_FP8_GEMM_RowScales", "L4_15_FP8_GEMM_BlockScales"),
        *("L4_16_FP8_GEMM_E5M2_Gradient", "L4_24_INT8_GEMM_ChannelScales"),
    ),
    (
        *("L4_6_INT4_Quantized_GEMM", "L4_21_MXFP4_GEMM", "L4_22_NVFP4_GEMM"),
        "L4_23_INT4_GEMM_ZeroPoints",
    ),
    ("L4_19_MoE_GroupedGEMM_BF16", "L4_20_MoE_GroupedGEMM_FP8"),
    ("L4_25_FP8_QuantizeGroups", "L4_28_SwiGLU_FP8Quantize"),
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
"""Groups of problems so similar that a solution of one nearly solves the others. A group is on one
side of the split.
"""


def split(problems: Iterable[Problem], seed: int = SEED, share: float = SHARE) -> dict[str, Side]:
    """The side of each problem, by ID.

    Of each level, `round(share * problems)` are held out. Groups of near copies are taken in an
    order that depends on seed and names only, if all their levels have room for the whole group. So
    a group larger than the room of its level is always in training, and a level that consists
    mostly of groups can have slightly fewer held out.

    Args:
        problems: the problems to divide; another set can change sides.
        seed: any integer.
        share: share of each level to hold out, 0 to 1.

    Raises:
        ValueError: if `share` is not within 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the share held out is {share}; it must be between 0 and 1")
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
    """Groups of near copies; every other problem is a group by itself."""
    number = {id: at for at, ids in enumerate(NEAR_COPIES) for id in ids}
    groups: dict[int | str, list[Problem]] = {}
    for each in problems:
        groups.setdefault(number.get(each.id, each.id), []).append(each)
    return list(groups.values())


def _order(seed: int, group: Sequence[Problem]) -> bytes:
    name = min(each.id for each in group)
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()


ProblemChoice = str | Path | Problem | Sequence[str | Path | Problem]
"""An ID, a level such as `L1`, a side of the split such as `train` or `held_out:L1`, a list such as
`kevin-bench-1`, a path to a file or a folder, a `Problem`, or several of these.
"""


FROZEN = r"kevin-bench-\d+"
"""Names of frozen lists, as a regular expression."""

_FORMS = (
    "give an id such as 'L1_23_Softmax', a level ('L1'), 'train', 'held_out', 'kevin-bench-1', "
    "a path, a Problem, or a list of these"
)


@runtime_checkable
class ProblemSource(Protocol):
    """Chooses problems by how earlier episodes went, as `kevin_env.curriculum.Curriculum` does."""

    def sample(self, n: int = 1) -> Sequence[Problem]:
        """The next `n` problems."""
        ...

    def record(self, problem: Problem, result: Sequence[Outcome]) -> object:
        """Records a finished episode by the outcomes of its turns."""
        ...


def find_problems(choice: ProblemChoice, *, held_out: bool = True) -> tuple[Problem, ...]:
    """The problems that a choice names, at least one.

    Args:
        choice: an ID, a level such as `L1` or `kernelbench:level1`, a side of the split (`train`,
            `held_out`, or of one level `train:L1`), a frozen list such as `kevin-bench-1`, a path
            to a file or a folder of them (or of folders `level1`, `level2`, ...), a `Problem`, or
            several of these.
        held_out: whether levels and folders, which name no side, include held-out problems. Those
            named alone, by a list or by `held_out` are always included.

    Returns:
        Problems that their IDs identify. Files of one name have their folders in front of it, such
        as `softmax.problem` and `gelu.problem`.

    Raises:
        ProblemError: if one is unknown or cannot be read, there is none, two that have no files
            have one ID, or a file of a frozen list has changed.
    """
    if isinstance(choice, Problem):
        return (choice,)
    if isinstance(choice, Path):
        problems = _distinct(tuple(map(parse_problem, _files(choice))))
        return problems if held_out or not choice.is_dir() else _without_held_out(problems, choice)
    if choice == "" or not isinstance(choice, str | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProblemError(f"problem is {choice!r}; {_FORMS}")
    if not isinstance(choice, str):
        problems = tuple(
            problem for one in choice for problem in find_problems(one, held_out=held_out)
        )
    elif named := re.fullmatch(r"L(?P<level>\d+)|(?P<side>train|held_out)(:L(?P<of>\d+))?", choice):
        level = named["level"] or named["of"]
        side = named["side"] or (None if held_out else "train")
        problems = our_problems(int(level) if level else None, side)
    elif re.fullmatch(FROZEN, choice):
        problems = frozen_problems(choice)
    elif choice.startswith(PREFIX):
        problems = tuple(load_kernelbench(choice))
        problems = (
            problems if held_out or len(problems) == 1 else _without_held_out(problems, choice)
        )
    elif Path(choice).is_dir():
        return find_problems(Path(choice), held_out=held_out)
    else:
        problems = (load_problem(choice),)
    if not problems:
        raise ProblemError(f"no problems in {choice!r}; `kevin-env problems` lists them")
    return _distinct(problems)


def our_problems(
    level: int | None = None, side: str | None = None, seed: int = SEED
) -> tuple[Problem, ...]:
    """The shipped problems in order, optionally of one level and one side of the split.

    The split is that of all shipped problems, whatever the level.
    """
    if side is None:
        return tuple(list_problems(level))
    sides = our_sides(seed)
    return tuple(each for each in list_problems(level) if sides[each.id] == side)


def frozen_problems(name: str) -> tuple[Problem, ...]:
    """The problems of a frozen list, for results to be compared with.

    `problems/NAME.json` maps the list's files, and what they name, to their SHA-256.

    Raises:
        ProblemError: if there is no such list, or one of its files is missing or has changed.
    """
    folder = data_folder("problems")
    try:
        hashes: dict[str, str] = json.loads((folder / f"{name}.json").read_bytes())
    except FileNotFoundError:
        known = ", ".join(sorted(each.stem for each in folder.glob("kevin-bench-*.json")))
        raise ProblemError(f"there is no list {name}; there is {known}") from None
    for file, sha256 in hashes.items():
        path = folder / file
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            what = "is missing" if not path.exists() else "has changed since it was frozen"
            raise ProblemError(f"{name}: problems/{file} {what}; restore it to use the list")
    ours = {path.relative_to(folder).as_posix(): id for id, path in problem_paths().items()}
    return tuple(load_problem(ours[file]) for file in hashes if file in ours)


def named(problems: Iterable[Problem], id: str) -> Problem:
    """The problem with this id, or the only one whose id contains it. No file is read.

    Raises:
        ProblemError: if there is none.
    """
    known = {problem.id: problem for problem in problems}
    matches = [id] if id in known else [each for each in known if id in each]
    if len(matches) == 1:
        return known[matches[0]]
    near = matches[:3] or difflib.get_close_matches(id[:100], known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "it is not served here"
    raise ProblemError(f"unknown problem {id[:100]!r}; {hint}")


def _distinct(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems, with IDs that identify them. One that is named twice is one problem."""
    by_id: dict[str, dict[Problem, None]] = {}
    for each in problems:
        by_id.setdefault(each.id, {})[each] = None
    renamed: dict[Problem, Problem] = {}
    for id, several in by_id.items():
        if len(several) == 1:
            continue
        ours = problem_paths().get(id)
        own = [each for each in several if ours is None or each.path != str(ours.resolve())]
        if not all(each.path for each in own):
            raise ProblemError(f"{len(several)} different problems have the ID {id!r}; rename one")
        names = _apart([Path(each.path).with_suffix("") for each in own])
        renamed |= {
            each: each.model_copy(update={"id": name})
            for each, name in zip(own, names, strict=True)
        }
    return tuple(renamed.get(each, each) for each in problems)


def _apart(paths: Sequence[Path]) -> list[str]:
    """Names of paths: as many of their last parts as tell them apart, two at least."""
    for count in range(2, max(len(path.parts) for path in paths) + 1):
        names = [".".join(path.parts[-count:]).strip("/.") for path in paths]
        if len(set(names)) == len(names):
            return names
    raise ProblemError(f"{paths[0]} is named by different problems; name it once")


@functools.cache
def our_sides(seed: int = SEED) -> Mapping[str, Side]:
    """The side of each shipped problem by ID, in the split with that seed."""
    return split(list_problems(), seed)


def name_of(problem: Problem) -> str:
    """The name by which a problem is found again: its ID, or its file if it is the user's own."""
    own = problem_paths().get(problem.id)
    ours = own is not None and str(own.resolve()) == problem.path
    return problem.id if ours or problem.id.startswith(PREFIX) else problem.path


def is_held_out(problem: Problem) -> bool:
    """Whether it is a held-out shipped problem, or KernelBench's with the number of one."""
    if not problem.id.startswith(PREFIX):
        return our_sides().get(problem.id) == "held_out"
    start = f"L{problem.level}_{problem.number}_"
    return any(side == "held_out" and id.startswith(start) for id, side in our_sides().items())


def drawable(problems: Sequence[Problem]) -> Sequence[Problem]:
    """The problems that are not held out; all of them if there are no others."""
    return [each for each in problems if not is_held_out(each)] or problems


def problem_source(choice: ProblemChoice | ProblemSource) -> tuple[Problem, ...] | ProblemSource:
    """The source to draw problems from. Levels and folders exclude held-out problems.

    Raises:
        ProblemError: as `find_problems`.
    """
    return choice if isinstance(choice, ProblemSource) else find_problems(choice, held_out=False)


def draw_problem(source: tuple[Problem, ...] | ProblemSource, random: Generator) -> Problem:
    """The next problem: what the source chooses, or one of several at random."""
    if isinstance(source, ProblemSource):
        return source.sample(1)[0]
    return source[int(random.integers(len(source)))]


def _without_held_out(problems: Sequence[Problem], choice: str | Path) -> tuple[Problem, ...]:
    kept = tuple(problem for problem in problems if not is_held_out(problem))
    if not kept:
        raise ProblemError(
            f"all problems in {str(choice)!r} are held out; name one of them alone, or 'held_out'"
        )
    return kept


def _files(path: Path) -> list[Path]:
    """The file itself, or the problem files of a folder, in the order of their numbers."""
    if not path.is_dir():
        return [path]
    files = [
        file
        for pattern in ("*.py", "level*/*.py")
        for file in path.glob(pattern)
        if file.name[0].isdigit()
    ]
    if not files:
        raise ProblemError(f"no problems in {path}: their files are named like 23_Softmax.py")
    return sorted(
        files,
        key=lambda file: [int(n) for n in re.findall(r"\d+", f"{file.parent.name}/{file.name}")],
    )
