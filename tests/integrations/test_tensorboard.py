"""Event files as TensorBoard itself reads them back, and the names and numbers in them."""

import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from docs_code import code_block
from episodes import WRONG
from trajectories import timed, trajectory, turn

from kevin_env.advantage import TurnSample
from kevin_env.app.evaluate.metrics import measure
from kevin_env.integrations.scalars import batch_distributions, batch_scalars, run_scalars
from kevin_env.integrations.tensorboard import TensorBoardLogger
from kevin_env.judge import Submission
from kevin_env.judge.api import Seconds
from kevin_env.outcome import Incorrect
from kevin_env.record import ProblemRef, Usage

EARLY = Incorrect(kind="early_done", message="It was not done.", input_set="main/own")
SOFTMAX = ProblemRef(id="L1_23_Softmax", sha256="0", level=1)
FUSED = ProblemRef(id="L2_1_Fused", sha256="1", level=2)

BATCH = [
    # Scores 0, 2.3 and returns 0.92, 2.3 (gamma 0.4).
    trajectory(
        turn(1, outcome=WRONG, seconds=Seconds(build=4.0, time=1.0)),
        timed(2, 2.0),
        id="a",
        problem=SOFTMAX,
    ),
    # Scores 1.3, 0 and returns 1.3, 0.
    trajectory(
        timed(1, 1.0), turn(2, outcome=EARLY, seconds=Seconds(build=2.0)), id="b", problem=SOFTMAX
    ),
    # Score 0, truncated, no code.
    trajectory(
        turn(1, truncated=True, usage=Usage(prompt_tokens=7, completion_tokens=9)),
        id="c",
        problem=FUSED,
    ),
]

GROUPS = {
    *(
        "Reward", "RewardComponents", "Kernel", "MultiTurn", "Progress", "Optimizer", "Batch",
        "Timing", "Distributions",
    ),
    *("Counts", "PerLevel", "Advantage", "Eval"),
}  # fmt: skip
"""kernel-rl's groups."""


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Every scalar in the event files of a folder: (step, value) by tag. Of a histogram the number
    of its values.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0}).Reload()
    found: dict[str, list[tuple[int, float]]] = {}
    for tag in events.Tags()["tensors"]:
        for event in events.Tensors(tag):
            value = make_ndarray(event.tensor_proto)
            found.setdefault(tag, []).append(
                (event.step, float(value if value.ndim == 0 else value[:, 2].sum()))
            )
    return found


def test_event_files_hold_every_group(tmp_path: Path) -> None:
    with TensorBoardLogger(tmp_path / "runs") as logger:
        for step in (0, 1):
            logger.log_batch(
                step,
                BATCH,
                advantages=[0.5, -0.5, 1.0],
                timing={"rollout": 8.0},
                optimizer={"learning_rate": 2e-6},
                progress=step / 2,
            )
        logger.log_run(1, measure(BATCH))
    found = read(tmp_path / "runs")
    assert {tag.split("/")[0] for tag in found} == GROUPS
    assert found["Reward/Mean"] == [(step, pytest.approx(3.6 / 5)) for step in (0, 1)]
    assert found["Optimizer/LearningRate"][1] == (1, pytest.approx(2e-6))
    assert found["Timing/Rollout"][0] == (0, 8.0)
    assert found["Progress/CompletionFraction"] == [(0, 0.0), (1, 0.5)]
    assert found["Distributions/Rewards"] == [(0, 5), (1, 5)]
    assert found["Distributions/Speedups"][0] == (0, 2)
    assert found["Eval/CorrectRate"] == [(1, pytest.approx(0.5))]


def test_what_was_logged_is_on_disk_before_the_end(tmp_path: Path) -> None:
    logger = TensorBoardLogger(tmp_path)
    logger.log_batch(0, BATCH)
    assert "Reward/Mean" in read(tmp_path)
    logger.close()
    logger.close()


def test_reward_group_by_hand() -> None:
    values = batch_scalars(BATCH)
    scores, returns = [0, 2.3, 1.3, 0, 0], [0.92, 2.3, 1.3, 0, 0]
    assert values["Reward/Mean"] == pytest.approx(sum(scores) / 5)
    assert values["Reward/StdDev"] == pytest.approx(
        math.sqrt(sum((each - 0.72) ** 2 for each in scores) / 5)
    )
    assert (values["Reward/Min"], values["Reward/Max"]) == (0, 2.3)
    assert values["Reward/DiscountedMean"] == pytest.approx(sum(returns) / 5)
    # Kevin's score: 0.3 for each of two correct kernels, and speedups of 2 and 1.
    assert values["RewardComponents/Correctness"] == pytest.approx(0.6 / 5)
    assert values["RewardComponents/Speed"] == pytest.approx(3.0 / 5)


def test_components_of_a_score_of_ones_own_are_not_guessed() -> None:
    other = trajectory(timed(1, 2.0), config={"score": "mine.score"})
    assert not any(name.startswith("RewardComponents/") for name in batch_scalars([other]))


def test_multi_turn_group_by_hand() -> None:
    values = batch_scalars(BATCH)
    assert values["MultiTurn/SuccessRate"] == pytest.approx(2 / 3)
    assert values["MultiTurn/FailureRate"] == pytest.approx(1 / 3)
    assert values["MultiTurn/AvgTurns"] == pytest.approx(5 / 3)
    assert values["MultiTurn/MaxCorrect"] == 1
    assert values["MultiTurn/BestSpeedupMean"] == pytest.approx((2 + 1 + 0) / 3)
    assert values["MultiTurn/BestSpeedupMax"] == 2
    assert values["MultiTurn/ImprovedRate"] == pytest.approx(1 / 3)
    assert values["MultiTurn/RegressedRate"] == pytest.approx(1 / 3)
    assert values["MultiTurn/Turn1/CorrectRate"] == pytest.approx(1 / 3)
    assert values["MultiTurn/Turn2/CorrectRate"] == 1 / 2  # of the two that got there
    assert values["MultiTurn/Turn2/HackRate"] == 1 / 2
    assert values["MultiTurn/Turn1/RewardMean"] == pytest.approx(1.3 / 3)
    assert values["MultiTurn/Turn1/DiscountedMean"] == pytest.approx((0.92 + 1.3) / 3)


def test_a_speedup_with_a_wide_interval_counts_by_its_median() -> None:
    noisy = timed(1, 2.0, kind="too_noisy")
    outcome = noisy.outcome.model_copy(update={"speedup_interval": (1.2, 3.4)})
    values = batch_scalars([trajectory(noisy.model_copy(update={"outcome": outcome}))])
    assert (values["Kernel/MeanSpeedup"], values["MultiTurn/BestSpeedupMax"]) == (2.0, 2.0)


def test_signs_of_instability_by_hand() -> None:
    thoughts = ["Okay, a loop.", "Okay.", "ok ok ok", None]
    turns = [
        turn(number).model_copy(update={"reasoning": text, "submission": Submission(code=code)})
        for number, text, code in zip(
            range(1, 5), thoughts, ("a", "b", "a # again", "c"), strict=True
        )
    ]
    values = batch_scalars([trajectory(*turns), trajectory(turns[2])])
    assert values["Kernel/NotOkayRate"] == 2 / 4  # of those with reasoning
    assert values["Kernel/RepeatedRate"] == 1 / 5
    assert "Kernel/NotOkayRate" not in batch_scalars([trajectory(turns[3])])


def test_what_a_batch_says_nothing_of_is_left_out() -> None:
    values = batch_scalars([trajectory(turn(1))])
    assert not any(
        name.startswith(("Advantage", "Timing", "Kernel/MeanSpeedup", "Batch/Prompt"))
        for name in values
    )
    assert "Distributions/Speedups" not in batch_distributions([trajectory(turn(1))])
    assert all(math.isfinite(value) for value in values.values())


def test_run_scalars_are_the_figures() -> None:
    metrics = measure(BATCH, ratios={"L1_23_Softmax": 0.5, "L2_1_Fused": 0.5})
    values = run_scalars(metrics)
    overall = metrics.overall
    assert values["Eval/Pass@2"] == overall.correct.best[2].value == 1
    assert values["Eval/AvgSpeedup"] == overall.speed["eager"].speedup.avg.value == 0.75
    assert values["Eval/AgainstCompile/AvgSpeedup"] == 0.375
    assert values["Eval/BestSpeedup@2"] == 2.0
    assert values["Eval/Fast1x"] == 0.5
    assert values["Eval/Fast2x@2"] == 1
    assert values["Eval/BestByTurn2/CorrectRate"] == 0.5
    assert values["Eval/Level1/CorrectRate"] == 1
    assert values["Eval/DeviceSeconds"] == pytest.approx(1 / 3)
    assert all(math.isfinite(value) for value in values.values())


def test_numbers_that_are_not_finite_do_not_stop_a_training(tmp_path: Path) -> None:
    with TensorBoardLogger(tmp_path) as logger:
        logger.log_batch(0, BATCH, advantages=[math.nan, 1.0], optimizer={"grad_norm": math.inf})
    found = read(tmp_path)
    assert math.isinf(found["Optimizer/GradNorm"][0][1])
    assert math.isnan(found["Advantage/Mean"][0][1])
    assert found["Distributions/Advantages"] == [(0, 1)]


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    with pytest.raises(ImportError, match=r"pip install 'kevin-env\[tensorboard\]'"):
        TensorBoardLogger(tmp_path)


def test_it_needs_no_torch(tmp_path: Path) -> None:
    code = f"""
import sys
from kevin_env.integrations.tensorboard import TensorBoardLogger
assert "tensorboard" not in sys.modules, "imported before it is used"
TensorBoardLogger({str(tmp_path)!r}).close()
assert not any(name.split(".")[0] in ("torch", "tensorflow") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_loop_that_is_taken_up_logs_no_point_twice_if_it_says_so(tmp_path: Path) -> None:
    for steps in ([0, 1], [1, 2]):
        with TensorBoardLogger(tmp_path, resume=True) as logger:
            for step in steps:
                logger.log_batch(step, BATCH, timing={"train": 1.0} if steps == [1, 2] else None)
    steps = [
        (tag, step)
        for file in tmp_path.iterdir()
        for tag, points in read(file).items()
        for step, _ in points
    ]
    assert len(steps) == len(set(steps))
    assert {step for tag, step in steps if tag == "Reward/Mean"} == {0, 1, 2}
    assert {step for tag, step in steps if tag == "Timing/Train"} == {1, 2}, (
        "what is new at a step is logged"
    )


def test_the_loop_of_the_page_logs_batches_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trained: list[tuple[int, int]] = []

    def train(samples: Sequence[TurnSample], weights: Sequence[float]) -> float:
        trained.append((len(samples), len(weights)))
        return 0.25

    names = {"batches": [BATCH, BATCH], "train": train, "play": lambda problems: BATCH}
    exec("from kevin_env.advantage import advantages, informative, training_samples", names)
    exec(code_block("training.md", "TensorBoardLogger"), names)
    found = read(tmp_path / "runs" / "kevin")
    assert found["Optimizer/Loss"] == [(0, 0.25), (1, 0.25)]
    assert found["Eval/CorrectRate"] == [(0, pytest.approx(0.5))]
    assert trained == [(4, 4), (4, 4)], (
        "the fused problem has one turn, from which nothing is to be learnt"
    )
    assert [step for step, _ in found["Advantage/Mean"]] == [0, 1]
