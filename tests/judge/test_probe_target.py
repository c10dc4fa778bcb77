"""The submission as a program of its own, in a real sandbox on the CPU: what NVIDIA's tools are
given to start.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
import torch
from corpus import FOLDER
from loaded import MEMORY

from kevin_env.judge.api import Options
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.probe.kernels import read_sass
from kevin_env.judge.probe.target import DIFFERENT, Target
from kevin_env.judge.probe.tools import find_tool, run
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import load_problem

LINEAR = load_problem(str(FOLDER / "problems" / "linear.py"))
RIGHT = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.inner = torch.nn.Linear(*sizes[:2])
        print("constructed")
    def forward(self, x):
        print("called with", float(x.abs().max()) > 0, float(self.inner.weight.abs().max()) > 0)
        return self.inner(x)
"""
CHANGING = RIGHT.replace("return self.inner(x)", "return torch.rand(3)")
FAILING = RIGHT.replace("return self.inner(x)", "raise ValueError('not today')")
WORDS = "called with True True"
SPEAKS = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"), daemon=True).start()
print(socket.create_connection(server.getsockname(), 5).recv(5).decode())
"""
REACHES = """
import socket
for family, place in ((socket.AF_INET, ("192.0.2.1", 80)), (socket.AF_INET6, ("::1", 80)), (socket.AF_VSOCK, (2, 80))):
    try:
        socket.socket(family).connect(place)
        print("GOT THROUGH")
    except OSError as error:
        print("refused", error)
"""


@pytest.fixture
def start(server: ForkServer) -> Iterator[Callable[..., Target]]:
    workers: list[Worker] = []

    def target(
        code: str = "", tools: bool = True, headers: Literal["short", "full"] = "short"
    ) -> Target:
        workers.append(Worker(server, "cpu", MEMORY, tools=tools))
        found = Target(workers[-1], Options(device="cpu", headers=headers), 1)
        if code:
            case = Case(LINEAR, "cpu" if "cpu" in LINEAR.cases else "main", torch.device("cpu"))
            found.write_code(code)
            found.write(case, "own", 7)
        return found

    yield target
    for worker in workers:
        worker.close()


def test_the_program_builds_the_model_and_calls_it_with_the_judges_weights_and_inputs(
    start,
) -> None:
    target = start(RIGHT)
    assert target.rehearse(60) == 0
    ran = run(target, target.command, 120, {})
    assert ran.code == 0, ran.output
    assert ran.output.count("constructed") == 1 and ran.output.count(WORDS) == 3


LOOKS = RIGHT.replace(
    'print("called', "print('odd', bool((8 * x != (8 * x).round()).any())); print(\"called"
)


def test_its_inputs_have_what_is_planted_in_those_of_a_verdict(start) -> None:
    relu = load_problem(str(FOLDER / "problems" / "relu.py"))
    eighths = relu.source.replace(
        "torch.rand(ROWS, COLUMNS) - rare.float()", "torch.randn(rare.shape).mul(8).round() / 8"
    )
    target, case = (
        start(),
        Case(relu.model_copy(update={"source": eighths}), "cpu", torch.device("cpu")),
    )
    for admitted, odd in (((), False), (("own", "signed"), True)):
        target.write_code(LOOKS.replace("self.inner(x)", "x.relu()").replace("*sizes[:2]", "1, 1"))
        target.write(case, "own", 7, admitted)
        assert f"odd {odd}" in run(target, target.command, 120, {}).output


def test_it_can_be_loaded_only_which_is_when_extensions_are_compiled(start) -> None:
    target = start(FAILING)
    assert (target.rehearse(60, "load"), target.rehearse(60, "call")) == (0, 1)
    assert start("raise ValueError('not today')").rehearse(60, "load") == 1


@pytest.mark.full
def test_what_is_compiled_can_be_made_without_a_call(start) -> None:
    target = start(FAILING)
    assert target.rehearse(60, "compile") == 0 and "called with" not in target.worker.log
    assert start("raise ValueError('not today')").rehearse(60, "compile") == 1


@pytest.mark.full
def test_whoever_writes_to_its_inputs_writes_to_no_file(start) -> None:
    target = start(
        RIGHT.replace(
            "return self.inner(x)", "print('first', float(x.sum())); return self.inner(x.add_(1))"
        )
    )
    first, second = (run(target, target.command, 120, {}).output for _ in range(2))
    assert "first" in first and first == second


@pytest.mark.full
@pytest.mark.parametrize("headers", ["short", "full"])
def test_the_program_is_built_with_the_headers_that_the_submission_was(start, headers: str) -> None:
    asks = (
        "from torch.utils import cpp_extension as c\n"
        "print('BUILT BY', c._write_ninja_file_and_build_library.__module__)\n"
    )
    target = start(asks + RIGHT, headers=headers)
    ours = "BUILT BY kevin_env.extension.build" in run(target, target.command, 120, {}).output
    assert ours == (headers == "short")


@pytest.mark.full
def test_outputs_that_change_from_call_to_call_are_noticed(start) -> None:
    assert start(CHANGING).rehearse(60, "compare") == DIFFERENT
    assert start(RIGHT).rehearse(60, "compare") == 0


def test_a_submission_that_fails_is_seen_to(start) -> None:
    target = start(FAILING)
    assert target.rehearse(60) == 1


def test_what_takes_too_long_is_stopped(start) -> None:
    assert start(RIGHT.replace("print", "__import__('time').sleep(99);print")).rehearse(0.5) is None
    ran = run(
        start(),
        [sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(99)"],
        1.5,
        {},
    )
    assert ran.late and ran.output == "begun\n"


def test_files_are_read_and_missing_ones_are_empty(start) -> None:
    target = start()
    path = str(target.worker.folder / "report")
    run(target, [sys.executable, "-c", f"open({path!r}, 'w').write('x' * 9_000_000)"], 20, {})
    assert 0 < len(target.read(path)) < 8 << 20 and target.read(path + "x") == ""


def test_programs_get_variables_and_no_secrets(start) -> None:
    ran = run(
        start(), [sys.executable, "-c", "import os; print(sorted(os.environ))"], 20, {"OURS": "1"}
    )
    assert (
        "'OURS'" in ran.output
        and "'NVCC_APPEND_FLAGS'" in ran.output
        and "KEVIN_TEST_SECRET" not in ran.output
    )


def test_machine_code_is_read_where_the_submission_is_confined(start) -> None:
    nvcc, cuobjdump = shutil.which("nvcc"), find_tool("cuobjdump")
    if nvcc is None or cuobjdump is None:
        pytest.skip("no nvcc here" if nvcc is None else "no cuobjdump here")
    source = (FOLDER / "profile" / "spilling.py").read_text().split('r"""')[1].split('"""')[0]
    target = start()
    path = str(target.worker.folder / "spilling.cu")
    target.worker.ask("write", 10, path=path, text=source)
    built = run(
        target, [nvcc, "-arch=sm_90", "-cubin", path, "-o", path.replace(".cu", ".cubin")], 60, {}
    )
    assert built.code == 0, built.output
    (file,) = target.worker.ask("artefacts", 10, folder=str(target.worker.folder))["files"]
    (found,) = read_sass(run(target, [cuobjdump, "-sass", "-res-usage", file], 20, {}).output)
    assert (found.kernel, found.registers, found.load_bytes) == ("relu_that_spills", 32, (4,))
    assert found.local_memory and found.local_accesses > 100


def test_a_program_that_is_not_there_is_an_error_of_the_order(start) -> None:
    with pytest.raises(Exception, match="No such file"):
        run(start(), ["/no/such/program"], 5, {})


@pytest.mark.parametrize("name", ["root", "user", "container"])
def test_only_tools_have_a_network_and_it_ends_at_the_sandbox(
    name: LevelName, servers, start
) -> None:
    worker = Worker(servers(name), "cpu", MEMORY, tools=True)
    try:
        if worker.level != name:
            pytest.skip(f"no level {name} here")
        target = Target(worker, Options(device="cpu"), 1)
        assert run(target, [sys.executable, "-c", SPEAKS], 20, {}).output == "hello\n"
        log = run(target, [sys.executable, "-c", REACHES], 20, {}).output
        assert log.count("refused") == 3 and "GOT THROUGH" not in log
        assert worker.sandbox.network == "enforced"
    finally:
        worker.close()


def test_a_candidate_has_no_loopback(start) -> None:
    target = start(tools=False)
    assert "hello" not in run(target, [sys.executable, "-c", SPEAKS], 20, {}).output


NAMES = """
import os, pathlib
own = pathlib.Path("/proc/self")
open(next((own / "task").iterdir()) / "comm", "w").write("named")  # as CUDA's threads are, in each process
print((own / "comm").read_text())
for place in ("/proc/1/oom_score_adj", "/proc/1/comm", "/proc/sys/kernel/core_pattern", "/proc/pressure/cpu"):
    try:
        if pathlib.Path(place).exists():
            print("GOT THROUGH", place, open(place, "r+b", buffering=0).write(b"600"))
    except OSError:
        pass
for place in pathlib.Path("/proc").iterdir():
    if not place.name.isdigit() and not place.is_symlink() and os.access(place, os.W_OK):
        print("CAN BE WRITTEN", place)
"""


@pytest.mark.parametrize("name", ["root", "user"])
def test_a_program_for_tools_can_name_its_threads_as_cuda_does(name: LevelName, servers) -> None:
    worker = Worker(servers(name), "cpu", MEMORY, tools=True)
    try:
        if worker.level != name:
            pytest.skip(f"no level {name} here")
        assert (
            run(
                Target(worker, Options(device="cpu"), 1), [sys.executable, "-c", NAMES], 20, {}
            ).output
            == "named\n\n"
        )
    finally:
        worker.close()
