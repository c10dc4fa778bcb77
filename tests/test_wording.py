"""How profiles are told: the sections of the feedback, what they take at most, and where else they
are shown.
"""

import io
import re
from contextlib import closing

import pytest
from episodes import REPLY, SOURCE, another, correct
from hostile_texts import TEXTS, controls
from rich.console import Console
from trajectories import trajectory, turn

from kevin_env.app.replay.panes import pane_lines
from kevin_env.app.replay.pieces import Look
from kevin_env.episode import Episode
from kevin_env.feedback import PROFILE_TOKENS, render_feedback
from kevin_env.judge import Judgement
from kevin_env.judge.api import Sandbox, Seconds
from kevin_env.outcome import (
    Correct,
    HotLine,
    Kernel,
    KernelProfile,
    Metric,
    NcuDigest,
    Operator,
    Outcome,
    Profile,
    RuntimeFailure,
    SanitizerDigest,
    Stall,
    Threads,
)
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import Problem
from kevin_env.record import Trajectory
from kevin_env.render import speedup_text
from kevin_env.roofline import Roofline
from kevin_env.settings import Settings

OWN = Kernel(
    name="softmax_kernel", own=True, launches=1, seconds=80e-6, grid=(132, 1, 1), block=(64, 8, 1), registers=40,
    shared_memory=4096, local_memory=256,
)  # fmt: skip
FILL = Kernel(
    name="at::native::fill", own=False, launches=2, seconds=20e-6, grid=(1, 1, 1), block=(32, 1, 1)
)
KERNELS = KernelProfile(
    seconds=2e-4, kernels=(OWN, FILL), operators=(Operator(name="aten::empty_like", calls=1, seconds=1.2e-5),),
    coverage=0.8, idle=5e-5,
)  # fmt: skip
NCU = NcuDigest(
    kernel="softmax_kernel", own=True, seconds=1e-4, share=0.8, coverage=0.8, bound="memory",
    metrics=(Metric(name="memory throughput", value=0.912, unit="fraction"),
             Metric(name="DRAM bytes", value=268435456, unit="bytes"), Metric(name="waves", value=1.5, unit="count")),
    stalls=(Stall(reason="long scoreboard", share=0.6),),
    lines=(HotLine(line=12, file="softmax.cu", text="most = fmaxf(most, in[i]);", share=0.75),),
)  # fmt: skip
RACE = SanitizerDigest(
    tool="memcheck", error="Invalid __global__ read of size 4 bytes", details="Access to 0x7f is out of bounds",
    kernel="scale", file="kernel.cu", line=17, size=4, thread=(96, 0, 0), block=(3906, 0, 0), count=34,
)  # fmt: skip
NOTE = "compute-sanitizer (compute-sanitizer) is not installed here"
LARGEST = Correct(
    kind="timed", message="message " * 99, speedup=123.45, speedup_interval=(123.45, 123.46), reference_seconds=123e-6,
    submission_seconds=123e-6, threads=Threads(busy=123.4, of=128),
    roofline=Roofline(bytes=123456789, flops=123456789, seconds=123e-6, bound="compute", memory_ceiling=1.23e12,
                      compute_ceiling=1.23e12, bandwidth=1.23e12, rate=1.23e12, fraction=1.23),
)  # fmt: skip
PROBLEM = Problem(id="double", source=SOURCE, name="double")


def test_a_profile_as_a_whole() -> None:
    profile = Profile(kernels=KERNELS, ncu=NCU, notes=(NOTE,))
    text = render_feedback(Correct(kind="too_noisy", message="Noisy."), profile=profile)
    assert text.split("\n\n", 1)[1] == (
        "One call, profiled in your process (not verified; not part of the score):\n"
        "- `softmax_kernel` 80 us, grid 132, block 64 x 8, 40 registers, 4 KiB shared, 256 B of local memory\n"
        "- `at::native::fill` (of a library) 20 us, 2 launches, grid 1, block 32\n"
        "- 80 % of the device's time is in your own kernels; the device waits 50 us for launches.\n"
        "- PyTorch operators: `aten::empty_like` (12 us).\n"
        "Nsight Compute on `softmax_kernel`, 80 % of the device's time (measured from outside): it is "
        "memory-bound.\n"
        "- memory throughput 91.2 %, DRAM bytes 268 MB, waves 1.5.\n"
        "- Warps wait for: `long scoreboard` 60 %.\n"
        "- Most samples: line 12 of `softmax.cu` `most = fmaxf(most, in[i]);` (75 % of the samples).\n\n"
        f"{NOTE}."
    )


def test_an_error_that_a_sanitizer_found() -> None:
    outcome = RuntimeFailure(
        kind="illegal_access", message="an illegal memory access", input_set="main/own"
    )
    text = render_feedback(outcome, profile=Profile(sanitizer=RACE))
    assert text.split("\n\n", 1)[1] == (
        "compute-sanitizer (memcheck) found 34 errors, first: Invalid __global__ read of size 4 bytes, in kernel "
        "`scale`, line 17 of `kernel.cu`, thread (96, 0, 0), block (3906, 0, 0). Access to 0x7f is out of bounds."
    )
    clean = render_feedback(outcome, profile=Profile(sanitizer=SanitizerDigest(tool="racecheck")))
    assert clean.endswith(
        "compute-sanitizer (racecheck) found no error on inputs drawn like those that failed."
    )


def largest(text: str) -> Profile:
    """A profile in which everything is there and as long as it can be."""
    big = (123456, 65535, 65535)
    kernel = Kernel(name=text[:48], own=False, launches=9999, seconds=123e-6, grid=big, block=(1024, 1, 1),
                    registers=255, shared_memory=232448, local_memory=123456)  # fmt: skip
    names = (
        "memory throughput",
        "shared memory bank conflicts",
        "sectors a global load",
        "theoretical occupancy",
    )
    return Profile(
        kernels=KernelProfile(
            seconds=1.0, kernels=(kernel,) * 8, coverage=0.123, idle=123e-6, cores=123.4,
            operators=(Operator(name=text[:48], calls=9999, seconds=123e-6),) * 8,
        ),
        ncu=NcuDigest(
            kernel=text[:48], own=False, seconds=1.0, share=0.123, bound="latency",
            metrics=tuple(Metric(name=names[n % 4], value=123456789.0, unit="bytes") for n in range(16)),
            stalls=(Stall(reason=text[:40], share=0.123),) * 3,
            lines=(HotLine(line=99999, file=text[:80], text=text, share=0.123),) * 2,
        ),
        notes=(text,) * 3,
    )  # fmt: skip


@pytest.mark.parametrize("text", ["word " * 500, "x" * 9999])
def test_with_a_profile_feedback_takes_no_more_than_its_budget(text: str) -> None:
    told = render_feedback(LARGEST, log=text, same_as=12, profile=largest(text))
    assert len(told) <= 4 * PROFILE_TOKENS, len(told)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_tools_wrote_stays_in_its_line(text: str) -> None:
    profile = largest(f"k {text}")
    told = render_feedback(correct(2.0), profile=profile.model_copy(update={"notes": ()}))
    usual = render_feedback(correct(2.0), profile=largest("word").model_copy(update={"notes": ()}))
    assert told.count("\n") == usual.count("\n") and told.count("`") == usual.count("`")
    assert not controls(told) and "49" not in told


def judgement(outcome: Outcome, profile: Profile) -> Judgement:
    enforced = Sandbox(
        network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
    )
    return Judgement(
        outcome=outcome, seconds=Seconds(profile=1.5), device=SCRIPTED_GPU, sandbox=enforced, secret="0" * 32,
        profile=profile,
    )  # fmt: skip


def played() -> Trajectory:
    profile = Profile(kernels=KERNELS, notes=(NOTE,))
    with closing(ScriptedPool([judgement(correct(2.0), profile)] * 2, SCRIPTED_GPU)) as pool:
        episode = Episode(PROBLEM, pool, Settings(max_turns=3, profile="ncu", sanitize=True))
        episode.start()
        for reply in (REPLY, another(2), REPLY):
            episode.submit(reply)
        assert [(each.profile, each.sanitize) for _, _, each in pool.submissions] == [
            ("ncu", True)
        ] * 2
    return episode.trajectory


def test_a_turn_records_its_profile_and_a_note_is_told_once() -> None:
    found = Trajectory.model_validate_json(played().model_dump_json())
    assert found.config["profile"] == "ncu" and found.config["sanitize"] is True
    assert [each.profile and each.profile.kernels for each in found.turns] == [KERNELS] * 3
    assert [NOTE in each.feedback for each in found.turns] == [True, False, False]
    assert all("softmax_kernel" in each.feedback for each in found.turns)
    assert found.turns[0].seconds.total == 1.5


def test_the_replay_shows_all_of_a_profile_and_where_it_was_taken() -> None:
    profile = Profile(kernels=KERNELS, ncu=NCU, sanitizer=RACE, notes=(NOTE,))
    episode = trajectory(turn(1, profile=profile, seconds=Seconds(build=1.0, profile=1.25)))
    page = io.StringIO()
    console = Console(file=page, width=120)
    for pane in ("feedback", "numbers"):
        for line in pane_lines(episode, 0, pane, Look(110)):
            console.print(line)
    text = " ".join(page.getvalue().split())
    assert (
        "inside: `softmax_kernel` 80 us" in text
        and "outside: Nsight Compute on `softmax_kernel`" in text
    )
    assert "outside: memcheck: Invalid __global__ read" in text and NOTE in text
    assert re.search(r"profile +1\.250", page.getvalue()) and re.search(
        r"total +2\.250", page.getvalue()
    )


def test_a_tiny_speedup_is_shown_with_two_digits() -> None:
    assert speedup_text(0.00032, (0.00013, 0.00081)) == "0.00032x [0.00013, 0.00081]"
    assert speedup_text(2.314, (0.9, 12.0)) == "2.31x [0.90, 12.00]"
