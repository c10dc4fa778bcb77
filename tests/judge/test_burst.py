"""Bursts whose outputs share memory cannot be verified, so they are neither timed nor called wrong."""

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from leasing import taken

from kevin_env.judge import burst, gate, measure, nullkernel, pairs
from kevin_env.judge import contest as contest_module
from kevin_env.judge import room as room_module
from kevin_env.judge.answer import Answer, Call, overlapping
from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.claims import CallClaim, Output, TensorClaim
from kevin_env.judge.contest import Contest
from kevin_env.judge.gated import Gated, Turn
from kevin_env.judge.lease import Lease
from kevin_env.judge.memory import Image, SharedRegion
from kevin_env.judge.nullkernel import HOLD
from kevin_env.judge.pace import PACES
from kevin_env.judge.supply import Supply
from kevin_env.judge.timing import GATED_ALLOWANCE, WINDOWS_VARY, Burst, Pair, Speedup
from kevin_env.judge.trial import Trial
from kevin_env.problem import load_problem


def call(offset: int) -> Call:
    claim = TensorClaim.model_validate(
        {
            "device": "cuda",
            "dtype": "uint8",
            "shape": [64],
            "stride": [1],
            "in": "ab" * 64,
            "size": 128,
            "offset": offset,
        }
    )
    return Call(CallClaim(skeleton={"t": 0}, tensors=[claim]), [Output(claim, torch.zeros(64, dtype=torch.uint8))])


class Verified:
    """Counts the answers that it is given to compare."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, answer: Answer, sets: Any) -> None:
        self.count += 1


class Recorded(Contest):
    """A contest in which every pass of the submission gives the same answer."""

    def __init__(self, trial: Any, answer: Answer) -> None:
        self.given = Verified()
        supply: Any = SimpleNamespace(stock=lambda count: [], take=lambda count: [])
        super().__init__(trial, None, None, self.given, supply)  # type: ignore[arg-type]
        self.answer = answer

    def passes(self, player: Any, sets: Any, marks: Sequence[int] = (), word: Any = None) -> list[Answer]:
        self.marks = marks
        return [self.answer for _ in sets]


class Place:
    """Stands where a trial does; draws nothing."""

    player = SimpleNamespace(worker="own")


PARTNER: Any = SimpleNamespace(worker="the reference")


def answer(*offsets: int) -> Answer:
    calls = [call(offset) for offset in offsets]
    return Answer(9.0, (0.5, 1.5, 6.0, 0.1), calls, True, False, True, [c.outputs for c in calls])


@pytest.mark.parametrize(("offsets", "shared"), [((0, 64), False), ((0, 32), True), ((0, 0), True), ((64, 0), False)])
def test_outputs_that_share_memory_are_noticed(offsets: tuple[int, int], shared: bool) -> None:
    assert overlapping(answer(*offsets).calls) is shared


def test_a_preallocated_output_ends_the_bursts_before_anything_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Place()
    reused, fresh = Recorded(trial, answer(0, 0)), Recorded(trial, answer(0, 64))
    with pytest.raises(pairs._Overlap):
        pairs._burst(reused, trial.player, 8, None)  # type: ignore[arg-type]
    assert reused.given.count == 0
    assert pairs._burst(fresh, trial.player, 8, None) == Burst(timed=6.0, window=9.0)  # type: ignore[arg-type]
    assert (fresh.given.count, fresh.marks) == (1, (1, 2, 8))


def test_no_context_is_made_while_bursts_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lease, seen = Lease("a device"), []
    trial: Any = Place()
    trial.bench = SimpleNamespace(lease=lease)
    contest = Recorded(trial, answer(0, 64))

    def observed(contest: Contest, player: Any, size: int, word: Any) -> Burst:
        assert not taken(lease, "contexts", 0.05)
        seen.append(player)
        return Burst(9.0, 10.0)

    monkeypatch.setattr(pairs, "_burst", observed)
    found, _ = pairs.take_pairs(contest, PARTNER, 16)  # type: ignore[arg-type]
    assert found is not None and len(found) == pairs.PAIRS[0] and len(seen) == 2 * pairs.PAIRS[0]
    assert taken(lease, "contexts", 2)


def test_a_burst_in_which_memory_was_mapped_gives_no_time() -> None:
    trial = Place()
    mapped = Recorded(trial, replace(answer(0, 64), steady=False))
    assert pairs._burst(mapped, trial.player, 8, None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("mapped", [(), (0,), (3, 4), range(2 * (pairs.PAIRS[2] + pairs.GROWING))])
def test_a_pair_counts_only_if_both_of_its_bursts_give_a_time(
    monkeypatch: pytest.MonkeyPatch, mapped: Sequence[int]
) -> None:
    asked: list[int] = []

    def taken(contest: Contest, player: Any, size: int, word: Any) -> Burst | None:
        asked.append(len(asked))
        return None if asked[-1] in mapped else Burst(9.0, 10.0)

    trial: Any = Place()
    trial.bench = SimpleNamespace(lease=SimpleNamespace(contexts=contextlib.nullcontext))
    monkeypatch.setattr(pairs, "_burst", taken)
    found, _ = pairs.take_pairs(Recorded(trial, answer(0, 64)), PARTNER, 16)  # type: ignore[arg-type]
    if len(mapped) > 2:
        assert found is None and len(asked) == len(mapped)
    else:
        assert found == [(Burst(9.0, 10.0),) * 2] * pairs.PAIRS[0]
        assert len(asked) == 2 * (pairs.PAIRS[0] + len(mapped))


@pytest.mark.parametrize(
    ("late", "count"),
    [([], 6), ([0], 9), ([0, 1], 12), (range(0, 20, 2), 13)],
    ids=["calm", "one late", "two late", "never calm"],
)
def test_pairs_are_taken_until_those_that_came_late_do_not_count(
    monkeypatch: pytest.MonkeyPatch, late: Sequence[int], count: int
) -> None:
    """An interval of nine pairs leaves one out on either side, of twelve two."""
    asked: list[int] = []

    def taken(contest: Contest, player: Any, size: int, word: Any) -> Burst:
        asked.append(len(asked))
        own, pair = asked[-1] % 2, asked[-1] // 2
        return Burst(14e-4 * (1.5 if own and pair in late else 1.0), 2e-3)

    trial: Any = Place()
    trial.bench = SimpleNamespace(lease=SimpleNamespace(contexts=contextlib.nullcontext))
    monkeypatch.setattr(pairs, "_burst", taken)
    found, _ = pairs.take_pairs(Recorded(trial, answer(0, 64)), PARTNER, 16)  # type: ignore[arg-type]
    assert found is not None and len(found) == count


def test_that_a_partners_outputs_share_memory_ends_nothing() -> None:
    contest = Recorded(Place(), answer(0, 0))
    assert pairs._burst(contest, PARTNER, 8, None) == Burst(6.0, 9.0)  # type: ignore[arg-type]
    assert contest.given.count == 0


class Rehearsed:
    """Stands where a contest does that is made ready; notes what it is asked."""

    reference = "the reference"

    def __init__(self, answer: Answer) -> None:
        self.notes: list[str] = []
        note = self.notes.append
        self.trial = SimpleNamespace(run=lambda sets, marks: note(f"submission {len(sets)}") or answer)
        self.supply = SimpleNamespace(take=lambda count: [object()] * count)
        self.unverified = SimpleNamespace(keep=lambda *given: note("kept"), compare=lambda: note("compared"))
        self.rehearse = lambda partner, count: note(f"{partner} {count}")


@pytest.mark.parametrize(("offsets", "compared"), [((0, 64), ["kept", "compared"]), ((0, 0), [])])
def test_a_rehearsed_burst_is_compared_where_its_outputs_are_all_there(
    offsets: tuple[int, int], compared: list[str]
) -> None:
    contest = Rehearsed(answer(*offsets))
    assert len(list(burst.rehearse(contest, 2))) == 2  # type: ignore[arg-type]
    assert contest.notes == ["the reference 2", "submission 2", *compared]


@pytest.mark.parametrize(
    ("foreseen", "words", "reference", "rounds"),
    [
        (1, {}, 1e-3, [False]), (16, {}, 1e-3, [True]), (16, {}, 5e-3, [True, False]),
        (1, {"own": "word"}, 1e-3, [True]),
    ],
    ids=["no bursts", "bursts", "bursts of the null kernel", "no memory for them so far"],
)  # fmt: skip
def test_few_gated_calls_do_where_bursts_of_both_sides_are_foreseen(
    foreseen: int, words: dict[str, str], reference: float, rounds: list[bool]
) -> None:
    asked: list[bool] = []

    def round_of(few: bool = False) -> Speedup:
        asked.append(few)
        return gated(reference, 1e-3)

    trial = SimpleNamespace(worker="own")
    contest: Any = SimpleNamespace(foreseen=foreseen, words=words, trial=trial, gated=round_of)
    found = burst.first_look(contest)
    assert asked == rounds and found.reference == reference


@pytest.mark.parametrize(
    ("size", "ever", "slow", "drawn", "rehearsed"),
    [
        (16, True, False, 100 + 16 + 7, [16, "queued"]), (16, True, True, 100 + 7, ["queued"]),
        (1, True, False, 100 + 7, ["queued"]), (1, False, False, 100, []),
    ],
    ids=["short", "long", "no memory so far", "never"],
)  # fmt: skip
def test_a_burst_is_rehearsed_where_one_is_foreseen_of_calls_that_are_not_long_and_queued_calls_wherever_one_may_come(
    monkeypatch: pytest.MonkeyPatch, size: int, ever: bool, slow: bool, drawn: int, rehearsed: list[int | str]
) -> None:
    notes: list[int | str] = []
    monkeypatch.setattr(measure, "demand", lambda contest: (100, size))
    monkeypatch.setattr(measure, "may_have_bursts", lambda contest: ever)
    monkeypatch.setattr(measure, "open_wide", lambda *given, still: None)
    monkeypatch.setattr(measure, "rehearse", lambda contest, count: notes.append(count) or iter(()))
    monkeypatch.setattr(measure, "rehearse_queued", lambda contest: notes.append("queued"))
    filled, fitted = list[tuple[int, int, int]](), list[float]()
    contest = SimpleNamespace(
        warm=lambda: iter(()), lately=SimpleNamespace(slow=slow, beyond_null=3e-4), foreseen=1,
        hold=SimpleNamespace(fit=fitted.append), trial=SimpleNamespace(outputs=[]), turns=lambda few: (1, 9 - few),
        supply=SimpleNamespace(fill=lambda *counts: filled.append(counts) or iter(())),
        unverified=SimpleNamespace(make_room=lambda *given: None),
    )  # fmt: skip
    assert list(measure.make_ready(contest)) == [None] * ("queued" in rehearsed)  # type: ignore[arg-type]
    assert (filled, notes, contest.foreseen) == ([(drawn, size, 9 - (size > 1))], rehearsed, size)
    assert fitted == [3e-4]


def test_of_gated_calls_is_told_what_the_gate_may_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    trial: Any = SimpleNamespace(worker="own", bench=SimpleNamespace(device=torch.device("cuda")))
    contest = Contest(trial, None, None, SimpleNamespace(use_room=lambda: None), None)  # type: ignore[arg-type]
    contest.seen.turns += [
        Turn(submission=9e-4, reference=2e-3, null=null, hold=1e-5) for null in (2.1e-4, 3.1e-4, 9.1e-4)
    ]
    gated_alone = Speedup(2.0, 1.9, 2.1, 2e-3, 6e-4)
    monkeypatch.setattr(measure, "first_look", lambda contest: gated_alone)
    monkeypatch.setattr(measure, "take_bursts", lambda *given: None)
    monkeypatch.setattr(measure, "_settled", lambda *given: True)
    monkeypatch.setattr(measure, "_whole", lambda outcome, contest: outcome)
    assert measure.measure(contest, []).max_unseen_gain == pytest.approx(3e-4 / (6e-4 + 3e-4))


def test_all_three_are_waited_for_closely_while_they_are_timed_and_no_longer() -> None:
    notes: list[tuple[str, bool]] = []
    sides = [
        SimpleNamespace(
            attend=lambda on, name=name: notes.append((name, on)),
            freeze=lambda on, wait: None,
            settle=lambda: None,
            pid=1 << 30,
        )
        for name in ("submission", "reference", "null")
    ]
    players = [SimpleNamespace(worker=side) for side in sides]
    trial: Any = SimpleNamespace(
        worker=sides[0], bench=SimpleNamespace(pace=PACES["cpu"], place=None, device=torch.device("cpu"))
    )
    contest = Contest(trial, players[1], players[2], None, None)  # type: ignore[arg-type]
    with pytest.raises(KeyError), contest.still():
        assert sorted(notes) == [("null", True), ("reference", True), ("submission", True)]
        raise KeyError
    assert sorted(notes[3:]) == [("null", False), ("reference", False), ("submission", False)]


def turn(submission: float, reference: float = 1.0) -> Turn:
    """One with a gate that costs nothing."""
    return Turn(submission, reference, null=0.0, hold=0.0)


class Sized:
    """Stands where a contest on a GPU does that has room for so many input sets of 100 MB."""

    reference, null = (SimpleNamespace(worker=name) for name in ("the reference", "the null kernel"))

    def __init__(self, room: int, shortest: float = 1.0) -> None:
        self.lately = SimpleNamespace(guess=0.0)
        self.seen = Gated([turn(shortest, reference) for reference in (2.0, 3.0)])
        case = SimpleNamespace(stochastic=False, model=torch.nn.ReLU())
        bench = SimpleNamespace(
            pace=PACES["cuda"], device=torch.device("cuda"), info=SimpleNamespace(l2=50_000_000), room=99
        )
        self.trial = SimpleNamespace(case=case, bench=bench, player=Place.player, worker=Place.player.worker)
        self.words: dict[Any, Any] = {}
        self.supply = SimpleNamespace(each=100_000_000)
        self.room = room
        self.room_beside_others = room // 2

    def fitting(self, copies: int, share: float, room: int | None = None) -> int:
        return room or (self.room if share == contest_module.ALONE else self.room_beside_others)

    def windows(self, few: bool) -> int:
        return 40 if few else 90


def gated(reference: float, submission: float) -> Speedup:
    return Speedup(reference / submission, 0.0, 0.0, reference, submission)


def size_taken(monkeypatch: pytest.MonkeyPatch, contest: Any, gated: Speedup) -> int | None:
    """How many input sets the bursts of a contest have; None where none are taken."""
    sizes: list[int] = []
    monkeypatch.setattr(burst, "open_wide", lambda *given, still: None)
    monkeypatch.setattr(burst, "take_pairs", lambda contest, partner, size: (sizes.append(size), ()))
    assert burst.take_bursts(contest, gated, []) is None
    return sizes[0] if sizes else None


@pytest.mark.parametrize(
    ("reference", "submission", "room", "size"),
    [
        (5e-5, 9e-5, 99, 16),
        (1e-4, 2e-4, 99, 12),
        (1e-4, 2e-4, 9, 9),
        (1e-4, 2e-4, 7, None),
        (3e-4, 3e-4, 99, 6),
        (2e-3, 3e-3, 99, 4),
        (3e-4, 3e-4, 6, 6),
        (3e-4, 3e-4, 5, 5),
        (3e-4, 3e-4, 4, None),
        (2e-4, 9e-4, 7, 7),
        (2e-3, 3e-3, 4, 4),
        (2e-3, 3e-3, 3, None),
        (4e-2, 1e-4, 99, 12),
        (4e-2, 5e-3, 99, None),
        (1e-4, 5e-3, 99, None),
    ],
)
def test_a_burst_is_as_long_as_its_calls_and_the_memory_admit(
    monkeypatch: pytest.MonkeyPatch, reference: float, submission: float, room: int, size: int | None
) -> None:
    assert size_taken(monkeypatch, Sized(room, submission), gated(reference, submission)) == size


@pytest.mark.parametrize(("submission", "queued"), [(3e-3, 1), (5e-3, 0)])
def test_calls_are_queued_only_where_bursts_may_be_of_use(
    monkeypatch: pytest.MonkeyPatch, submission: float, queued: int
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(burst, "take_queued", asked.append)
    size_taken(monkeypatch, Sized(99, submission), gated(2e-3, submission))
    assert len(asked) == queued


def test_whoever_makes_most_calls_longer_has_no_shorter_bursts(monkeypatch: pytest.MonkeyPatch) -> None:
    slowed = gated(1e-4, 6e-4)
    assert size_taken(monkeypatch, Sized(99, 6e-5), slowed) == 16
    assert size_taken(monkeypatch, Sized(7, 6e-5), slowed) is None


def test_what_is_drawn_for_bursts_follows_from_windows_that_were_seen_and_is_rather_too_much() -> None:
    trial: Any = SimpleNamespace(lately=1.2e-3, bench=SimpleNamespace(pace=PACES["cuda"]))
    contest = Contest(trial, "the reference", "the null kernel", None, None)  # type: ignore[arg-type]
    seconds = {"the reference": 0.9e-3, "the null kernel": 0.3e-3}
    contest.rehearse = lambda partner, count: seconds[partner]  # type: ignore[method-assign, index]
    assert not any(contest.warm())
    assert contest.lately.guess == pytest.approx(0.9e-3 - 0.3e-3 - GATED_ALLOWANCE)
    sized = Sized(99)
    for guess, size in ((1e-6, 16), (1.5e-4, 9), (1e-3, 4)):
        sized.lately.guess = guess
        assert burst.demand(sized) == (40 + pairs.PAIRS[0] * size, size)  # type: ignore[arg-type]


def test_whoever_makes_gated_calls_longer_has_no_shorter_bursts_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a queued call takes is as short as it is; with its gated calls alone bursts would have four."""
    sized = Sized(99, 6e-4)
    assert size_taken(monkeypatch, sized, gated(1e-3, 6e-4)) == 4
    monkeypatch.setattr(burst, "take_queued", lambda contest: setattr(contest.seen, "queued", 6e-5))
    assert size_taken(monkeypatch, sized, gated(1e-3, 6e-4)) == 16


def test_a_slow_reference_is_called_no_oftener_than_can_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert size_taken(monkeypatch, Sized(99, 6e-5), gated(0.1, 6e-5)) == 13
    assert size_taken(monkeypatch, Sized(99, 1e-4), gated(1.0, 1e-4)) is None
    steady = Speedup(400.0, 399.0, 401.0, 4e-2, 1e-4)
    assert size_taken(monkeypatch, Sized(99, 1e-4), steady) is None


@pytest.mark.parametrize(("reference", "partner"), [(3e-3, "the reference"), (5e-3, "the null kernel")])
def test_the_null_kernel_stands_for_a_slow_reference(
    monkeypatch: pytest.MonkeyPatch, reference: float, partner: str
) -> None:
    bursts, asked = [(Burst(8.0, 10.0), Burst(4.0, 6.0))] * 3, []
    monkeypatch.setattr(burst, "open_wide", lambda *given, still: None)
    monkeypatch.setattr(burst, "take_pairs", lambda contest, chosen, size: (asked.append(chosen) or bursts, ()))
    found = burst.take_bursts(Sized(99, 1e-3), gated(reference, 1e-3), [])  # type: ignore[arg-type]
    assert [chosen.worker for chosen in asked] == [partner] and found is not None
    assert {pair.submission for pair in found.calls} == {4.0 / (found.size - 2)}
    plain = [8.0 / (found.size - 2)] * 3
    assert [pair.reference for pair in found.calls] == (plain if partner == "the reference" else [2.0, 3.0, 2.0])
    assert [pair.reference for pair in found.bounds] == plain
    whole = 8.0 / (found.size - 2) + (6.0 - 10.0) / found.size
    assert [pair.submission for pair in found.bounds] == pytest.approx([whole] * 3)


def test_bursts_are_of_those_who_came_to_the_wider_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the judge knows of an earlier gate's memory does not hold at this one."""
    bursts, asked, contest = [(Burst(8.0, 10.0), Burst(4.0, 6.0))] * 3, [], Sized(99, 1e-3)
    moved = SimpleNamespace(worker="the reference")
    monkeypatch.setattr(burst, "open_wide", lambda contest, size, still: setattr(contest, "reference", moved))
    monkeypatch.setattr(burst, "take_pairs", lambda contest, chosen, size: (asked.append(chosen) or bursts, ()))
    burst.take_bursts(contest, gated(3e-3, 1e-3), [])  # type: ignore[arg-type]
    assert len(asked) == 1 and asked[0] is moved


def test_windows_may_differ_by_a_share_of_what_they_have_besides_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burst, "open_wide", lambda *given, still: None)
    found = []
    for besides in (1.0, 3.0):
        pair = Burst(10 * 2e-3, 12 * 2e-3 + besides), Burst(10 * 1e-3, 12 * 1e-3 + besides)
        monkeypatch.setattr(burst, "take_pairs", lambda *given, pair=pair: ([pair] * 6, ()))
        monkeypatch.setattr(burst, "_size", lambda *given: 12)
        found.append(burst.take_bursts(Sized(99, 1e-3), gated(3e-3, 1e-3), []))  # type: ignore[arg-type]
    assert found[1].beyond - found[0].beyond == pytest.approx(2.0 * WINDOWS_VARY)


@pytest.mark.parametrize(
    ("room", "whole", "guess", "lacks"),
    [(7, 99, 1e-6, True), (8, 99, 1e-6, False), (3, 99, 1e-3, True), (4, 99, 1e-3, False), (7, 7, 1e-6, False),
     (0, 99, 5e-3, False), (0, None, 1e-6, False)],
    ids=["others hold it", "enough", "long ones", "enough for these", "a small device", "no bursts", "a CPU"],
)  # fmt: skip
def test_bursts_wait_for_memory_that_others_hold_and_no_longer_than_it_may_come(
    monkeypatch: pytest.MonkeyPatch, room: int, whole: int | None, guess: float, lacks: bool
) -> None:
    contest: Any = Sized(room)
    contest.trial.bench.room, contest.lately.guess = whole, guess
    assert burst.lacks_memory(contest) is lacks
    clock, slept = itertools.count(), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        contest.room = 99

    monkeypatch.setattr(room_module, "free_memory", lambda device: next(clock))
    monkeypatch.setattr(room_module.time, "sleep", sleep)
    room_module.wait_for_memory(contest)
    assert len(slept) == lacks


def test_nobody_waits_for_memory_that_stays_as_it_is_or_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    contest: Any = Sized(0)
    contest.lately.guess = 1e-6
    seconds, free = [0.0], itertools.cycle([5])
    monkeypatch.setattr(room_module.time, "monotonic", lambda: seconds[0])
    monkeypatch.setattr(room_module.time, "sleep", lambda pause: seconds.append(seconds.pop() + pause))
    monkeypatch.setattr(room_module, "free_memory", lambda device: next(free))
    room_module.wait_for_memory(contest)
    assert seconds[0] == pytest.approx(room_module.BURST_STILL, abs=2 * room_module.BURST_LOOK)
    free = itertools.cycle([5, 6])
    room_module.wait_for_memory(contest)
    assert seconds[0] == pytest.approx(room_module.BURST_STILL + room_module.BURST_PATIENCE, abs=0.2)


@pytest.mark.parametrize(
    ("queued", "looks"), [(0.9e-3, 1), (1.2e-3, 2), (None, 1)], ids=["believed", "not believed", "not queued"]
)
def test_whoever_is_not_believed_is_looked_at_longer(
    monkeypatch: pytest.MonkeyPatch, queued: float | None, looks: int
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(burst, "open_wide", lambda *given, still: None)
    monkeypatch.setattr(burst, "take_queued", asked.append)
    pair = Burst(10 * 2e-3, 12 * 2e-3), Burst(10 * 0.9e-3, 12 * 0.9e-3)
    monkeypatch.setattr(burst, "take_pairs", lambda *given: ([pair] * 6, ()))
    monkeypatch.setattr(burst, "_size", lambda *given: 12)
    contest: Any = Sized(99, 2e-3)
    contest.seen.queued = queued
    burst.take_bursts(contest, gated(3e-3, 2e-3), [])
    assert asked == [contest] * looks


@pytest.mark.parametrize(("whole", "least"), [(50e-6, 35e-6), (70e-6, 55e-6), (100e-6, 100e-6)])
def test_a_burst_is_believed_no_further_below_its_whole_windows_than_a_launch_takes(whole: float, least: float) -> None:
    """And not at all where these say that what is claimed was not timed where it ran."""
    found = burst.Bursts([Pair(1e-4, 50e-6)] * 6, [Pair(1e-4, whole)] * 6, size=10, reference=1e-4)
    contest: Any = SimpleNamespace(seen=Gated([turn(60e-6, 1e-4)]))
    assert contest.seen.shortest < GATED_ALLOWANCE
    assert found.least(contest) == pytest.approx(least)
    flags: list[str] = []
    assert measure._refined(contest, found, flags).submission == pytest.approx(max(50e-6, least))
    assert bool(flags) is (least > 50e-6)


@pytest.mark.parametrize(("words", "least", "most"), [({}, 3, 4), ({"own": "word"}, 1, 2)], ids=["gated", "queued"])
def test_few_turns_are_fewer_where_calls_can_be_queued(
    monkeypatch: pytest.MonkeyPatch, words: Any, least: int, most: int
) -> None:
    monkeypatch.setattr(nullkernel, "held", lambda cycles, times: 6e-5)
    counts: set[int] = set()
    for _ in range(40):
        bench = SimpleNamespace(pace=PACES["cuda"], device=torch.device("cuda"))
        trial, null = SimpleNamespace(bench=bench, worker="own"), SimpleNamespace(worker="null")
        contest = Contest(trial, None, null, None, None)  # type: ignore[arg-type]
        contest.words = words
        contest.require_still = lambda: None  # type: ignore[method-assign]
        contest._turn = lambda hold: turn(5e-3, 5e-3)  # type: ignore[method-assign]
        contest._fitting_gates = lambda usual: []  # type: ignore[method-assign]
        contest.gated(few=True)
        counts.add(len(contest.seen.turns))
    assert counts == {least, most}


@pytest.mark.parametrize(
    ("calls", "held"),
    [
        ([(4e-3, 8e-3), (4e-3, 9e-3)], 4e-3),
        ([(8e-3, 4e-3), (9e-3, 5e-3)], 4e-3),
        ([(4e-3, 8e-3), (1e-4, 8e-3), (4e-3, 8e-3)], None),
        ([(8e-3, 1e-4)], None),
        ([(1.0, 2.0)], nullkernel.LONGEST_HOLD),
    ],
    ids=["submission", "reference", "short for once", "short reference", "very long"],
)
def test_the_null_kernel_is_held_as_long_as_calls_that_are_long_all_the_time(
    monkeypatch: pytest.MonkeyPatch, calls: list[tuple[float, float]], held: float | None
) -> None:
    second, gate_cost, made = 2_000_000_000, 3e-4, list[int]()  # clock cycles; and on each window what a long wait adds
    pace = PACES["cuda"].model_copy(update={"turns": (len(calls), len(calls))})
    trial: Any = SimpleNamespace(bench=SimpleNamespace(pace=pace, device=torch.device("cuda")))
    contest = Contest(trial, None, None, None, None)  # type: ignore[arg-type]
    contest.null = SimpleNamespace(worker=SimpleNamespace(freeze=lambda on, wait: None))  # type: ignore[assignment]
    monkeypatch.setattr(nullkernel, "construct_null", lambda trial, null, cycles: made.append(cycles))
    order = list[str]()  # its kernel is timed while nobody uses the device
    contest.require_still = lambda: order.append("still")  # type: ignore[method-assign]
    monkeypatch.setattr(nullkernel, "held", lambda cycles, times: order.append("held") or cycles / second)
    contest._shortest_window = lambda player, count: made[-1] / second + gate_cost + 1e-4  # type: ignore[method-assign]
    turns = (Turn(own + gate_cost, reference + gate_cost, 6e-5 + gate_cost, 6e-5) for own, reference in calls)
    contest._turn = lambda hold: next(turns)  # type: ignore[method-assign]
    contest.gated()
    assert order == ["still", "held", "still"] + ["held"] * (held is not None)
    if held is None:
        assert (made, contest.seen.gate_cost) == ([], pytest.approx(gate_cost))
    else:
        assert (made, contest.seen.gate_cost) == ([pytest.approx(held * second), HOLD], pytest.approx(gate_cost + 1e-4))


@pytest.mark.parametrize(
    ("device", "beyond", "held"),
    [("cuda", -1e-5, 1.0), ("cuda", 2e-5, 1.0), ("cuda", 1.2e-4, 3.0), ("cuda", 9e-4, 16.0), ("cuda", 1e-3, 1.0),
     ("cpu", 1.2e-4, 1.0)],
    ids=["less", "about as long", "longer", "much longer", "held afterwards", "a CPU"],
)  # fmt: skip
def test_the_null_kernel_is_held_about_as_long_as_calls_that_were_seen(
    monkeypatch: pytest.MonkeyPatch, device: str, beyond: float, held: float
) -> None:
    """And for longer than that where something is timed as long, and then as before."""
    trial: Any = SimpleNamespace(bench=SimpleNamespace(pace=PACES[device], device=torch.device(device)))
    null: Any = SimpleNamespace(freeze=lambda on, wait: None)
    made = list[int]()
    monkeypatch.setattr(nullkernel, "construct_null", lambda trial, null, cycles: made.append(cycles))
    monkeypatch.setattr(nullkernel, "held", lambda cycles, times: cycles / HOLD * 6e-5)
    hold = nullkernel.Hold(trial, null)
    hold.fit(beyond)
    assert hold.cycles == pytest.approx(HOLD * held) and made == [hold.cycles] * (held > 1)
    assert hold.seconds() == (pytest.approx(6e-5 * held) if device == "cuda" else 0.0)
    made.clear()
    with hold.as_long(3e-3, hold.seconds() or 6e-5) as seconds:
        assert seconds == (pytest.approx(3e-3) if device == "cuda" else 6e-5)
    assert made == ([pytest.approx(HOLD * 50, rel=1e-4), hold.cycles] if device == "cuda" else [])


@pytest.mark.parametrize(
    ("seconds", "held"), [(7e-4, None), (6.3e-4, 6.3e-4), (2e-4, 2e-4), (1e-5, 6e-5), (-1e-5, 6e-5)],
    ids=["about as long", "shorter", "much shorter", "as short as it is ever held", "no time at all"],
)  # fmt: skip
def test_who_was_slow_while_it_was_screened_is_not_held_against_a_long_null_kernel(
    monkeypatch: pytest.MonkeyPatch, seconds: float, held: float | None
) -> None:
    """After which a look takes longer, so that its own short calls would be told too short."""
    made = list[int]()
    monkeypatch.setattr(nullkernel, "construct_null", lambda trial, null, cycles: made.append(cycles))
    monkeypatch.setattr(nullkernel, "held", lambda cycles, times: cycles / HOLD * 6e-5)
    trial: Any = SimpleNamespace(bench=SimpleNamespace(pace=PACES["cuda"], device=torch.device("cuda")))
    null: Any = SimpleNamespace(worker=SimpleNamespace(freeze=lambda on, wait: None))
    contest = Contest(trial, None, null, None, None)  # type: ignore[arg-type]
    contest.hold.cycles, counts = HOLD * 16, list[int]()
    contest.require_still = lambda: None  # type: ignore[method-assign]
    contest._count = lambda name: 4  # type: ignore[method-assign]
    gate = 3e-4
    contest._shortest_window = lambda player, count: counts.append(count) or made[-1] / HOLD * 6e-5 + gate  # type: ignore[method-assign]
    usual = contest.hold.seconds()
    contest._turn = lambda hold: Turn(seconds + gate, 1e-3 + gate, usual + gate, usual)  # type: ignore[method-assign]
    contest.gated()
    assert made == ([] if held is None else [pytest.approx(HOLD * held / 6e-5, rel=1e-4), HOLD * 16])
    assert counts == [4] * len(contest.seen.fitting_gates) and bool(counts) is (held is not None)
    assert contest.seen.gate_cost == pytest.approx(gate)


def test_a_side_has_one_window_once_its_own_are_long() -> None:
    trial: Any = SimpleNamespace(bench=SimpleNamespace(pace=PACES["cuda"], device=torch.device("cuda")))
    contest = Contest(trial, None, None, None, None)  # type: ignore[arg-type]
    contest.fitting = lambda copies: 99  # type: ignore[method-assign]
    sides = ("reference", "submission", "null")
    assert [contest._count(name) for name in sides] == [4, 4, 4]
    contest.lately.update({"submission": 1e-3, "reference": 4e-2, "null": 1e-3})
    assert [contest._count(name) for name in sides] == [1, 4, 4]


def test_of_a_pass_that_claims_far_more_than_right_answers_not_all_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "CLAIMED_SLACK", 0)
    cpu = torch.device("cpu")
    regions = [SharedRegion(64, cpu) for _ in range(2)]
    opened = gate.Gate(cpu, regions[0], regions[1], 1, answer_bytes=64 // gate.CLAIMED_FACTOR)
    output = call(0).outputs[0]
    taken = opened._taken([[output, output], [output]])
    for region in regions:
        region.close()
    assert [[each.flat is not None for each in outputs] for outputs in taken] == [[True, True], [False]]


class Drawing:
    """Stands where a trial does; what it draws are inputs of the sizes that it is given, one after the other."""

    def __init__(self, *sizes: int) -> None:
        self.bench = SimpleNamespace(pace=PACES["cpu"], device=torch.device("cpu"))
        self.sizes, self.count = sizes, 0

    def draw(self, distribution: str, start: int = 0, into: torch.Tensor | None = None) -> gate.Drawn:
        size = self.sizes[min(self.count, len(self.sizes) - 1)]
        self.count += 1
        return gate.Drawn({"t": 0}, Image([torch.full((size,), float(self.count))], self.bench.device, start, into), 0)


@pytest.mark.parametrize("still", [True, False])
def test_all_are_taken_once_to_a_gate_that_is_wide_enough(still: bool) -> None:
    """With `still`, each is awake only while it is taken there."""
    trial, steps = Drawing(4000), []
    places = [SharedRegion(size, torch.device("cpu")) for size in (20_000, 200_000)]
    narrow, wide = (gate.Gate(trial.bench.device, place, place, 1, 0) for place in places)
    trial.gate, trial.limits = narrow, Options(call_timeout=1.0).limits()  # type: ignore[attr-defined]
    workers = [
        SimpleNamespace(freeze=lambda on, wait, name=name: steps.append((name, on))) for name in ("ref", "null", "own")
    ]
    trial.worker = workers[2]  # type: ignore[attr-defined]
    trial.open_gate = lambda sets, answer_bytes, outbox: wide  # type: ignore[attr-defined]
    trial.admit = lambda worker, opened, timeout: steps.append(opened) or SimpleNamespace(worker=worker)  # type: ignore[attr-defined]
    players = [SimpleNamespace(worker=worker) for worker in workers[:2]]
    contest = Contest(trial, *players, None, Supply(trial, 0))  # type: ignore[arg-type]
    for size in (1, 8, 8, 3):
        burst.open_wide(contest, size, still)
    taken = [(name, on) for name in ("ref", "null", "own") for on in (False, True)]
    assert [step for step in steps if step is not wide] == (taken if still else [])
    assert steps.count(wide) == 3 and contest.trial.gate is wide
    for place in places:
        place.close()


SLEEPS = """
import time, torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(0.02)
        return torch.softmax(x, dim=1)
"""


def test_a_real_candidate_marks_the_parts_of_a_pass(bench: Bench) -> None:
    problem = load_problem(str(Path(__file__).parent.parent / "submissions/problems/softmax.py"))
    with contextlib.ExitStack() as held:
        worker = bench.take()
        held.callback(worker.close)
        trial = Trial(bench, problem, Options(device="cpu"), "00" * 16, worker)
        held.callback(trial.close)
        trial.build(SLEEPS)
        assert trial.screen() is None
        sets = Supply(trial).take(4)
        trial.gate = trial.open_gate(sets, trial.gate.answer_bytes, outbox=trial.gate.outbox.size)
        trial.player = trial.admit(worker, trial.gate, 60)
        parts = trial.run(sets, (1, 2, 4)).parts
        assert len(parts) == 4 and min(parts) >= 0 and sum(parts) >= 4 * 0.02
        assert len(trial.run(sets[:1]).parts) == 1
