"""The handshake: how inputs reach a candidate, and how its outputs reach the judge.

The judge draws an input in private memory. The candidate prepares for it; the judge writes the
input where the candidate can see it and lets it begin. When the candidate reports that it is done,
the judge looks at the output. Only then is the whole output copied, to be compared.

On a CPU the clock runs from the order to begin until the report. Outputs are copied once, and only
the copy is compared. A submission that reads its input earlier, or works on after its report, gains
time: on a CPU values are defended, times are not.

On a GPU the candidate queues its calls behind a flag in device memory that the judge sets when the
input is there. Its stream waits for this flag before each call, and sets a second one after it, for
which the judge's stream waits. Numbers only grow, so an earlier one never matches. See
`kevin_env.judge.timing.chain`.
"""

import itertools
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from kevin_env.candidate import cuda, tree
from kevin_env.candidate.region import DONE, FILLING, POISON, Region
from kevin_env.candidate.wire import encode
from kevin_env.judge.api import JudgeError
from kevin_env.judge.device import finish
from kevin_env.judge.handshake.claims import (
    CallClaim,
    Mappings,
    Output,
    claims_of,
    require_skeletons,
)
from kevin_env.judge.handshake.memory import Image, SharedRegion
from kevin_env.judge.workers.errors import Broken
from kevin_env.judge.workers.worker import Patience, Worker

_LAST = 0x7FFF_FFFF
FLAG_BYTES = 2 * DONE


class LaunchFlags:
    """The two flags of one player, mapped by no other candidate.

    Args:
        region: `FLAG_BYTES` on a GPU, all zero.
    """

    def __init__(self, region: Region) -> None:
        self._next = 1
        self._region = region
        self._device = region.bytes.device

    def numbers(self, count: int) -> range:
        """The numbers of the next calls."""
        first, self._next = self._next, self._next + count
        return range(first, self._next)

    def open(self, number: int) -> None:
        """Lets the candidate's queue begin a call, once the judge's has done its earlier work."""
        cuda.write_word(self._region.start, number)

    def wait(self, number: int) -> None:
        """Has the judge's queue wait until a call is done."""
        cuda.wait_for(self._region.start + DONE, number)

    def release(self) -> None:
        """Ends all waiting, of the judge's queue and of queued calls, even if a candidate hangs."""
        with torch.cuda.stream(torch.cuda.Stream(self._device)):
            cuda.write_word(self._region.start + DONE, _LAST)
            cuda.write_word(self._region.start, self._next - 1)


LATE_SECONDS = 0.02


@dataclass(frozen=True)
class Answer:
    """The outcome of one call.

    Attributes:
        claim: What the candidate reports.
        outputs: Its outputs in the judge's memory; those of a baseline in place.
        placed: The outputs in place; the next call may overwrite them.
        seconds: From when its inputs could be read until the judge had looked at an output.
        unchanged: Whether the inputs are unchanged.
        early: Whether an output changed after it had been looked at.
        writing: On a GPU, the seconds before that to write the input and flush the L2.
        changed: The numbers of the arguments that were changed; None on a GPU.
    """

    claim: CallClaim
    outputs: list[Output]
    placed: list[Output]
    seconds: float
    unchanged: bool = True
    early: bool = False
    writing: float = 0.0
    changed: tuple[int, ...] | None = None

    @property
    def bytes(self) -> int:
        """Total size of the copied outputs."""
        return sum(output.size for output in self.outputs if output.flat is not None)

    def changed_since(self) -> bool:
        """Whether an output has changed since it was copied.

        Waits a moment for kernels that still run.
        """
        time.sleep(LATE_SECONDS)
        try:
            return any(
                then.has_bytes and not torch.equal(now.taken().bytes, then.bytes)
                for now, then in zip(self.placed, self.outputs, strict=True)
            )
        except Broken:  # the memory is gone
            return True


FLUSH_FACTOR = 2
"""How many times the L2 is overwritten before a timed call."""
HEAD_START = 16
"""Flushes of the L2 before the first of several timed calls, some 40 us each on an H100.

The host queues the first calls meanwhile.
"""
CLAIMED_FACTOR = 8
CLAIMED_SLACK = 1 << 30
"""Outputs are copied up to this factor of a right answer's bytes, and this many bytes more."""
QUEUE_SECONDS = 0.05
"""Time to queue a call: some milliseconds if no kernel has to be compiled or loaded.

A call that takes longer synchronizes with the device, or has more kernels than the launch queue;
then the flag is set. A first call is not waited for: CUDA loads a kernel at its first launch, which
waits for earlier work in the queue.
"""
OFTEN = 2
"""After this many calls in a row that were not queued, none is waited for."""


@dataclass
class Player:
    """A worker at a handshake, with the judge's mappings of its memory.

    Attributes:
        worker: The process.
        mappings: Of the handshake and of the worker's memory.
        trusted: Whether it runs trusted code. Its outputs are looked at like all others, but not
            copied.
        home: The handshake that it belongs to.
        serial: Whether all its work is on one stream, so that none is left when a call is through.
        flags: Through which it and the judge take turns on a GPU.
        first: Whether it has not been called in this case yet.
        late: How many of its last calls in a row were not queued in time.
        unordered: Whether it uses streams that do not wait for torch's current one, so that its
            inputs must be complete before it is called.
        claim: The outputs of its last call that was driven by its host.
        staged: The form of the inputs that it is prepared for.
    """

    worker: Worker
    mappings: Mappings
    trusted: bool
    home: "Handshake"
    flags: LaunchFlags | None = None
    serial: bool = False
    first: bool = True
    late: int = 0
    unordered: bool = False
    claim: CallClaim | None = None
    staged: tuple[Any, Any] | None = None

    @property
    def host_driven(self) -> bool:
        """Whether its calls cannot be queued: they need their host while the device works."""
        return self.unordered or self.late >= OFTEN

    def in_next_case(self) -> "Player":
        """The same before its first call in another case."""
        return replace(self, first=True, late=0, claim=None, staged=None)


@dataclass(frozen=True)
class Drawn:
    """An input set.

    Attributes:
        skeleton: Its structure.
        image: Its private bytes.
        seed: For a random model with this input.
        input_set: Its name.
        draws: Whether the reference draws from that seed. It is then sent with the call,
            not before.
    """

    skeleton: tree.Skeleton
    image: Image
    seed: int
    input_set: str = ""
    draws: bool = False

    @property
    def form(self) -> tuple[Any, Any]:
        """What is sent ahead of the bytes: the structure, and where each tensor lies."""
        return self.skeleton, self.image.specs

    def changed_in(self, region: Region) -> tuple[int, ...]:
        """The numbers of the arguments whose bytes in the region are other ones."""
        tensors, (arguments,) = self.image.changed_in(region), self.skeleton.values()
        return tuple(
            number
            for number, argument in enumerate(arguments)
            if any(leaf.get("t") in tensors for _, leaf in tree.leaves(argument))
        )


class Handshake(ABC):
    """The inbox and outbox of one run on one device, and the workers that use them.

    Args:
        device: The device.
        inbox: Where inputs are written.
        outbox: Where outputs may be written.
        l2: Bytes of the device's L2.
        answer_bytes: Bytes of one call's right answer in the current case.
    """

    def __init__(
        self,
        device: torch.device,
        inbox: Region,
        outbox: Region,
        l2: int,
        answer_bytes: int,
    ) -> None:
        self.device = device
        self.answer_bytes = answer_bytes
        self.inbox = inbox
        self.outbox = outbox
        self._players = list[Player]()
        self.random = random.SystemRandom()
        self._scratch = torch.empty(FLUSH_FACTOR * l2, dtype=torch.uint8, device=device)
        self._filling = POISON
        self._used = True
        """Whether the outbox may hold an answer. It rarely does: outputs are read in place."""

    def add(
        self, worker: Worker, trusted: bool, flags: LaunchFlags | None = None, serial: bool = False
    ) -> Player:
        """A player for a worker that has mapped the regions; arguments as of `Player`."""
        mappings = Mappings(self.inbox, self.outbox, self.device, worker.memory)
        self._players.append(Player(worker, mappings, trusted, self, flags, serial))
        return self._players[-1]

    def begin_case(self, answer_bytes: int) -> None:
        """Begins a case whose right answers have `answer_bytes`."""
        self.answer_bytes = answer_bytes

    def close(self) -> None:
        """Unmaps and frees everything; the workers are left alone."""
        while self._players:
            self._players.pop().mappings.close()
        self.inbox.close()
        self.outbox.close()

    def stage(self, player: Player, drawn: Drawn, timeout: float | Patience) -> None:
        """Prepares a player for inputs of one form.

        Raises:
            JudgeError: if it is at another handshake.
        """
        if player.mappings.inbox is not self.inbox:
            raise JudgeError("a player was called at a handshake that it has left")
        seed = None if drawn.draws else drawn.seed
        order = {
            "order": "stage", "inputs": drawn.skeleton, "specs": drawn.image.specs, "seed": seed
        }  # fmt: skip
        player.worker.send(encode(order), timeout)
        self.poison()
        player.worker.answer(timeout)
        player.worker.settle()
        finish(self.device)
        player.mappings.next_pass()
        player.staged = drawn.form

    def poison(self) -> None:
        """Overwrites answers in the outbox; on a GPU this is only queued."""
        if self._used:
            self.outbox.bytes.fill_(self._filling)

    @contextmanager
    def showing_unwritten(self) -> Iterator[None]:
        """Inside, answers are overwritten with `FILLING`, as the memory of the candidate is."""
        self._filling = FILLING
        try:
            yield
        finally:
            self._filling = POISON

    def flush(self) -> None:
        """Overwrites a GPU's L2; only queued."""
        self._scratch.zero_()

    def claims(
        self, player: Player, answer: dict[str, object], count: int
    ) -> tuple[list[CallClaim], list[list[Output]]]:
        """The claims of a player's calls, and where their outputs are.

        Raises:
            Broken: if that cannot be.
        """
        claims = claims_of(answer, count)
        self.note_use(claims)
        return claims, [
            [player.mappings.resolve(claim) for claim in call.tensors] for call in claims
        ]

    def note_use(self, claims: list[CallClaim], unknown: bool = False) -> None:
        """Notes whether the outbox may hold an answer of these calls, and has to be poisoned."""
        self._used = unknown or any(
            claim.place == "outbox" for call in claims for claim in call.tensors
        )

    @abstractmethod
    def admit(self, worker: Worker, timeout: float | Patience, trusted: bool) -> Player:
        """Lends the memory to a worker until it is closed."""

    @abstractmethod
    def call(self, player: Player, drawn: Drawn, timeout: float | Patience) -> Answer:
        """Makes one timed call.

        Args:
            player: Whose model.
            drawn: Its inputs.
            timeout: As of `Worker.ask`.

        Raises:
            CandidateError: if the candidate does not answer as it should.
            JudgeError: if the player is at another handshake.
        """

    def takeable(self, placed: list[Output]) -> list[Output]:
        """The same outputs, without the bytes of any beyond a multiple of a right answer's size."""
        sizes = itertools.accumulate(output.size for output in placed)
        most = CLAIMED_FACTOR * self.answer_bytes + CLAIMED_SLACK
        return [output if size <= most else Output(output.claim, None)
                for output, size in zip(placed, sizes, strict=True)]  # fmt: skip


class CpuHandshake(Handshake):
    """The handshake on a CPU, where candidates run all the time."""

    def admit(self, worker: Worker, timeout: float | Patience, trusted: bool) -> Player:
        """See `Handshake.admit`."""
        assert isinstance(self.inbox, SharedRegion) and isinstance(self.outbox, SharedRegion)
        worker.share("inbox", self.inbox, timeout)
        worker.share("outbox", self.outbox, timeout)
        return self.add(worker, trusted)

    def call(self, player: Player, drawn: Drawn, timeout: float | Patience) -> Answer:
        """See `Handshake.call`."""
        self.stage(player, drawn, timeout)
        worker, order = player.worker, encode({"order": "go", "seeds": seeds_of([drawn])})
        drawn.image.write_to(self.inbox)
        start = time.perf_counter_ns()
        worker.send(order, timeout)
        answer = worker.answer(timeout)
        seconds = (time.perf_counter_ns() - start) / 1e9
        (claim,), (placed,) = self.claims(player, answer, 1)
        require_skeletons([claim])
        unchanged = player.trusted or drawn.image.unchanged_in(self.inbox)
        changed = None if unchanged else drawn.changed_in(self.inbox)
        taken = placed if player.trusted else [output.taken() for output in self.takeable(placed)]
        return Answer(claim, taken, placed, seconds, unchanged, changed=changed)


def seeds_of(sets: list[Drawn]) -> list[int | None]:
    """The seeds that are sent with each call."""
    return [drawn.seed if drawn.draws else None for drawn in sets]
