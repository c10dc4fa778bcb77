"""The clock, and the gate through which inputs reach a candidate.

A gated call: the judge draws an input in memory of its own; writes it where the candidate can see it; gives the
word; the candidate calls the model and claims to be done; the judge looks at the output and stops the clock. Only then
is the whole output taken and checked. On a GPU the clock starts before the input is written, a few words of it stay
false until just before the word, the L2 is flushed, and the look is a snapshot that waits for nobody. On a CPU the
candidate stands still while the input is written and the clock starts as it goes on; it is stopped again for the look.
A burst hands several inputs over at once, and one call's time is that of a part of it over its calls.
Of a queued call all kernels are launched before the inputs are there, behind a word of memory for which the device
waits. The judge writes it when the inputs are shown: no launch is in such a window.
"""

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kevin_env.candidate import tree
from kevin_env.candidate.allocations import POISON
from kevin_env.judge.answer import Answer, Call
from kevin_env.judge.api import JudgeError
from kevin_env.judge.claims import Mappings, Output, read_claims, require_skeletons
from kevin_env.judge.device import finish
from kevin_env.judge.memory import Block, Image, SharedRegion, joined
from kevin_env.judge.patience import Patience
from kevin_env.judge.snapshot import Snapshot
from kevin_env.judge.veil import Veil
from kevin_env.judge.word import Word
from kevin_env.judge.worker import Worker

FLUSH_FACTOR = 2
"""How many times the L2 is overwritten before a gated call."""
CLAIMED_FACTOR = 8
CLAIMED_SLACK = 1 << 30
"""How many times the bytes of right answers the outputs of a pass may have, and how many bytes beyond that."""


@dataclass
class Player:
    """A worker at a gate, with what the judge has mapped of its memory.

    Attributes:
        worker: It.
        mappings: Of that gate and of its own memory.
        ours: Whether it runs trusted code. Its outputs are then looked at as everybody's are, but not taken.
    """

    worker: Worker
    mappings: Mappings
    ours: bool


@dataclass(frozen=True)
class Drawn:
    """An input set: its structure, its private bytes, the seed that a random model gets with it, and its name.

    `draws`: whether the reference draws from that seed. It is told with the word then, and not before: else the
    drawing, which may be most of the work, could be done before the clock starts.
    """

    skeleton: tree.Skeleton
    image: Image
    seed: int
    input_set: str = ""
    draws: bool = False


class Gate:
    """The gate of one trial: its inbox and outbox on one device. `answer_bytes`: of one call's right answer."""

    def __init__(
        self, device: torch.device, inbox: SharedRegion, outbox: SharedRegion, l2: int, answer_bytes: int
    ) -> None:
        self.device = device
        self.answer_bytes = answer_bytes
        self.inbox = inbox
        self.outbox = outbox
        self._gpu = device.type == "cuda"
        self._scratch = torch.empty(FLUSH_FACTOR * l2, dtype=torch.uint8, device=device)
        self._snapshot = Snapshot() if self._gpu else None
        self._stopped = 0
        """When the player was stopped the last time, so that its inputs could be written."""
        self._used = True
        """Whether the outbox may hold an answer. On a CPU it hardly ever does: outputs are read where they are."""
        self._random = random.SystemRandom()
        self._generator = torch.Generator(device) if self._gpu else None
        if self._generator:
            self._generator.seed()

    def admit(self, worker: Worker, timeout: float | Patience, ours: bool) -> Player:
        """Lends the regions to a worker."""
        worker.share("inbox", self.inbox, timeout)
        worker.share("outbox", self.outbox, timeout)
        return Player(worker, Mappings(self.inbox, self.outbox, self.device, worker.memory), ours)

    def call(
        self, player: Player, sets: list[Drawn], timeout: float | Patience, marks: Sequence[int] = (),
        word: Word | None = None,
    ) -> Answer:  # fmt: skip
        """One pass: all of `sets` become visible, and the model is called on each.

        Args:
            player: Whose model.
            sets: One after the other in the inbox.
            timeout: As of `Worker.ask`.
            marks: After how many calls a part of the pass ends.
            word: What the player's device is to wait for, if its kernels are to be queued.

        Raises:
            Trouble: when the candidate does not answer as it should.
            JudgeError: when it is at another gate.
        """
        if player.mappings.inbox is not self.inbox:
            raise JudgeError("a player was called at a gate that it has left")
        specs = [drawn.image.specs for drawn in sets]
        early, late = ({}, _seed_of(sets[0])) if sets[0].draws else (_seed_of(sets[0]), {})
        blocks, veil = joined([drawn.image for drawn in sets]), None

        def prepare() -> None:
            nonlocal veil
            if self._used:
                self.outbox.bytes.fill_(POISON)
            veil = Veil(blocks, self._generator) if self._generator else None

        player.worker.ask("stage", timeout, meanwhile=prepare, inputs=sets[0].skeleton, sets=specs, **early)
        player.worker.settle()
        finish(self.device)
        player.mappings.next_pass()
        mapped = len(player.mappings)
        shown: list[tuple[int, int, bool]] = []
        chances = self._random.random(), self._random.random()

        def show(queued: bool = False) -> None:
            shown.append((self._show(player, blocks, veil, word), time.perf_counter_ns(), queued))

        more: dict[str, Any] = {**late, "marks": list(marks)} if marks else late
        if word is None:
            answer = player.worker.ask("go", timeout, frozen=veil is None, before=show, count=len(sets), **more)
        else:
            word.value += 1
            answer = player.worker.ask("go", timeout, queued=show, count=len(sets), behind=word.value, **more)
        start, told, queued = shown[0]
        start = start if self._gpu or player.worker.stood_still else self._stopped  # who ran on could work ahead
        times = (told, *player.worker.arrivals)
        claims = read_claims(answer, len(sets))
        self._used = self._gpu or any(claim.place == "outbox" for call in claims for claim in call.tensors)
        placed = [[player.mappings.resolve(claim) for claim in call.tensors] for call in claims]
        stop, looked = self._look(player, placed, chances)
        require_skeletons(claims)
        taken = placed if player.ours else self._taken(placed)
        calls = [Call(claim, outputs) for claim, outputs in zip(claims, taken, strict=True)]
        changed = looked is not None and not player.ours and self._changed(looked)
        unchanged = player.ours or all(block.unchanged_in(self.inbox) for block in blocks)
        if not self._gpu:
            player.worker.freeze(False)
        steady = mapped == len(player.mappings)
        parts = tuple((end - begin) / 1e9 for begin, end in itertools.pairwise(times))
        return Answer((stop - start) / 1e9, parts, calls, unchanged, changed, steady, placed, queued)

    def _show(self, player: Player, blocks: list[Block], veil: Veil | None, word: Word | None) -> int:
        """Makes inputs visible, and says when the clock started: before their last byte could be read."""
        if veil is None:  # nothing of the player can be ahead of the word, so that the writing need not be timed
            self._stopped = time.perf_counter_ns()
            player.worker.freeze(True)
            self._write(blocks)
            return time.perf_counter_ns()
        start = time.perf_counter_ns()
        self._write(blocks)
        veil.cover(self.inbox)
        self._scratch.zero_()
        finish(self.device)
        veil.lift(self.inbox)
        if word is not None:
            word.write()
        finish(self.device)
        return start

    def _write(self, blocks: list[Block]) -> None:
        for block in blocks:
            block.write_to(self.inbox)

    def _look(
        self, player: Player, placed: list[list[Output]], chances: tuple[float, float]
    ) -> tuple[int, Output | None]:
        """Looks at an output and stops the clock; which one was looked at.

        `chances`, drawn before the clock started, decide at which and where in it. On a CPU the player stands still
        afterwards, so that what else is looked at is as it was then.
        """
        if self._snapshot is None:
            player.worker.freeze(True)
            return time.perf_counter_ns(), None
        there = [output for outputs in placed for output in outputs if output.has_bytes]
        looked = there[int(chances[0] * len(there))] if there else None
        if looked is not None:
            self._snapshot.take(looked.bytes, chances[1])
        return time.perf_counter_ns(), looked

    def _changed(self, looked: Output) -> bool:
        """Whether what was looked at has changed since, once all that was queued is done."""
        assert self._snapshot is not None
        finish(self.device)
        return not self._snapshot.agrees(looked.bytes)

    def _taken(self, placed: list[list[Output]]) -> list[list[Output]]:
        """Copies in memory of the judge's own. Of a pass that claims far more than right answers have, not all."""
        taken: list[list[Output]] = []
        left = CLAIMED_FACTOR * self.answer_bytes * len(placed) + CLAIMED_SLACK
        for outputs in placed:
            taken.append([])
            for output in outputs:
                left -= output.size
                taken[-1].append(output.taken() if left >= 0 else Output(output.claim, None))
        return taken


def _seed_of(drawn: Drawn) -> dict[str, Any]:
    """As a part of an order."""
    return {"seed": drawn.seed}
