"""What a submission can do to whoever waits while its kernels are compiled: real candidates, one
attack a test.
"""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from corpus import FOLDER, read_entry
from loaded import Ran, Submit

from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.device import inform
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.screening import screen
from kevin_env.judge.trial import Trial
from kevin_env.judge.workers.errors import Ended
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.judge.workers.worker import Worker

SECONDS, LATE = 20.0, 3.0
"""For copies that end by themselves, and for those that do not."""
PRELUDE = """
import ctypes, gc, os, signal, socket, sys, time
from types import SimpleNamespace
import torch
from kevin_env.candidate import precompile, runtime
runtime_here = next(each for each in gc.get_objects() if type(each) is runtime.Runtime)
runtime_here.device = torch.device("cuda", 0)
precompile.has_kernels = lambda: True
original, marks = os.getpid(), os.getcwd()
def call(self, **_):
    assert os.getpid() != original
    open(os.path.join(marks, f"called-{os.getpid()}"), "w").close()
    attack()
runtime.Runtime.stage = call
"""
"""Has a candidate without a GPU do as if it had one. What a model's calls could do is in `attack`.
"""
SETTINGS: dict[str, Any] = {
    "tensors": [], "state": {}, "parameters": [], "seed": 0, "compiled": False,
}  # fmt: skip
CASE: dict[str, Any] = {
    "construct": {"init": {"list": [{"list": []}, {"dict": []}]}, "precision": "ieee", **SETTINGS},
    "stage": {},
}
CASES = 2


@pytest.fixture(autouse=True, scope="module")
def warm(servers: Callable[[LevelName], ForkServer]) -> None:
    servers("root").warm("9.0")


def calls(ran: Ran) -> int:
    """How many copies came to the point of calling the model."""
    listed = ran.worker.ask("run", 10, command=["ls"], seconds=5, environment={}, limit=10_000)[
        "output"
    ]
    return listed.count("called-")


def rehearse(ran: Ran, seconds: float = SECONDS) -> float:
    """Gives the order, and says how long the answer took."""
    assert ran.end is None, ran.closed().log
    start = time.monotonic()
    cases, properties = (
        {str(n): CASE for n in range(CASES)},
        {"name": "a GPU", "major": 9, "minor": 0},
    )
    answer = ran.worker.ask("precompile", 30, cases=cases, properties=properties, seconds=seconds)
    assert list(answer) == ["unrecorded"]
    return time.monotonic() - start


def inside(of: Ran) -> list[int]:
    """The processes whose working folder is the candidate's."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cwd").readlink() == of.worker.folder and "State:\tZ" not in (
                place / "status"
            ).read_text():
                found.append(int(place.name))
        except OSError:  # it ended while we looked
            continue
    return found


def assert_alone(of: Ran) -> None:
    """No process but the candidate; one that was killed may take a moment to go."""
    deadline = time.monotonic() + SECONDS
    while len(inside(of)) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(inside(of)) == 1


@pytest.mark.parametrize(
    ("attack", "is_late"),
    [
        ("raise KeyError('x')", False),
        ("os._exit(0)", False),
        ("while True: pass", True),
        ("os.fork() or time.sleep(99)", False),
        ("os.posix_spawn('/bin/sleep', ['sleep', '99'], {})", False),
        (
            "print('x' * 100_000, flush=True); os.write(1, b'x'); os.write(2, b'x'); ctypes.CDLL(None).puts(b'x')",
            False,
        ),
        (
            "[os.write(fd, b'garbage') for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')]",
            False,
        ),
        ("kept = bytearray(b'x') * (100 << 20)", False),
    ],
)
def test_a_copy_harms_nobody(submit: Submit, attack: str, is_late: bool) -> None:
    ran = submit(f"{PRELUDE}def attack():\n    {attack}")
    seconds = rehearse(ran, LATE if is_late else SECONDS)
    assert calls(ran) == CASES
    assert seconds > LATE if is_late else seconds < SECONDS
    assert_alone(ran)
    ran.worker.ask("prepare", 5, device="cpu", threads=1)
    assert ran.closed().log == ""


def test_each_is_waited_for_also_where_the_kernel_takes_children_away(submit: Submit) -> None:
    attack = "try: os.mkdir('first')\n    except FileExistsError: time.sleep(2)"
    ran = submit(
        f"{PRELUDE}signal.signal(signal.SIGCHLD, signal.SIG_IGN)\ndef attack():\n    {attack}"
    )
    assert 2 < rehearse(ran) < SECONDS


def test_a_daemon_that_leaves_its_copy_dies_with_the_candidate(submit: Submit) -> None:
    daemon = "os.fork() or (os.setsid(), os.fork() or time.sleep(99))"
    ran = submit(f"{PRELUDE}def attack(): {daemon}")
    rehearse(ran)
    ran.closed()
    assert not inside(ran)


def test_a_copy_that_kills_the_candidate_ends_it_as_the_candidate_itself_would(
    submit: Submit,
) -> None:
    ran = submit(f"{PRELUDE}def attack(): os.kill(original, signal.SIGKILL)")
    with pytest.raises(Ended) as found:
        rehearse(ran)
    assert found.value.code == -signal.SIGKILL


def test_no_extension_is_begun_whose_lock_would_stay_where_a_copy_is_killed(submit: Submit) -> None:
    code = "#include <torch/extension.h>\\n#if TORCH_VERSION_MAJOR\\nint f() { return 1; }\\n#endif"  # takes long
    attack = f"from torch.utils import cpp_extension; cpp_extension.load_inline('mine', '{code}', functions='f')"
    ran = submit(f"{PRELUDE}def attack(): {attack}")
    rehearse(ran, LATE)
    command = ["find", ".", "-name", "lock"]
    assert calls(ran) == CASES
    assert (
        ran.worker.ask("run", 10, command=command, seconds=5, environment={}, limit=10_000)[
            "output"
        ]
        == ""
    )


def test_without_kernels_nothing_is_tried(submit: Submit) -> None:
    ran = submit(
        f"from kevin_env.candidate.precompile import has_kernels\n{PRELUDE}precompile.has_kernels = has_kernels"
    )
    rehearse(ran)
    assert calls(ran) == 0


def cubins(of: Worker) -> int:
    command = ["sh", "-c", "find triton -name '*.cubin' | wc -l"]
    return int(of.ask("run", 30, command=command, seconds=20, environment={}, limit=100)["output"])


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["softmax_triton", "linear_triton_autotuned", "gate_bfloat16_triton"]
)
def test_screening_on_a_gpu_compiles_nothing_more(name: str) -> None:
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    entry, bench = read_entry(FOLDER / "honest" / f"{name}.py"), Bench(device, inform(device))
    worker = bench.candidates.take()
    trial = Trial(bench, entry.task, Options(device="cuda"), "00" * 16, worker)
    try:
        trial.build(entry.code)
        before = cubins(worker)
        trial.open()
        with bench.lane.entered():
            for case in trial.cases:
                trial.enter(case)
                screen(trial, timed=case is trial.cases[-1])
        assert before > 0 and cubins(worker) == before
    finally:
        worker.close()
        trial.close()
        bench.close()
