"""From scripted times of calls and of chains to an outcome, without a device."""

import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.judge.api import PACES, JudgeError, Options, Pace
from kevin_env.judge.handshake.claims import CallClaim
from kevin_env.judge.handshake.handshake import OFTEN, Answer, Player
from kevin_env.judge.rejected import Rejected
from kevin_env.judge.timing.calibration import CONSTANT_SPREAD
from kevin_env.judge.timing.chain import GpuHandshake
from kevin_env.judge.timing.estimates import LEAST, Speedup, enough
from kevin_env.judge.timing.measure import (
    CHAIN_SECONDS,
    DISTURBED,
    LINKS,
    SHAKEN,
    SINGLE_LINKS,
    TRIES,
    WRITING,
    Chains,
)
from kevin_env.judge.timing.session import Crowded, TimingSession
from kevin_env.outcome import Incorrect

US = 1e-6
KNOWN, CONSTANT = 130 * US, 285 * US
Seconds = Callable[[str, int], float]
OTHER = -2
"""An input set of another distribution."""


class Side:
    """Stands where a process does."""

    pid = 1 << 30

    def __init__(self, name: str) -> None:
        self.name, self.closed = name, False

    def freeze(self, frozen: bool, wait: bool = True) -> None:
        pass

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def answer(seconds: float, writing: float = 0.0) -> Answer:
    return Answer(CallClaim(), [], [], seconds, writing=writing)


class Links(GpuHandshake):
    """A handshake whose links take what a script says, by the player's name and its links.

    Attributes:
        chains: The players of each and how many links each of them had.
        late: How often calls of a player are not queued in time, by its name.
        fitting: How many links of it are always queued in time, by its name.
        crowding: Seconds by which all links are longer beside several of its links, by its name.
    """

    def __init__(
        self, seconds: Seconds, late: dict[str, int] | None = None, writing: float = 0.0,
        fitting: dict[str, int] | None = None, crowding: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        self.seconds, self.late, self.fitting = seconds, late or {}, fitting or {}
        self.crowding = crowding or {}
        self.writing = {"submission": writing}
        self.chains: list[dict[str, int]] = []
        self.shown: list[Any] = []
        """Inputs of the submission, also of calls that were late."""

    def admit(self, worker: Any, timeout: Any, trusted: bool) -> Player:
        raise NotImplementedError

    def chain(self, calls: Any, timeout: Any) -> list[list[Answer]] | None:
        names = [player.worker.name for player, _ in calls]
        assert len({*names}) == len(names)
        self.shown += [each for name, (_, sets) in zip(names, calls, strict=True)
                       if name == "submission" for each in sets]  # fmt: skip
        for (player, sets), name in zip(calls, names, strict=True):
            late = self.late.get(name, 0) > 0 or len(sets) > self.fitting.get(name, LINKS + 1)
            player.late = player.late + 1 if late else 0
            self.late[name] = self.late.get(name, 0) - 1
        if any(player.late for player, _ in calls):
            return None
        self.chains.append({name: len(sets) for (_, sets), name in zip(calls, names, strict=True)})
        several = [name for (_, sets), name in zip(calls, names, strict=True) if len(sets) > 1]
        more = max((self.crowding.get(name, 0.0) for name in several), default=0.0)
        return [
            [
                answer(self.seconds(name, len(sets)) + more, self.writing.get(name, 0.0))
                for _ in sets
            ]
            for (_, sets), name in zip(calls, names, strict=True)
        ]

    def host_driven(self, player: Player, drawn: Any, timeout: Any) -> Answer:
        worker: Any = player.worker
        self.chains.append({f"{worker.name} by its host": 1})
        self.shown += [drawn] if worker.name == "submission" else []
        return answer(self.seconds(worker.name, 1))


class Scripted(TimingSession):
    """A session whose calls take what a script says. Its inputs are numbers."""

    def __init__(
        self, pace: Pace, handshake: Any = None, seconds: Seconds = lambda name, count: 0.0,
        fitting: int = 99, least: float = 1.0, rough: tuple[float, float] = (1e-3, 1e-3),
    ) -> None:  # fmt: skip
        sides = [Side(name) for name in ("submission", "reference", "null")]
        own, reference, null = (Player(side, None, False, handshake) for side in sides)  # type: ignore[arg-type]
        bench = SimpleNamespace(
            pace=pace, device=torch.device("cuda" if handshake else "cpu"), info=SimpleNamespace(processors=2),
            links=SimpleNamespace(known_seconds=KNOWN, least_constant=self.least_constant),
        )  # fmt: skip
        self.least = least
        run: Any = SimpleNamespace(
            bench=bench, worker=sides[0], player=own, handshake=handshake,
            case=SimpleNamespace(name="main"), seconds=rough[0], known=SimpleNamespace(seconds=rough[1]),
            within_limits=lambda sets, told: told(None), much_slower=lambda: rough[0] > 1.0,
            options=Options(), alone=True, baseline="PyTorch eager",
        )  # fmt: skip
        self.verified: list[int] = []
        self.calls: list[str] = []
        self._numbers, self._seconds = itertools.count(), seconds
        unverified: Any = SimpleNamespace(add=lambda answer, drawn: self.verified.append(drawn))
        supply: Any = SimpleNamespace(fitting=fitting, untimed=lambda: OTHER)
        super().__init__(run, reference, null, unverified, supply, -1)  # type: ignore[arg-type]

    def least_constant(self, seen: float) -> float:
        self.least = min(self.least, seen)
        return self.least + CONSTANT_SPREAD

    def sets_of(self, player: Player, count: int) -> Any:
        return [next(self._numbers) if player is self.trial.player else -1 for _ in range(count)]

    def call(self, player: Player, drawn: Any = None) -> Answer:
        self.calls.append("other" if drawn == OTHER else str(getattr(player.worker, "name", "")))
        return answer(self._seconds(self.calls[-1], 1))


def links(submission: float, reference: float, noise: float = 0.0) -> Seconds:
    """Of calls of such lengths. The null model's have no noise, for which chains would be repeated."""
    draw, calls = (
        random.Random(4),
        {"submission": submission, "reference": reference, "null": KNOWN},
    )

    def seconds(name: str, count: int) -> float:
        return CONSTANT + calls[name] + (draw.gauss(0, noise) if name != "null" else 0.0)

    return seconds


PACE = PACES["cuda"]


@pytest.mark.parametrize("reference", [1000 * US, 300 * US])
def test_a_call_is_a_link_less_the_constant(reference: float) -> None:
    session = Scripted(PACE, handshake := Links(links(500 * US, reference)))
    outcome = Chains(session).outcome()
    assert (
        outcome.speedup == pytest.approx(reference / (500 * US))
        and outcome.queued
        and outcome.kind == "timed"
    )
    assert outcome.submission_seconds == pytest.approx(500 * US)
    assert outcome.reference_seconds == pytest.approx(reference)
    assert outcome.speedup_interval == (pytest.approx(outcome.speedup, rel=0.02),) * 2
    expected = [{"submission": 1 + LINKS, "null": 1 + LINKS}, {"reference": LINKS, "null": LINKS}]
    assert sorted(handshake.chains, key=str) == sorted(expected, key=str)


def test_every_answer_of_the_submission_is_compared_and_its_inputs_are_fresh() -> None:
    session = Scripted(PACE, Links(links(500 * US, 1000 * US)))
    Chains(session).outcome()
    assert [each for each in session.verified if each != OTHER] == list(range(LINKS))
    assert session.verified.count(OTHER) == 1


def test_what_is_on_other_inputs_does_not_count() -> None:
    def seconds(name: str, count: int) -> float:
        return CONSTANT + {"submission": 500 * US, "reference": 1000 * US, "null": KNOWN}[name]

    class Slow(Links):
        def chain(self, calls: Any, timeout: Any) -> list[list[Answer]] | None:
            found = super().chain(calls, timeout)
            return found and [
                [
                    answer(9.0) if drawn == OTHER else each
                    for each, drawn in zip(answers, sets, strict=True)
                ]
                for answers, (_, sets) in zip(found, calls, strict=True)
            ]

    assert Chains(Scripted(PACE, Slow(seconds))).outcome().speedup == pytest.approx(2.0)


def test_a_submission_cannot_raise_what_is_taken_from_its_links() -> None:
    """Its kernels that run on only lengthen the links of the null model and the reference."""
    draw = links(500 * US, 1000 * US)

    def seconds(name: str, count: int) -> float:
        return draw(name, count) + (0.0 if name == "submission" else 400 * US)

    assert Chains(
        Scripted(PACE, Links(seconds), least=CONSTANT)
    ).outcome().speedup == pytest.approx(2.0, rel=0.01)


def test_a_chain_that_runs_beside_what_is_left_of_a_call_is_less_its_own_constant() -> None:
    """By less than a chain is taken again for."""
    usual, pace = links(10 * US, 10 * US), PACE.model_copy(update={"pairs": (4, 9)})

    def seconds(name: str, count: int) -> float:
        chains = [each for each in handshake.chains if "reference" in each]
        beside = "reference" in handshake.chains[-1] and len(chains) > 1
        return usual(name, count) + (0.9 * SHAKEN if beside else 0.0)

    outcome = Chains(Scripted(pace, handshake := Links(seconds), least=CONSTANT)).outcome()
    assert outcome.speedup == pytest.approx(1.0, rel=1e-6)


def test_what_an_input_takes_longer_to_write_than_usual_is_a_part_of_the_call() -> None:
    handshake = Links(links(500 * US, 1000 * US), writing=WRITING + 500 * US)
    assert Chains(Scripted(PACE, handshake)).outcome().speedup == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "fitting", "count"),
    [(8e-3, 99, 2), (2.0, 99, 1), (1e-4, 3, 3), (1e-4, 99, LINKS)],
)
def test_a_chain_is_as_long_as_its_calls_and_the_memory_admit(
    call: float, fitting: int, count: int
) -> None:
    handshake = Links(links(call, 1e-4))
    session = Scripted(PACE, handshake, fitting=fitting, rough=(1.5 * call, 1e-4))
    Chains(session).outcome()
    assert count == 1 or count * call < CHAIN_SECONDS
    queued = [chain["submission"] for chain in handshake.chains if "submission" in chain]
    assert max(queued) == count + (count > 1)  # one on other inputs
    assert count > 1 or len(queued) == 2  # a single link is a chain


@pytest.mark.parametrize("name", ["submission", "reference"])
def test_links_that_a_queue_disturbs_are_queued_one_by_one(name: str) -> None:
    """The null model's among them show it."""
    handshake = Links(links(500 * US, 1000 * US), crowding={name: 2 * DISTURBED})
    session = Scripted(PACE, handshake)
    outcome = Chains(session).outcome()
    assert outcome.speedup == pytest.approx(2.0, rel=0.01) and outcome.queued
    assert handshake.chains.count({name: 1}) >= SINGLE_LINKS
    if name == "submission":  # every call is compared
        hidden = 1
        assert len(session.verified) == (LINKS + hidden) + (SINGLE_LINKS + hidden)


@pytest.mark.parametrize(("late", "queued"), [(OFTEN - 1, True), (OFTEN, False)])
def test_calls_that_are_not_queued_in_time_are_driven_by_their_host(
    late: int, queued: bool
) -> None:
    session = Scripted(PACE, handshake := Links(links(500 * US, 1000 * US), {"submission": late}))
    outcome = Chains(session).outcome()
    assert (outcome.speedup, outcome.queued) == (pytest.approx(2.0), queued)
    assert handshake.chains.count({"submission by its host": 1}) == (
        0 if queued else 1 + SINGLE_LINKS
    )
    shown = [drawn for drawn in handshake.shown if drawn != OTHER]
    assert len({*shown}) == len(shown)  # those of late calls may be known


@pytest.mark.parametrize(("before", "queued"), [(0, True), (OFTEN - 1, False)])
def test_a_call_that_was_late_by_itself_is_not_tried_by_itself_again(
    before: int, queued: bool
) -> None:
    """Each try that is late takes the time of the limit."""
    session = Scripted(PACE, Links(links(500 * US, 1000 * US), {"submission": 1}))
    session.trial.player.late = before
    assert Chains(session).outcome().queued is queued


def test_a_reference_that_its_host_drives_is_timed_against_the_same_constant() -> None:
    session = Scripted(
        PACE, handshake := Links(links(500 * US, 1000 * US), {"reference": OFTEN + 1})
    )
    outcome = Chains(session).outcome()
    assert outcome.speedup == pytest.approx(2.0) and outcome.queued
    assert {"reference by its host": 1} in handshake.chains and {"null": 1} in handshake.chains


@pytest.mark.parametrize(("late", "given"), [(0, "stock"), (OFTEN, "fresh")])
def test_a_reference_that_its_host_drives_gets_fresh_inputs_as_the_submission_does(
    late: int, given: str
) -> None:
    """What a library has found out about the shapes of a call would make it faster."""
    session = Scripted(PACE, Links(links(500 * US, 1000 * US)))
    supply: Any = SimpleNamespace(
        take=lambda count: ["fresh"] * count, stock=lambda count: ["stock"] * count
    )
    session.supply, session.reference.late = supply, late
    assert TimingSession.sets_of(session, session.reference, 2) == [given] * 2
    assert TimingSession.sets_of(session, session.trial.player, 2) == ["fresh"] * 2
    assert TimingSession.sets_of(session, session.null, 2) == [session.nothing] * 2


@pytest.mark.parametrize("name", ["submission", "reference"])
def test_links_that_do_not_fit_into_the_launch_queue_together_are_queued_one_by_one(
    name: str,
) -> None:
    handshake = Links(links(500 * US, 1000 * US), fitting={name: 5})
    outcome = Chains(Scripted(PACE, handshake)).outcome()
    assert outcome.speedup == pytest.approx(2.0) and outcome.queued
    assert handshake.chains.count({name: 1}) >= SINGLE_LINKS
    assert not any("by its host" in each for chain in handshake.chains for each in chain)


def test_where_the_judges_own_calls_are_late_nothing_is_timed() -> None:
    with pytest.raises(JudgeError, match="too busy"):
        Chains(Scripted(PACE, Links(links(500 * US, 1000 * US), {"null": 3 * TRIES}))).outcome()


@pytest.mark.parametrize("guilty", [True, False])
def test_a_submission_that_slows_the_null_model_until_killed_ran_on(guilty: bool) -> None:
    seconds = links(500 * US, 1000 * US)

    def slowed(name: str, count: int) -> float:
        running = not (guilty and session.trial.worker.closed)  # type: ignore[attr-defined]
        return seconds(name, count) + (2 * DISTURBED if name == "null" and running else 0.0)

    session = Scripted(PACE, handshake := Links(slowed))
    if guilty:
        with pytest.raises(Rejected) as wrong:
            Chains(session).outcome()
        outcome = wrong.value.outcome
        assert isinstance(outcome, Incorrect)
        assert (outcome.kind, outcome.input_set) == ("early_done", "main/own")
    else:
        with pytest.raises(JudgeError, match="something else runs on this GPU"):
            Chains(session).outcome()
    assert {"null": 1} in handshake.chains[-2:]  # looked at again, beside the reference alone


def test_a_submission_is_not_blamed_for_what_those_that_are_ready_may_have_done() -> None:
    usual = links(500 * US, 1000 * US)

    def seconds(name: str, count: int) -> float:
        return usual(name, count) + (2 * DISTURBED if name == "null" else 0.0)

    session = Scripted(PACE, Links(seconds))
    session.trial.alone = False
    with pytest.raises(Crowded):
        Chains(session).outcome()
    assert not session.trial.worker.closed  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("noise", "precision", "pairs"),
    [
        (4 * US, None, range(1, 2)),
        (50 * US, None, range(PACE.pairs[1], 99)),
        (20 * US, 0.001, range(PACE.pairs[1] + 1, 99)),
        (1 * US, 0.001, range(1, 2)),
    ],
    ids=["narrow", "most", "asked for more", "as narrow as can be"],
)
def test_chains_are_taken_until_the_interval_is_as_narrow_as_asked(
    noise: float, precision: float | None, pairs: range
) -> None:  # fmt: skip
    session = Scripted(
        PACE.model_copy(update={"seconds": 60.0}),
        handshake := Links(links(500 * US, 1000 * US, noise=noise)),
    )
    session.trial.options = Options(timing_precision=precision)
    Chains(session).outcome()
    assert handshake.chains.count({"submission": 1 + LINKS, "null": 1 + LINKS}) in pairs


def found(ratio: float, half: float) -> Speedup:
    return Speedup(ratio, ratio * (1 - half), ratio * (1 + half), 1.0, 1.0 / ratio)


@pytest.mark.parametrize(
    ("speedup", "pairs", "late", "is_enough"),
    [
        (found(1.0, 0.04), 6, False, False), (found(1.0, 0.04), 7, False, True),
        (found(1.0, 0.3), 24, False, False), (found(1.0, 0.3), 25, False, True),
        (found(1.0, 0.3), LEAST - 1, True, False), (found(1.0, 0.3), LEAST, True, True),
        (found(0.05, 0.5), 1, False, False), (found(0.05, 0.5), 2, False, True),
        (found(0.09, 0.5), 2, False, False),
    ],
    ids=[
        "few", "precise", "not precise", "most", "few when late", "late", "once", "much slower",
        "perhaps slower",
    ],
)  # fmt: skip
def test_what_is_enough(speedup: Speedup, pairs: int, late: bool, is_enough: bool) -> None:
    pace = Pace(pairs=(7, 25), seconds=60.0, precision=0.05)
    assert enough(speedup, 0.001, pairs, 61.0 if late else 0.0, pace, None) is is_enough


def calls(submission: float, reference: float, null: float = 1e-3) -> Seconds:
    return lambda name, count: {
        "submission": submission,
        "reference": reference,
        "null": null,
        "other": 1.0,
    }[name]


def test_a_chain_in_which_others_make_a_context_is_taken_again() -> None:
    """All links are longer then, the null model's among them."""
    usual, shaken = links(500 * US, 600 * US), 1  # the second chain

    def seconds(name: str, count: int) -> float:
        return usual(name, count) + (150 * US if len(handshake.chains) == shaken else 0.0)

    outcome = Chains(Scripted(PACE, handshake := Links(seconds), least=CONSTANT)).outcome()
    assert outcome.speedup == pytest.approx(1.2, rel=1e-3)
    assert [len(each) for each in handshake.chains] == [2, 2, 2]
