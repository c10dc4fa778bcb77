"""Gated calls of the submission, the reference and the null kernel, in turn. Every timed call is checked."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property

from kevin_env.judge import timing
from kevin_env.judge.answer import Answer
from kevin_env.judge.device import free_memory
from kevin_env.judge.gate import Drawn, Gate, Player
from kevin_env.judge.gated import Gated, Lately, Turn
from kevin_env.judge.nullkernel import HOLD, Hold, construct_null, null_code
from kevin_env.judge.overrides import source_of
from kevin_env.judge.partners import PARTNER_SECONDS, ours
from kevin_env.judge.pauses import asleep, awake
from kevin_env.judge.processors import together
from kevin_env.judge.supply import Supply
from kevin_env.judge.timing import Speedup
from kevin_env.judge.trial import SLOW, Trial
from kevin_env.judge.unverified import Unverified
from kevin_env.judge.word import Word
from kevin_env.judge.worker import Worker

FEW_TURNS, FEWEST_TURNS = (3, 4), (1, 2)
"""Bounds of the random number of turns in a round where bursts will tell the time: gated calls only have to say how far
these are believed, and a whole round follows where they are not. Where calls can be queued these say it."""
MEMORY, ALONE = 0.3, 0.6
"""Share of a GPU's free memory that inputs and outputs of a burst may take, or those of a turn's windows; and while it
is held alone, when nobody else takes more of it."""
LONG_WINDOW = {"cpu": 25e-3, "cuda": 2.5e-3}
"""From windows of this length on one is enough, as what lengthens it is little beside it."""
GATES = 3
"""Times that a null kernel as long as the calls is seen, if the usual is not. Who is slow at times gains nothing."""
FEWEST = 2
"""Turns of a submission whose calls take long: with those, it is known to be much slower, or its interval is narrow."""


@dataclass
class Contest:
    """Submission, reference and null kernel at the gate of one trial.

    Attributes:
        trial: A trial that has been screened.
        reference, null: The partners, which run trusted code: their inputs need not be fresh.
        unverified: Takes the submission's answers, which are all to be compared before anything is told.
        supply: Gives timed inputs.
        foreseen: Input sets that a burst will probably have; 1 while none is foreseen.
        seen: What its gated calls say.
        lately: How long windows were the last time.
        words: Of those whose calls can be queued.
        apart: The gate at which the partners are called; None where it is the trial's.
    """

    trial: Trial
    reference: Player
    null: Player
    unverified: Unverified
    supply: Supply
    foreseen: int = 1
    seen: Gated = field(default_factory=Gated)
    words: dict[Worker, Word] = field(default_factory=dict[Worker, Word])
    apart: Gate | None = None
    lately: Lately = field(default_factory=Lately)
    _began: float | None = None

    @classmethod
    def prepare(cls, trial: Trial, partners: ExitStack, unverified: Unverified) -> "Contest":
        """Starts and constructs the partners, which are lent until `partners` is closed.

        Hold `bench.contests` and the shared lease.
        """
        lent, compiled = trial.bench.partners.lent, trial.options.baseline == "compile"
        key = f"{trial.problem.sha256}/{trial.case.name}/{trial.options.baseline}"
        reference = partners.enter_context(lent(key, source_of(trial.problem, trial.case.name), "Model"))
        null = partners.enter_context(lent("null", null_code(), "ModelNew"))
        with ours():
            trial.construct(reference, PARTNER_SECONDS, compiled)
            construct_null(trial, null, HOLD)
            apart = (supply := Supply(trial)).gate_of_partners()
            players = [trial.admit(worker, apart or trial.gate, PARTNER_SECONDS) for worker in (reference, null)]
        seen = Gated(rarely_quiet=trial.bench.device.type == "cpu")
        return cls(trial, players[0], players[1], unverified, supply, seen=seen, apart=apart)

    def warm(self) -> Iterator[None]:
        """Calls the partners a few times; others may have the device in between."""
        self.lately["submission"] = self.trial.lately
        for name, player in (("reference", self.reference), ("null", self.null)) * self.trial.bench.pace.warm_ups:
            seconds = self.rehearse(player, 1)
            self.lately[name] = min(seconds, self.lately.get(name, seconds))
            yield

    def rehearse(self, partner: Player, count: int) -> float:
        """Calls of a partner that are not timed, while the submission stands still; their seconds."""
        sets = self.supply.stock(count)
        self.trial.trim()
        with ours(), asleep(self.trial.worker):
            return (self.apart or self.trial.gate).call(partner, sets, PARTNER_SECONDS).seconds

    @cached_property
    def hold(self) -> Hold:
        """For how long the null kernel keeps a GPU."""
        return Hold(self.trial, self.null.worker)

    @contextmanager
    def still(self) -> Iterator[None]:
        """All three stand still, except while one is in its window: none disturbs another, all wake up alike."""
        everyone = (self.trial.worker, self.reference.worker, self.null.worker)
        try:
            for worker in everyone:
                worker.attend(True)
                worker.freeze(True, wait=False)
            self.require_still()
            with together(self.trial.bench.place, [worker.pid for worker in everyone]):
                yield
        finally:
            for worker in everyone:
                worker.attend(False)
                worker.freeze(False, wait=False)

    def gated(self, few: bool = False) -> Speedup:
        """The speedup from the gated calls of one round and of all before: windows less what the gate costs.

        Inside `still`. With `few` the round has `FEW_TURNS`, or `FEWEST_TURNS`.

        Raises:
            Wrong: when a timed call is wrong and is compared now already.
            Trouble: when the submission fails.
            JudgeError: when a partner does.
        """
        self.require_still()
        began = self._began = self._began or time.monotonic()
        hold = self.hold.seconds()
        bounds = FEWEST_TURNS if few and self.trial.worker in self.words else self.turns(few)
        for _ in range(random.SystemRandom().randint(*bounds)):
            if self._tells_enough(began):
                break
            self.seen.turns.append(self._turn(hold))
        self.seen.fitting_gates = self._fitting_gates(hold)
        return self.seen.speedup

    def _tells_enough(self, began: float) -> bool:
        """Whether no further turn is needed of gated calls that began at a time."""
        seen, count = self.seen, len(self.seen.turns)
        if seen.settled or count < FEWEST or time.monotonic() - began <= self.trial.bench.pace.seconds:
            return seen.settled
        return count >= timing.LEAST or not seen.speedup.noisy or seen.speedup.high < 1 / SLOW

    def turns(self, few: bool) -> tuple[int, int]:
        """Bounds of the number of turns in a round of gated calls."""
        return FEW_TURNS if few else self.trial.bench.pace.turns

    def windows(self, few: bool) -> int:
        """How many timed inputs it needs at most."""
        return self.turns(few)[1] * self._count("submission")

    def fitting(self, copies: int, share: float = MEMORY, room: int | None = None) -> int:
        """How many input sets with their outputs a share of a GPU's memory holds, that is free or `room`."""
        each = self.supply.each + sum(t.nbytes for t in self.trial.outputs)
        own = self.unverified.held + self.supply.held
        return int(share * (room or free_memory(self.trial.bench.device) + own) / max(1, copies * each))

    def move(self, gate: Gate, still: bool) -> None:
        """Takes all three to another gate; `still`: whether they stand still otherwise."""
        woken, players = awake if still else nullcontext, list[Player]()
        with ours():
            for player in (self.reference, self.null):
                with woken(player.worker):
                    players.append(self.trial.admit(player.worker, gate, PARTNER_SECONDS))
        self.reference, self.null = players
        with woken(self.trial.worker):
            self.trial.player = self.trial.admit(self.trial.worker, gate, self.trial.limits.first)
        self.trial.gate, self.apart = gate, None

    def passes(
        self, player: Player, sets: list[list[Drawn]], marks: Sequence[int] = (), word: Word | None = None
    ) -> list[Answer]:
        """Passes of one player; arguments as in `Gate.call`, errors as `gated`. The submission's go to `unverified`."""
        self.require_still()
        if player is self.trial.player:
            with awake(player.worker):
                return [self.trial.run(each, marks, word) for each in sets]
        with ours(), awake(player.worker):
            gate = self.apart or self.trial.gate
            return [gate.call(player, each, PARTNER_SECONDS, marks, word) for each in sets]

    def require_still(self) -> None:
        """Waits until all three stand still; `awake` does not. Errors as `gated`."""
        self.trial.worker.settle()
        with ours():
            for partner in (self.reference, self.null):
                partner.worker.settle()

    def _fitting_gates(self, usual: float) -> list[float]:
        """What the gate costs of calls as long as the shortest of all, if that is far from `usual`, what `hold` is."""
        with self.as_long(usual) as hold:
            if hold == usual:
                return []
            count = 1 if hold > usual else self._count("null")
            return [self._shortest_window(self.null, count) - hold for _ in range(GATES)]

    def as_long(self, usual: float) -> AbstractContextManager[float]:
        """Has the null kernel hold a GPU as long as the shortest call of all, if that is far from `usual`. Seconds."""
        self.require_still()
        return self.hold.as_long(min(self.seen.shortest, self.seen.shortest_reference), usual)

    def _turn(self, hold: float) -> Turn:
        """The shortest window of each, taken in random order."""
        players = {"submission": self.trial.player, "reference": self.reference, "null": self.null}
        if self.seen.rarely_quiet:
            self.lately.update(self._interleaved(players))
        else:
            for name in random.SystemRandom().sample(sorted(players), len(players)):
                self.lately[name] = self._shortest_window(players[name], self._count(name))
        return Turn(**self.lately, hold=hold)

    def _interleaved(self, players: dict[str, Player]) -> dict[str, float]:
        """The shortest window of each, where those of all are taken in one random order.

        What else a machine does lasts for longer than a window, and who has just run is served later by its scheduler:
        so it meets all of them alike.
        """
        order = [name for name in players for _ in range(self._count(name))] + [""] * self._decoys
        random.SystemRandom().shuffle(order)
        windows: dict[str, list[float]] = {name: [] for name in players}
        for name in order:
            if not name:
                self._kept([[self.supply.take_other()]])
                continue
            own = name == "submission"
            answers = self._kept([self.supply.take(1)]) if own else self.answers(players[name], 1)
            windows[name].append(answers[0].seconds)
        return {name: min(found) for name, found in windows.items()}

    def _shortest_window(self, player: Player, count: int) -> float:
        """Of one player on inputs as the problem draws them, the submission's always on fresh ones. Seconds."""
        for _ in range(3):  # a window in which new memory had to be mapped says nothing
            answers = self.answers(player, count)
            if all(answer.steady for answer in answers):
                break
        return min(answer.seconds for answer in answers)

    def answers(self, player: Player, count: int, word: Word | None = None) -> list[Answer]:
        """Of so many calls of one player in a row; the submission's go to `unverified`. Errors as `gated`."""
        if player is self.trial.player:
            return self._own_answers(count, word)
        return self.passes(player, [self.supply.stock(1)] * count, word=word)

    def _own_answers(self, count: int, word: Word | None) -> list[Answer]:
        sets, place = [self.supply.take(1) for _ in range(count)], random.SystemRandom().randrange(count + 1)
        if not self._decoys:
            return self._kept(sets, word)
        sets.insert(place, [self.supply.take_other()])
        answers = self._kept(sets, word)
        return answers[:place] + answers[place + 1 :]

    def _kept(self, sets: list[list[Drawn]], word: Word | None = None) -> list[Answer]:
        """The submission's answers in a row, which go to `unverified`."""
        answers: list[Answer] = []
        self.require_still()
        with awake(self.trial.worker):
            for each in sets:
                answers.append(self.trial.run(each, word=word))
                self.unverified.keep(answers[-1], each)  # at once: the next call may fail
        self.unverified.relieve()
        return answers

    @property
    def _decoys(self) -> int:
        """How many calls of a turn are on inputs of any distribution and not timed, so that nobody counts which are.

        None of a submission that is much slower than the reference: its calls are long, and it has nothing to gain.
        """
        return int(not self.lately.much_slower(SLOW))

    def _count(self, name: str) -> int:
        """How many windows a side has in the next turn."""
        return 1 if self.lately.get(name, 0.0) > LONG_WINDOW[self.trial.bench.device.type] else self._most_windows

    @cached_property
    def _most_windows(self) -> int:
        """As many as a GPU has room for; looked at once, since that takes a good part of a millisecond."""
        on_cpu, most = self.trial.bench.device.type == "cpu", self.trial.bench.pace.windows
        return most if on_cpu else min(most, max(1, self.fitting(copies=1) - 1))
