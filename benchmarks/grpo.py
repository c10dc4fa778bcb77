"""Trains a policy from nothing by GRPO with TRL, judged by a server process, in 25 GPU minutes.

The policy is a Llama of 100 million weights that knows nothing at first. It is trained for some
minutes to imitate `kernel_mixture`, where a third of the kernels is right, and then by GRPO on the
verdicts for what it writes: episodes of two turns with the usual prompts. Problems that the GRPO
does not see are played before and after it. Rows are written after every step, and the
run continues from its last checkpoint if started again with the same `--out`.

    python benchmarks/grpo.py --out FOLDER --json FILE --minutes 9
    python benchmarks/grpo.py --out FOLDER --json FILE --minutes 7 --final
    python benchmarks/grpo.py --out FOLDER --json FILE --smoke    # a CPU suffices
"""

import argparse
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from kernel_mixture import HELD_OUT, problem_names, source
from resultfile import Results, device_name, plain_row
from warm_start import Sizes, WarmStart

from kevin_env.integrations.run_log import RunLogger
from kevin_env.integrations.trl import TurnRollouts, turn_return
from kevin_env.pools.http import HttpPool
from kevin_env.problem import Problem, parse_problem
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

METRICS = {
    "correct": ("Kernel/CorrectRate", "share"),
    "correct in turn 1": ("MultiTurn/Turn1/CorrectRate", "share"),
    "correct in turn 2": ("MultiTurn/Turn2/CorrectRate", "share"),
    "speedup of correct": ("Kernel/MeanSpeedup", "times"),
    "best speedup of an episode": ("MultiTurn/BestSpeedupMean", "times"),
    "score": ("Reward/Mean", "score"),
    "deviation of returns": ("Reward/GroupStdDev", "score"),
    "not okay": ("Kernel/NotOkayRate", "share"),
    "repetition": ("Kernel/RepetitionRate", "share"),
    "repeated code": ("Kernel/RepeatedRate", "share"),
    "rules broken": ("Kernel/HackRate", "share"),
    "cut off": ("Kernel/TruncatedRate", "share"),
    "generate": ("Timing/Generate", "s"),
    "judge": ("Timing/Judge", "s"),
}
"""Scalar and unit of each figure of a step."""


@dataclass(frozen=True)
class Plan:
    """Sizes of a run."""

    warm: Sizes = field(default_factory=Sizes)
    problems: tuple[str, ...] = tuple(each for each in problem_names() if each not in HELD_OUT)
    held_out: tuple[str, ...] = HELD_OUT
    episodes: int = 8
    """Episodes per problem in a batch."""
    turns: int = 2
    together: int = 4
    """Problems in a batch."""
    updates: int = 2
    """Optimizer steps on each batch."""
    micro_batch: int = 16
    reply_tokens: int = 512


SMOKE = Plan(
    Sizes(
        width=32, layers=1, vocabulary=1500, kernels=3, prompt_episodes=1, batch=2,
        learning_rate=3e-2, steps=100, whole_replies=True,
    ),
    problems=("Swish", "Row_Sum"), held_out=("Bell",), episodes=2, together=1, micro_batch=2,
    reply_tokens=3,
)  # fmt: skip


def main() -> None:
    arguments = parse()
    began = time.monotonic()
    plan = SMOKE if arguments.smoke else Plan()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    with judge_server(arguments.device) as url, HttpPool(url) as pool:
        info = pool.device()
        versions = info.versions | {each: version(each) for each in ("trl", "transformers")}
        results = Results(arguments.json, device_name(info), versions)
        problems = write_problems(arguments.out / "problems", [*plan.problems, *plan.held_out])
        settings = Settings(
            max_turns=plan.turns, device=arguments.device, language="triton", examples="zero"
        )
        policy = arguments.out / "warm"
        if not policy.exists():
            warm = WarmStart(plan.warm, problems, settings, pool)
            warm.train(policy, 60 * arguments.warm_minutes, results)
            results.put(
                plain_row("problems", len(plan.problems)),
                plain_row("problems held out", len(plan.held_out)),
            )
        training = Training(arguments, plan, problems, settings, pool, results)
        if not training.resumed:
            training.evaluate("held out, before")
        training.train(began + 60 * arguments.minutes)
        if arguments.final:
            training.evaluate("held out, after")


@contextlib.contextmanager
def judge_server(device: str) -> Iterator[str]:
    """Runs `kevin-env judge-server` and yields its URL."""
    command = [sys.executable, "-m", "kevin_env", "judge-server", "--port", "0"]
    server = subprocess.Popen([*command, "--device", device], stderr=subprocess.PIPE, text=True)
    assert server.stderr
    try:
        for line in server.stderr:
            print(line, end="", file=sys.stderr)
            if " at http://" in line:
                drain = threading.Thread(target=sys.stderr.writelines, args=(server.stderr,))
                drain.daemon = True
                drain.start()
                yield line.split(" at ")[1].split(";")[0]
                return
        raise SystemExit("the judge server did not start")
    finally:
        server.terminate()
        server.wait()


def write_problems(folder: Path, names: Sequence[str]) -> dict[str, Problem]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(source(name))
    return {name: parse_problem(folder / f"{name}.py") for name in names}


@dataclass
class StepRows(RunLogger):
    """Writes rows: of the held-out problems, or of each batch."""

    results: Results
    name: Callable[[int], str]
    ended: float = field(default_factory=time.monotonic)
    """When the last batch was done."""

    def write(self, step: int, scalars: Mapping[str, float], _: Mapping[str, Any]) -> None:
        now, name, turns = time.monotonic(), self.name(step), int(scalars["Batch/TotalSteps"])
        judged, seconds = int(scalars["Counts/Judged"]), scalars["Timing/Judge"]
        known = {title: each for title, each in METRICS.items() if each[0] in scalars}
        self.results.put(
            *(
                plain_row(f"{name}: {title}", scalars[key], unit, turns)
                for title, (key, unit) in known.items()
            ),
            plain_row(f"{name}: judged turns", judged / seconds, "turns/s", judged),
            plain_row(f"{name}: whole step", now - self.ended, "s", turns),
        )
        self.ended = now
        shown = ", ".join(f"{title} {scalars[key]:.2f}" for title, (key, _) in known.items())
        print(f"{name}: {shown}, {judged / seconds:.1f} judged/s", flush=True)

    def close(self) -> None:
        pass


class Training:
    """GRPO on the problems of a plan, from the warm start or the last checkpoint."""

    def __init__(
        self, arguments: argparse.Namespace, plan: Plan, problems: Mapping[str, Problem],
        settings: Settings, pool: HttpPool, results: Results,
    ) -> None:  # fmt: skip
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.trainer_utils import get_last_checkpoint
        from trl import GRPOConfig, GRPOTrainer

        checkpoints = arguments.out / "checkpoints"
        checkpoints.mkdir(exist_ok=True)
        self.resumed = get_last_checkpoint(str(checkpoints))
        self._plan, self._problems, self._results = plan, problems, results
        self._recorder = Recorder(arguments.out / "episodes.jsonl")
        self._pool, self._settings = pool, settings
        rollouts = self._rollouts(plan.problems, lambda step: f"step {step // plan.updates + 1:03}")
        folder = arguments.out / "warm"
        self.trainer = GRPOTrainer(
            AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
            turn_return,
            GRPOConfig(**self._config(arguments, checkpoints)),
            train_dataset=rollouts.dataset(),
            rollout_func=rollouts,
            processing_class=AutoTokenizer.from_pretrained(folder),
        )

    def _config(self, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
        plan, on_gpu = self._plan, self._results.device != "cpu"
        group = plan.episodes * plan.turns
        batch = group * plan.together
        done = int(self.resumed.rpartition("-")[2]) if self.resumed else 0
        return {
            "output_dir": str(folder),
            "max_steps": plan.updates * arguments.steps,
            "num_generations": group,
            "generation_batch_size": batch,
            "per_device_train_batch_size": plan.micro_batch,
            "gradient_accumulation_steps": batch // plan.micro_batch // plan.updates,
            "max_completion_length": plan.reply_tokens,
            "temperature": 1.0,
            "learning_rate": arguments.learning_rate,
            "lr_scheduler_type": "constant",
            "max_grad_norm": 0.5,
            "scale_rewards": "group",
            "loss_type": "dr_grpo",
            "beta": 0.0,
            "epsilon": 0.2,
            "epsilon_high": 0.28,
            "bf16": on_gpu,
            "use_cpu": not on_gpu,
            "gradient_checkpointing": False,
            "save_steps": 5 * plan.updates,
            "save_total_limit": 1,
            "seed": done,  # other problems than those before
            "ignore_data_skip": True,
            "logging_steps": 1,
            "report_to": "none",
            "disable_tqdm": True,
        }

    def _rollouts(self, names: Sequence[str], name: Callable[[int], str]) -> TurnRollouts:
        return TurnRollouts(
            [self._problems[each] for each in names], pool=self._pool, settings=self._settings,
            recorder=self._recorder, log=StepRows(self._results, name),
        )  # fmt: skip

    def train(self, end: float) -> None:
        """Trains until then (`time.monotonic`), and saves a checkpoint."""
        from transformers import TrainerCallback

        updates = self._plan.updates

        class Stop(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.global_step % updates == 0 and time.monotonic() > end:
                    control.should_save = control.should_training_stop = True

        self.trainer.add_callback(Stop())
        self.trainer.train(resume_from_checkpoint=self.resumed)

    def evaluate(self, name: str) -> None:
        """Plays the held-out problems without training on them."""
        rollouts = self._rollouts(self._plan.held_out, lambda _: name)
        self.trainer.model.eval()
        rows = self._plan.episodes * self._plan.turns
        rollouts(
            [self._problems[each].id for each in self._plan.held_out for _ in range(rows)],
            self.trainer,
        )
        self.trainer.model.train()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for policy and episodes")
    parser.add_argument("--json", type=Path, help="the file of results to write")
    parser.add_argument("--device", default="auto", help="that trains and judges")
    parser.add_argument("--minutes", type=float, default=60, help="end after this many minutes")
    parser.add_argument("--warm-minutes", type=float, default=4, help="of imitation")
    parser.add_argument("--steps", type=int, default=1000, help="batches of the GRPO, in total")
    parser.add_argument("--learning-rate", type=float, default=3e-5, help="of the GRPO")
    parser.add_argument(
        "--final", action="store_true", help="play the held-out problems at the end"
    )
    parser.add_argument("--smoke", action="store_true", help="a toy run, as a check")
    return parser.parse_args()


if __name__ == "__main__":
    main()
