import signal

import pytest

from kevin_env.judge.verdict import Place, Step, verdict
from kevin_env.judge.workers.errors import Broken, CandidateError, Ended, Failed, Failure, TimedOut

STEPS: tuple[Step, ...] = ("build", "construct", "call")
GCC = "/tmp/kevin-x/extensions/k/main.cpp:3:1: error: expected ';'\n    3 | int x\n      | ^"


def failed(kind: str, **more: object) -> Failed:
    values = {
        "type": "ValueError",
        "message": "bad",
        "frames": [(7, "forward", "    f(x)")],
        "output": "",
    }
    return Failed(Failure.model_validate({"kind": kind, **values, **more}))


# what the submission did; and what that is while it is built, constructed and called
ENDS: list[tuple[CandidateError, str, str, str]] = [
    (failed("exception"), "compile/import", "runtime/exception", "runtime/exception"),
    (failed("compiler", output=GCC), "compile/compiler", "compile/compiler", "compile/compiler"),
    (
        failed("compiler", output="ld: a.o: undefined reference to `f'"),
        "compile/link",
        "compile/link",
        "compile/link",
    ),
    (failed("link"), "compile/link", "compile/link", "compile/link"),
    (failed("jit"), "compile/jit", "compile/jit", "compile/jit"),
    (
        failed("illegal_access"),
        "compile/import",
        "runtime/illegal_access",
        "runtime/illegal_access",
    ),
    (failed("out_of_memory"), "compile/import", "runtime/out_of_memory", "runtime/out_of_memory"),
    (failed("exit"), "compile/import", "runtime/exit", "runtime/exit"),
    (failed("no such kind"), "compile/import", "runtime/exception", "runtime/exception"),
    (TimedOut(3), "compile/timeout", "runtime/timeout", "runtime/timeout"),
    (Ended(3), "compile/killed", "runtime/exit", "runtime/exit"),
    (Ended(0), "compile/killed", "runtime/exit", "runtime/exit"),
    (Ended(-signal.SIGSEGV), "compile/killed", "runtime/signal", "runtime/signal"),
    (Ended(-63), "compile/killed", "runtime/signal", "runtime/signal"),
    (Ended(None), "compile/killed", "runtime/killed", "runtime/killed"),
    (Ended(limit="more than 512 processes"), "compile/killed", "runtime/killed", "runtime/killed"),
    (Broken("garbage"), "runtime/protocol", "runtime/protocol", "runtime/protocol"),
]


@pytest.mark.parametrize(
    ("trouble", *STEPS), ENDS, ids=lambda v: v if isinstance(v, str) else type(v).__name__
)
def test_the_stage_and_what_happened_decide(
    trouble: CandidateError, build: str, construct: str, call: str
) -> None:
    for step, expected in zip(STEPS, (build, construct, call), strict=True):
        outcome = verdict(trouble, Place(step), "/tmp/kevin-x")
        assert f"{outcome.category}/{outcome.kind}" == expected
        assert outcome.message


def test_the_input_set_is_told_with_a_call() -> None:
    for trouble in (failed("exception"), TimedOut(1), Ended(1), Broken("x")):
        assert (
            verdict(trouble, Place("call", "main/wide"), "/f").model_dump()["input_set"]
            == "main/wide"
        )


def test_a_raised_exception_tells_its_line_and_frames() -> None:
    outcome = verdict(failed("exception"), Place("call", "main/own"), "/f")
    assert outcome.line == 7 and outcome.message == "ValueError: bad"
    assert "line 7, in forward" in outcome.details and "f(x)" in outcome.details


def test_a_compilers_message_names_no_folder() -> None:
    outcome = verdict(failed("compiler", output=GCC), Place("build"), "/tmp/kevin-x")
    assert outcome.message == "main.cpp:3:1: error: expected ';'"
    assert "/tmp" not in outcome.details and "int x" in outcome.details


def test_the_text_of_a_message_decides_nothing() -> None:
    text = "CUDA out of memory. illegal memory access, timeout, error: undefined reference"
    assert (
        verdict(
            failed("exception", message=text, type="OutOfMemoryError"), Place("call"), "/f"
        ).kind
        == "exception"
    )


def test_ends_are_told_in_words() -> None:
    messages = {
        "SIGSEGV": Ended(-signal.SIGSEGV), "exit code 3": Ended(3), "more than 4 MiB": Ended(limit="more than 4 MiB"),
        "longer than 2.5 s": TimedOut(2.5), "did not follow the protocol": Broken("x"),
    }  # fmt: skip
    for words, trouble in messages.items():
        assert words in verdict(trouble, Place("call"), "/f").message
    assert "importing" in verdict(TimedOut(1), Place("build"), "/f").message
    assert "constructing" in verdict(TimedOut(1), Place("construct"), "/f").message


CRASH = Ended(-signal.SIGSEGV)


@pytest.mark.parametrize("step", STEPS)
def test_the_line_of_a_crash_or_a_hang_is_reported_and_decides_nothing(step: Step) -> None:
    crash, hang = (verdict(trouble, Place(step), "/f", 33) for trouble in (CRASH, TimedOut(2)))
    assert (crash.line, hang.line) == (33, 33)
    assert crash.message == "Segmentation fault (SIGSEGV) in native code called from line 33"
    assert hang.message.endswith("took longer than 2 s (stopped at line 33)")
    for trouble in (CRASH, TimedOut(2), Ended(3), Ended(limit="x"), Broken("x")):
        plain, claimed = (
            verdict(trouble, Place(step), "/f"),
            verdict(trouble, Place(step), "/f", 33),
        )
        assert (plain.category, plain.kind) == (claimed.category, claimed.kind)


def test_messages_name_no_machine_paths() -> None:
    text = "/tmp/kevin-x/extensions/k/k.so: undefined symbol: _Z1f, see /usr/include/c++/12/vector:3 or /etc/motd"
    outcome = verdict(
        failed("link", message=text, type="ImportError"), Place("build"), "/tmp/kevin-x"
    )
    assert (
        outcome.message
        == "ImportError: k.so: undefined symbol: _Z1f, see /usr/include/c++/12/vector:3 or /etc/motd"
    )
    assert "kevin-x" not in outcome.details


def test_a_megabyte_of_text_is_cut() -> None:
    flood = failed("exception", message="x" * 9_000, frames=[(1, "f" * 1_000_000, "y" * 1_000_000)])
    outcome = verdict(flood, Place("call"), "/f")
    assert len(outcome.message) < 500 and len(outcome.details) < 6_000


def test_escape_codes_reach_nobody() -> None:
    flood = failed(
        "exception", message="\x1b[2J\x1b]0;title\x07red\x00", frames=[(1, "\x1b[31mf", "\x07")]
    )
    outcome = verdict(flood, Place("call"), "/f")
    assert not any(ord(c) < 32 and c not in "\n\t" for c in outcome.message + outcome.details)


def test_a_new_kind_of_trouble_is_no_verdict() -> None:
    with pytest.raises(AssertionError):
        verdict(CandidateError("?"), Place("call"), "/f")
