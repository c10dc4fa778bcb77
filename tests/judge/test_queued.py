"""Queued calls, as far as they go without a GPU; the rest is in test_gpu.py."""

import contextlib
import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from loaded import SECONDS, Submit

from kevin_env.judge import burst, gate, measure, nullkernel, pairs, queued
from kevin_env.judge.answer import Answer
from kevin_env.judge.api import Options
from kevin_env.judge.contest import Contest
from kevin_env.judge.gated import Gated, Turn
from kevin_env.judge.pace import PACES
from kevin_env.judge.timing import (
    GATED_ALLOWANCE,
    QUEUED_ALLOWANCE,
    Burst,
    Pair,
    Speedup,
    beyond_windows,
    burst_bounds,
    burst_calls,
)
from kevin_env.judge.trouble import Failed, Failure
from kevin_env.outcome import Correct

CHANNEL = """
import gc, time
from kevin_env.candidate.wire import MARK_FRAME, encode
channel = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Runtime").channel
"""


@pytest.mark.parametrize(
    ("code", "queued", "silent"),
    [
        ("channel.send_frame(MARK_FRAME); time.sleep(0.4)", True, True),
        ("time.sleep(0.4); channel.send_frame(MARK_FRAME)", False, True),
        ("pass", False, True),
        ("raise KeyError", False, True),
        ("channel.send_frame(MARK_FRAME + encode({}))", False, False),
    ],
    ids=["queued", "late", "never", "failed", "done already"],
)
def test_whoever_is_not_queued_in_time_is_let_go_on(submit: Submit, code: str, queued: bool, silent: bool) -> None:
    worker = submit(CHANNEL).worker
    told: list[tuple[bool, bool]] = []

    def let_go(in_time: bool) -> None:
        told.append((in_time, worker.waiting))

    order: dict[str, Any] = {"path": str(worker.folder / "again.py"), "code": CHANNEL + code + "\nModelNew = 1"}
    try:
        worker.ask("load", SECONDS, queued=let_go, entry="ModelNew", **order)
    except Failed as error:
        assert error.failure.type == "KeyError"
    assert told == [(queued, silent)]


def test_a_candidate_whose_device_cannot_wait_says_so(submit: Submit) -> None:
    worker = submit("").worker
    if not torch.cuda.is_available():
        with pytest.raises(Failed):
            worker.ask("go", SECONDS, queued=lambda in_time: None, count=0, behind=1)


Window = tuple[float, bool, bool]
NULL: Window = (350e-6, True, True)


class Stub:
    """Stands where a worker does."""

    def __init__(self, name: str) -> None:
        self.name = name

    def freeze(self, on: bool, wait: bool = True) -> None:
        """Takes no time."""

    def settle(self) -> None:
        """Nor does this."""


class Trial:
    """Stands where a trial on a GPU does; tells what it was asked to run, and gives answers one after the other.

    Args:
        windows: Of the submission's queued calls: seconds, whether queued, whether steady.
        partners: Of the partners'.
        raises: What the first call of either ends with.
    """

    def __init__(
        self, windows: Sequence[Window], partners: dict[str, Sequence[Window]], raises: dict[str, Exception]
    ) -> None:
        self.worker = Stub("own")
        self.player = SimpleNamespace(worker=self.worker)
        self.gate, self.limits = SimpleNamespace(call=self.call), Options(call_timeout=1.0).limits()
        self.kept = list[Any]()
        self.bench = SimpleNamespace(pace=PACES["cuda"], device=torch.device("cuda"))
        self.right = True
        self.ran: list[tuple[Any, str]] = []
        self._windows, self._raises = itertools.cycle(windows), raises
        self._partners = {name: itertools.cycle(windows) for name, windows in partners.items()}

    def run(self, sets: list[Any], marks: Sequence[int] = (), word: str = "") -> Answer:
        self.ran.append((sets[0], word))
        if "own" in self._raises:
            raise self._raises["own"]
        decoy = sets[0][0] == "decoy"
        return window(0.0, True, True) if decoy else window(*next(self._windows))

    def call(self, player: Any, sets: list[Any], timeout: float, marks: Sequence[int] = (), word: str = "") -> Answer:
        self.ran.append((sets[0], word))
        if "broken" in self._raises:
            raise self._raises["broken"]
        return window(*next(self._partners[player.worker.name]))

    def check(self, answer: Answer, sets: list[Any]) -> str | None:
        return None if self.right else "wrong"


def window(seconds: float, in_time: bool, steady: bool) -> Answer:
    return Answer(seconds, (), [], True, False, steady, [], in_time)


class Supply:
    """Gives fresh sets, which are numbered, and always the same one to partners."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def take(self, count: int) -> list[tuple[str, int]]:
        return [("fresh", next(self.numbers)) for _ in range(count)]

    def take_other(self) -> tuple[str, int]:
        """A decoy: its call takes no time, so that whoever counts it is seen to."""
        return "decoy", next(self.numbers)

    def stock(self, count: int) -> list[tuple[str, int]]:
        return [("stock", 0)] * count


def contest(
    *windows: Window, gated: float = 500e-6, null: Sequence[Window] = (NULL,), reference: Sequence[Window] = (NULL,),
    **raises: Exception,
) -> Any:  # fmt: skip
    """A contest whose submission's queued windows are these, over and over, and its gated calls so long."""
    trial, kept = Trial(windows, {"null": null, "reference": reference}, raises), list[Any]()
    unverified = SimpleNamespace(
        keep=lambda answer, sets: kept.append(sets[0]), relieve=lambda: None, use_room=lambda: None, kept=kept
    )
    partners = [SimpleNamespace(worker=Stub(name)) for name in ("reference", "null")]
    made: Any = Contest(trial, *partners, unverified, Supply())  # type: ignore[arg-type]
    made.words = {trial.worker: "own", made.reference.worker: "reference", made.null.worker: "null"}
    made.seen = Gated([Turn(submission=gated + 3e-4, reference=2e-3, null=3.6e-4, hold=60e-6)])
    return made


@pytest.mark.parametrize(
    ("windows", "call"),
    [
        ([(490e-6, True, True), (470e-6, True, True), (520e-6, True, True)], 180e-6),
        ([(490e-6, True, True), (310e-6, True, False)], 200e-6),
        ([(200e-6, True, True)], 1e-6),
        ([(490e-6, True, True), (470e-6, False, True)], None),
        ([(490e-6, True, False)], None),
        ([(880e-6, True, True)], 500e-6),
        ([(900e-6, True, True)], None),
    ],
    ids=["shortest", "steady", "no time at all", "one not queued", "none steady", "as gated", "longer"],
)
def test_the_shortest_queued_call_is_noted(windows: list[Window], call: float | None) -> None:
    made = contest(*windows)
    queued.take_queued(made)
    assert made.seen.queued == (None if call is None else pytest.approx(call))


@pytest.fixture
def cycles(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For how many cycles null kernels were made to hold the device, one after the other; two a nanosecond."""
    made: list[int] = []
    monkeypatch.setattr(nullkernel, "construct_null", lambda trial, null, cycles: made.append(cycles))
    monkeypatch.setattr(nullkernel, "held", lambda cycles, times: cycles / 2e9)
    return made


@pytest.mark.parametrize(("null", "cost"), [(2.05e-3, 4e-4), (1.95e-3, 3.5e-4)], ids=["as gated", "less"])
def test_long_calls_are_held_against_a_null_kernel_as_long(cycles: list[int], null: float, cost: float) -> None:
    made = contest((5.2e-3, True, True), gated=5e-3, null=[(null, True, True)])
    made.seen.fitting_gates = [4e-4, 5e-4]
    queued.take_queued(made)
    assert cycles == [pytest.approx((2e-3 - 4e-4) * 2e9), nullkernel.HOLD]  # the reference's call is the shorter one
    assert made.seen.queued == pytest.approx(5.2e-3 - cost)


@pytest.mark.parametrize(("gated", "calls"), [(500e-6, 3), (5e-3, 2)])
def test_every_queued_call_is_on_fresh_inputs_and_compared_and_some_are_decoys(
    cycles: list[int], gated: float, calls: int
) -> None:
    made = contest((490e-6, True, True), gated=gated)
    queued.take_queued(made)
    own = [each for each, word in made.trial.ran if word == "own"]
    fresh = [each for each in own if each[0] == "fresh"]
    assert len(set(fresh)) == len(fresh) == queued.ROUNDS * calls
    assert len(own) - len(fresh) == queued.ROUNDS
    assert made.unverified.kept == own
    assert [each for each, word in made.trial.ran if word == "null"] == [("stock", 0)] * queued.ROUNDS * calls


@pytest.mark.parametrize(("times", "call"), [(1, 250e-6), (3, 240e-6)], ids=["by chance", "often"])
def test_a_longer_look_takes_short_windows_of_both_sides_but_not_the_one_that_is_by_chance(
    times: int, call: float
) -> None:
    made = contest((490e-6, True, True), null=[(300e-6, True, True)])
    made.seen.queued_windows += [470e-6] * times
    made.seen.queued_gates += [230e-6] * times
    queued.take_queued(made)
    assert made.seen.queued == pytest.approx(call)


def test_decoys_and_sides_come_in_no_order_that_can_be_known() -> None:
    orders: set[tuple[str, ...]] = set()
    for _ in range(60):
        made = contest((490e-6, True, True))
        queued.take_queued(made)
        orders.add(tuple(each[0] for each, _ in made.trial.ran))
    assert len(orders) > 12
    assert {order[0] for order in orders} == {"fresh", "decoy", "stock"}


def test_a_null_kernel_that_is_held_up_costs_no_more_than_a_gated_one() -> None:
    made = contest((490e-6, True, True), null=[(3.0, True, True)])
    queued.take_queued(made)
    assert made.seen.queued == pytest.approx(490e-6 - 300e-6)


def test_none_is_taken_where_none_can_be_queued() -> None:
    made = contest((490e-6, True, True))
    made.words = {}
    queued.take_queued(made)
    assert made.seen.queued is None and not made.trial.ran


LATE: Window = (350e-6, False, True)
FAILED = Failed(Failure(kind="exception", type="CudaError", message="801", frames=[], output=""))


PARTNERS = ["null", "reference"]
ALL = [*PARTNERS, "own"]


@pytest.mark.parametrize(
    ("made", "asked", "lent"),
    [
        (contest(NULL), ALL, ALL),
        (contest(LATE), ALL, PARTNERS),
        (contest(NULL, null=[LATE]), ["null"], []),
        (contest(NULL, reference=[LATE]), ALL, ["null", "own"]),
        (contest(NULL, broken=FAILED), ["null"], []),
        (contest(NULL, own=FAILED), ALL, PARTNERS),
        (contest(NULL), ALL, PARTNERS),
    ],
    ids=["queued", "waits for the device", "null does", "the reference does", "no such wait", "fails", "wrong"],
)
def test_whether_calls_can_be_queued_is_tried_and_nobody_is_blamed(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, made: Any, asked: list[str], lent: list[str]
) -> None:
    monkeypatch.setattr(queued, "Word", lambda worker, device, timeout: worker.name)
    made.words, made.trial.right = {}, request.node.callspec.id != "wrong"
    queued.rehearse_queued(made)
    assert [word for _, word in made.trial.ran] == asked
    assert {worker.name: word for worker, word in made.words.items()} == {name: name for name in lent}
    assert made.trial.kept == asked and not made.unverified.kept


def test_the_word_is_written_when_the_inputs_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []

    def note(name: str) -> Any:
        return lambda *given: notes.append(name)

    monkeypatch.setattr(gate, "finish", note("finish"))
    opened = SimpleNamespace(
        _write=note("write"), _scratch=SimpleNamespace(zero_=note("flush")), inbox=None, device=None
    )
    veil, word = SimpleNamespace(cover=note("cover"), lift=note("lift")), SimpleNamespace(write=note("word"))
    gate.Gate._show(opened, None, [], veil, word)  # type: ignore[arg-type]
    assert notes == ["write", "cover", "flush", "finish", "lift", "word", "finish"]


PLAIN, QUEUED = (False, False), (True, True)
OWN_ALONE_IS_NOT = (True, False)


@pytest.mark.parametrize(
    ("without", "call", "late", "regimes"),
    [
        ((), 1e-4, {}, [QUEUED] * 6),
        (("own",), 1e-4, {}, [OWN_ALONE_IS_NOT] * 6),
        (("reference",), 1e-4, {}, [PLAIN] * 6),
        ((), None, {}, [OWN_ALONE_IS_NOT] * 6),
        ((), 1e-4, {"own": [1]}, [QUEUED] * 7),
        ((), 1e-4, {"own": [1, 2]}, [QUEUED] * 3 + [OWN_ALONE_IS_NOT] * 6),
        ((), 1e-4, {"reference": [1, 3]}, [QUEUED] * 4 + [PLAIN] * 6),
    ],
    ids=[
        "both",
        "own cannot",
        "the reference cannot",
        "no queued call says something",
        "late once",
        "late",
        "their late",
    ],
)
def test_bursts_are_queued_wherever_they_can_be_but_never_the_submissions_alone(
    monkeypatch: pytest.MonkeyPatch, without: Sequence[str], call: float | None, late: dict[str, list[int]],
    regimes: list[tuple[bool, bool]],
) -> None:  # fmt: skip
    """What the reference's launches count is not for a submission to choose; one late burst is no choice."""
    made, asked = contest(NULL), dict[str, list[bool]](reference=[], own=[])
    made.seen.queued = call
    made.words = {worker: word for worker, word in made.words.items() if worker.name not in without}

    def passes(player: Any, sets: Any, marks: Sequence[int], word: str | None) -> list[Answer]:
        name = player.worker.name
        assert word in (None, name)
        asked[name].append(word is not None)
        in_time = len(asked[name]) - 1 not in late.get(name, ())
        return [Answer(9.0, (0.5, 1.5, 6e-3, 0.1), [], True, False, True, [], in_time)]

    made.passes, made.unverified.add = passes, lambda answer, sets: None
    made.trial.bench.lease = SimpleNamespace(contexts=contextlib.nullcontext)
    found, queued_now = pairs.take_pairs(made, made.reference, 16)
    assert found == [(Burst(6e-3, 9.0), Burst(6e-3, 9.0))] * pairs.PAIRS[0]
    assert (made.reference.worker in queued_now, made.trial.worker in queued_now) == regimes[-1]
    own = [regime[1] for regime in regimes]
    assert asked["own"] == (own if "reference" not in late else own[:2] + own[4:])
    assert asked["reference"] == [regime[0] for regime in regimes]


@pytest.mark.parametrize(("call", "queued_still"), [(1.77e-3, True), (1.8e-3, False)])
def test_a_reference_that_stalls_where_it_is_queued_is_not(call: float, queued_still: bool) -> None:
    """Its shortest gated call, launch and all, takes 1.7 ms, and was perhaps seen 45 us too short."""
    made = contest(NULL)
    made.seen.queued = 1e-4
    asked: list[bool] = []

    def passes(player: Any, sets: Any, marks: Sequence[int], word: str | None) -> list[Answer]:
        asked.append(word is not None)
        return [Answer(9.0, (0.5, 1.5, 14 * (call if word else 1e-3), 0.1), [], True, False, True, [], True)]

    made.passes, made.unverified.add = passes, lambda answer, sets: None
    made.trial.bench.lease = SimpleNamespace(contexts=contextlib.nullcontext)
    found, queued_now = pairs.take_pairs(made, made.reference, 16)
    assert found and (asked[0], asked[-1], bool(queued_now)) == (True, queued_still, queued_still)


@pytest.mark.parametrize(
    ("own", "other", "by_null", "told"),
    [
        (False, False, False, 20e-6),
        (True, True, False, 28.75e-6),
        (True, True, True, 20e-6),
        (False, True, False, 20e-6),
    ],
)
def test_a_queued_burst_has_no_launch_that_could_excuse_a_long_window(
    own: bool, other: bool, by_null: bool, told: float
) -> None:
    windows = [(Burst(14 * 30e-6, 16 * 30e-6), Burst(14 * 20e-6, 16 * 20e-6 + 1.4e-4))] * 6
    calls = burst_calls(windows, 14)
    beyond = beyond_windows(own, other, by_null)
    found = burst.Bursts(calls, burst_bounds(windows, calls, 16), 16, 30e-6, beyond, own)
    assert max(20e-6, found.least(contest(NULL, gated=50e-6))) == pytest.approx(told)


def test_of_a_first_launch_that_only_one_side_has_more_is_excused() -> None:
    assert beyond_windows(False, True, False) - beyond_windows(False, False, False) == pytest.approx(QUEUED_ALLOWANCE)


def bursts(call: float) -> burst.Bursts:
    pairs = [(Burst(1e-3, 2e-3), Burst(10 * call, 10 * call + 1e-3))] * 6
    calls = burst_calls(pairs, 10)
    return burst.Bursts(calls, calls, 12, reference=1e-4)


@pytest.mark.parametrize(("call", "told"), [(150e-6, 150e-6), (20e-6, 130e-6)], ids=["near", "far below"])
def test_a_burst_is_believed_no_further_below_the_shortest_queued_call_than_its_allowance(
    monkeypatch: pytest.MonkeyPatch, call: float, told: float
) -> None:
    made = contest((470e-6, True, True), gated=900e-6)
    made.gated = lambda: pytest.fail("gated calls say no more")
    monkeypatch.setattr(measure, "first_look", lambda contest: Speedup(1.0, 1.0, 1.0, 1e-4, 9e-4))
    monkeypatch.setattr(measure, "take_bursts", lambda contest, *given: queued.take_queued(contest) or bursts(call))
    monkeypatch.setattr(measure, "_whole", lambda outcome, *given: outcome)
    flags: list[str] = []
    outcome: Correct = measure.measure(made, flags)
    assert outcome.submission_seconds == pytest.approx(told)
    assert outcome.max_unseen_gain == pytest.approx(QUEUED_ALLOWANCE / (QUEUED_ALLOWANCE + told))
    assert bool(flags) == (told != call)


@pytest.mark.parametrize("queued", [True, False])
def test_an_outcome_says_whether_its_time_has_launches(queued: bool) -> None:
    made = contest(gated=900e-6)
    made.trial.bench.info = None
    waited = list[bool]()
    made.require_still = lambda: waited.append(True)
    told = measure._whole(Correct(kind="timed", message="", speedup=1.0, submission_seconds=1e-4), made, queued)
    assert (told.queued, told.alone_seconds) == (queued, pytest.approx(9e-4))
    assert waited  # others get the device next


def test_where_no_call_is_queued_gated_ones_bound_a_burst() -> None:
    made = contest(gated=900e-6)
    found = burst.Bursts([Pair(1e-4, 1e-4)], [Pair(1e-4, 1e-4)], 12, reference=None)
    assert (found.allowed(made), found.least(made)) == (GATED_ALLOWANCE, pytest.approx(900e-6 - GATED_ALLOWANCE))
