"""TRL's own trainer on a policy so small that it learns in seconds, with scores from a script."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

trl = pytest.importorskip("trl", reason="TRL is not installed: pip install 'kevin-env[trl]'")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*experimental feature:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*is deprecated and will be removed in v6:FutureWarning"),
]

from datasets import Dataset  # noqa: E402
from episodes import KERNEL, WRONG, correct, problem_file, recorded  # noqa: E402
from tiny_model import load_example  # noqa: E402
from tiny_models import CHAT, END, make_byte_tokenizer, make_model, make_tokenizer, reply  # noqa: E402

from kevin_env.advantage import Baseline, advantages, training_samples  # noqa: E402
from kevin_env.curriculum import Curriculum  # noqa: E402
from kevin_env.integrations.trl import KernelEnvironment, TurnRollouts, turn_return  # noqa: E402
from kevin_env.judge import JudgeError  # noqa: E402
from kevin_env.outcome import Outcome  # noqa: E402
from kevin_env.pools.scripted import ScriptedPool  # noqa: E402
from kevin_env.problem import parse_problem  # noqa: E402
from kevin_env.recorder import Recorder  # noqa: E402
from kevin_env.settings import Settings  # noqa: E402

NAMES = ("wrong", "slow", "plain", "fast", "broken")
SPEEDUPS = {"slow": 0.5, "plain": 1.0, "fast": 2.0}


def judged(problem: Any, submission: Any) -> Outcome | Exception:
    """What the pool says of a reply, by the name of its kernel."""
    name = next(name for name in NAMES if f"def {name}(" in submission.code)
    if name == "broken":
        return JudgeError("the device is gone")
    return correct(SPEEDUPS[name]) if name in SPEEDUPS else WRONG


class Scripted(trl.GRPOTrainer):
    """The trainer with another model in front: each round of generation says the next names of a
    list.
    """

    script: list[tuple[str, ...]]
    asked: list[list[int]]

    def _generate_single_turn(self, prompt_ids, images, multimodal_fields, num_generations, **more):
        names = self.script.pop(0)
        assert (len(names), num_generations) == (len(prompt_ids), 1)
        self.asked = prompt_ids
        ids = self.processing_class.convert_tokens_to_ids([*map(reply, names)])
        return [[each] for each in ids], [[-0.5] for _ in ids]


class Twice(Scripted):
    """Says everything twice."""

    def _generate_single_turn(self, *asked, **more):
        ids, logprobs = super()._generate_single_turn(*asked, **more)
        return [2 * each for each in ids], [2 * each for each in logprobs]


def trainer_of(
    kind: type,
    rollouts: TurnRollouts,
    folder: Path,
    names: tuple[str, ...] = NAMES,
    **arguments: Any,
) -> Any:
    """A trainer on one process of this CPU; one step takes one group unless `arguments` say
    otherwise.
    """
    tokenizer = make_tokenizer([*map(reply, names)])
    size = arguments.get("num_generations", 8)
    config = trl.GRPOConfig(
        **{
            "output_dir": str(folder), "per_device_train_batch_size": size, "num_generations": size,
            "max_completion_length": 1, "max_steps": 1, "use_cpu": True, "bf16": False, "report_to": "none",
            "save_strategy": "no", "logging_steps": 1, "disable_tqdm": True, "gradient_checkpointing": False,
            "scale_rewards": "none", "loss_type": "dr_grpo", "lr_scheduler_type": "constant",
        }
        | arguments
    )  # fmt: skip
    return kind(
        make_model(tokenizer), turn_return, config, train_dataset=rollouts.dataset(), rollout_func=rollouts,
        processing_class=tokenizer,
    )  # fmt: skip


def rollouts_of(folder: Path, **settings: Any) -> TurnRollouts:
    recorder = Recorder(folder / "episodes.jsonl")
    return TurnRollouts(
        problem_file(folder),
        pool=ScriptedPool(judged),
        settings=Settings(**settings),
        recorder=recorder,
    )


def trained_on(trainer: Any) -> list[float]:
    """The advantages of the last step, as TRL made them."""
    return list(trainer._logs["advantages"])


# Two episodes whose scores have equal sums: 0, 0, 1.3, 0 and 1.3, 0, 0, 0, so that their returns,
# at gamma 0.4, are 0.208, 0.52, 1.3, 0 and 1.3, 0, 0, 0. Their mean is 0.416, their standard
# deviation sqrt(2.309216 / 7) = 0.574359.
TWO = [("wrong", "plain"), ("wrong", "wrong"), ("plain", "wrong"), ("wrong", "wrong")]
FLAT = [-0.208, 0.104, 0.884, -0.416, 0.884, -0.416, -0.416, -0.416]
DIVISOR = math.sqrt(2.309216 / 7) + 1e-4


@pytest.mark.parametrize(
    ("scale", "baseline", "by_hand"),
    [("none", "flat", FLAT), ("group", "flat_std", [value / DIVISOR for value in FLAT])],
)
def test_the_advantages_of_turns_are_kevins(
    tmp_path, scale: str, baseline: Baseline, by_hand: list[float]
) -> None:
    rollouts = rollouts_of(tmp_path, max_turns=4)
    trainer = trainer_of(Scripted, rollouts, tmp_path, num_generations=2 * 4, scale_rewards=scale)
    trainer.script = list(TWO)
    trainer.train()
    assert trained_on(trainer) == pytest.approx(by_hand, rel=1e-5)
    samples = training_samples(recorded(tmp_path / "episodes.jsonl"))
    assert sorted(trained_on(trainer)) == pytest.approx(
        sorted(advantages(samples, baseline)), rel=1e-5
    )
    assert trainer.state.log_history[0]["kevin/score"] == pytest.approx(2 * 1.3 / 8)
    assert trainer.state.log_history[0]["kevin/correct"] == pytest.approx(2 / 8)
    assert trainer.state.log_history[0]["grad_norm"] > 0


def test_each_turn_is_a_row_with_the_prompt_that_was_sent(tmp_path) -> None:
    rollouts = rollouts_of(tmp_path, max_turns=2)
    trainer = trainer_of(Scripted, rollouts, tmp_path, num_generations=4)
    trainer.script = [("wrong", "plain"), ("fast", "slow")]
    rows: Any = rollouts(["7_Double"] * 4, trainer)
    assert rows["turn_return"] == pytest.approx([0.4 * 2.3, 2.3, 1.3 + 0.4 * 0.8, 0.8])
    assert rows["logprobs"] == [[-0.5]] * 4 and rows["env_mask"] == [[1]] * 4
    tokenizer = trainer.processing_class
    played = {
        turn.score: turn for each in recorded(tmp_path / "episodes.jsonl") for turn in each.turns
    }
    for score, prompt, completion in zip(
        rows["score"], rows["prompt_ids"], rows["completion_ids"], strict=True
    ):
        chat = [message.model_dump() for message in played[score].messages]
        sent = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)[
            "input_ids"
        ]
        assert (prompt, played[score].reply) == (sent, tokenizer.decode(completion))
    assert rows["prompt_ids"][0] != rows["prompt_ids"][1]
    assert all(turn.truncated for turn in played.values())  # none ended with the token that ends
    assert {each.model for each in recorded(tmp_path / "episodes.jsonl")} == {"policy@0"}


def test_batches_are_logged_with_the_seconds_of_generation_and_judging(tmp_path) -> None:
    logged = []
    log: Any = SimpleNamespace(log_batch=lambda *batch, **more: logged.append((*batch, more)))
    rollouts = TurnRollouts(
        problem_file(tmp_path),
        pool=ScriptedPool(judged),
        settings=Settings(max_turns=2),
        log=log,
    )
    trainer = trainer_of(Scripted, rollouts, tmp_path, num_generations=4)
    trainer.script = [("wrong", "plain"), ("fast", "slow")]
    trainer.train()
    [(step, episodes, more)] = logged
    assert (step, [len(each.turns) for each in episodes]) == (0, [2, 2])
    assert more["timing"]["generate"] >= 0 and more["timing"]["judge"] > 0


def test_replies_are_parted_from_reasoning_and_known_to_be_cut_off(tmp_path) -> None:
    """Also where the chat template opens the reasoning."""
    said = [f"Hm.</think>\n{reply('fast')}", f"Perhaps so:\n{reply('plain')}"]
    tokenizer = make_byte_tokenizer(said, f"{CHAT}<think>\n", end=END)
    whole, cut = tokenizer.convert_tokens_to_ids(said)
    generated = iter([[[whole, tokenizer.eos_token_id], [cut]]])
    trainer: Any = SimpleNamespace(
        processing_class=tokenizer, chat_template_kwargs={}, eos_token_ids=[tokenizer.eos_token_id],
        model=SimpleNamespace(training=False, config=SimpleNamespace(_name_or_path="m")), num_generations_eval=2,
        state=SimpleNamespace(global_step=3), _generate_single_turn=lambda *_, **__: (next(generated), None),
    )  # fmt: skip
    rows = rollouts_of(tmp_path, max_turns=1)(["7_Double"] * 2, trainer)
    assert rows["category"] == ["correct", "format"] and rows["logprobs"] is None
    first, second = sorted(
        (each.turns[0] for each in recorded(tmp_path / "episodes.jsonl")),
        key=lambda turn: turn.truncated,
    )
    assert (first.reasoning, first.truncated, first.reply) == ("Hm.", False, reply("fast"))
    assert (second.truncated, second.kind) == (True, "truncated")
    assert {each.model for each in recorded(tmp_path / "episodes.jsonl")} == {"m@3"}


def test_turns_that_an_episode_did_not_have_count_for_nothing(tmp_path) -> None:
    rollouts = rollouts_of(tmp_path, max_turns=2, stop_on="correct")
    trainer = trainer_of(Twice, rollouts, tmp_path, num_generations=4)
    trainer.script = [("plain", "wrong"), ("fast", "plain")]
    trainer.train()
    # Returns 1.3, nothing, 0.52 and 1.3: their mean is 1.04.
    assert trained_on(trainer) == pytest.approx([0.26, 0, -0.52, 0.26], abs=1e-6)
    assert trainer.state.log_history[0]["completions/min_length"] == 0
    logged = [text.count("class ModelNew") for text in trainer._logs["completion"]]
    assert logged == [2, 1, 2, 2]  # of the turn that was not, one token


def test_an_episode_whose_judge_failed_twice_counts_for_nothing(tmp_path) -> None:
    rollouts = rollouts_of(tmp_path, max_turns=2, pay_repeats=True)
    trainer = trainer_of(Scripted, rollouts, tmp_path, num_generations=6)
    trainer.script = [("fast", "wrong", "plain"), ("broken", "plain", "plain")]
    trainer.train()
    # Returns: nothing, nothing, 0.52, 1.3, 1.3 + 0.52, 1.3. Their mean is 1.235.
    assert trained_on(trainer) == pytest.approx([0, 0, -0.715, 0.065, 0.585, 0.065], abs=1e-6)
    assert [each.stop_reason for each in recorded(tmp_path / "episodes.jsonl")].count(
        "judge_error"
    ) == 1
    trainer.script = [("broken", "broken")]
    with pytest.raises(JudgeError, match="failed for all 2 episodes"):
        rollouts_of(tmp_path, max_turns=1)(["7_Double"] * 2, trainer)


@pytest.mark.parametrize(("size", "turns"), [(6, 4), (8, 3)])
def test_groups_that_are_no_whole_episodes_are_refused(tmp_path, size: int, turns: int) -> None:
    rollouts = rollouts_of(tmp_path, max_turns=turns)
    trainer = trainer_of(Scripted, rollouts, tmp_path, num_generations=size)
    with pytest.raises(
        ValueError, match=f"num_generations is {size} and .* multiples of the {turns} turns"
    ):
        trainer.train()


def test_grpo_teaches_the_faster_kernel(tmp_path) -> None:
    rollouts = rollouts_of(tmp_path, max_turns=2, pay_repeats=True)  # it knows three
    trainer = trainer_of(
        trl.GRPOTrainer,
        rollouts,
        tmp_path,
        names=("wrong", "slow", "fast"),
        max_steps=10,
        learning_rate=0.05,
    )
    trainer.train()
    scores = [each["kevin/score"] for each in trainer.state.log_history if "kevin/score" in each]
    assert scores[0] < 1.5 and scores[-1] > 2.0, scores


def test_a_curriculum_chooses_the_problems_and_hears_of_them(tmp_path) -> None:
    problems = []
    for level in (1, 2):
        (tmp_path / f"level{level}").mkdir()
        problems.append(parse_problem(Path(problem_file(tmp_path / f"level{level}").path)))
    curriculum: Any = Curriculum(problems, window=2, promote_at=1.0, review=0.0)
    rollouts = TurnRollouts(curriculum, pool=ScriptedPool(judged), settings=Settings(max_turns=1))
    trainer = trainer_of(
        Scripted, rollouts, tmp_path, num_generations=2, max_steps=4, shuffle_dataset=False
    )
    trainer.script = [("fast", "plain"), ("fast", "wrong"), ("wrong", "wrong"), ("plain", "wrong")]
    trainer.train()
    state = curriculum.state
    assert curriculum.stage == 1
    # The first step solves level 1, and one more batch of it had been drawn by then.
    assert state.tried == {"L1_7_Double": 4, "L2_7_Double": 4}
    assert state.solved == {"L1_7_Double": 3, "L2_7_Double": 1}


def tool_call(name: str) -> str:
    code = reply(name).removeprefix("```python\n").removesuffix("```\n")
    call = {"name": "submit_kernel", "arguments": {"code": code}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


class ToolScripted(trl.GRPOTrainer):
    """As `Scripted`; each round says the next texts, and ends them."""

    script: list[tuple[str, ...]]

    def _generate_single_turn(self, prompt_ids, images, multimodal_fields, num_generations, **more):
        texts = self.script.pop(0)
        assert len(texts) == len(prompt_ids)
        ids = self.processing_class.convert_tokens_to_ids(list(texts))
        return [[each, self.processing_class.eos_token_id] for each in ids], None


CPU = {
    "use_cpu": True,
    "bf16": False,
    "use_vllm": False,
    "report_to": "none",
    "save_strategy": "no",
}


def test_the_example_takes_two_optimizer_steps_on_each_batch(tmp_path, monkeypatch) -> None:
    example = load_example("train_trl")
    options = ["--steps", "1", "--groups", "1", "--max-turns", "2", "-o", "samples=2"]
    monkeypatch.setattr("sys.argv", ["train_trl.py", "M", "--judge", "cpu", *options])
    arguments = example.parse()
    numbers = example.config(arguments, example.read(arguments))
    given = trl.GRPOConfig(**numbers | CPU)
    assert given.steps_per_generation == 2 * given.gradient_accumulation_steps
    rollouts = rollouts_of(tmp_path, max_turns=2)
    more = CPU | {"max_completion_length": 1, "output_dir": str(tmp_path)}
    trainer = trainer_of(Scripted, rollouts, tmp_path, **numbers | more)
    trainer.script = [("fast", "wrong"), ("plain", "slow")]  # one batch
    trainer.train()
    assert (trainer.state.global_step, trainer.script) == (2, [])


def test_the_tool_takes_a_file_as_it_is(tmp_path) -> None:
    environment = KernelEnvironment(ScriptedPool([correct(2.0)]), Settings(max_turns=2))
    environment.reset(problem=problem_file(tmp_path).path)
    broken = environment.submit_kernel("import torch\nclass ModelNew(:\n")
    assert broken.startswith("Compile error (syntax, line 2)")
    right = environment.submit_kernel(f'"""Such as\n```\nmodel(x)\n```\n"""\n{KERNEL}')
    assert right.startswith("Correct.") and environment.get_reward() == pytest.approx(0.4 * 2.3)


def test_the_example_with_tools_takes_an_optimizer_step_on_each_batch(tmp_path) -> None:
    example = load_example("train_trl_tools")
    assert {"prompt", "problem"} == set(example.rows("L1").column_names)
    given = trl.GRPOConfig(**example.CONFIG | CPU)
    assert given.generation_batch_size == example.PROBLEMS * given.num_generations
    words = [*map(tool_call, ("fast", "plain")), "I am done."]
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    tokenizer = make_byte_tokenizer(words, template, end="<|im_end|>")
    small = {"num_generations": 2, "gradient_accumulation_steps": 2, "max_steps": 2}
    row = {"prompt": [{"role": "user", "content": ""}], "problem": problem_file(tmp_path).path}
    trainer = ToolScripted(
        make_model(tokenizer),
        args=trl.GRPOConfig(**example.CONFIG | CPU | small | {"output_dir": str(tmp_path)}),
        train_dataset=Dataset.from_list([row]),
        processing_class=tokenizer,
        environment_factory=lambda: KernelEnvironment(ScriptedPool(judged), Settings(max_turns=1)),
    )
    fast, plain, done = words
    trainer.script = [(fast, plain), (done, done)] * 2
    trainer.train()
    assert (trainer.state.global_step, trainer.script) == (2, [])


def test_trl_plays_the_environment_by_tool_calls(tmp_path) -> None:
    words = [*map(tool_call, ("wrong", "plain", "fast", "broken")), "I am done."]
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text()
    tokenizer = make_byte_tokenizer(words, template, end="<|im_end|>")
    config = trl.GRPOConfig(
        output_dir=str(tmp_path), per_device_train_batch_size=4, num_generations=4, max_completion_length=4096,
        max_steps=1, use_cpu=True, bf16=False, report_to="none", save_strategy="no", logging_steps=1, disable_tqdm=True,
        gradient_checkpointing=False, scale_rewards="none",
    )  # fmt: skip
    pool = ScriptedPool(judged)
    settings = Settings(max_turns=2)
    row = {"prompt": [{"role": "user", "content": ""}], "problem": problem_file(tmp_path).path}
    trainer = ToolScripted(
        make_model(tokenizer), args=config, train_dataset=Dataset.from_list([row]), processing_class=tokenizer,
        environment_factory=lambda: KernelEnvironment(pool, settings),
    )  # fmt: skip
    wrong, plain, fast, broken, done = words
    trainer.script = [(wrong, plain, broken, done), (fast, done, done), (fast,), (done,)]
    trainer.train()
    # Returns 0.4 x 2.3 and 1.3; the judge failed for the third; the fourth submitted nothing and
    # has 0.
    mean = (0.92 + 1.3 + 0) / 3
    assert trained_on(trainer) == pytest.approx([0.92 - mean, 1.3 - mean, 0, -mean], abs=1e-5)
    (prompt, *_), (chat, *_) = trainer._logs["prompt"], trainer._logs["completion"]
    assert "Doubles x." in prompt[-1]["content"] and "submit_kernel" in prompt[-1]["content"]
    told = [message["content"] for message in chat if message["role"] == "tool"]
    assert "512 of 1024" in told[0] and "Turns left: 1." in told[0]
    assert "No turns are left." in told[1] and "no turns are left" in told[2]
    assert len(pool.submissions) == 2 + 1 + 2  # the broken one twice, what came too late never
