"""The chain: how calls are timed on a GPU.

Judge and candidate queue everything in advance. For each call i:

    judge's queue:     write input i | flush the L2 | event | W = i | wait D >= i | event
                       | snapshot of output i (copy engine) | copy output i | compare input i
    candidate's queue: wait W >= i | output i = model(input) | D = i

W and D are flags in device memory (`kevin_env.judge.handshake.handshake`). The time between the
two events is a *link*: the call, plus a constant for switching contexts there and back. It contains
no host code, launch or wake-up. The candidate's process is stopped until the last link is through.

Two kinds of calls cannot be queued:

- A call that needs its host while the device works, because it synchronizes or exceeds the launch
  queue. It is timed one link at a time while its process runs. The snapshot is taken where the last
  output was; if the output is elsewhere this time, the link ends with the candidate's answer.
- A call on a stream that does not wait for torch's current stream, where inputs arrive. It begins
  once its input is complete; the link begins before the input is written.

What a submission may try, and what prevents it:

- Working ahead, or fusing calls. Input i + 1 is written after output i has been copied. Before that
  it exists nowhere that the candidate can read.
- Watching the input's memory from another stream, and beginning before W. The kernel competes with
  the judge's write and flush for time slices of milliseconds. Time beyond that of the reference's
  links counts as part of the call.
- Setting D early, from another stream, from the host, or from an earlier call. The snapshot follows
  at once, at places drawn after the call was queued, and an output that changes afterwards is
  `early_done`. The rest of the work competes with the judge's, which costs a time slice. D only
  grows.
- Setting W. The call then begins on an input that is not there.
- Returning the same buffer each time, or aliases of the input. Each output is copied before the
  next call, and each input is compared with what was written.
- Running on after the call, to slow down the reference. Links of a known kernel are mixed at random
  with those of both sides, and are slowed down as well. Those among the reference's links determine
  the constant that is subtracted, for a chain that is slower than the others its own; from the
  submission's links no more is subtracted than the smallest constant that this judge has seen.
- Choosing the moment of its time slices or page faults. Outputs are mapped before the first link,
  and a disturbance only lengthens a link. A chain reports the lower quartile of its links.
- Being late, and preparing the answer. Calls that are not queued in time begin on an input of their
  chain, so that the next try has other inputs.
- Preparing in host code. The process is stopped. What it computes before the chain is queued can
  depend on shapes, not on values.

What remains: no call shares a link with another, and the constant is known to about 1 us, which the
interval covers.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from kevin_env.candidate.wire import encode
from kevin_env.judge.device import finish
from kevin_env.judge.handshake.claims import CallClaim, Output, require_skeletons
from kevin_env.judge.handshake.handshake import (
    HEAD_START,
    QUEUE_SECONDS,
    Answer,
    Drawn,
    Handshake,
    Player,
    seeds_of,
)
from kevin_env.judge.timing.link import Link, flags_of
from kevin_env.judge.workers.errors import Broken, as_judge_error
from kevin_env.judge.workers.worker import Patience

STILL = 0.25
"""Seconds a link may take before the candidate's process runs again and is checked."""
SOON = 0.02
"""The same for a process that was not stopped."""
LOOK = 50e-6
"""Seconds between two polls of a link's event."""
WARM_SECONDS = 60.0
"""Timeout for orders to the judge's own processes, which have been called before."""


class GpuHandshake(Handshake):
    """The handshake on a GPU."""

    def call(self, player: Player, drawn: Drawn, timeout: float | Patience) -> Answer:
        """One call, timed roughly. Errors as `Handshake.call`."""
        if player.unordered:
            return self.host_driven(player, drawn, timeout)
        (number,) = flags_of(player).numbers(1)
        link = Link(self, player, drawn, number)
        self._expecting(player, drawn, timeout)

        player.worker.send(_go([drawn], number), timeout)
        if player.first or player.host_driven or not player.worker.answers_within(QUEUE_SECONDS):
            link.open()
        answer = player.worker.answer(timeout)
        if not player.first:
            player.late = player.late + 1 if link.opened else 0
        player.first = False
        if not link.opened:
            link.open()
        return self._finished(player, link, answer, timeout)

    def host_driven(self, player: Player, drawn: Drawn, timeout: float | Patience) -> Answer:
        """One call, timed while its process runs. Errors as `call`."""
        if player.unordered:
            return self._unordered(player, drawn, timeout)
        (number,) = flags_of(player).numbers(1)
        link = Link(self, player, drawn, number)
        self._expecting(player, drawn, timeout)
        link.expect(self._foreseen(player))

        with self._released([player]):
            player.worker.send(_go([drawn], number), timeout)
            link.open()
            link.wait()
            link.look()
            answer = player.worker.answer(timeout)
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
        """The answer to a call that the player reports as queued.

        It is through at D, or where its streams may not be joined, once its process says so.
        """
        (claim,), (placed,) = self.claims(player, answer, 1)
        link.expect(placed)
        with self._released([player]):
            if player.serial:
                link.wait()
            else:
                player.worker.ask("finish", _usual(timeout))
            link.look()
            link.take()
            if player.serial:
                self._through(player, [link], _usual(timeout), SOON)
            finish(self.device)
        require_skeletons([claim])
        return link.answer(claim)

    def chain(
        self, calls: Sequence[tuple[Player, Sequence[Drawn]]], timeout: float | Patience
    ) -> list[list[Answer]] | None:
        """Calls of several players, mixed at random, while their processes are stopped.

        Each has its inputs and outputs at its own handshake. Errors as `Handshake.call`, of trusted
        code as `JudgeError`.

        Args:
            calls: Players and their inputs, which have one form.
            timeout: For each order to a submission; trusted code has `WARM_SECONDS`.

        Returns: The answers of each player. None if the calls of one were not queued in time, so
        that nothing was timed; `Player.late` counts that.
        """
        with self._released([player for player, _ in calls]):
            rows = self._queued(calls, timeout)
            timed = all(row.claims for row in rows)
            for home in {id(row.player.home): row.player.home for row in rows}.values():
                of = [claim for row in rows if row.player.home is home for claim in row.claims]
                home.note_use(of, unknown=not timed)
            if timed:
                for row in rows:
                    row.player.worker.freeze(True)
                self._queue(rows)
                for row in rows:
                    with trusted(row.player):
                        self._through(row.player, row.links, timeout)
            else:
                for row in rows:  # so that what others have queued does not wait forever
                    row.links[-1].open()
            for row in rows:
                if timed and row.player.serial:
                    row.player.worker.freeze(False, wait=False)
                else:
                    self._finish(row.player, timeout)
            finish(self.device)
        return [row.answers() for row in rows] if timed else None

    def _finish(self, player: Player, timeout: float | Patience) -> None:
        """Resumes a process, which waits until everything that it has queued is done."""
        with trusted(player):
            player.worker.freeze(False)
            player.worker.ask("finish", _limit_of(player, timeout))

    def _queued(
        self, calls: Sequence[tuple[Player, Sequence[Drawn]]], timeout: float | Patience
    ) -> "list[_Row]":
        """Calls that wait for W, queued by all players at the same time."""
        for player, sets in calls:
            with trusted(player):
                self._expecting(player, sets[0], _limit_of(player, timeout))
        ordered = list[_Row]()
        try:
            for player, sets in calls:
                numbers = flags_of(player).numbers(len(sets))
                home = player.home
                links = [Link(home, player, *each) for each in zip(sets, numbers, strict=True)]
                with trusted(player):
                    player.worker.send(_go(sets, numbers[0]), _limit_of(player, timeout))
                ordered.append(_Row(player, links, []))
            rows = list[_Row]()
            while ordered:
                rows.append(self._answered(ordered.pop(0), timeout))
            return rows
        except BaseException:
            for row in ordered:  # other submissions are timed with the judge's own processes
                if row.player.trusted:
                    with trusted(row.player):
                        row.player.worker.answer(WARM_SECONDS)
            raise

    @staticmethod
    def _expecting(player: Player, drawn: Drawn, timeout: float | Patience) -> None:
        """Has a player expect inputs of this form; sent once for inputs that follow."""
        if player.staged != drawn.form:
            player.home.stage(player, drawn, timeout)
        else:
            player.worker.settle()
            player.mappings.next_pass()

    def _answered(self, row: "_Row", timeout: float | Patience) -> "_Row":
        """The same calls with where their outputs will be; no claims if they were late."""
        player, links = row.player, row.links
        with trusted(player):
            if not player.worker.answers_within(QUEUE_SECONDS):
                links[-1].open()  # its number releases all of them
            answer = player.worker.answer(_limit_of(player, timeout))
            player.late = player.late + 1 if links[-1].opened else 0
            if player.late:
                return row
            claims, places = player.home.claims(player, answer, len(links))
        for link, placed in zip(links, places, strict=True):
            link.expect(placed)
        return _Row(player, links, claims)

    def _queue(self, rows: "Sequence[_Row]") -> None:
        """Queues all links, those of several players in random order.

        A link takes longer than queueing it, so only the first could wait for the host.
        """
        turns = [row for row in rows for _ in row.links]
        self.random.shuffle(turns)
        left = {id(row): iter(row.links) for row in rows}
        for _ in range(HEAD_START):
            self.flush()
        for row in turns:
            link = next(left[id(row)])
            link.open()
            link.wait()
            link.look()
            link.take()

    def _foreseen(self, player: Player) -> list[Output]:
        """Where a player's next outputs will be, if they are where the last ones were."""
        try:
            return (
                [player.mappings.resolve(claim) for claim in player.claim.tensors]
                if player.claim
                else []
            )
        except Broken:  # that memory is gone
            player.claim = None
            return []

    def _through(
        self, player: Player, links: Sequence[Link], timeout: float | Patience, still: float = STILL
    ) -> None:
        """Waits until all links are through; resumes a stopped process if one takes `still`."""
        resumed = False
        for link in links:
            if resumed or _is_through(link, still):
                continue
            self._finish(player, timeout)
            resumed = True
        if resumed and not all(_is_through(link, STILL) for link in links):
            raise Broken("it reported its calls as finished before they were")

    @contextmanager
    def _released(self, players: Sequence[Player]) -> Iterator[None]:
        """After an error, stops the judge's queue from waiting for any of these players."""
        try:
            yield
        except BaseException:
            for player in players:
                flags_of(player).release()
            finish(self.device)
            raise


def _go(sets: Sequence[Drawn], behind: int) -> bytes:
    """The order to queue calls behind the numbers from `behind` on."""
    return encode({"order": "go", "seeds": seeds_of(list(sets)), "behind": behind})


@dataclass(frozen=True)
class _Row:
    """The links of one player in a chain, with its claims; without any if they were not queued."""

    player: Player
    links: list[Link]
    claims: list[CallClaim]

    def answers(self) -> list[Answer]:
        """The answers, once all links are through."""
        require_skeletons(self.claims)
        return [link.answer(claim) for link, claim in zip(self.links, self.claims, strict=True)]


def trusted(player: Player) -> AbstractContextManager[None]:
    """Inside, a failure of one of the judge's own processes is a failure of the judge."""
    return as_judge_error() if player.trusted else nullcontext()


def _limit_of(player: Player, timeout: float | Patience) -> float | Patience:
    return WARM_SECONDS if player.trusted else timeout


def places_of(claim: CallClaim) -> list[tuple[str | None, int, int]]:
    """The memory that the outputs of a call lie in."""
    return [(each.place, each.offset, each.span if each.place else 0) for each in claim.tensors]


def _is_through(link: Link, seconds: float) -> bool:
    """Whether a link is through within this time."""
    end = time.monotonic() + seconds
    while not (through := link.ended.query()) and time.monotonic() < end:
        time.sleep(LOOK)
    return through


def _usual(timeout: float | Patience) -> float | Patience:
    """The limit for a call that has been queued, which compiles nothing any more."""
    return (
        Patience(timeout.usual, timeout.usual, timeout.pause)
        if isinstance(timeout, Patience)
        else timeout
    )
