"""The submission as a program of its own, in a real sandbox on the CPU: what NVIDIA's tools are
given to start.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
import torch
from corpus import FOLDER
from loaded import MEMORY

from kevin_env.judge.api import Options
from kevin_env.judge.inputs.reference import Case
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker
from kevin_env.problem import load_problem
from kevin_env.profile.target import DIFFERENT, Target

pytestmark = pytest.mark.full
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
def start(servers: Callable[[LevelName], ForkServer]) -> Iterator[Callable[..., Target]]:
    workers: list[Worker] = []

    def target(
        code: str = "", tools: bool = True, headers: Literal["short", "full"] = "short"
    ) -> Target:
        workers.append(Worker(servers("root"), "cpu", MEMORY, tools=tools))
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
    ran = target.run(target.command, 120, {})
    assert ran.code == 0, ran.output
    assert ran.output.count("constructed") == 1 and ran.output.count(WORDS) == 3


def test_it_can_be_loaded_only_which_is_when_extensions_are_compiled(start) -> None:
    target = start(FAILING)
    assert (target.rehearse(60, "load"), target.rehearse(60, "call")) == (0, 1)
    assert start("raise ValueError('not today')").rehearse(60, "load") == 1


def test_whoever_writes_to_its_inputs_writes_to_no_file(start) -> None:
    target = start(
        RIGHT.replace(
            "return self.inner(x)", "print('first', float(x.sum())); return self.inner(x.add_(1))"
        )
    )
    first, second = (target.run(target.command, 120, {}).output for _ in range(2))
    assert "first" in first and first == second


def test_outputs_that_change_from_call_to_call_are_noticed(start) -> None:
    assert start(CHANGING).rehearse(60, "compare") == DIFFERENT
    assert start(RIGHT).rehearse(60, "compare") == 0


def test_programs_get_variables_and_no_secrets(start) -> None:
    command = [sys.executable, "-c", "import os; print(sorted(os.environ))"]
    ran = start().run(command, 20, {"OURS": "1"})
    assert (
        "'OURS'" in ran.output
        and "'NVCC_APPEND_FLAGS'" in ran.output
        and "KEVIN_TEST_SECRET" not in ran.output
    )


@pytest.mark.parametrize("name", ["root", "user", "container"])
def test_only_tools_have_a_network_and_it_ends_at_the_sandbox(
    name: LevelName, servers, start
) -> None:
    worker = Worker(servers(name), "cpu", MEMORY, tools=True)
    try:
        if worker.level != name:
            pytest.skip(f"no level {name} here")
        target = Target(worker, Options(device="cpu"), 1)
        assert target.run([sys.executable, "-c", SPEAKS], 20, {}).output == "hello\n"
        log = target.run([sys.executable, "-c", REACHES], 20, {}).output
        assert log.count("refused") == 3 and "GOT THROUGH" not in log
        assert "network" in worker.held
    finally:
        worker.close()


def test_a_candidate_has_no_loopback(start) -> None:
    target = start(tools=False)
    assert "hello" not in target.run([sys.executable, "-c", SPEAKS], 20, {}).output


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
    worker = Worker(servers(name), "cuda:0", MEMORY, tools=True)
    try:
        if worker.level != name:
            pytest.skip(f"no level {name} here")
        target = Target(worker, Options(device="cpu"), 1)
        assert target.run([sys.executable, "-c", NAMES], 20, {}).output == "named\n\n"
    finally:
        worker.close()
