"""An episode as an `environment_factory` of TRL's: the policy plays it by calling a tool."""

from typing import Any

from kevin_env.episode import Episode, EpisodeError
from kevin_env.integrations.judging import process_pool, submit
from kevin_env.judge.api import JudgeError, JudgePool
from kevin_env.outcome import FormatError
from kevin_env.problem import load_problem
from kevin_env.score import resolve_score, score_of
from kevin_env.settings import Settings

_NOTHING = FormatError(kind="no_code", message="Nothing was submitted.")


class KernelEnvironment:
    """An `environment_factory`: an episode that the policy plays by the tool `submit_kernel`.

        GRPOTrainer(
            model, args=GRPOConfig(max_tool_calling_iterations=4, ...),
            environment_factory=KernelEnvironment, train_dataset=Dataset.from_list([
                {"prompt": [{"role": "user", "content": ""}], "problem": "L1_23_Softmax"}, ...
            ]),
        )

    The chat grows with every turn, reasoning included, and all of it gets one advantage. TRL's
    trainer of this kind runs the tools of its rollouts one after the other.

    Args:
        pool: who judges; by default judges of this machine's devices.
        settings: how episodes are played. With `gamma=1` and `returns="max"` the reward is the best
            score.
    """

    def __init__(self, pool: JudgePool | None = None, settings: Settings | None = None) -> None:
        self._pool, self._settings = pool, settings or Settings()
        self._episode: Episode | None = None
        self._failed = False

    def reset(self, problem: str, **row: Any) -> str:
        """Begins an episode and gives its task.

        Args:
            problem: its id or path, from the row's column of that name.
            row: the other columns.

        Raises:
            ProblemError: if it is unknown, or its reference fails.
            JudgeError: if the judge fails.
        """
        self._episode = Episode(
            load_problem(problem), self._pool or process_pool(), self._settings, model="trl"
        )
        self._failed = False
        task = "\n\n".join(message.content for message in self._episode.start())
        return f"{task}\n\n# Tool\n\nGive the file to `submit_kernel` instead of writing it in a code block, once a turn."

    def submit_kernel(self, code: str) -> str:
        """Compiles, checks and times a kernel, and tells what came of it. Uses up one turn.

        Args:
            code: One complete Python file that defines `ModelNew`.

        Returns:
            What came of it.
        """
        episode = self._episode
        if episode is None or episode.done or self._failed:
            raise EpisodeError("no turns are left; nothing more can be submitted")
        try:
            turn = submit(episode, code)
        except JudgeError:
            self._failed = True
            return (
                "The machine that judges has failed, not the kernel. Nothing more can be submitted."
            )
        left = self._settings.max_turns - turn.turn
        return (
            f"{turn.feedback}\n\n{'No turns are left.' if episode.done else f'Turns left: {left}.'}"
        )

    def get_reward(self) -> float | None:
        """The discounted return of the first turn; that of a reply without code if nothing was
        submitted.

        None, which TRL leaves out, if the judge failed.
        """
        if self._failed or self._episode is None:
            return None
        if not self._episode.turns:
            return score_of(_NOTHING, resolve_score(self._settings.score))
        return self._episode.returns[0]
