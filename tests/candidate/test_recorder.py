"""What a recorder sees of a call, in this process."""

import _ctypes
import ctypes
import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from kevin_env.candidate import recorder
from kevin_env.candidate.recorder import Recorder, library_at
from kevin_env.rules.recorded import Operation, Record, recording

Forward = Callable[[Any, torch.Tensor], Any]


class Given(nn.Module):
    """A model whose `forward` is given."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 4))
        self.forward = lambda x: forward(self, x)


def record_of(forward: Forward, mode: Any = "kernel") -> Record:
    """The record of one call on 3 x 4 elements, as a judge reads it."""
    recorded = Recorder(__file__, {}, **recording(mode))
    model, x = Given(forward), torch.ones(3, 4)
    with torch.no_grad(), recorded.watch(model):
        model(x)
    return Record.model_validate(recorded.record())


def operations_of(forward: Forward) -> list[Operation]:
    return record_of(forward).operations


def names_of(forward: Forward) -> list[str]:
    return [each.name for each in operations_of(forward)]


def test_operations_have_their_line_and_the_elements_of_the_largest_tensor() -> None:
    def forward(model: Any, x: torch.Tensor) -> torch.Tensor:
        return x.repeat(2, 1).sum()

    line = inspect.getsourcelines(forward)[1] + 1
    assert operations_of(forward) == [
        Operation(name="aten::repeat", line=line, weights=False, elements=24),
        Operation(name="aten::sum", line=line, weights=False, elements=24),
    ]
    assert record_of(forward, "partial").operations == []


def test_what_a_compiler_traces_is_not_computed() -> None:
    def forward(model: Any, x: torch.Tensor) -> torch.Tensor:
        with FakeTensorMode() as mode:
            mode.from_tensor(x).exp()
        return x.cos()

    assert names_of(forward) == ["aten::cos"]


def allocates_and_moves(model: Any, x: torch.Tensor) -> Any:
    out = torch.empty_like(x, dtype=torch.float64)
    out[1:] = x.t().contiguous().view(4, 3).t()[1:]
    out[0].zero_()
    return (
        torch.full((2,), 3.0).to(torch.bfloat16),
        torch.arange(3),
        out.half().reshape(-1).split(2),
        x[0, 0].item(),
    )


def test_what_only_allocates_views_casts_or_copies_is_not_recorded() -> None:
    assert names_of(allocates_and_moves) == []


@pytest.mark.parametrize(
    "hidden", [nn.Softmax(dim=1).eval(), nn.Sequential(nn.Softmax(dim=1)).forward]
)
def test_a_layer_is_seen_however_it_is_wrapped(hidden: Any) -> None:
    assert names_of(lambda model, x: hidden(x)) == ["aten::_softmax"]


def test_weights_that_are_put_together_are_marked_and_inputs_are_not() -> None:
    def packs(model: Any, x: torch.Tensor) -> None:
        torch.stack([torch.cat([model.weight.t().contiguous(), model.weight.t()]).half()])

    def packs_inputs(model: Any, x: torch.Tensor) -> None:
        torch.cat([torch.empty_like(x).copy_(x), model.weight])

    def overwrites(model: Any, x: torch.Tensor) -> None:
        model.weight.copy_(x)
        torch.cat([model.weight, model.weight])

    assert [each.weights for each in operations_of(packs)] == [True, True]
    assert [each.weights for each in operations_of(packs_inputs)] == [False]
    assert [each.weights for each in operations_of(overwrites)] == [False]


def test_what_an_operator_of_its_own_computes_in_torch_is_seen() -> None:
    library = torch.library.Library("kevin_test", "DEF")
    library.define("hidden(Tensor x) -> Tensor")
    library.impl("hidden", lambda x: x.exp(), "CPU")
    assert names_of(lambda model, x: torch.ops.kevin_test.hidden(x)) == ["aten::exp"]


def test_what_is_compiled_is_seen_and_is_compiled_in_later_calls() -> None:
    compiled: list[int] = []

    def backend(graph: Any, examples: Any) -> Any:
        compiled.append(1)
        return graph.forward

    function = torch.compile(lambda x: x.exp(), backend=backend)
    assert names_of(lambda model, x: function(x)) == ["aten::exp"] and not compiled
    function(torch.ones(2))
    assert compiled


class Launcher:
    """A kernel as Triton has them."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def run(self, warmup: bool = False) -> None:
        """Launches it."""


def test_kernels_that_are_launched_count_but_not_those_of_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder, "LAUNCHERS", ((__name__, "Launcher", "run"),))
    ours, theirs, run = Launcher(names_of), Launcher(torch.stft), Launcher.run
    assert record_of(lambda model, x: (ours.run(), theirs.run())).kernels == ["names_of"]
    assert record_of(lambda model, x: ours.run(warmup=True)).kernels == []
    assert Launcher.run is run


def test_a_launch_through_ctypes_counts() -> None:
    library: Any = ctypes.CDLL(None)
    assert record_of(lambda model, x: None).kernels == []
    library.cuLaunchKernel = library.abs
    assert record_of(lambda model, x: None).kernels == ["ctypes"]
    del library.cuLaunchKernel


def test_a_kernel_that_was_compiled_with_the_code_round_it_counts() -> None:
    table = pytest.importorskip("torch._higher_order_ops.triton_kernel_wrap").kernel_side_table
    number = table.add_kernel(Launcher(names_of))
    assert record_of(lambda model, x: None, "partial").kernels == ["names_of"]
    del table.kernel_to_id[table.id_to_kernel.pop(number)]


def test_the_symbols_of_a_library_are_read() -> None:
    library = library_at(_ctypes.__file__)
    assert library.modules == {"_ctypes"}
    assert "PyObject_Call" in library.undefined and "PyInit__ctypes" not in library.undefined
    assert library_at(__file__) == library_at("/gone") == recorder.Library(frozenset(), ())


def test_no_more_is_told_than_a_judge_reads() -> None:
    recorded = Recorder(__file__, {}, **recording("kernel"))
    for number in range(99):
        recorded.note(f"aten::op{number}{'x' * 999}", [], [])
    told = Record.model_validate(recorded.record())
    assert len(told.operations) == recorder.MOST


class Graph:
    """A graph as torch has them."""

    def replay(self) -> None:
        """Runs what was captured."""


def test_a_replay_counts_as_the_kernels_that_were_launched_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    recorded = Recorder(__file__, {"captured_kernel": None}, **recording("kernel"))
    with recorded.watch(Given(lambda model, x: x)):
        pass
    assert recorded.record()["kernels"] == []
    with recorded.watch(Given(lambda model, x: x)):
        Graph().replay()
    assert recorded.record()["kernels"] == ["captured_kernel"]


@pytest.mark.gpu
def test_what_is_captured_while_a_model_is_constructed_is_a_calls() -> None:
    recorded = Recorder(__file__, {}, **recording("kernel"))
    x = torch.ones(8, device="cuda")
    x.exp()
    torch.cuda.synchronize()
    with torch.no_grad(), recorded.watch():
        x.cos()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x.exp()
    assert [each["name"] for each in recorded.record()["operations"]] == ["aten::exp"]


def test_a_class_of_an_extension_counts_where_no_call_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Methods of an extension's classes are called without an event."""
    library = recorder.Library(frozenset({"an_extension"}), ())
    monkeypatch.setattr(Recorder, "_loaded", lambda _: {"/a/an_extension.so": library})
    assert record_of(lambda model, x: x).kernels == []
    kept = type("Kernel", (), {"__module__": "an_extension"})
    assert record_of(lambda model, x: x).kernels == ["an_extension.so"] and kept


STUB = """
typedef void (*callback)(void *, int, unsigned, const void *);
static callback called;
int cuptiSubscribe(void **to, callback it, void *data) { called = it; *to = &called; return BUSY; }
int cuptiEnableCallback(unsigned on, void *of, int domain, unsigned id) { return domain != 1; }
int cuptiUnsubscribe(void *of) { called = 0; return 0; }
void launch(int after, const char *name) {
    struct { int after; const char *function; const void *parameters; void *result;
             const char *symbol; } about = { after, "cuLaunchKernel", 0, 0, name };
    if (called) called(0, 1, 307, &about);
}
"""
LAUNCHES = """
import ctypes, sys
from kevin_env.candidate import cuda
seen = []
with cuda.launches(seen.append):
    launch = ctypes.CDLL("libcupti.so.").launch
    launch(0, b"_ZN2at6native3addEi"); launch(1, b"late"); launch(0, b"main_kernel"); launch(0, None)
launch(0, b"afterwards")
print(seen)
"""


@pytest.mark.parametrize("busy", [0, 39])
def test_the_driver_names_what_is_launched(tmp_path: Path, busy: int) -> None:
    """Of torch without CUDA, CUPTI has no number in its name: a stub takes its place."""
    if torch.version.cuda is not None:
        pytest.skip("torch has brought CUPTI")
    (tmp_path / "stub.c").write_text(STUB)
    target = tmp_path / "libcupti.so."
    command = ["gcc", "-shared", "-fPIC", f"-DBUSY={busy}", "-o", target, tmp_path / "stub.c"]
    subprocess.run(command, check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", LAUNCHES], env=environment, capture_output=True, text=True
    )
    assert done.stdout == ("" if busy else "['at::native::add(int)', 'main_kernel']\n"), done.stderr
    assert busy == 0 or "cuptiSubscribe failed with CUDA error 39" in done.stderr
