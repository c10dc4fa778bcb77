"""The reference of a problem, run by the judge: its inputs, weights and expected outputs.

Everything random follows from a secret and an index, so that a recorded turn can be judged again on
the same inputs.
"""

import copy
import hashlib
import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, TypeVar

import torch
from torch import nn, no_grad
from torch.nn.attention import SDPBackend, sdpa_kernel

from kevin_env.candidate import tree, weights
from kevin_env.candidate.seeding import reseed, seed_torch
from kevin_env.judge.compare.accumulator import OneAccumulator
from kevin_env.judge.compare.outputs import INTEGERS
from kevin_env.judge.compare.values import differ, is_rounded, rounded_otherwise
from kevin_env.judge.inputs.distributions import redraw
from kevin_env.judge.inputs.gradients import Gradients, find_gradients, passes
from kevin_env.judge.inputs.process_state import (
    RANDOM,
    generators,
    reference_code,
    refusing_changes,
    set_precision,
)
from kevin_env.judge.inputs.source import code_of, file_of, new_module
from kevin_env.judge.inputs.structure import Structure, look
from kevin_env.judge.inputs.variation import lean, vary
from kevin_env.problem import Problem, ProblemError

FURTHER_CALLS = 2
"""Calls of a reference whose first two outputs differ, to see if a seed decides them."""
PRECISIONS = ("ieee", "tf32")
"""Precision of float32 matrix products and convolutions of a reference."""
DRAWS = 3
"""Input sets that structures are found from; `MANY_DRAWS` if they are small."""
MANY_DRAWS = 32
SMALL = 1 << 14
"""Most elements of a small input set."""
OTHER_NUMBER = "get_inputs returns a different number of tensors each time"

_TRIED = set[tuple[str, str, str, str]]()
"""Code that leaves the process's settings alone: hash, case, kind of device, place."""
T = TypeVar("T")


@dataclass(frozen=True)
class Expected:
    """What the reference returns for one input set.

    Attributes:
        output: Its output in its own precision, a tree of tensors.
        plain: Computes it with random errors of one accumulator per sum (`accumulator`), from the
            number of the draw; None if that is not possible.
    """

    output: Any
    _make_oracle: Callable[[], Any | None]
    plain: Callable[[int], Any | None] = lambda _: None

    @cached_property
    def oracle(self) -> Any | None:
        """The output in float64 arithmetic, computed at first use; None if that is not possible.

        Raises:
            torch.OutOfMemoryError: if memory is short and the case needs it.
        """
        return self._make_oracle()


@dataclass(frozen=True)
class Traits:
    """What holds for every draw of a case.

    Attributes:
        stochastic: Whether the reference draws random numbers while it runs.
        structures: The structure of each input.
        gradients: What is differentiated; None if nothing is.
    """

    stochastic: bool
    structures: tuple[Structure, ...]
    gradients: Gradients | None = None


class Case:
    """One input case of a problem on one device: its module, with its constants, and its model.

    Args:
        problem: The problem.
        name: One of its cases.
        device: Where it runs.
        traits: What is known of the case already; otherwise it is found when first needed.

    Raises:
        ProblemError: if the reference's code fails.
    """

    def __init__(
        self,
        problem: Problem,
        name: str,
        device: torch.device,
        traits: Traits | None = None,
    ) -> None:
        self.name = name
        self.problem = " ".join(filter(None, (problem.id, problem.form)))
        self.dtype, self._backward = problem.dtype, problem.backward
        self._sha256 = problem.sha256
        self._file = file_of(problem, name)
        self.device = device
        self.module = new_module(f"problem_{problem.sha256[:12]}_{name}", self)
        code, names = code_of(problem, name), self.module.__dict__
        with reference_code(problem.id, "the module"), RANDOM, device:
            self._run("the module", lambda: exec(code, names))
        self.precision = self._choice("PRECISION", PRECISIONS)
        self.integers = self._choice("INTEGERS", INTEGERS)
        with reference_code(problem.id, "TOLERANCE"):
            self.tolerance = float(getattr(self.module, "TOLERANCE", 1.0))
            if not 0 < self.tolerance < math.inf:
                raise ProblemError(f"{problem.id}: TOLERANCE must be a positive, finite number")
        with reference_code(problem.id, "get_init_inputs"), RANDOM:
            made = self._run("get_init_inputs", self.module.get_init_inputs)
            self.init_inputs = _arguments(self.module.Model, list(made))
        self.model: nn.Module
        self._names: list[str] = []
        self._known = traits
        self._oracle: nn.Module | None = None
        self._has_oracle = True

    def _choice(self, name: str, known: tuple[str, ...]) -> str:
        """A constant of the module."""
        value = getattr(self.module, name, known[0])
        if value not in known:
            raise ProblemError(f"{self.problem}: {name} is {value!r}; known are {', '.join(known)}")
        return value

    def draw_weights(self, seed: int) -> None:
        """Constructs a new model.

        Parameters of one or two distinct values, such as norm scales, biases and identities, get
        some noise. Float32 parameters are moved within the bits that bfloat16 lacks (`lean`).

        Raises: torch.OutOfMemoryError: if memory is short for the model, or for an oracle that is
        needed.
        """
        with reference_code(self.problem, "Model"), RANDOM, self.device, no_grad():
            reseed(seed)
            with weights.Creation() as creation:
                given, named = self.init_inputs
                model = self._run("Model", lambda: self.module.Model(*given, **named))
        # without `RANDOM`, for which others wait: it waits for the device
        with reference_code(self.problem, "Model"), no_grad():
            self._names = creation.names(model)
            self.model = weights.converted(model.to(self.device), self.dtype)
            drawn = [
                parameter
                for parameter in self.model.parameters()
                if parameter.is_floating_point() and parameter.numel() and not parameter.is_meta
            ]
            vary(drawn, seed ^ 1)  # the weights were drawn from the seed itself
            if self.precision == "ieee":
                for parameter in drawn:
                    if parameter.dtype == torch.float32:
                        lean(parameter)
        self._oracle, self._has_oracle = None, True

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by name, in the order in which they were created."""
        state = self.model.state_dict()
        return {name: state[name] for name in self._names}

    def parameters(self) -> list[str]:
        """The names in `state` that are parameters, in the same order; the others are buffers."""
        own = {name for name, _ in self.model.named_parameters()}
        return [name for name in self._names if name in own]

    def argument_name(self, index: int) -> str:
        """The parameter of `forward` that takes an input."""
        name = self.gradients and self.gradients.name(index)
        return name or self._input_name(index)

    def _input_name(self, index: int) -> str:
        names = list(inspect.signature(self.module.Model.forward).parameters)[1:]
        return names[index] if index < len(names) else f"input {index}"

    def own_inputs(self, seed: int) -> tuple[tree.Skeleton, list[torch.Tensor]]:
        """What `get_inputs` returns, on the device: its structure and its tensors."""
        with reference_code(self.problem, "get_inputs"), RANDOM, self.device, no_grad():
            reseed(seed)
            drawn = self._run("get_inputs", self.module.get_inputs)
            if isinstance(drawn, torch.Tensor):
                raise ProblemError(f"{self.problem}: get_inputs returns a tensor; return a list")
            skeleton, tensors = tree.flatten(list(drawn))
            tensors = [weights.as_dtype(tensor.to(self.device), self.dtype) for tensor in tensors]
        return skeleton, tensors

    def draw_inputs(self, distribution: str, seed: int) -> tuple[tree.Skeleton, list[torch.Tensor]]:
        """One input set, upstream gradients included: its structure and its tensors."""
        skeleton, tensors = self.own_inputs(seed)
        if self.gradients:
            skeleton, tensors = self.gradients.drawn(skeleton, tensors, seed, self.device)
        if distribution == "own":
            return skeleton, tensors
        if len(tensors) != len(self.structures):
            raise ProblemError(f"{self.problem}: {OTHER_NUMBER}")
        pairs = zip(tensors, self.structures, strict=True)
        return skeleton, [redraw(t, distribution, s, seed) for t, s in pairs]

    @property
    def traits(self) -> Traits:
        """What holds for every draw; draw weights before."""
        return Traits(self.stochastic, self.structures, self.gradients)

    @cached_property
    def gradients(self) -> Gradients | None:
        """What is differentiated: all that a gradient reaches; draw weights before.

        Raises:
            ProblemError: if there is nothing, or the reference cannot be differentiated.
        """
        if not self._backward:
            return None
        if self._known is not None:
            return self._known.gradients
        drawn = self.own_inputs(seed_from(self._sha256, self.name, "gradients"))
        found = find_gradients(
            self.model, drawn, self._input_name, self.parameters(), self._forward
        )
        if found is None:
            text = "no gradient reaches a floating-point input or a parameter from its output"
            raise ProblemError(f"{self.problem}: {text}")
        return found

    @cached_property
    def structures(self) -> tuple[Structure, ...]:
        """What all draws of each input have in common, from the same draws each time."""
        if self._known is not None:
            return self._known.structures
        structures = self._look(0)
        small = sum(each.count for each in structures) <= SMALL
        for i in range(1, MANY_DRAWS if small else DRAWS):
            drawn = self._look(i)
            if len(drawn) != len(structures):
                raise ProblemError(f"{self.problem}: {OTHER_NUMBER}")
            structures = tuple(a.merged(b) for a, b in zip(structures, drawn, strict=True))
        return structures

    def _look(self, number: int) -> tuple[Structure, ...]:
        seed = seed_from(self._sha256, self.name, "structure", number)
        _, tensors = self.draw_inputs("own", seed)
        with reference_code(self.problem, "get_inputs"):  # such as a sparse tensor
            return tuple(map(look, tensors))

    def expect(self, skeleton: tree.Skeleton, tensors: list[torch.Tensor], seed: int) -> Expected:
        """The reference's output for these inputs, which it does not modify, and its oracle.

        The seed is for a reference that draws random numbers.
        """
        call = skeleton, tensors, seed
        oracle, plain = partial(self._oracle_output, *call), partial(self._plain_output, *call)
        output = self.answer(*call)
        several = len(tree.flatten(output)[1]) > 1  # each of which may ask for it
        return Expected(output, oracle, cache(plain) if several else plain)

    def answer(self, skeleton: tree.Skeleton, tensors: list[torch.Tensor], seed: int) -> Any:
        """The reference's output alone; arguments as for `expect`."""
        copies = [tensor.clone() for tensor in tensors]  # a reference may write to its inputs
        return self._call(self.model, tree.unflatten(skeleton, copies), seed)

    def runner(self, skeleton: tree.Skeleton, tensors: list[torch.Tensor]) -> Callable[[], Any]:
        """A call of the reference, ready to be counted or timed. It may write to the tensors."""
        return partial(self._call, self.model, tree.unflatten(skeleton, tensors))

    @cached_property
    def stochastic(self) -> bool:
        """Whether the reference draws random numbers, as no oracle can; draw weights before.

        Different outputs do not prove it: some of cuDNN's kernels add in the order in which their
        blocks end. The proof is that torch's generators have advanced, or that outputs with two
        seeds differ by more than rounding.

        Raises:
            ProblemError: if outputs with one seed do, which no submission could match.
        """
        if self._known is not None:
            return self._known.stochastic
        drawn = self.draw_inputs("own", seed_from(self._sha256, self.name, "randomness"))
        with RANDOM:
            seed_torch(2)
            before = generators(self.device)
            other = tree.flatten(self.answer(*drawn, 2))[1]
            moved = differ(before, generators(self.device))
        one = tree.flatten(self.answer(*drawn, 1))[1]
        if not differ(one, other):
            return False
        self.answer(*self.draw_inputs("own", seed_from(self._sha256, self.name, "other")), 1)
        for _ in range(FURTHER_CALLS):
            again = tree.flatten(self.answer(*drawn, 1))[1]
            if not all(map(rounded_otherwise, one, again)):
                raise ProblemError(
                    f"{self.problem}: its reference gives different outputs for the same inputs "
                    "and seed: it keeps state between calls, or draws numbers independent of "
                    "torch's seed; it must be a function of its inputs and weights"
                )
        return moved or not all(map(rounded_otherwise, one, other))

    def _oracle_output(
        self, skeleton: tree.Skeleton, tensors: list[torch.Tensor], seed: int
    ) -> Any | None:
        if self.stochastic or not self._has_oracle:
            return None
        try:
            if self._oracle is None:
                self._oracle = copy.deepcopy(self.model).double()
            doubled = tree.unflatten(skeleton, [_doubled(t) for t in tensors])
            return self._call(self._oracle, doubled, seed)
        except Exception:  # it cannot be copied, insists on a dtype, or memory is short
            self._oracle, self._has_oracle = None, False
            return None

    def _plain_output(
        self, skeleton: tree.Skeleton, tensors: list[torch.Tensor], seed: int, draw: int
    ) -> Any | None:
        if self.stochastic:
            return None
        try:
            with sdpa_kernel(SDPBackend.MATH), OneAccumulator():
                return self.answer(skeleton, tensors, seed + draw)  # which seeds the errors
        except Exception:  # too little memory, or an operator without such a rule
            return None

    def _call(self, model: nn.Module, arguments: Any, seed: int | None = None) -> Any:
        with no_grad():
            output = self._forward(passes(model, self.gradients), arguments, seed)
        with reference_code(self.problem, "forward"):
            skeleton, tensors = tree.flatten(output)
        if not tensors:
            raise ProblemError(f"{self.problem}: its reference returns no tensor")
        return tree.unflatten(skeleton, [tensor.detach() for tensor in tensors])

    def _forward(self, model: nn.Module, arguments: Any, seed: int | None = None) -> Any:
        with reference_code(self.problem, "forward"), RANDOM:
            set_precision(self.precision)
            reseed(seed)
            return self._run("forward", lambda: model(*arguments))

    def _run(self, place: str, code: Callable[[], T]) -> T:
        """Runs code of the problem. The first time, it is refused if it changes a setting."""
        key = self._sha256, self.name, self.device.type, place
        if key in _TRIED:
            return code()
        result = refusing_changes(code, self.problem, self._file)
        _TRIED.add(key)
        return result


def _arguments(model: type, made: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a model, from what `get_init_inputs` returned.

    It returns the positional ones, or as the KernelBook collection `[[...], {...}]`.
    """
    match made:
        case [list(given), dict(named)] if all(isinstance(name, str) for name in named):
            with suppress(TypeError):
                inspect.signature(model).bind(*given, **named)
                return given, named
    return made, {}


def seed_from(secret: str, *parts: object) -> int:
    """A 63-bit seed from the secret and its purpose."""
    text = "/".join((secret, *map(str, parts)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    """A copy, in float64 or complex128 if it is floating-point or complex."""
    if not is_rounded(tensor):
        return tensor.clone()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64, copy=True)
