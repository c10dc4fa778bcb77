"""The cost of feedback per turn, by option, and of measurements made once per device and problem.

Judges the same submissions on one warm judge with each option in turn: `off`, `profile=kernels`,
`profile=ncu`, and on a GPU an illegal access with and without `sanitize`. `added` is the median
difference to `off` of the same round. Then the constant parts: ceilings, measured from scratch, and
counting the work of a reference.

    python benchmarks/feedback_cost.py [--device cpu|cuda] [--rounds 5] [--json FILE]
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from resultfile import Results, Row, device_name, median_row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from corpus import FOLDER, Entry, read_entry

from kevin_env.judge import Judgement, Options, Submission
from kevin_env.judge.api import DeviceInfo
from kevin_env.outcome import Profile
from kevin_env.pools.local import LocalPool
from kevin_env.pools.remote import STEADY
from kevin_env.problem import load_problem

SUBMISSIONS = {"cpu": ("softmax_online",), "cuda": ("matmul_triton", "relu_vector_loads")}
WRONG = "illegal_access"
PROBLEMS = ("L1_23_Softmax", "L1_1_Square_matrix_multiplication_", "L3_44_MiniGPTBlock")
OPTIONS: Mapping[str, dict[str, object]] = {
    "off": {},
    "profile=kernels": {"profile": "kernels"},
    "profile=ncu": {"profile": "ncu"},
}


def option_rows(
    pool: LocalPool,
    entry: Entry,
    device: str,
    rounds: int,
    options: Mapping[str, dict[str, object]],
) -> Iterator[Row]:
    """Wall seconds of a turn under each option, and beyond those of the first, if the tools had
    results.

    Raises:
        RuntimeError: if the file does not end as expected.
    """
    taken: dict[str, list[tuple[int, float]]] = {name: [] for name in options}
    for number in range(rounds + 1):
        for name, values in options.items():
            time.sleep(0.5)  # time to start the next candidate, as while a model thinks
            start = time.perf_counter()
            requested = Options.model_validate({"device": device} | values)
            judgement = pool.submit(entry.task, Submission(code=entry.code), requested).result()
            seconds = time.perf_counter() - start
            if not entry.met_by(judgement.outcome, device):
                raise RuntimeError(
                    f"{entry.name}: {judgement.outcome.category}: {judgement.outcome.message}"
                )
            if number and answered(
                requested, judgement
            ):  # the first round warms the judge's side of the problem
                taken[name].append((number, seconds))
    off = dict(next(iter(taken.values())))
    for place, (name, turns) in enumerate(taken.items()):
        if not turns:
            print(
                f"{entry.path.stem}: {name}: its tool has no result, so there is no row",
                flush=True,
            )
            continue
        yield median_row(f"{entry.path.stem}: {name}", [seconds for _, seconds in turns])
        if place:
            yield median_row(
                f"{entry.path.stem}: {name}, added",
                [seconds - off[number] for number, seconds in turns],
            )


def answered(options: Options, judgement: Judgement) -> bool:
    """Whether the requested tools had results; without, they cost next to nothing."""
    profile = judgement.profile or Profile()
    kernels, counted = (
        options.profile != "kernels" or profile.kernels,
        options.profile != "ncu" or profile.ncu,
    )
    return bool(kernels and counted and (not options.sanitize or profile.sanitizer))


def standing_rows(device: str, info: DeviceInfo, rounds: int) -> Iterator[Row]:
    """Ceilings and counted references, uncached; loading libraries is not included."""
    import torch

    from kevin_env.judge.device import resolve
    from kevin_env.judge.inputs.cases import timed_case
    from kevin_env.judge.inputs.reference import Case
    from kevin_env.profile.ceilings import CeilingStore
    from kevin_env.profile.roofline import find_work
    from kevin_env.roofline import Arithmetic, Work

    place = resolve(device)
    kinds: tuple[Arithmetic, ...] = ("bf16", "tf32") if place.type == "cuda" else ("bf16",)
    work = Work(read=1 << 22, written=1 << 22, products=dict.fromkeys(kinds, 1), operations=1)
    figures: dict[str, list[float]] = {"ceilings": []}
    for number in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = folder
            start = time.perf_counter()
            ceilings = CeilingStore(place, info).of(work)
            if number:
                figures["ceilings"].append(time.perf_counter() - start)
    for name in PROBLEMS:
        problem = load_problem(name)
        case = Case(problem, timed_case(problem, place), place)
        case.draw_weights(1)
        drawn = case.draw_inputs("own", 1)
        for number in range(rounds + 1):
            start = time.perf_counter()
            find_work(case, *drawn)
            if place.type == "cuda":
                torch.cuda.synchronize(place)
            if number:
                figures.setdefault(f"counting {name}", []).append(time.perf_counter() - start)
    yield from (median_row(name, seconds) for name, seconds in figures.items())
    rates = {"reading": ceilings.reading, "copying": ceilings.copying}
    yield from (median_row(f"ceiling: {name}", [rate], "B/s") for name, rate in rates.items())
    yield from (
        median_row(f"ceiling: {kind}", [rate], "FLOP/s") for kind, rate in ceilings.rates.items()
    )


def all_rows(pool: LocalPool, device: str, rounds: int) -> Iterable[Row]:
    for name in SUBMISSIONS[device]:
        yield from option_rows(
            pool, read_entry(FOLDER / "honest" / f"{name}.py"), device, rounds, OPTIONS
        )
    if device == "cuda":
        sanitized: Mapping[str, dict[str, object]] = {"off": {}, "sanitize": {"sanitize": True}}
        yield from option_rows(
            pool, read_entry(FOLDER / "hostile" / f"{WRONG}.py"), device, rounds, sanitized
        )
    yield from standing_rows(device, pool.device(device), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ |= STEADY  # as a judge has it, before torch is loaded
    with LocalPool() as pool:
        info = pool.device(options.device)
        results = Results(options.json, device_name(info), info.versions)
        for row in all_rows(pool, options.device, options.rounds):
            results.report(row)


if __name__ == "__main__":
    main()
