"""What is known of a problem on one device before anything is judged: for verdicts and prompts."""

import hashlib
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import BaseModel

from kevin_env.candidate import tree
from kevin_env.candidate.region import Spec, is_dense, spec_of
from kevin_env.frozen import Frozen
from kevin_env.judge.api import CaseFacts, DeviceInfo, Facts, InputFacts, Options
from kevin_env.judge.cache_file import CacheFile
from kevin_env.judge.compare import tolerance as budgets
from kevin_env.judge.compare.outputs import OTHERWISE, Allowed
from kevin_env.judge.compare.tolerance import Tolerance
from kevin_env.judge.compare.values import dtype_name
from kevin_env.judge.device import finish
from kevin_env.judge.inputs.cases import model_tensors, open_cases, usable_distributions
from kevin_env.judge.inputs.distributions import TOLD, described, has_outliers
from kevin_env.judge.inputs.reference import Case, Traits, seed_from
from kevin_env.judge.inputs.source import overrides_of
from kevin_env.judge.inputs.structure import Structure
from kevin_env.problem import Problem

Value = TypeVar("Value", bound=BaseModel)
Held = Callable[[], AbstractContextManager[object]]


class KnownCase(Frozen, allow_inf_nan=True):
    """What holds for every draw of a case on one device."""

    traits: Traits
    distributions: tuple[str, ...]
    """Those on which the reference's output stays finite."""
    seconds: float
    """Duration of one call of the reference, measured while the device is shared."""
    inputs: tuple[Spec, ...]
    """Dtype, shape and stride of each input tensor."""
    outputs: tuple[Spec, ...]
    model: tuple[Spec, ...]
    """The tensors of its model, as of `model_tensors`."""
    largest: int
    """Elements of the largest input, weight or output."""
    told: CaseFacts
    """What the prompt says about it."""

    def admitted(self, inputs: str) -> list[str]:
        """The distributions of its input sets; `inputs` as in `Options`."""
        return ["own"] if inputs == "shipped" else list(self.distributions)


class ProblemFacts(Frozen):
    """What is known of a problem on one device."""

    cases: tuple[KnownCase, ...]
    """Those that are judged, in this order, without held-out ones; the last is timed."""
    hidden: tuple[KnownCase, ...] = ()
    """Those that are held out: `told` leaves them out."""
    tolerance: str
    precision: str
    weights: tuple[str, ...]
    """Parameters; those of `buffers` are matched too, but need not be."""
    buffers: tuple[str, ...]

    def of(self, case: str) -> KnownCase | None:
        """What is known of a case; None if it is not judged."""
        return next((each for each in self.cases if each.told.name == case), None)

    def told(self, info: DeviceInfo, options: Options) -> Facts:
        """What the prompt says about the problem if it is judged with these options."""
        timed = self.cases[-1]
        usable, structures = timed.admitted(options.inputs), timed.traits.structures
        return Facts(
            device=info,
            cases=tuple(each.told for each in reversed(self.cases)),
            distributions=tuple(f"{name}: {_text(name, usable, structures)}" for name in usable),
            tolerance=self.tolerance,
            precision=self.precision,
            weights=self.weights,
            buffers=self.buffers,
            limits=options.limits(timed.seconds, device="cuda" if info.capability else "cpu"),
        )


class _Tolerances(BaseModel):
    entries: tuple[tuple[str, int, Tolerance], ...]


class FactStore:
    """The facts of problems on one device, found once: they stay in the user's cache folder.

    Safe to use from many threads, which may find the same facts twice.
    """

    def __init__(self, device: torch.device, info: DeviceInfo) -> None:
        self._device = device
        self._key = {"kevin_env": version("kevin-env"), "code": _code(), "name": info.name}
        self._key |= {"processors": str(info.processors), "kind": device.type, **info.versions}
        self._known: dict[tuple[str, ...], BaseModel] = {}
        self._tolerances: dict[tuple[str, str], Allowed] = {}
        self._written: dict[tuple[str, str], int] = {}

    def of(self, problem: Problem, held: Held = nullcontext) -> ProblemFacts:
        """As `find_facts`, if they are not known; `held` as of `kept`."""
        find = lambda: find_facts(problem, self._device)  # noqa: E731
        return self.kept("facts", problem, ProblemFacts, find, held)

    def kept(
        self, kind: str, problem: Problem, model: type[Value], find: Callable[[], Value],
        held: Held = nullcontext,
    ) -> Value:  # fmt: skip
        """What this process, or a file, knows of a problem; otherwise what `find` returns.

        Args:
            kind: What is known.
            problem: The problem.
            model: The type of the value.
            find: Finds it.
            held: Holds the device meanwhile, unless the caller does.
        """
        place = kind, problem.sha256, *problem.cases, *problem.hidden
        if place not in self._known:
            file = self._file(kind, problem, model)
            value = file.read()
            if value is not None:
                self._known[place] = value
        if place not in self._known:
            with held():
                if place not in self._known:  # others may have waited for the device before
                    file.write(value := find())
                    self._known[place] = value
        return self._known[place]  # type: ignore[return-value]

    def tolerances(self, problem: Problem, inputs: str) -> Allowed:
        """The tolerances that right answers were compared with; `inputs` as in `Options`.

        Further ones may be added, and are written by `keep_tolerances`.
        """
        place = problem.sha256, inputs
        if place not in self._tolerances:
            found = self._file(f"tolerances-{inputs}", problem, _Tolerances).read()
            entries = found.entries if found else ()
            self._tolerances[place] = {(name, i): each for name, i, each in entries}
            self._written[place] = len(entries)
        return self._tolerances[place]

    def keep_tolerances(self, problem: Problem, inputs: str) -> None:
        """Writes the tolerances if there are new ones."""
        place = problem.sha256, inputs
        entries = [(*key, each) for key, each in list(self._tolerances.get(place, {}).items())]
        if len(entries) > self._written.get(place, 0):
            self._written[place] = len(entries)
            file = self._file(f"tolerances-{inputs}", problem, _Tolerances)
            file.write(_Tolerances(entries=tuple(entries)))

    def _file(self, kind: str, problem: Problem, model: type[Value]) -> CacheFile[Value]:
        own = {"problem": problem.sha256, "cases": " ".join((*problem.cases, *problem.hidden))}
        return CacheFile(kind, self._key | own, model)


def find_facts(problem: Problem, device: torch.device) -> ProblemFacts:
    """The facts of a problem: runs its reference in every case. Hold the device.

    Raises:
        ProblemError: if the reference fails.
    """
    cases: list[KnownCase] = []
    for case in open_cases(problem, device):
        known, outputs = _known_case(case, problem)
        cases.append(known)
    state = {name: f"{name}: {_label(tensor)}" for name, tensor in case.state().items()}
    weights = [state.pop(name) for name in case.parameters()]
    return ProblemFacts(
        cases=tuple(each for each in cases if each.told.name not in problem.hidden),
        hidden=tuple(each for each in cases if each.told.name in problem.hidden),
        tolerance=_tolerance(case, outputs),
        precision=case.precision,
        weights=tuple(weights),
        buffers=tuple(state.values()),
    )


def _known_case(case: Case, problem: Problem) -> tuple[KnownCase, list[torch.Tensor]]:
    """What is known of a case, and its outputs."""
    # not from the secret: a turn that is judged again has the same distributions
    probe = seed_from(problem.sha256, case.name, "probe")
    case.draw_weights(probe)
    skeleton, tensors = case.draw_inputs("own", probe)
    usable = usable_distributions(case, probe)
    seconds, answer = timed_answer(case, skeleton, tensors)
    outputs = tree.flatten(answer)[1]
    told = CaseFacts(
        name=case.name,
        overrides=overrides_of(problem, case.name),
        inputs=tuple(
            _input_facts(case.argument_name(i), value, tensors, case.structures)
            for i, value in enumerate(tree.unflatten(skeleton, tensors))
        ),
        outputs=_output_facts(answer),
    )
    known = KnownCase(
        traits=case.traits,
        distributions=tuple(usable),
        seconds=seconds,
        inputs=tuple(spec_of(tensor, 0) for tensor in tensors),
        outputs=tuple(spec_of(tensor, 0) for tensor in outputs),
        model=tuple(spec_of(tensor, 0) for tensor in model_tensors(case)),
        largest=max((t.numel() for t in (*tensors, *model_tensors(case), *outputs)), default=0),
        told=told,
    )
    return known, outputs


def of_spec(spec: Spec) -> torch.Tensor:
    """A meta tensor of a spec's dtype, shape and stride."""
    dtype = getattr(torch, spec["dtype"])
    return torch.empty_strided(spec["shape"], spec["stride"], dtype=dtype, device="meta")


def _code() -> str:
    """A hash of the code that facts and tolerances are found by."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *(here.parent / "compare").glob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def timed_answer(
    case: Case, skeleton: tree.Skeleton, tensors: list[torch.Tensor]
) -> tuple[float, Any]:
    """Seconds of one call of a reference, the shorter of two, and its answer.

    The reference has been called before.
    """
    durations, answer = list[float](), None
    for _ in range(2):
        del answer  # before there is another
        finish(case.device)
        start = time.perf_counter()
        answer = case.answer(skeleton, tensors, seed=0)
        finish(case.device)
        durations.append(time.perf_counter() - start)
    return min(durations), answer


def _text(distribution: str, usable: list[str], structures: tuple[Structure, ...]) -> str:
    if not has_outliers(distribution, usable):
        return described(distribution, structures)
    ends = [each.bounds for each in structures if not (each.kept or each.tied)]
    ranged = any(math.isfinite(end) for both in ends for end in both)
    return TOLD + ", mapped into the input's range" * ranged


def _input_facts(
    name: str, value: Any, tensors: list[torch.Tensor], structures: tuple[Structure, ...]
) -> InputFacts:
    if not isinstance(value, torch.Tensor):
        return InputFacts(name=name, dtype=type(value).__name__)
    index = next(i for i, tensor in enumerate(tensors) if tensor is value)
    low, high = structures[index].ends
    return InputFacts(
        name=name,
        dtype=dtype_name(value.dtype),
        shape=tuple(value.shape),
        low=low,
        high=high,
        structure=(*structures[index].stated(), *_layout(value, tensors)),
    )


def _output_facts(answer: Any) -> tuple[str, ...]:
    """The label of each output, and what a gradient is of."""
    skeleton, tensors = tree.flatten(answer)
    names = [path[2:-2] for path, leaf in tree.leaves(skeleton) if "t" in leaf]
    return tuple(
        f"{_label(tensor)} (`{name}`)" if name.endswith(".grad") else _label(tensor)
        for name, tensor in zip(names, tensors, strict=True)
    )


def _layout(tensor: torch.Tensor, tensors: list[torch.Tensor]) -> list[str]:
    """How an input lies in memory if that is not as its shape says, as `Image` lays it out."""
    memory = tensor.untyped_storage().data_ptr()
    if sum(each.untyped_storage().data_ptr() == memory for each in tensors) > 1:
        return ["a contiguous copy" if not is_dense(tensor) else "a copy"]
    if tensor.is_contiguous():
        return []
    return [f"strides {list(tensor.stride())}"] if is_dense(tensor) else ["a contiguous copy"]


def _tolerance(case: Case, output: list[torch.Tensor]) -> str:
    """How outputs are compared, for their dtypes."""
    dtypes = dict.fromkeys(tensor.dtype for tensor in output)
    floating = [dtype for dtype in dtypes if dtype.is_floating_point or dtype.is_complex]
    share = f"{100 * OTHERWISE * case.tolerance:g} % of the elements"
    integers = {
        "exact": "Integers and bools must be exact.",
        "rounded": f"Integers may be off by one in {share}.",
        "chosen": f"Integers may differ in {share}.",
    }[case.integers]
    exact = [integers] if len(floating) < len(dtypes) else []
    sizes = {d: max(each.numel() for each in output if each.dtype == d) for d in floating}
    told = [_tolerance_of(case, dtype, sizes[dtype], len(dtypes) > 1) for dtype in floating]
    return " ".join([*exact, *told])


def _tolerance_of(case: Case, dtype: torch.dtype, size: int, named: bool) -> str:
    kind = torch.float32 if dtype.is_complex else dtype
    multiple, share = budgets.allowance(kind, case.precision)
    eps, factor = torch.finfo(kind).eps, case.tolerance
    name = dtype_name(dtype) + " " if named else ""
    few = size < budgets.FEW
    scale = "max(abs(output))" if few else "std(output)"
    text = (
        f"Per {name}element, absolute error against float64 <= "
        f"max({multiple * factor:g} x the reference's largest error, "
        f"{share / eps * factor:g} eps x {scale})."
    )
    if not few:
        text += " Where scales differ, small elements, rows and columns have a smaller tolerance."
    if kind == torch.float32:
        text += " One float32 accumulator per sum of up to 2^20 terms is accurate enough."
    if few or case.precision != "ieee":
        return text
    many, least = budgets.rms_allowance(kind)
    return (
        f"{text} Over {budgets.MANY} or more elements, RMS error <= max({many * factor:g} x the "
        f"reference's, {least * factor:g} eps x std(output))."
    )


def _label(tensor: torch.Tensor) -> str:
    return f"{dtype_name(tensor.dtype)}{list(tensor.shape)}"
