"""Training with TRL's `GRPOTrainer` (`pip install 'kevin-env[trl]'`), in one of two ways.

`TurnRollouts` trains as Kevin does (arXiv 2507.11948): each turn is a sample with its own prompt
and discounted return, compared with all m x n turns of its problem. With `KernelEnvironment`, TRL
plays by tool calls, with one growing chat and one reward per episode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from kevin_env.advantage import training_samples
from kevin_env.context import build_messages
from kevin_env.episode import Episode, EpisodeError
from kevin_env.extract import as_reply
from kevin_env.integrations.judging import process_pool, submit, submit_all, token_counter
from kevin_env.integrations.run_log import RunLogger
from kevin_env.judge.api import JudgeError, JudgePool
from kevin_env.outcome import FormatError
from kevin_env.problem import Problem, load_problem
from kevin_env.reasoning import mark_at_end
from kevin_env.record import Reply, Usage
from kevin_env.recorder import Recorder
from kevin_env.score import resolve_score, score_of
from kevin_env.selection import ProblemChoice, ProblemSource, problem_source
from kevin_env.settings import Settings

if TYPE_CHECKING:
    from datasets import Dataset, IterableDataset

_NOTHING = FormatError(kind="no_code", message="Nothing was submitted.")


class KernelEnvironment:
    """An `environment_factory`: an episode that the policy plays with the tool `submit_kernel`.

        GRPOTrainer(
            model, args=GRPOConfig(max_tool_calling_iterations=4, ...),
            environment_factory=KernelEnvironment, train_dataset=Dataset.from_list([
                {"prompt": [{"role": "user", "content": ""}], "problem": "L1_23_Softmax"}, ...
            ]),
        )

    The chat grows with every turn, reasoning included, and has one advantage. TRL runs the tools of
    these rollouts one after the other.

    Args:
        pool: the judges, or the URL of a judge server; by default those of this machine.
        settings: how episodes are played. With `gamma=1` and `returns="max"`, the reward is the
            best score.
    """

    def __init__(
        self, pool: JudgePool | str | None = None, settings: Settings | None = None
    ) -> None:
        self._pool, self._settings = pool, settings or Settings()
        self._episode: Episode | None = None
        self._failed = False

    def reset(self, problem: str, **row: Any) -> str:
        """Starts an episode and returns its task.

        Args:
            problem: its id or path, from the row's column of that name.
            row: the other columns.

        Raises:
            ProblemError: if it is unknown, or its reference fails.
            JudgeError: if the judge fails.
        """
        self._episode = Episode(
            load_problem(problem), process_pool(self._pool), self._settings, model="trl"
        )
        self._failed = False
        task = "\n\n".join(message.content for message in self._episode.start())
        tool = (
            "Give the file to `submit_kernel` instead of writing it in a code block, once a turn."
        )
        return f"{task}\n\n# Tool\n\n{tool}"

    def submit_kernel(self, code: str) -> str:
        """Compiles, checks and times a kernel, and returns the outcome. Uses up one turn.

        Args:
            code: One complete Python file that defines `ModelNew`.

        Returns:
            The outcome.
        """
        episode = self._episode
        if episode is None or episode.done or self._failed:
            raise EpisodeError("no turns are left; nothing more can be submitted")
        try:
            turn = submit(episode, as_reply(code))
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
        """The discounted return of the first turn, or that of a reply without code.

        None, which TRL skips, if the judge failed.
        """
        if self._failed or self._episode is None:
            return None
        if not self._episode.turns:
            return score_of(_NOTHING, resolve_score(self._settings.score))
        return self._episode.returns[0]


class TurnRollouts:
    """A `rollout_func` that plays m episodes of n turns at once, for `num_generations` = m x n.

        rollouts = TurnRollouts("train", settings=Settings(max_turns=4))
        GRPOTrainer(
            model, turn_return, GRPOConfig(num_generations=16 * 4, scale_rewards="group", ...),
            train_dataset=rollouts.dataset(), rollout_func=rollouts,
        )

    `scale_rewards="group"` is Kevin's baseline, `flat_std` of `kevin_env.advantage`; `"none"` is
    `flat`. Every batch has n turns of every episode: turns after the end of an episode, and all
    turns of one whose judge failed, have no return, no tokens in the loss and no part in the
    baseline.

    Args:
        problems: as for `find_problems`, without the held-out problems of levels; or a
            `MixedDifficulty` or `Curriculum`, which gets the outcomes of each training episode.
        pool: the judges, closed by the caller; by default those of this machine's devices.
        settings: how episodes are played; `max_turns` is n. `context_tokens` are tokens of the
            policy, and must leave room for `max_completion_length` in the model's context.
        recorder: writes the episodes to a trajectory file, with name and step as their model.
        log: receives all episodes of each batch, with the seconds of `generate` and `judge`. TRL's
            own figures go to what `report_to` names.

    Raises:
        ProblemError: if a problem is unknown.
    """

    def __init__(
        self,
        problems: ProblemChoice | ProblemSource,
        *,
        pool: JudgePool | str | None = None,
        settings: Settings | None = None,
        recorder: Recorder | None = None,
        log: RunLogger | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._source = problem_source(problems)
        known = () if isinstance(self._source, ProblemSource) else self._source
        self._known: dict[str, Problem] = {problem.id: problem for problem in known}
        self._pool, self._recorder, self._log = pool, recorder, log

    def dataset(self) -> Dataset | IterableDataset:
        """The `train_dataset`: the problems by ID, which the rollouts replace by prompts.

        A curriculum's dataset is endless and drawn one batch ahead: set `max_steps` and
        `shuffle_dataset=False`, or TRL draws a thousand problems before the first step.
        """
        from datasets import Dataset, IterableDataset

        if isinstance(self._source, ProblemSource):
            return IterableDataset.from_generator(_Draws(self._source, self._known))
        return Dataset.from_dict({"prompt": list(self._known)})

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, list[Any] | None]:
        """One row for each of `prompts`, each of which names a problem.

        Raises:
            ValueError: if the rows of a problem cannot be divided into whole episodes.
            JudgeError: if the judge failed for every episode.
        """
        training = trainer.model.training
        self._require_whole(
            prompts, trainer.num_generations if training else trainer.num_generations_eval
        )
        episodes = self._begin(prompts[:: self.settings.max_turns], trainer)
        rounds = [_play(episodes, trainer) for _ in range(self.settings.max_turns)]
        if all(episode.stop_reason == "judge_error" for episode in episodes):
            raise JudgeError(
                f"the judge failed for all {len(episodes)} episodes; see `kevin-env doctor`"
            )
        if training:
            self._tell(episodes)
        if self._log is not None:
            _log(self._log, episodes, rounds, trainer)
        return _rows(episodes, rounds)

    def _require_whole(self, prompts: Sequence[str], group: int) -> None:
        """A group that is spread over processes consists of whole episodes in each of them."""
        turns = self.settings.max_turns
        chunks = [prompts[at : at + turns] for at in range(0, len(prompts), turns)]
        if group % turns or any(len(chunk) < turns or len(set(chunk)) > 1 for chunk in chunks):
            raise ValueError(
                f"num_generations is {group} and this process has {len(prompts)} rows; "
                f"both must be multiples of the {turns} turns of an episode"
            )

    def _begin(self, ids: Sequence[str], trainer: Any) -> list[Episode]:
        count = token_counter(trainer.processing_class.encode)
        build = partial(build_messages, count=count)
        name = f"{trainer.model.config._name_or_path or 'policy'}@{trainer.state.global_step}"
        pool = process_pool(self._pool)
        begin = partial(
            Episode,
            pool=pool,
            settings=self.settings,
            recorder=self._recorder,
            model=name,
            build=build,
        )
        episodes = [begin(self._known[id]) for id in ids]
        for episode in episodes:
            episode.start()
        return episodes

    def _tell(self, episodes: Sequence[Episode]) -> None:
        """Records the episodes of all processes in each, so that all curricula draw alike."""
        if not isinstance(self._source, ProblemSource):
            return
        from accelerate.utils import gather_object

        ended = [episode for episode in episodes if episode.stop_reason != "judge_error"]
        for id, outcomes in gather_object(
            [(e.problem.id, [turn.outcome for turn in e.turns]) for e in ended]
        ):
            self._source.record(self._known[id], outcomes)


def turn_return(
    turn_return: Sequence[float | None],
    score: Sequence[float | None],
    category: Sequence[str | None],
    **more: Any,
) -> list[float | None]:
    """The reward function of `TurnRollouts`. Logs mean score and share of correct turns."""
    log_metric: Callable[[str, float], None] = more["log_metric"]
    if scores := [value for value in score if value is not None]:
        log_metric("kevin/score", fmean(scores))
        log_metric("kevin/correct", category.count("correct") / len(scores))
    return list(turn_return)


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws problems endlessly, and records them by ID."""

    source: ProblemSource
    known: dict[str, Problem]

    def __call__(self) -> Iterator[dict[str, str]]:
        while True:
            (problem,) = self.source.sample(1)
            self.known[problem.id] = problem
            yield {"prompt": problem.id}

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Pickles to nothing: `datasets` pickles the generator only to name a cache."""
        return object, ()


@dataclass(frozen=True, slots=True)
class _Round:
    """The generations of one turn in all episodes, in order."""

    prompt_ids: list[list[int]]
    completion_ids: list[list[int]]
    logprobs: list[list[float]] | None
    generate: float
    judge: float
    """Seconds."""


def _play(episodes: Sequence[Episode], trainer: Any) -> _Round:
    """Takes one turn in all episodes, including ended ones, so that batches have the same shape."""
    began = time.perf_counter()
    chats = [[message.model_dump() for message in episode.messages] for episode in episodes]
    prompt_ids = trainer.processing_class.apply_chat_template(
        chats,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **trainer.chat_template_kwargs,
    )["input_ids"]
    completion_ids, logprobs = trainer._generate_single_turn(
        prompt_ids, None, {}, num_generations=1
    )
    generations = zip(episodes, prompt_ids, completion_ids, strict=True)
    replies = {
        episode: _reply(prompt, ids, trainer)
        for episode, prompt, ids in generations
        if not episode.done
    }
    generated = time.perf_counter()
    for episode in submit_all(replies):
        episode.finish("judge_error")
    judged = time.perf_counter()
    return _Round(prompt_ids, completion_ids, logprobs, generated - began, judged - generated)


def _reply(prompt_ids: list[int], completion_ids: list[int], trainer: Any) -> Reply:
    decode = trainer.processing_class.decode
    opened = mark_at_end(decode(prompt_ids[-16:]))  # by the chat template
    cut = completion_ids[-1] not in trainer.eos_token_ids
    usage = Usage(prompt_tokens=len(prompt_ids), completion_tokens=len(completion_ids))
    text = opened + decode(completion_ids, skip_special_tokens=True)
    return Reply(content=text, truncated=cut, usage=usage)


def _log(
    log: RunLogger, episodes: Sequence[Episode], rounds: Sequence[_Round], trainer: Any
) -> None:
    """Logs the episodes of all processes in the main one."""
    from accelerate.utils import gather_object

    played = gather_object([episode.trajectory for episode in episodes if episode.turns])
    timing = {
        "generate": sum(each.generate for each in rounds),
        "judge": sum(each.judge for each in rounds),
    }
    if played and trainer.accelerator.is_main_process:
        log.log_batch(trainer.state.global_step, played, timing=timing)


def _rows(episodes: Sequence[Episode], rounds: Sequence[_Round]) -> dict[str, list[Any] | None]:
    """The turns by episode; None for return, score and category of those not to train on."""
    known = [
        {sample.turn - 1: sample for sample in training_samples([each.trajectory])}
        for each in episodes
    ]
    order = [(at, number) for at in range(len(episodes)) for number in range(len(rounds))]
    samples = [known[at].get(number) for at, number in order]
    # TRL also logs and pads completions that do not count: these are cut to one token.
    places = [(*place, None if sample else 1) for place, sample in zip(order, samples, strict=True)]
    completion_ids = [rounds[number].completion_ids[at][:end] for at, number, end in places]
    logprobs = [each.logprobs for each in rounds if each.logprobs is not None]
    return {
        "prompt_ids": [rounds[number].prompt_ids[at] for at, number in order],
        "completion_ids": completion_ids,
        "logprobs": [logprobs[number][at][:end] for at, number, end in places]
        if logprobs
        else None,
        "env_mask": [
            [int(sample is not None)] * len(ids)
            for sample, ids in zip(samples, completion_ids, strict=True)
        ],
        "turn_return": [sample and sample.turn_return for sample in samples],
        "score": [sample and sample.score for sample in samples],
        "category": [sample and sample.category for sample in samples],
    }
