"""Times a session on a GPU: pairs of chains, until the speedup's interval is narrow enough."""

import math
import statistics
import time
from dataclasses import dataclass
from functools import partial

from kevin_env.judge.api import JudgeError
from kevin_env.judge.handshake.handshake import OFTEN, Answer, Drawn, Player
from kevin_env.judge.rejected import Rejected
from kevin_env.judge.timing import estimates
from kevin_env.judge.timing.chain import WARM_SECONDS, GpuHandshake
from kevin_env.judge.timing.estimates import Speedup
from kevin_env.judge.timing.session import Crowded, TimingSession
from kevin_env.judge.workers.errors import as_judge_error
from kevin_env.judge.workers.worker import Patience, awake
from kevin_env.outcome import Correct, Incorrect

LINKS = 6
"""Links of a chain, of which the first does not count. Twelve take longer and vary as much."""
SINGLE_LINKS = 5
"""The same where links are queued one by one, which takes some 20 ms each."""
NULL_LINKS = 5
"""Least number of links of the null model that are mixed with a chain of the reference."""
CHAIN_SECONDS = 0.02
"""Longest total duration of the calls in one chain: few calls are enough if they take long."""
SHORT = 0.7e-3
"""Shorter links are not disturbed by their queue: even those of an empty call take some 0.29 ms."""
WRITING = 100e-6
"""Seconds beyond the usual for writing an input; the rest counts as the submission's work."""
TRIES = 4
"""How often a chain with processes of the judge is tried."""
BUSY = "the judge's own calls could not be queued in time: this machine is too busy"
ENDING = 0.5
"""Seconds to wait, before each further try, for kernels of a submission that has been killed."""
SHAKEN = 10e-6
"""Seconds by which links of the null model may exceed the shortest ones.

While a process creates a context, for 0.1 to 0.4 s on an H100, all links may be 150 us longer.
"""
DISTURBED = 1e-3
"""A link's constant is longer than this only where others share the device in time slices, or where
the queue of its chain disturbs itself. Otherwise it is some 0.29 ms.
"""


@dataclass
class Side:
    """The reference or the submission, timed on a GPU.

    Attributes:
        rough: Seconds of the shortest call so far.
        call: Seconds of the shortest link of its first chain, if that was not a long one; else 0.
        single: Whether its links are queued one by one. Its work on several streams then waits for
            the next link, and the device does not switch to the judge before its time slice ends.
    """

    player: Player
    rough: float
    call: float = 0.0
    single: bool = False


class Chains:
    """Pairs of chains on a GPU."""

    def __init__(self, session: TimingSession) -> None:
        handshake = session.trial.handshake
        assert isinstance(handshake, GpuHandshake)
        self._session = session
        self._handshake = handshake
        self._known = session.trial.bench.links.known_seconds
        trial = session.trial
        self._reference = Side(session.reference, trial.known.seconds)
        self._own = Side(trial.player, trial.seconds)
        self._constants: list[list[float]] = []
        """The constant of a link, by the null model's that are mixed with each of its chains."""

    def outcome(self) -> Correct:
        """Times both sides. The outcome is valid once `session.unverified` has been compared.

        Raises:
            Rejected: if a timed call is wrong and is compared already.
            Crowded: if others on the device may have disturbed it.
            CandidateError: if the submission fails.
            JudgeError: if a baseline does.
        """
        session, began = self._session, time.monotonic()
        reference, own = list[list[Answer]](), list[list[Answer]]()
        while True:
            for side, chains in session.draw.sample(
                [(self._reference, reference), (self._own, own)], 2
            ):
                chains.append(self._links(side))
            speedup = self._speedup(reference, own)
            reachable = estimates.least_spread(speedup.reference, speedup.submission)
            seconds, requested = time.monotonic() - began, session.trial.options.timing_precision
            pace = session.trial.bench.pace
            if estimates.enough(speedup, reachable, len(own), seconds, pace, requested):
                queued = not self._own.player.host_driven
                return estimates.outcome_of(speedup, session.trial.baseline, queued)

    def _speedup(self, reference: list[list[Answer]], own: list[list[Answer]]) -> Speedup:
        """The speedup that the chains of both sides show."""
        constant = self._constant()
        least = self._session.trial.bench.links.least_constant(constant)
        writing = [answer.writing for answers in reference for answer in answers]
        usual = statistics.median(writing) + WRITING
        by_chain = [estimates.constant_of_chain(null, constant) for null in self._constants]
        return estimates.speedup_of_chains(
            [
                [answer.seconds - own for answer in answers]
                for answers, own in zip(reference, by_chain, strict=True)
            ],
            [
                [
                    answer.seconds + max(0.0, answer.writing - usual) - min(constant, least)
                    for answer in answers
                ]
                for answers in own
            ],
        )

    def _constant(self) -> float:
        """The constant of a link: its duration without the call.

        Raises:
            Crowded: if kernels run on after calls that may be of others that are ready.
            Rejected: if kernels of the submission run on after its calls.
            JudgeError: if those of others do.
        """
        constant = self._usual_constant()
        if constant < DISTURBED:
            return constant
        if not self._session.trial.alone:
            raise Crowded("links were disturbed")
        self._session.trial.worker.close()
        for _ in range(TRIES):  # kernels that were launched may take a while to end
            self._constants = []
            self._links(self._reference)
            if self._usual_constant() < DISTURBED:
                text = "kernels of a call ran on after it was reported finished"
                name = f"{self._session.trial.case.name}/own"
                raise Rejected(Incorrect(kind="early_done", message=text, input_set=name))
            time.sleep(ENDING)
        raise JudgeError("something else runs on this GPU: stop it, or judge elsewhere")

    def _links(self, side: Side) -> list[Answer]:
        """The answers of one chain with as many links as fit."""
        count = self._fitting(side)
        answers, null = self._timed(side, count)
        if count < LINKS and not side.call:  # the call known so far may have loaded its kernels
            side.call = min(each.seconds for each in answers)
            if self._fitting(side) > count:
                answers, null = self._timed(side, self._fitting(side))
        if null and not side.single:
            typical = estimates.lower_quartile([each.seconds for each in answers[1:] or answers])
            longest, usual = max(null), estimates.lower_quartile(null)
            if usual > DISTURBED or (longest > DISTURBED and typical > SHORT):
                side.single = True
                answers, null = self._timed(side, self._fitting(side))
        if side is self._reference:
            self._constants.append(null)
        return answers

    def _usual_constant(self) -> float:
        return estimates.lower_quartile([each for null in self._constants for each in null])

    def _fitting(self, side: Side) -> int:
        """How many links a chain has: as many as time and memory admit, at least 1."""
        links = SINGLE_LINKS if side.single or side.player.host_driven else LINKS
        in_time = int(CHAIN_SECONDS / (side.call or side.rough))
        return max(1, min(links, self._session.supply.fitting, in_time))

    def _timed(self, side: Side, count: int) -> tuple[list[Answer], list[float]]:
        """`count` links, and the constants of the null model's links; none if it is not called.

        Where calls were not queued in time, the submission has seen an input: each try has others.
        It is repeated if the null model's links were longer than usual, as beside a new context.
        """
        for _ in range(TRIES):
            for _ in range(TRIES):
                if (links := self._tried(side, min(count, self._fitting(side)))) is not None:
                    break
            else:
                raise JudgeError(BUSY)
            constant = estimates.lower_quartile(links[1]) if links[1] else 0.0
            least = self._session.trial.bench.links.least_constant(constant or math.inf)
            if not least + SHAKEN < constant < DISTURBED:
                break
        return links

    def _tried(self, side: Side, count: int) -> tuple[list[Answer], list[float]] | None:
        """As `_timed`, once; None if calls were not queued in time.

        Among the submission's, one at a random place is on other inputs and does not count.
        """
        session, own = self._session, side is self._own
        place, total = session.draw.randrange(count + 1), count + own
        mixed = not (side.single or side.player.host_driven or count == 1)
        chain = self._own_chain if own else self._chain_of_partners
        answers, null = list[Answer](), list[Answer]()
        for numbers in [range(total)] if mixed else [[number] for number in range(total)]:
            hidden = own and place in numbers
            sets = session.sets_of(side.player, len(numbers) - hidden)
            if hidden:
                sets.insert(place - numbers[0], session.supply.untimed())
            links = chain(sets, mixed)
            if links is None:
                player = side.player
                if player.late:  # from now on one by one, or host-driven if that was late, too
                    player.late = 0 if mixed and not player.host_driven else OFTEN
                    side.single = True
                return None
            answers += links[0]
            null += links[1]
            for answer, drawn in zip(links[0], sets, strict=True) if own else ():
                session.unverified.add(answer, drawn)
        constants = [answer.seconds - self._known for answer in null]
        return (answers[:place] + answers[place + 1 :] if own else answers), constants

    def _own_chain(
        self, sets: list[Drawn], mixed: bool
    ) -> tuple[list[Answer], list[Answer]] | None:
        """Links of the submission, mixed with the null model's as the reference's are.

        A link depends by up to 2.5 us on which process had the device before it.

        Returns: None if calls were not queued in time.
        """
        session, player, null = self._session, self._own.player, self._session.null
        rows = [(player, sets)] + ([(null, session.sets_of(null, len(sets)))] if mixed else [])
        with awake(player.worker), awake(null.worker):
            if player.host_driven:
                limited, drive = session.trial.within_limits, partial(_driven, player)
                return [limited([each], partial(drive, each)) for each in sets], []
            links = session.trial.within_limits(sets, partial(self._handshake.chain, rows))
        return (links[0], links[1] if mixed else []) if links else None

    def _chain_of_partners(
        self, sets: list[Drawn], mixed: bool
    ) -> tuple[list[Answer], list[Answer]] | None:
        """Links of the reference and the null model: in one chain, or if not mixed in random order.

        A reference whose queue disturbs itself would also delay the null model's links.

        Returns: None if the reference's mixed links do not fit into its launch queue.
        """
        session, player, null = self._session, self._reference.player, self._session.null
        other = null, session.sets_of(null, max(len(sets), NULL_LINKS) if mixed else 1)
        links: dict[int, list[Answer]] = {}
        with as_judge_error(), awake(player.worker), awake(null.worker):
            for rows in (
                [[(player, sets), other]]
                if mixed
                else session.draw.sample([[(player, sets)], [other]], 2)
            ):
                if (answers := self._trusted(rows)) is None:
                    return None
                links |= zip([id(each) for each, _ in rows], answers, strict=True)
        return links[id(player)], links[id(null)]

    def _trusted(self, rows: list[tuple[Player, list[Drawn]]]) -> list[list[Answer]] | None:
        (player, sets), *others = rows
        for _ in range(TRIES):
            if player.host_driven and player is self._reference.player:
                return [[_driven(player, each, WARM_SECONDS) for each in sets]]
            if links := self._handshake.chain(rows, WARM_SECONDS):
                return links
            if others and player.late:
                return None
        raise JudgeError(BUSY)


def _driven(player: Player, drawn: Drawn, limit: float | Patience) -> Answer:
    """One call of a player that needs its host while the device works."""
    home = player.home
    assert isinstance(home, GpuHandshake)
    return home.host_driven(player, drawn, limit)
