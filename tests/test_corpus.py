import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from corpus import ATTACKS, FOLDER, Entry, Judged, judged, read_corpus, read_entry
from in_process import InThisProcess
from judges import Lent
from processes import descendants, outlived, wait_for

from kevin_env.judge import JudgePool, Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.capacity import GIB
from kevin_env.judge.judge import Judge
from kevin_env.judge.pool import LocalPool
from kevin_env.judge.sandbox.levels import LevelName
from kevin_env.judge.verdict import flag_name
from kevin_env.judge.workers.launcher import ForkServer
from kevin_env.outcome import Correct
from kevin_env.rules import check_rules

HASTY = Pace(pairs=(1, 1), seconds=0.0, warm_ups=1)
"""For honest code, whose times decide nothing here. It is screened on all input sets."""
NOTES = {"above_roofline"}
"""The only flags that honest code may get: better algebra may beat the roofline."""
CLASS_OF = {name: attack for attack, names in ATTACKS.items() for name in names.split()}
LEFT_TO_THE_RECORDER = {
    "another_model_by_new", "callback_as_a_kernel", "hides_in_a_string", "overloads_an_operator",
    "replaces_what_is_allowed", "torch_inside_a_kernel",
}  # fmt: skip
"""What only a call shows."""
HONEST_EACH = 3
"""One of so many honest files is judged by `make test`."""


def parameters(*devices: str) -> list:
    """Every file for one of these devices, those of a class together; in `make test` one of each,
    and some honest.
    """
    seen: set[str] = set()
    found = []
    for number, entry in enumerate(read_corpus(*devices)):
        honest = entry.path.parent.name == "honest"
        group = f"honest {number % 4}" if honest else CLASS_OF[entry.path.stem]
        left_out = number % HONEST_EACH if honest else group in seen
        seen.add(group)
        marks = [pytest.mark.xdist_group(group), *([pytest.mark.full] if left_out else [])]
        found.append(pytest.param(entry, id=entry.name, marks=marks))
    return found


@pytest.fixture(scope="session")
def thorough() -> Iterator[JudgePool]:
    """Judges as users have them, for what tries to deceive them."""
    with LocalPool() as judges:
        yield judges


@pytest.fixture(scope="module")
def hasty(servers: Callable[[LevelName], ForkServer]) -> Iterator[JudgePool]:
    judge = Judge("cpu", Lent(servers("root")), HASTY)
    yield InThisProcess(judge)
    judge.close()


@pytest.fixture
def small(
    servers: Callable[[LevelName], ForkServer], monkeypatch: pytest.MonkeyPatch
) -> Iterator[JudgePool]:
    """A judge on a machine with little memory, which is full soon."""
    monkeypatch.setattr("kevin_env.judge.bench.host_memory", lambda: 4 * GIB)
    judge = Judge("cpu", Lent(servers("root")), HASTY)
    yield InThisProcess(judge)
    judge.close()


def check(entry: Entry, judged: Judged) -> None:
    outcome, log, flags = judged
    assert entry.met_by(outcome), f"expected {entry.expect}: {outcome}\n{log}"
    assert "BREACH" not in log, log
    assert entry.path.parent.name != "honest" or NOTES.issuperset(map(flag_name, flags)), flags


@pytest.mark.parametrize("entry", parameters("cpu", "any"))
def test_a_submission_ends_as_it_says(entry: Entry, request: pytest.FixtureRequest) -> None:
    pool = {"honest": "hasty", "memory_bomb": "small"}
    name = pool.get(entry.path.parent.name) or pool.get(entry.path.stem, "thorough")
    check(entry, judged(entry, "cpu", request.getfixturevalue(name)))


@pytest.mark.gpu
@pytest.mark.parametrize("entry", parameters("cuda", "any"))
def test_a_submission_ends_as_it_says_on_a_gpu(entry: Entry, thorough: JudgePool) -> None:
    check(entry, judged(entry, "cuda", thorough))


def test_the_reader_sees_all_but_what_only_a_call_shows() -> None:
    """And honest files pass it."""
    found = {
        entry: check_rules(entry.code, entry.rules) for entry in read_corpus("cpu", "cuda", "any")
    }
    assert {
        e.path.stem for e in found if e.expect.startswith("rules/") and not found[e]
    } == LEFT_TO_THE_RECORDER
    assert [e.name for e in found if e.path.parent.name == "honest" and found[e]] == []
    assert [e.name for e, verdict in found.items() if verdict and not e.met_by(verdict)] == []


def test_a_gain_is_what_a_score_pays() -> None:
    entry = Entry(FOLDER / "hostile/a.py", "relu.py", "cpu", "kernel", "no gain")
    noisy = Correct(kind="too_noisy", message="", speedup=1270.0, speedup_interval=(1.3, 2400.0))
    assert entry.met_by(noisy)
    assert not entry.met_by(noisy.model_copy(update={"kind": "timed"}))
    assert not entry.met_by(noisy.model_copy(update={"speedup_interval": (3.1, 2400.0)}))


def test_every_class_of_attack_is_tried_and_every_attack_is_of_a_class() -> None:
    named = [name for names in ATTACKS.values() for name in names.split()]
    assert sorted(named) == sorted(path.stem for path in (FOLDER / "hostile").glob("*.py"))
    assert all(ATTACKS.values()) and len(ATTACKS) >= 90


def test_a_file_that_does_not_say_how_it_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text(
        '"""Does something.\n\nproblem: softmax.py\ndevice: cpu\nrules: open\nexpect: '
        'correctness/vlues\n"""\n'
    )
    with pytest.raises(ValueError, match="vlues"):
        read_entry(path)


def test_a_flood_of_output_is_cut_and_cleaned(pool: LocalPool) -> None:
    _, log, _ = judged(read_entry(FOLDER / "hostile/output_flood.py"), "cpu", pool)
    assert 1000 < len(log) <= 16_000 and "\x1b" not in log


def test_a_daemon_ends_with_its_submission(pool: LocalPool) -> None:
    entry = read_entry(FOLDER / "hostile/daemon.py")
    verdict = pool.submit(
        entry.task, Submission(code=entry.code), Options(device="cpu", require_sandbox=True)
    )
    daemon = wait_for("kevin-leftover")
    processes = {each for each in descendants(os.getpid()) if each.pid == daemon}
    verdict.result()
    assert processes and not outlived(processes)
