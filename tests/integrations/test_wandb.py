"""Logs of wandb's own client, which writes to a local folder."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest
from trajectories import timed, trajectory, turn

from kevin_env.app.evaluate.metrics import measure
from kevin_env.integrations.run_log import EpisodeFollower
from kevin_env.integrations.wandb import WandbLogger
from kevin_env.recorder import Recorder

BATCH = [trajectory(turn(1), timed(2, 2.0), id="a"), trajectory(timed(1, 1.0), turn(2), id="b")]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'kevin-env\[wandb\]'"):
        WandbLogger("kevin")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed: pip install 'kevin-env[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")


def values(logger: WandbLogger) -> dict[str, Any]:
    """The last value of each name; ends the step."""
    logger._run.log({}, step=logger._run.step, commit=True)
    return dict(logger._run.summary)


@pytest.mark.usefixtures("offline")
def test_batches_and_figures_are_in_one_run(tmp_path: Path) -> None:
    with WandbLogger("kevin", folder=tmp_path) as logger:
        logger.log_batch(0, BATCH, timing={"train": 1.0}, optimizer={"grad_norm": math.inf})
        logger.log_batch(1, BATCH, advantages=[math.nan, 1.0])
        logger.log_run(1, measure(BATCH))
        logger.log_batch(0, BATCH, progress=0.5)  # too late
        found = values(logger)
    logger.close()
    assert found["Reward/Mean"] == pytest.approx(3.6 / 4)
    assert (found["Timing/Train"], found["Eval/CorrectRate"]) == (1.0, 1.0)
    assert found["Distributions/Rewards"]["_type"] == "histogram"
    assert {"Optimizer/GradNorm", "Advantage/Mean"} <= found.keys()
    assert "Progress/CompletionFraction" not in found
    assert len([*tmp_path.glob("wandb/offline-run-*/*.wandb")]) == 1


@pytest.mark.usefixtures("offline")
def test_a_run_that_is_resumed_is_the_same_run(tmp_path: Path) -> None:
    ids = list[str]()
    for resume in (False, True, False):
        with WandbLogger("kevin", folder=tmp_path, resume=resume) as logger:
            ids.append(logger._run.id)
    assert ids[0] == ids[1] != ids[2]
    with WandbLogger("kevin", folder=tmp_path, id="my-run-1") as logger:
        pass
    with WandbLogger("kevin", folder=tmp_path, resume=True) as logger:
        assert logger._run.id == "my-run-1"


@pytest.mark.usefixtures("offline")
def test_a_trajectory_file_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    with WandbLogger("kevin", folder=tmp_path) as logger:
        follower = EpisodeFollower(file, 4, [logger])
        for episode in BATCH:
            Recorder(file).finish(episode)
            follower.follow()
        follower.conclude(measure(BATCH))
        found = values(logger)
    follower.close()
    assert (found["Progress/CompletionFraction"], found["_step"]) == (0.5, 2)
    assert found["Eval/CorrectRate"] == 1.0
