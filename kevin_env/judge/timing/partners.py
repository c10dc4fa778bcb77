"""The two processes of a GPU's judge next to which a submission is timed: reference and null model.

They live as long as the judge. References are trusted code, so one process loads one after the
other, and nothing is started on a submission's way. Use them in the lane.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from kevin_env.judge.construct import construct
from kevin_env.judge.handshake.arena import Sizes
from kevin_env.judge.handshake.handshake import Player
from kevin_env.judge.timing.baselines import Partner, timed_code
from kevin_env.judge.timing.calibration import construct_null, null_code
from kevin_env.judge.trial import Trial
from kevin_env.judge.workers.errors import BASELINE_SECONDS, as_judge_error
from kevin_env.judge.workers.worker import Worker


class Partners:
    """Both processes. Arguments as of `Partner`."""

    def __init__(self, start: Callable[[], Worker], device: torch.device, l2: int) -> None:
        self._reference = Partner(start, device, l2)
        self._null = Partner(start, device, l2)

    def reference(self, trial: Trial) -> Player:
        """The reference in the case of a trial, constructed. Errors as `Partner.seated`.

        It has the weights of the trial, unless it keeps those of another submission.
        """
        code = timed_code(trial.problem, trial.case.name, trial.options, on_gpu=True)
        worker, fresh = self._reference.load(code.key, code.code, code.entry)
        sizes = replace(trial.sizes, outputs=0)  # outputs of trusted code stay where they are
        arena, player = self._reference.seated(sizes)
        arena.begin_case(trial.outbox_bytes)
        if fresh or not code.kept:
            with as_judge_error():
                construct(
                    worker, trial.case, trial.secret, BASELINE_SECONDS, arena.weights,
                    compiled=code.compiled,
                )  # fmt: skip
        return player.in_next_case()

    def null(self) -> Player:
        """The null model, constructed and perhaps called before. Errors as `Partner.seated`."""
        worker, fresh = self._null.load("null", null_code(), "ModelNew")
        _, player = self._null.seated(NOTHING)
        if fresh:
            with as_judge_error():
                construct_null(worker, on_gpu=True)
        return player

    def close(self) -> None:
        """Ends both, such as after one has failed or when memory is short."""
        self._reference.close()
        self._null.close()


NOTHING = Sizes(1, 1, 1)
