"""The cookbook's own rollouts and advantages, with a sampler that answers from a script and a
scripted judge.
"""

# pyright: reportMissingImports=false
# Its pins exclude those of the tools that check types.

import asyncio
import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip(
    "tinker_cookbook", reason="Tinker's cookbook is not installed: pip install 'kevin-env[tinker]'"
)

from episodes import WRONG, correct, problem_file, recorded
from tinker_cookbook import renderers, tokenizer_utils
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import (
    assemble_training_data,
    compute_advantages,
    remove_constant_reward_groups,
)
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.rollout_strategy import FailFast, RetryOnFailure
from tinker_cookbook.rl.rollouts import (
    do_group_rollout,
    do_group_rollout_and_filter_constant_reward,
)
from tinker_cookbook.rl.types import StopReason
from tiny_model import load_example
from tiny_models import make_byte_tokenizer, reply

from kevin_env.advantage import advantages, training_samples
from kevin_env.curriculum import Curriculum
from kevin_env.integrations.tinker import KernelDatasetBuilder, KernelGroup, PerTurnReturns
from kevin_env.judge import JudgeError
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import parse_problem
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

END = "<|im_end|>"
# Scores 0, 0, 1.3, 0 and 1.3, 0, 0, 0: returns 0.208, 0.52, 1.3, 0 and 1.3, 0, 0, 0, whose mean is
# 0.416.
FLAT = [-0.208, 0.104, 0.884, -0.416, 0.884, -0.416, -0.416, -0.416]
SPEEDUPS = {"a3": 1.0, "b1": 1.0}


def judged(problem: Any, submission: Any) -> Any:
    (name,) = re.findall(r"def (\w\d)\(", submission.code)
    return correct(SPEEDUPS[name]) if name in SPEEDUPS else WRONG


def tokenizer_of(name: str = "tiny") -> Any:
    return make_byte_tokenizer(["<|im_start|>", END], "", end=END)


class Sampler(TokenCompleter):
    """Says a1, a2, ... in the first episode that asks, b1, b2, ... in the second, as `text` has it.

    It is a completer of the cookbook, and what its own completer asks.
    """

    def __init__(self, text: Any = None, length: tuple[str, ...] = ()) -> None:
        self.tokenizer = tokenizer_of()
        self.text = text or (lambda name: f"<think>Hm, {name}.</think>\n\n{reply(name)}Done.")
        self.length = length
        self.begun = 0
        self.prompts: list[list[int]] = []

    async def __call__(
        self, model_input: Any, stop: Any, *, max_tokens: int | None = None
    ) -> TokensWithLogprobs:
        assert stop == self.tokenizer.encode(END)
        self.prompts.append(model_input.to_ints())
        said = re.findall(
            r"def (\w)(\d)\(|No-code (\w)(\d)", self.tokenizer.decode(self.prompts[-1])
        )
        if said:
            letter, number = next((a or c, b or d) for a, b, c, d in reversed(said))
        else:
            letter, number, self.begun = "abcdefgh"[self.begun], "0", self.begun + 1
        name = f"{letter}{int(number) + 1}"
        cut = name in self.length
        tokens = self.tokenizer.encode(self.text(name) + ("" if cut else END))
        return TokensWithLogprobs(tokens, [-0.5] * len(tokens), "length" if cut else "stop")

    async def sample(self, prompt: Any, num_samples: int, sampling_params: Any) -> Any:
        said = await self(prompt, sampling_params.stop)
        sequence = SimpleNamespace(
            tokens=said.tokens,
            logprobs=said.maybe_logprobs,
            stop_reason=said.stop_reason,
            sequence_id=None,
        )
        return SimpleNamespace(sequences=[sequence], prompt_cache_hit_tokens=0)

    sample_async = sample  # until 0.5


def group_of(folder: Path, **fields: Any) -> KernelGroup:
    values = {
        "problem": problem_file(folder), "group_size": 2, "settings": Settings(max_turns=4),
        "renderer": renderers.get_renderer("qwen3", tokenizer_of(), model_name="tiny"),
        "pool": ScriptedPool(judged), "recorder": Recorder(folder / "episodes.jsonl"),
    }  # fmt: skip
    return KernelGroup(**{**values, **fields})


def test_each_turn_has_the_advantage_of_its_own_return(tmp_path) -> None:
    sampler = Sampler()
    group = asyncio.run(do_group_rollout(group_of(tmp_path), sampler, strategy=PerTurnReturns()))
    (found,) = compute_advantages([group])
    first = sampler.tokenizer.decode(group.trajectories_G[0].transitions[0].ac.tokens)
    expected = FLAT if "def a1" in first else FLAT[4:] + FLAT[:4]  # whichever episode asked first
    assert found.tolist() == pytest.approx(expected, abs=1e-6)
    ours = advantages(training_samples(recorded(tmp_path / "episodes.jsonl")), "flat")
    assert sorted(found.tolist()) == pytest.approx(sorted(ours), abs=1e-6)
    data, _ = assemble_training_data([group], [found])
    assert len(data) == 8
    for datum, advantage in zip(data, expected, strict=True):
        given, mask = (datum.loss_fn_inputs[name].to_torch() for name in ("advantages", "mask"))
        assert given[mask == 1].tolist() == pytest.approx([advantage] * int(mask.sum()), abs=1e-6)
        assert given[mask == 0].abs().sum() == 0
        said = datum.loss_fn_inputs["target_tokens"].to_torch()[mask == 1].tolist()
        assert sampler.tokenizer.decode(said).startswith("<think>Hm, ")
    assert sorted(
        each.ob.to_ints() for t in group.trajectories_G for each in t.transitions
    ) == sorted(sampler.prompts)


def test_groups_whose_sums_are_equal_are_kept(tmp_path) -> None:
    """Without flattening both trajectories have 1.3 in all, and the cookbook throws the group away."""
    alone = asyncio.run(do_group_rollout(group_of(tmp_path), Sampler(), strategy=FailFast()))
    assert compute_advantages([alone])[0].tolist() == [0.0, 0.0]
    for strategy, kept in ((FailFast(), False), (PerTurnReturns(), True)):
        group = asyncio.run(
            do_group_rollout_and_filter_constant_reward(
                Sampler(), group_of(tmp_path), 9999, 1.0, do_remove_constant_reward_groups=True, strategy=strategy
            )
        )  # fmt: skip
        assert (group is not None) is kept
    assert group is not None and remove_constant_reward_groups([alone, group]) == [group]


def test_the_metrics_tell_how_turns_and_episodes_ended(tmp_path) -> None:
    group = asyncio.run(do_group_rollout(group_of(tmp_path), Sampler(), strategy=PerTurnReturns()))
    metrics = compute_trajectory_metrics([group], [["level1"]])
    assert metrics["env/all/category/correct"] == pytest.approx(2 / 8)
    assert metrics["env/all/category/correctness"] == pytest.approx(6 / 8)
    assert metrics["env/all/score"] == pytest.approx(2.6 / 8)
    assert metrics["env/all/speedup"] == 1.0
    assert [t.stop_reason for t in group.trajectories_G] == [StopReason.MAX_TURNS] * 8


def test_what_is_cut_off_or_cannot_be_read_is_a_turn(tmp_path) -> None:
    sampler = Sampler(text=lambda name: "Let me" if name == "a1" else reply(name), length=("a1",))
    settings = Settings(max_turns=2)
    group = group_of(tmp_path, group_size=1, settings=settings, pool=ScriptedPool([correct(2.0)]))
    # The first turn shows no code, so that the sampler begins anew in the second.
    (first, second) = asyncio.run(
        do_group_rollout(group, sampler, strategy=PerTurnReturns())
    ).trajectories_G
    assert first.transitions[0].metrics["category/format"] == 1.0
    assert (first.transitions[0].reward, second.transitions[0].reward) == pytest.approx(
        (0.4 * 2.3, 2.3)
    )
    (episode,) = recorded(tmp_path / "episodes.jsonl")
    assert [turn.kind for turn in episode.turns] == ["truncated", "timed"]


def test_reasoning_is_kept_apart_from_the_reply(tmp_path) -> None:
    asyncio.run(
        do_group_rollout(group_of(tmp_path, group_size=1), Sampler(), strategy=PerTurnReturns())
    )
    (episode,) = recorded(tmp_path / "episodes.jsonl")
    assert episode.turns[0].reasoning == "Hm, a1." and "<think>" not in episode.turns[0].reply
    assert episode.turns[0].summary == "Done."
    assert all(
        "Hm, a1" not in message.content for turn in episode.turns for message in turn.messages
    )


def test_a_judge_that_fails_once_is_asked_again_and_then_the_strategy_decides(tmp_path) -> None:
    failure = JudgeError("the device is gone")
    once = group_of(
        tmp_path, group_size=1, settings=Settings(max_turns=1), pool=ScriptedPool([failure, WRONG])
    )
    assert asyncio.run(do_group_rollout(once, Sampler(), strategy=PerTurnReturns())).trajectories_G
    twice = [failure, failure, WRONG]
    for strategy in (PerTurnReturns(), PerTurnReturns(RetryOnFailure())):
        group = group_of(
            tmp_path, group_size=1, settings=Settings(max_turns=1), pool=ScriptedPool(twice)
        )
        assert strategy.catches_group_errors == strategy.inner.catches_group_errors
        if strategy.catches_group_errors:
            assert (
                len(
                    asyncio.run(
                        do_group_rollout(group, Sampler(), strategy=strategy)
                    ).rollout_errors
                )
                == 1
            )
        else:
            with pytest.raises(JudgeError):
                asyncio.run(do_group_rollout(group, Sampler(), strategy=strategy))


def test_the_data_set_builder_gives_groups_that_can_be_pickled() -> None:
    tokenizer_utils.register_tokenizer("tiny", tokenizer_of)
    builder = KernelDatasetBuilder(
        model_name="tiny", renderer_name="qwen3", problems=["L1_23_Softmax", "L1_26_GELU_"],
        test_problems="L1_36_RMSNorm_", groups_per_batch=2, group_size=3, batches=2, settings=Settings(max_turns=2),
    )  # fmt: skip
    train, test = asyncio.run(builder())
    assert test is not None
    assert (len(train), len(test)) == (2, 1)
    for batch in (train.get_batch(0), train.get_batch(1)):
        assert sorted(group.problem.id for group in batch) == ["L1_23_Softmax", "L1_26_GELU_"]
    assert [group.problem.id for group in train.get_batch(1)] == [
        group.problem.id for group in train.get_batch(1)
    ]
    (held_out,) = test.get_batch(0)
    assert (held_out.problem.id, held_out.group_size) == ("L1_36_RMSNorm_", 1)
    copy = pickle.loads(pickle.dumps(train.get_batch(0)[0]))
    assert (copy.group_size, copy.settings.max_turns, copy.model) == (3, 2, "tiny")
    assert pickle.loads(pickle.dumps(PerTurnReturns())) == PerTurnReturns()


def test_a_curriculum_chooses_the_problems_and_hears_of_them(tmp_path) -> None:
    tokenizer_utils.register_tokenizer("tiny", tokenizer_of)
    problems = []
    for level in (1, 2):
        (tmp_path / f"level{level}").mkdir()
        problems.append(parse_problem(Path(problem_file(tmp_path / f"level{level}").path)))
    curriculum = Curriculum(problems, window=2, promote_at=1.0)
    builder = KernelDatasetBuilder(
        model_name="tiny", renderer_name="qwen3", problems=curriculum, test_problems=None, groups_per_batch=1,
        group_size=2, settings=Settings(max_turns=3), pool=ScriptedPool(judged),
    )  # fmt: skip
    train, test = asyncio.run(builder())
    assert test is None
    (group,) = train.get_batch(0)
    asyncio.run(do_group_rollout(group, Sampler(), strategy=PerTurnReturns()))
    assert curriculum.state.tried == {"L1_7_Double": 2} == curriculum.state.solved
    assert curriculum.stage == 1 and train.get_batch(1)[0].problem.level == 2


def test_the_cookbook_takes_the_example() -> None:
    config = load_example("train_tinker").config
    assert isinstance(config.dataset_builder, KernelDatasetBuilder)
    assert isinstance(config.rollout_error_tolerance, PerTurnReturns)
    assert config.remove_constant_reward_groups
