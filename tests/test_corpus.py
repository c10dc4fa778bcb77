import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from corpus import (
    ATTACKS,
    FOLDER,
    KINDS,
    MEDIAN,
    Entry,
    Judged,
    begin,
    judged,
    read_corpus,
    read_entry,
)
from processes import descendants, outlived, wait_for

from kevin_env.extract import extract_file
from kevin_env.judge import JudgePool, Options, Submission
from kevin_env.judge.api import Pace
from kevin_env.judge.verdict import flag_name
from kevin_env.outcome import Correct, FormatError
from kevin_env.pools.local import LocalPool
from kevin_env.rules import check_rules

HASTY = Pace(pairs=(1, 1), seconds=0.0, warm_ups=1)
"""For what must only be correct: its times decide nothing here. It is screened on all input sets."""
LITTLE = 4 << 30
"""Bytes of memory of a machine that is full soon."""
NOTES = {"above_roofline", "interpreted"}
"""The only flags that honest code may get: better algebra may beat the roofline, and Triton is interpreted
on a CPU."""
CLASS_OF = {name: attack for attack, names in ATTACKS.items() for name in names.split()}
LEFT_TO_THE_RECORDER = {
    "another_model_by_new", "backward_of_the_reference", "callback_as_a_kernel",
    "hides_in_a_string", "overloads_an_operator", "replaces_what_is_allowed",
    "torch_inside_a_kernel",
}  # fmt: skip
"""What only a call shows."""
HONEST_EACH = 6
"""One of so many honest files is judged by `make test`."""
NOT_ON_A_CPU = {"runtime/illegal_access"}
OF_A_REPLY = {"format/no_code", "format/truncated"}
"""Kinds that no file can have; see test_extract."""
GUARDS = {"shrinks_shared_memory", "leases_system_files", "thread_bomb"}
"""Attacks of which each is the only test of a guard."""


class Chosen(NamedTuple):
    """A file with the judge that it needs, and whether `make test` leaves it to `make test-all`."""

    entry: Entry
    judge: str
    left_out: bool


def chosen(device: str) -> Iterator[Chosen]:
    """Every file for a device. `make test` judges the first of each class, and of each ending."""
    seen: set[str | tuple[str, ...]] = set()
    for number, entry in enumerate(read_corpus(device, "any")):
        name, endings = entry.path.stem, entry.endings(device)
        if entry.path.parent.name == "honest":
            timed = MEDIAN.fullmatch(endings[0]) is not None
            yield Chosen(
                entry,
                "thorough" if timed else "hasty",
                not timed and number % HONEST_EACH > 0,
            )
            continue
        kinds = {CLASS_OF[name], endings}
        judge = "hasty" if endings == ("correct",) else "thorough"
        judge = "small" if name == "memory_bomb" else judge
        yield Chosen(entry, judge, kinds <= seen and name not in GUARDS)
        seen |= kinds


def parameters(device: str) -> list:
    return [
        pytest.param(
            entry,
            judge,
            id=entry.name,
            marks=[pytest.mark.xdist_group(f"corpus {judge}"), *[pytest.mark.full] * left_out],
        )
        for entry, judge, left_out in chosen(device)
    ]


@pytest.fixture(scope="module")
def judges() -> Iterator[Callable[[str], JudgePool]]:
    """By name: judges as users have them, for what tries to deceive them; others for the rest."""
    kinds: dict[str, Callable[[], LocalPool]] = {
        "thorough": LocalPool,
        "hasty": partial(LocalPool, pace=HASTY),
        "small": partial(LocalPool, pace=HASTY, memory=LITTLE),
    }
    started: dict[str, LocalPool] = {}
    yield lambda name: started.setdefault(name, started.get(name) or kinds[name]())
    for pool in started.values():
        pool.close()


@pytest.fixture(scope="module")
def submitted(
    request: pytest.FixtureRequest, judges: Callable[[str], JudgePool]
) -> Callable[[Entry, str], Judged]:
    """The end of a file. All files of this run that need the same judge are submitted at once."""
    waiting: dict[str, dict[str, Callable[[], Judged]]] = {}

    def end(entry: Entry, judge: str) -> Judged:
        if judge not in waiting:
            wanted: list[dict[str, Any]] = [
                item.callspec.params
                for item in request.session.items
                if isinstance(item, pytest.Function)
                and item.originalname == "test_a_submission_ends_as_it_says"
            ]
            waiting[judge] = {
                each["entry"].name: begin(each["entry"], "cpu", judges(judge))
                for each in wanted
                if each["judge"] == judge
            }
        return waiting[judge].pop(entry.name)()

    return end


def check(entry: Entry, device: str, judged: Judged) -> None:
    outcome, log, flags = judged
    assert entry.met_by(outcome, device), f"expected {entry.expect}: {outcome}\n{log}"
    assert "BREACH" not in log, log
    assert entry.path.parent.name != "honest" or NOTES.issuperset(map(flag_name, flags)), flags


@pytest.mark.parametrize(("entry", "judge"), parameters("cpu"))
def test_a_submission_ends_as_it_says(
    entry: Entry, judge: str, submitted: Callable[[Entry, str], Judged]
) -> None:
    check(entry, "cpu", submitted(entry, judge))


@pytest.mark.gpu
@pytest.mark.parametrize(("entry", "judge"), parameters("cuda"))
def test_a_submission_ends_as_it_says_on_a_gpu(
    entry: Entry, judge: str, judges: Callable[[str], JudgePool]
) -> None:
    check(entry, "cuda", judged(entry, "cuda", judges("thorough")))


def test_every_kind_that_a_cpu_can_reach_is_judged() -> None:
    reached = {
        ending
        for entry, _, left_out in chosen("cpu")
        if not left_out
        for ending in entry.endings("cpu")
    }
    assert {
        kind for kind in KINDS - reached if not kind.startswith("correct/")
    } == NOT_ON_A_CPU | OF_A_REPLY
    assert "correct" in reached
    on_cuda = {ending for entry, _, _ in chosen("cuda") for ending in entry.endings("cuda")}
    assert on_cuda >= NOT_ON_A_CPU | {"no gain"}


def test_the_reader_sees_all_but_what_only_a_call_shows() -> None:
    """And honest files pass it."""
    found = {
        entry: check_rules(entry.code, entry.rules, backward=entry.backward)
        for entry in read_corpus("cpu", "cuda", "any")
        if not isinstance(extract_file(entry.code), FormatError)
    }
    assert {
        e.path.stem for e in found if e.expect.startswith("rules/") and not found[e]
    } == LEFT_TO_THE_RECORDER
    assert [e.name for e in found if e.path.parent.name == "honest" and found[e]] == []
    assert [
        e.name
        for e, verdict in found.items()
        if verdict and not e.met_by(verdict, "cuda" if e.device == "cuda" else "cpu")
    ] == []


def ends(expect: str, outcome: Correct, device: str = "cpu") -> bool:
    entry = Entry(FOLDER / "hostile/a.py", "relu.py", "any", "kernel", expect)
    return entry.met_by(outcome, device)


def test_a_gain_is_what_a_score_pays() -> None:
    noisy = Correct(kind="too_noisy", message="", speedup=1270.0, speedup_interval=(1.3, 2400.0))
    timed = noisy.model_copy(update={"speedup_interval": (1200.0, 1300.0), "kind": "timed"})
    faster = noisy.model_copy(update={"speedup_interval": (3.1, 2400.0)})
    assert ends("no gain", noisy) and not ends("no gain", timed) and not ends("no gain", faster)
    assert ends("correct", timed)
    assert not ends("correctness/values", timed)


def test_a_file_ends_as_it_says_of_the_device() -> None:
    fast = Correct(kind="timed", message="", speedup=9.0, speedup_interval=(8.0, 10.0))
    assert ends("correct on cpu, no gain on cuda", fast)
    assert not ends("correct on cpu, no gain on cuda", fast, "cuda")
    assert ends("correctness/values or correct", fast) and not ends("runtime/exit", fast)
    assert ends("9.5x to 12.0x", fast) and ends("0.5x to 8.5x", fast), "the interval counts"
    assert not ends("10.5x to 12.0x", fast) and not ends("0.5x to 7.5x", fast)
    assert ends("8.5x to 9.5x", fast, "cuda") and not ends("9.5x to 12.0x", fast, "cuda")
    assert not ends("0.5x to 8.5x", fast, "cuda")


def test_every_class_of_attack_is_tried_and_every_attack_is_of_a_class() -> None:
    named = [name for names in ATTACKS.values() for name in names.split()]
    assert sorted(named) == sorted(path.stem for path in (FOLDER / "hostile").glob("*.py"))
    assert all(ATTACKS.values()) and len(ATTACKS) >= 90


@pytest.mark.parametrize(
    ("device", "expect"),
    [
        ("cpu", "correctness/vlues"),
        ("cpu", "not correct"),
        ("cpu", "correct/timed"),
        ("any", "correct on cpu"),
        ("any", "correct on cpu, correctness/vlues on cuda"),
    ],
)
def test_a_file_that_does_not_say_how_it_ends_is_refused(
    tmp_path: Path, device: str, expect: str
) -> None:
    path = tmp_path / "some.py"
    header = f"Does something.\n\nproblem: softmax.py\ndevice: {device}\nrules: open\n"
    path.write_text(f'"""{header}expect: {expect}\n"""\n')
    with pytest.raises(ValueError, match=r"some\.py"):
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
