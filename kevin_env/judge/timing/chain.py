"""The chain: how calls are timed on a GPU.

Both sides queue everything in advance. For each call i:

    judge's queue:     write input i (a kernel) | flush the L2 | event | W = i | wait D >= i | event
                       | look at secret places of output i (copy engine) | take output i | compare input i
    candidate's queue: wait W >= i | output i = model(input) | D = i

`W` and `D` are words in device memory (`kevin_env.judge.handshake.launch_flags`). The time between the events is a
*link*: the call and a constant, the change of contexts there and back. No host code, launch or
wake-up lies in it: the judge's queue is held until all links are in it, and the candidate's process
is stopped until the last one is through.

A call that needs its host while the device works (it waits for the device, or has more kernels than
the launch queue) cannot be queued. It is timed one link at a time, with its process running. The
look is at where its last output was; if this one is elsewhere, the link ends with its answer. Nor
can one on a stream that does not wait for torch's current one, where inputs arrive. It is called
when its input is there; the link begins before that is written.

What a submission may try, and what stops it:

- To work ahead, or to fuse calls: input i + 1 is written when output i has been taken. Before that
  it exists nowhere that the candidate can read.
- To watch the input's memory from another stream, and begin before the word: a kernel takes turns
  with the judge's write and flush, in time slices of milliseconds. What these take longer than
  among the reference's links is a part of the call.
- To write `D` early, from another stream, from the host, or that of an earlier call: the look
  follows at once, at places that were drawn after the call was queued. An output that changes
  afterwards is `early_done`. What is left of the work takes turns with the judge's, which costs a
  time slice. Numbers in `D` only grow.
- To write `W` itself: it begins on an input that is not there.
- To keep outputs in one buffer, or to give aliases of the input: each is taken before the next
  call, and each input is compared with what was written.
- To run on after the call, so that the reference is slowed: links of a known kernel are mixed at
  random with those of either side, and slowed as well. Those among the reference's tell the
  constant that is subtracted; from the submission's links it is no more than the least that this
  judge has seen.
- To choose the moment of its time slices, or of page faults: outputs are mapped before the first
  link, and a disturbed link is longer, never shorter. A chain's time is the lower quartile of its
  links.
- To prepare in host code: the process is stopped. What its host does before a chain is queued knows
  shapes, no values.

What it may gain: no call shares a link with another. The constant is known to about 1 us, which the
interval covers.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from kevin_env.candidate import cuda
from kevin_env.judge.device import finish
from kevin_env.judge.handshake.answer import Answer
from kevin_env.judge.handshake.claims import CallClaim, Output, require_skeletons
from kevin_env.judge.handshake.gate import QUEUE_SECONDS, Drawn, Gate, Player, seeds_of
from kevin_env.judge.timing.link import Link, words_of
from kevin_env.judge.workers.baselines import ours
from kevin_env.judge.workers.errors import Broken
from kevin_env.judge.workers.patience import Patience

STILL = 0.25
"""Seconds for which a link may take no time, until the candidate's process goes on and is asked
whether it is well.
"""


LOOK = 50e-6
"""Seconds between two looks at whether a link is through."""


WARM_SECONDS = 60.0
"""For an order of a chain to one of the judge's own processes, which were called before."""


HELD = 0.5
"""Seconds after which the judge's queue begins, however much is still to be queued: queueing may
wait for it.
"""


class GpuGate(Gate):
    """The gate on a GPU."""

    def __init__(self, *gate: Any) -> None:
        super().__init__(*gate)
        self._chains = 0
        self._ready = torch.zeros(1, dtype=torch.int32, device=self.device)
        """How many chains may begin, in device memory."""
        self._side = torch.cuda.Stream(self.device)

    def call(self, player: Player, drawn: Drawn, timeout: float | Patience) -> Answer:
        """One call, whose seconds say only about how long it took. The device may be shared
        meanwhile.

        Errors as `Gate.call`.
        """
        if player.unordered:
            return self.host_driven(player, drawn, timeout)
        (number,) = words_of(player).numbers(1)
        link = Link(self, player, drawn, number)
        self.stage(player, drawn, timeout)

        def unless_late() -> None:
            if (
                player.first
                or player.host_driven
                or not player.worker.answers_within(QUEUE_SECONDS)
            ):
                link.open()

        answer = player.worker.ask(
            "go", timeout, meanwhile=unless_late, seeds=seeds_of([drawn]), behind=number
        )
        if not player.first:
            player.late = player.late + 1 if link.opened else 0
        player.first = False
        if not link.opened:
            link.open()
        return self._finished(player, link, answer, timeout)

    def host_driven(self, player: Player, drawn: Drawn, timeout: float | Patience) -> Answer:
        """One call, timed while its process runs. Hold the device alone; errors as `Gate.call`."""
        if player.unordered:
            return self._unordered(player, drawn, timeout)
        (number,) = words_of(player).numbers(1)
        link = Link(self, player, drawn, number)
        self.stage(player, drawn, timeout)
        link.expect(self._foreseen(player))

        def begin() -> None:
            link.open()
            link.wait()
            link.look()

        with self._released([player]):
            answer = player.worker.ask(
                "go", timeout, meanwhile=begin, seeds=seeds_of([drawn]), behind=number
            )
            (claim,), (placed,) = self.claims(player, answer, 1)
            if player.claim is None or places_of(claim) != places_of(player.claim):
                link.expect(placed)
                link.look()
            player.worker.ask("finish", timeout)
            self._through(player, [link], timeout)
            link.take()
            finish(self.device)
        player.claim = claim
        require_skeletons([claim])
        return link.answer(claim)

    def _unordered(self, player: Player, drawn: Drawn, timeout: float | Patience) -> Answer:
        link = Link(self, player, drawn, 0)
        self.stage(player, drawn, timeout)
        link.show()
        finish(self.device)
        answer = player.worker.ask("go", timeout, seeds=seeds_of([drawn]))
        return self._finished(player, link, answer, timeout)

    def _finished(
        self, player: Player, link: Link, answer: dict[str, Any], timeout: float | Patience
    ) -> Answer:  # fmt: skip
        """What came of a call, once the player says that it is through.

        The judge's queue does not wait for the word: others' work is on it, too.
        """
        player.worker.ask("finish", _usual(timeout))
        (claim,), (placed,) = self.claims(player, answer, 1)
        link.expect(placed)
        link.look()
        link.take()
        finish(self.device)
        require_skeletons([claim])
        return link.answer(claim)

    def chain(
        self, calls: Sequence[tuple[Player, Sequence[Drawn]]], timeout: float | Patience
    ) -> list[list[Answer]] | None:
        """Calls of several players, mixed at random, each on inputs of one form. Their processes
        stand still.

        Hold the device alone; errors as `Gate.call`, of trusted code as `JudgeError`.

        Args:
            calls: Whose, and on which inputs.
            timeout: For each order to a submission; trusted code has `WARM_SECONDS`.

        Returns:
            The answers of each player; None when calls of one were not queued in time, and so
            nothing was timed. `Player.late` counts that.
        """
        with self._released([player for player, _ in calls]):
            rows = list[_Row]()
            for player, sets in calls:
                with trusted(player):
                    rows.append(self._queued(player, sets, timeout))
            self._note_use([claim for row in rows for claim in row.claims])
            if timed := all(row.claims for row in rows):
                for row in rows:
                    row.player.worker.freeze(True)
                with self._held():
                    self._queue(rows)
                for row in rows:
                    with trusted(row.player):
                        self._through(row.player, row.links, timeout)
            else:
                for row in rows:  # what others have queued is not to wait for ever
                    row.links[-1].open()
            for row in rows:
                self._finish(row.player, timeout)
            finish(self.device)
        return [row.answers() for row in rows] if timed else None

    def _finish(self, player: Player, timeout: float | Patience) -> None:
        """Has a process that stood still go on, and wait until all that it has queued is done."""
        with trusted(player):
            player.worker.freeze(False)
            player.worker.ask("finish", WARM_SECONDS if player.ours else timeout)

    def _queued(self, player: Player, sets: Sequence[Drawn], timeout: float | Patience) -> "_Row":
        """Calls that wait for their word, and where their outputs will be; without claims if they
        were late.
        """
        numbers = words_of(player).numbers(len(sets))
        links = [
            Link(self, player, drawn, number) for drawn, number in zip(sets, numbers, strict=True)
        ]
        timeout = WARM_SECONDS if player.ours else timeout
        self.stage(player, sets[0], timeout)

        def unless_late() -> None:
            if not player.worker.answers_within(QUEUE_SECONDS):
                links[-1].open()  # its number does for all

        seeds = seeds_of(list(sets))
        answer = player.worker.ask(
            "go", timeout, meanwhile=unless_late, seeds=seeds, behind=numbers[0]
        )
        player.late = player.late + 1 if links[-1].opened else 0
        if player.late:
            return _Row(player, links, [])
        claims, places = self.claims(player, answer, len(sets))
        for link, placed in zip(links, places, strict=True):
            link.expect(placed)
        return _Row(player, links, claims)

    def _queue(self, rows: "Sequence[_Row]") -> None:
        """Queues all links, those of several players in a random order."""
        turns = [row for row in rows for _ in row.links]
        self.random.shuffle(turns)
        left = {id(row): iter(row.links) for row in rows}
        for row in turns:
            link = next(left[id(row)])
            link.open()
            link.wait()
            link.look()
            link.take()

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Holds the judge's queue until everything is in it, so that no link waits for the host.

        One that does is up to 50 us longer, even if the wait is before it begins.
        """
        self._chains += 1
        cuda.wait_for(self._ready.data_ptr(), self._chains)
        late = threading.Timer(HELD, self._begin)
        late.start()
        try:
            yield
        finally:
            late.cancel()
            self._begin()

    def _begin(self) -> None:
        torch.cuda.set_device(self.device)  # a timer's thread has no current device yet
        with torch.cuda.stream(self._side):
            cuda.write_word(self._ready.data_ptr(), self._chains)

    def _foreseen(self, player: Player) -> list[Output]:
        """Where the outputs of a player's next call will be, if they are where the last ones were."""
        try:
            return (
                [player.mappings.resolve(claim) for claim in player.claim.tensors]
                if player.claim
                else []
            )
        except Broken:  # that memory is gone
            player.claim = None
            return []

    def _through(self, player: Player, links: Sequence[Link], timeout: float | Patience) -> None:
        """Waits until all links are through. A process that stands still goes on when one takes
        long.
        """
        asked = False
        for link in links:
            if asked or _is_through(link):
                continue
            self._finish(player, timeout)
            asked = True
        if asked and not all(map(_is_through, links)):
            raise Broken("its calls were said to be through before they were")

    @contextmanager
    def _released(self, players: Sequence[Player]) -> Iterator[None]:
        """After an error the judge's queue waits for none of them any more."""
        try:
            yield
        except BaseException:
            for player in players:
                words_of(player).release()
            finish(self.device)
            raise


@dataclass(frozen=True)
class _Row:
    """The links of one player in a chain, and what it said of each call; nothing where they were
    not queued.
    """

    player: Player
    links: list[Link]
    claims: list[CallClaim]

    def answers(self) -> list[Answer]:
        """What came of them, once they are through."""
        require_skeletons(self.claims)
        return [link.answer(claim) for link, claim in zip(self.links, self.claims, strict=True)]


def trusted(player: Player) -> AbstractContextManager[None]:
    """Whatever goes wrong inside with a process of the judge's own is the judge's failure."""
    return ours() if player.ours else nullcontext()


def places_of(claim: CallClaim) -> list[tuple[str | None, int, int]]:
    """Which memory the outputs of a call are in."""
    return [(each.place, each.offset, each.span if each.place else 0) for each in claim.tensors]


def _is_through(link: Link) -> bool:
    """Whether a link is through within `STILL`."""
    end = time.monotonic() + STILL
    while not (through := link.ended.query()) and time.monotonic() < end:
        time.sleep(LOOK)
    return through


def _usual(timeout: float | Patience) -> float | Patience:
    """For a call that has been queued: it compiles nothing any more."""
    return (
        Patience(timeout.usual, timeout.usual, timeout.pause)
        if isinstance(timeout, Patience)
        else timeout
    )
