"""An episode as an environment of SkyRL-gym (`pip install 'kevin-env[skyrl]'`).

    skyrl_gym.register(
        "kevin", "kevin_env.integrations.skyrl:KernelEnv", {"settings": Settings(rules="kernel")}
    )

The rows of the data set have the `env_class` "kevin" and a column `problem`. SkyRL's generator lets
the chat grow with every turn; each turn's reward is its score. examples/train_skyrl.py trains.
"""

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput, ConversationType

from kevin_env.episode import Episode
from kevin_env.integrations.judging import process_pool, submit
from kevin_env.judge.api import JudgePool
from kevin_env.problem import ProblemError, load_problem
from kevin_env.record import best_speedup
from kevin_env.settings import Settings


class KernelEnv(BaseTextEnv):
    """Plays one episode.

    Args:
        env_config: settings of the episode by name, which override `settings`.
        extras: the row: `problem` (ID or path), and `max_turns`, which SkyRL sets and
            which overrides all others.
        settings: how episodes are played, for `skyrl_gym.register`.
        pool: the judges, or the URL of a judge server; by default those of this machine.

    Raises:
        ProblemError: if the problem of the row is unknown.
        ValueError: for an unknown setting or a value out of range.
    """

    def __init__(
        self,
        env_config: Mapping[str, Any] | None = None,
        extras: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        pool: JudgePool | str | None = None,
    ) -> None:
        super().__init__()
        row = extras or {}
        if "problem" not in row:
            raise ProblemError("the row has no column 'problem'; it holds a problem's id or path")
        turns = {"max_turns": row["max_turns"]} if "max_turns" in row else {}
        played = Settings.of({**dict(settings or Settings()), **(env_config or {}), **turns})
        self._episode = Episode(
            load_problem(row["problem"]), process_pool(pool), played, model="skyrl"
        )
        self.max_turns = played.max_turns

    def init(self, prompt: ConversationType) -> tuple[ConversationType, dict[str, Any]]:
        """The first chat, which replaces the prompt of the row.

        Raises:
            ProblemError: if the problem's reference fails.
            JudgeError: if the judge fails.
        """
        return [message.model_dump() for message in self._episode.start()], {
            "problem": self._episode.problem.id
        }

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Takes a turn with the policy's reply.

        Raises:
            EpisodeError: after the last turn.
            JudgeError: if the judge fails twice.
        """
        turn = submit(self._episode, action)
        self.turns = turn.turn
        left = self.max_turns - turn.turn
        content = f"{turn.feedback}\n\nTurns left: {left}. Give new, complete code in one block."
        return BaseTextEnvStepOutput(
            observations=[] if self._episode.done else [{"role": "user", "content": content}],
            reward=turn.score,
            done=self._episode.done,
            metadata={"category": turn.category, "kind": turn.kind, "speedup": turn.speedup},
            postprocessed_action=None,
        )

    def get_metrics(self) -> dict[str, Any]:
        """Turns so far, whether one was correct, best score and speedup, and the first return."""
        turns = self._episode.turns
        if not turns:
            return {"turns": 0}
        return {
            "turns": len(turns),
            "solved": any(turn.category == "correct" for turn in turns),
            "best_score": max(turn.score for turn in turns),
            "best_speedup": best_speedup(turns),
            "return": self._episode.returns[0],
        }
