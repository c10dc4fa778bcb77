"""What a submission launches is recorded without a GPU, and played on other memory.

Triton compiles without a GPU. What the kernels would do is done by a double, so that all is played
on a CPU.
"""

import ctypes
import json
import os
import subprocess
import sys
from typing import Any

import pytest
import recordings
import torch

from kevin_env.candidate.region import Region
from kevin_env.candidate.replay import Replay, Unplayable

pytest.importorskip("triton")
Json = dict[str, Any]
CPU = torch.device("cpu")
HEAD = """
import threading
import torch
import triton
import triton.language as tl
from torch import nn
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

@triton.jit
def product(x, w, out, n, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at, mask=at < n) * scale
    tl.store(out + at, value, mask=at < n)

def launch(x, w, out, scale=0.5):
    product[(triton.cdiv(x.numel(), 256),)](x, w, out, x.numel(), scale, BLOCK=256)
    return out

@triton.autotune([triton.Config({"BLOCK": size}) for size in (64, 128, 256, 512)], ["n"])
@triton.jit
def tuned(x, w, out, n, scale, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK != 128)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at, mask=at < n) * scale
    tl.store(out + at, value, mask=at < n)

@triton.jit
def broken(x, out):
    tl.store(out, tl.no_such_function(tl.load(x)))

@gluon.jit
def in_gluon(x, w, out, n, scale, BLOCK: gl.constexpr):
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.BlockedLayout([2], [32], [4], [0]))
    value = gl.load(x + at, mask=at < n) * gl.load(w + at, mask=at < n) * scale
    gl.store(out + at, value, mask=at < n)

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(1000))

class ModelNew(Base):
"""
FORWARD = "    def forward(self, x):\n"
CODES = {
    "plain": FORWARD + "        return launch(x, self.w, torch.empty_like(x))",
    "gluon": FORWARD + """
        out = torch.empty_like(x)
        in_gluon[(4,)](x, self.w, out, x.numel(), 0.5, BLOCK=256, num_warps=4)
        return out""",
    "packs": """
    packed = None
    def forward(self, x):
        if self.packed is None:
            self.packed = self.w * 2
        return launch(x, self.packed, torch.zeros_like(x), 2.0)""",
    "prepares": """
    def load_state_dict(self, state, strict=True):
        self.squares = torch.empty_like(state["w"])
        product[(2,)](state["w"], state["w"], self.squares, 1000, 1.0, BLOCK=512)
    def forward(self, x):
        return launch(x, self.squares, torch.empty_like(x))""",
    "views": FORWARD + """
        out = torch.full((2, x.numel()), 7.0, device=x.device)
        launch(x[500:], self.w[500:], out[1, 500:])
        return out, 3, [x]""",
    "tables": FORWARD + """
        order = torch.tensor([3, 1, 2], device=x.device)
        return launch(x, self.w, torch.empty_like(x)), order""",
    "computes": FORWARD + "        return launch(x, self.w, torch.empty_like(x)) + self.w",
    "reads a value": FORWARD + "        return launch(x, self.w, x.new_empty(1000), x.sum().item())",
    "branches": FORWARD + "        return launch(x, self.w, x if x[0] > 0 else self.w)",
    "streams": FORWARD + """
        with torch.cuda.stream(torch.cuda.Stream()):
            return launch(x, self.w, torch.empty_like(x))""",
    "threads": FORWARD + """
        out = torch.empty_like(x)
        thread = threading.Thread(target=launch, args=(x, self.w, out))
        thread.start()
        thread.join()
        return out""",
    "pauses": FORWARD + """
        torch.cuda._sleep(1000)
        return launch(x, self.w, torch.empty_like(x))""",
    "random": FORWARD + "        return launch(x, self.w, torch.rand_like(x))",
    "on the host": FORWARD + "        return launch(x, self.w, torch.empty_like(x)).cpu().cuda()",
    "tuned": """
    def forward(self, x):
        out = torch.empty_like(x)
        tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, self.w, out, x.numel(), 0.5)
        return out""",
    "does not compile": FORWARD + "        broken[(1,)](x, x)",
    "falls back": FORWARD + """
        try:
            broken[(1,)](x, x)
        except Exception:
            return launch(x, self.w, torch.empty_like(x))""",
}  # fmt: skip
UNRECORDED = {
    "reads a value": "DataDependentOutputException in the code",
    "branches": "DataDependentOutputException in the code",
    "streams": "torch.cuda.Stream",
    "threads": "launches from several threads",
    "pauses": "torch.cuda._sleep",
    "random": "random numbers",
    "on the host": "copies to the host",
}


class Product:
    """Does what the kernel `product` does, on memory of this process."""

    scratch: tuple[int, ...] = ()

    def __init__(self) -> None:
        self.grids = list[list[int]]()

    def launch(self, grid: list[int], parameters: Any) -> None:
        self.grids.append(grid)
        x, w, out = (ctypes.c_uint64.from_address(parameters[i]).value for i in range(3))
        n = ctypes.c_int32.from_address(parameters[3]).value
        scale = ctypes.c_float.from_address(parameters[4]).value
        values = [(ctypes.c_float * n).from_address(each) for each in (x, w, out)]
        a, b, c = (torch.frombuffer(each, dtype=torch.float32) for each in values)
        c.copy_(a * b * scale)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    done = subprocess.run(
        [sys.executable, recordings.__file__],
        input=json.dumps({name: HEAD + code for name, code in CODES.items()}),
        text=True,
        capture_output=True,
        env=environment,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Played:
    """A recording on memory of this process."""

    def __init__(self, answer: Json, **changed: Any) -> None:
        assert "cases" in answer, answer
        self.weights, self.inputs = torch.randn(1000), torch.randn(1000)
        self.kernel = Product()
        kernels: Any = dict.fromkeys(answer["kernels"], self.kernel)
        regions = {"weights": self.weights, "inbox": self.inputs, "words": torch.zeros(1000)}
        places = {name: Region(each.view(torch.uint8)) for name, each in regions.items()}
        self.call = Replay(answer["cases"]["main"] | changed, kernels, places, CPU)


def test_a_launch_is_played_on_the_memory_of_this_process(answers: dict[str, Json]) -> None:
    played = Played(answers["plain"])
    for _ in range(3):
        played.inputs.normal_()
        torch.testing.assert_close(played.call(), played.inputs * played.weights * 0.5)
    assert played.kernel.grids == [[4, 1, 1]] * 3


def test_gluon_is_recorded_like_triton(answers: dict[str, Json]) -> None:
    played = Played(answers["gluon"])
    torch.testing.assert_close(played.call(), played.inputs * played.weights * 0.5)


def test_what_the_first_call_prepares_is_kept(answers: dict[str, Json]) -> None:
    played = Played(answers["packs"])
    first = played.call()
    prepared = played.weights.clone()
    played.weights.zero_()  # the judge writes other weights there
    for _ in range(2):
        played.inputs.normal_()
        torch.testing.assert_close(played.call(), played.inputs * prepared * 4)
    assert not first.isnan().any()
    assert [step["op"][0] for step in answers["packs"]["cases"]["main"]["first"]["steps"][:1]] == [
        "mul"
    ]


def test_a_kernel_prepares_the_weights(answers: dict[str, Json]) -> None:
    played = Played(answers["prepares"])
    expected = played.inputs * played.weights**2 * 0.5
    played.weights.zero_()
    torch.testing.assert_close(played.call(), expected)
    assert played.kernel.grids == [[2, 1, 1], [4, 1, 1]]


def test_views_fills_scalars_and_inputs_are_returned(answers: dict[str, Json]) -> None:
    played = Played(answers["views"])
    out, number, (same,) = played.call()
    expected = torch.full((2, 1000), 7.0)
    expected[1, 500:] = (played.inputs * played.weights * 0.5)[500:]
    torch.testing.assert_close(out, expected)
    assert number == 3 and same.data_ptr() == played.inputs.data_ptr()


def test_a_table_of_values_is_part_of_the_recording(answers: dict[str, Json]) -> None:
    assert Played(answers["tables"]).call()[1].tolist() == [3, 1, 2]


def test_torch_computes_between_kernels(answers: dict[str, Json]) -> None:
    played = Played(answers["computes"])
    expected = played.inputs * played.weights * 0.5 + played.weights
    torch.testing.assert_close(played.call(), expected)
    operations = answers["computes"]["cases"]["main"]["record"]["operations"]
    assert [each["name"] for each in operations] == ["aten::add"]


def test_random_weights_that_are_loaded_over_are_left_out(answers: dict[str, Json]) -> None:
    steps = answers["plain"]["cases"]["main"]["prepare"]
    assert [step["op"][0] for step in steps] == ["copy_"]


def test_every_configuration_that_compiles_is_recorded_in_each_call(
    answers: dict[str, Json],
) -> None:
    case = answers["tuned"]["cases"]["main"]
    for call in (case["first"], case["later"]):
        (step,) = call["steps"]
        grids = [launch["grid"][0] for (launch,) in step["options"]]
        assert grids == [16, 4, 2] and "tuned" in step["choice"]
    assert len(answers["tuned"]["kernels"]) == 3


@pytest.mark.parametrize("name", UNRECORDED)
def test_what_a_list_cannot_say_is_not_recorded(answers: dict[str, Json], name: str) -> None:
    assert answers[name] == {"unrecorded": UNRECORDED[name]}


def test_a_kernel_that_does_not_compile_is_a_failure_at_its_launch(
    answers: dict[str, Json],
) -> None:
    failure = answers["does not compile"]["failure"]
    assert failure["kind"] == "jit" and "no_such_function" in failure["message"]
    assert [name for _, name, _ in failure["frames"]] == ["forward", "broken"]


def test_code_that_handles_the_failure_is_recorded(answers: dict[str, Json]) -> None:
    played = Played(answers["falls back"])
    torch.testing.assert_close(played.call(), played.inputs * played.weights * 0.5)


def test_a_recording_reaches_only_its_own_memory(answers: dict[str, Json]) -> None:
    case = answers["plain"]["cases"]["main"]
    outside = [{**each, "in": ["words", 0]} if "in" in each else each for each in case["buffers"]]
    beyond = [{**each, "in": ["inbox", 64]} if "in" in each else each for each in case["buffers"]]
    for buffers in (outside, beyond):
        with pytest.raises(Unplayable):
            Played(answers["plain"], buffers=buffers).call()
    view = case["first"]["tensors"][0]
    larger = case["first"] | {"tensors": [[*view[:2], [2000], *view[3:]]]}
    with pytest.raises(ValueError, match="does not lie in a region"):
        Played(answers["plain"], first=larger).call()


@pytest.mark.parametrize("name", ["set_", "as_strided", "_local_scalar_dense", "from_file"])
def test_only_operations_on_tensors_are_played(answers: dict[str, Json], name: str) -> None:
    step = {"op": [name, "default"], "args": [], "kwargs": {}, "outs": [], "uses": []}
    first = {"steps": [step], "output": {"v": None}, "tensors": []}
    with pytest.raises(Unplayable, match=name):
        Played(answers["plain"], first=first).call()
