"""The difficulty of our problems: what a kernel takes to be written, and to beat the reference.

Prints a table; --json writes a file. Time, FLOPs, elements and bytes of the main case on a device
come from `lint.py`, speedups of known kernels from `solutions.py`. Operators are counted here, on
the CPU, with the dtypes of inputs, weights and outputs.

    roofline  = max(bytes / bandwidth, FLOPs / rate of products + elements / rate of operations)
    to write  = w + 0.3 * (1 - w) * log(operators) / log(most operators of a reference), with w by
                the problem's family (`WRITING`), or by the routine of a library that its
                reference calls (`LIBRARY`)
    to beat   = min(1, best time / reference's time), with the time of the slowest correct kernel;
                if none is known, 1 for a library's routine, else the roofline
    difficulty = (2 * to write + to beat) / 3

Correctness comes before speed, so the first weighs twice. `w` is an estimate, to be replaced by the
pass rates of a policy (`Curriculum.record`). The number of operators alone says little: one call of
a library can hide a radix sort, and a hash that dispatches thousands is a loop that is quickly
written. The roofline is that of the reference's algorithm; a better one (a separable filter, a
single-pass scan) may need less. No sort and no Fourier transform reaches it, as they take several
passes over memory.

    python benchmarks/difficulty.py [--device h200] [--json problems/difficulty.json]
"""

import argparse
import json
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from resultfile import Row, known_rows
from torch.utils._python_dispatch import TorchDispatchMode

from kevin_env.candidate import tree
from kevin_env.difficulty import Measured, Measurements, Source
from kevin_env.judge.inputs.reference import Case
from kevin_env.problem import Problem, list_problems

WRITING = {
    "elementwise": 0.1,
    "indexing": 0.2,
    **dict.fromkeys(("reduction", "loss"), 0.25),
    **dict.fromkeys(("histogram", "pooling", "normalization", "stencil", "interpolation"), 0.3),
    **dict.fromkeys(("crypto", "coding", "particles"), 0.4),
    **dict.fromkeys(("graphics", "matching", "dynamic-programming", "sparse", "scan"), 0.5),
    **dict.fromkeys(("matmul", "conv"), 0.7),
    "transform": 0.75,
    "sort": 0.8,
    "attention": 0.85,
}
"""What the algorithm of a family takes to be written well, 0 to 1."""
STREAMED, TILED = 0.3, frozenset({"fused", "quantized", "moe"})
"""The same for a product or convolution that memory bounds, such as a matrix-vector product, which
needs no tiles; and traits with which it does.
"""
LIBRARY = {
    "aten.sort": 0.8,
    "aten.topk": 0.8,
    "aten._fft_c2c": 0.85,
    "aten._fft_r2c": 0.85,
    "aten._fft_c2r": 0.85,
    "aten.searchsorted": 0.3,
}
"""The same for routines of a library that no roofline describes."""
MOST_BY_OPERATORS = 0.3
"""The share of what is left to 1 that the number of operators adds at most."""
RESULTS = Path(__file__).parent / "results"
SEED = 0


@dataclass(frozen=True)
class Peaks:
    """Rates of a device, in bytes, FLOP and operations per second."""

    bandwidth: float
    narrow_products: Mapping[int, float]
    """By bytes of the operands, on tensor cores, dense; two FLOPs for a multiply-add."""
    products: float
    """Of float32 in IEEE arithmetic."""
    integers: float

    @property
    def operations(self) -> float:
        """Of floats, one at a time: half as many as FLOPs of multiply-adds."""
        return self.products / 2


PEAKS = {
    "h200": Peaks(
        bandwidth=4.8e12,
        narrow_products={1: 1979e12, 2: 989e12},
        products=67e12,
        integers=16.7e12,
    )
}
"""H200 SXM: NVIDIA's data sheet; integers: 64 lanes of 128 (NVIDIA H100 whitepaper, table 2)."""


@dataclass(frozen=True)
class Counted:
    """The operators and dtypes of one call of a reference in the case `cpu`."""

    operators: tuple[str, ...]
    """Dispatched operators in order, without views."""
    inputs: tuple[str, ...]
    """The dtypes of its inputs."""
    multiplied: int
    """Bytes of the operands of its matrix products and convolutions, 0 if it has none: as in the
    reference, or 2 where its largest input has no more, as a kernel need not widen it.
    """
    dtypes: tuple[str, ...]
    """The dtypes of its inputs, weights and outputs."""


PRODUCTS = frozenset(
    f"aten.{name}"
    for name in (
        *("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "convolution", "_int_mm", "_scaled_mm"),
        *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention"),
    )
)


class Operators(TorchDispatchMode):
    """Records dispatched operators, without views, and the bytes of operands of products."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.multiplied = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Notes one."""
        if not func.is_view:
            self.names.append(str(func.overloadpacket))
        if str(func.overloadpacket) in PRODUCTS:
            operands = [each for each in args if isinstance(each, torch.Tensor)]
            self.multiplied = max(self.multiplied, *(each.element_size() for each in operands))
        return func(*args, **(kwargs or {}))


def count(problem: Problem) -> Counted:
    """Runs the reference once in its case `cpu`."""
    case = Case(problem, "cpu", torch.device("cpu"))
    case.draw_weights(SEED)
    skeleton, inputs = case.draw_inputs("own", SEED)
    call = case.runner(skeleton, inputs)
    with Operators() as operators:
        output = call()
    weights = case.model.state_dict().values()
    moved = (*inputs, *weights, *tree.flatten(output)[1])
    floats = [(each.nbytes, each.element_size()) for each in inputs if each.is_floating_point()]
    narrowest = max(2, max(floats)[1]) if floats else operators.multiplied
    multiplied = min(operators.multiplied, narrowest)
    return Counted(tuple(operators.names), _dtypes(inputs), multiplied, _dtypes(moved))


def roofline(row: Row, counted: Counted, peaks: Peaks) -> tuple[float, float]:
    """The least seconds for the bytes, and for the operations.

    Args:
        row: of `lint.py`.
        counted: of the same reference.
        peaks: of the device that the row is from.
    """
    floats = [each for each in counted.inputs if each.startswith(("float", "bfloat", "complex"))]
    products = peaks.narrow_products.get(counted.multiplied, peaks.products)
    computing = row["flops"] / products + row["elements"] / (
        peaks.operations if floats else peaks.integers
    )
    return row["moved_bytes"] / peaks.bandwidth, computing


def slowest_speedups(rows: Iterable[Row]) -> dict[str, float]:
    """The speedup of the slowest known correct kernel, by problem."""
    slowest: dict[str, float] = {}
    for row in rows:
        problem = row["name"].rpartition(".")[0]
        if row["value"] is not None:
            slowest[problem] = min(row["value"], slowest.get(problem, row["value"]))
    return slowest


def measure(
    counted: Mapping[str, Counted],
    rows: Mapping[str, Row],
    peaks: Peaks,
    tags: Mapping[str, Sequence[str]],
) -> dict[str, Measured]:
    """All figures of each problem.

    Args:
        counted: by id.
        rows: `lint.py`'s of the same problems by id, each with `slowest_speedup` or without.
        peaks: of the device that these are from.
        tags: those of each problem by id, its family first.
    """
    most = max(len(each.operators) for each in counted.values())
    measured: dict[str, Measured] = {}
    for id, each in counted.items():
        row = rows[id]
        moving, computing = roofline(row, each, peaks)
        least, slowest = max(moving, computing), row.get("slowest_speedup")
        family, *traits = tags[id]
        routines = [LIBRARY[name] for name in set(each.operators) if name in LIBRARY]
        if family not in ("sort", "transform"):
            routines = []  # a part of the work
        writing = max(routines, default=WRITING[family])
        if family in ("matmul", "conv") and moving >= computing and TILED.isdisjoint(traits):
            writing = STREAMED
        length = math.log(max(1, len(each.operators))) / math.log(max(2, most))
        to_write = writing + MOST_BY_OPERATORS * (1 - writing) * length
        bound = 1.0 if routines else least / row["seconds"]
        to_beat = min(1.0, 1 / slowest if slowest else bound)
        measured[id] = Measured(
            seconds=row["seconds"],
            roofline_seconds=least,
            bound="memory-bound" if moving >= computing else "compute-bound",
            dtypes=each.dtypes,
            operations=len(each.operators),
            slowest_speedup=slowest,
            difficulty=round((2 * to_write + to_beat) / 3, 4),
        )
    return measured


def read_device(device: str) -> tuple[list[Source], dict[str, Row]]:
    """Measurements on a device: their source, and a row per problem by id."""
    lint, solutions = (RESULTS / f"{script}.{device}.json" for script in ("lint", "solutions"))
    sources = [_source(file) for file in (lint, solutions) if file.exists()]
    slowest = slowest_speedups(known_rows(solutions).values())
    rows = {
        name.removeprefix("ours/"): row
        | {"slowest_speedup": slowest.get(name.removeprefix("ours/"))}
        for name, row in known_rows(lint).items()
        if name.startswith("ours/")
    }
    return sources, rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="h200", choices=PEAKS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sources, rows = read_device(options.device)
    problems = list_problems()
    if missing := [each.id for each in problems if "seconds" not in rows.get(each.id, {})]:
        parser.error(
            f"run benchmarks/lint.py on the {options.device} first: no rows of {', '.join(missing)}"
        )
    counted = {each.id: count(each) for each in problems}
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    here = Source(
        file=Path(__file__).name,
        device="cpu",
        date=str(datetime.now(UTC).date()),
        versions=versions,
    )
    tags = {each.id: each.tags for each in problems}
    measured = measure(counted, rows, PEAKS[options.device], tags)
    for id, each in sorted(measured.items(), key=lambda item: item[1].difficulty):
        print(
            f"{each.difficulty:.3f} {id:54} {each.operations:6} operators "
            f"{each.seconds * 1e3:8.3f} ms {each.bound}"
        )
    if options.json:
        whole = Measurements(sources=(*sources, here), problems=measured)
        options.json.write_text(whole.model_dump_json(indent=1) + "\n")


def _dtypes(tensors: Iterable[torch.Tensor]) -> tuple[str, ...]:
    return tuple(sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors}))


def _source(file: Path) -> Source:
    return Source(
        file=file.name,
        **{key: json.loads(file.read_text())[key] for key in ("device", "date", "versions")},
    )


if __name__ == "__main__":
    main()
