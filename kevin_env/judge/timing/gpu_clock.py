"""The clock of a GPU: chains of calls of the submission, the reference and a known kernel."""

import torch

from kevin_env.candidate import tree
from kevin_env.judge.api import JudgeError
from kevin_env.judge.bench import Bench
from kevin_env.judge.handshake.handshake import Drawn
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.rejected import asked
from kevin_env.judge.timing.measure import Chains
from kevin_env.judge.timing.partners import Partners
from kevin_env.judge.timing.session import InputSupply, TimingSession, UnverifiedAnswers
from kevin_env.judge.trial import TIMED, Trial
from kevin_env.judge.verdict import Place
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct


class GpuClock:
    """Times submissions on one GPU. Use it in the lane.

    Args:
        bench: Of the GPU.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._partners = Partners(self._start, bench.device, bench.info.l2)
        skeleton, tensors = tree.flatten([torch.zeros(1, device=bench.device)])
        self._nothing = Drawn(skeleton, Image(tensors, bench.device), 0)

    def __call__(self, trial: Trial) -> Correct:
        """Times a submission next to the reference, and verifies every timed call.

        Raises:
            Rejected: if a call fails or is wrong.
            Crowded: if others on the GPU may have disturbed it.
            JudgeError: if a process of the judge fails.
            torch.OutOfMemoryError: if the judge lacks memory.
        """
        unverified = UnverifiedAnswers(trial)
        try:
            try:
                reference, null = self._partners.reference(trial), self._partners.null()
                supply = InputSupply(trial)
                session = TimingSession(trial, reference, null, unverified, supply, self._nothing)
                session.warm()
                place = Place("call", f"{trial.case.name}/{TIMED}")
                with asked(trial.worker, place), session.still():
                    return Chains(session).outcome()
            finally:  # also after a failure, before which an answer may have been wrong
                unverified.compare()
        except (JudgeError, torch.OutOfMemoryError):
            self.close()  # what they hold may be what fails
            raise

    def close(self) -> None:
        """Ends the processes of the reference and the null model."""
        self._partners.close()

    def _start(self) -> Worker:
        candidates = self._bench.candidates
        return candidates.with_context(candidates.take_trusted())
