"""`Kevin-v0`: an `Episode` as a Gymnasium environment."""

import inspect
import multiprocessing
import string
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Literal, NoReturn

import gymnasium
from gymnasium import spaces
from gymnasium.error import (
    ClosedEnvironmentError,
    CustomSpaceError,
    InvalidAction,
    ResetNeeded,
)
from gymnasium.vector.utils.shared_memory import create_shared_memory

from kevin_env.episode import Episode
from kevin_env.judge.api import JudgePool
from kevin_env.pools.http import connect
from kevin_env.problem import Problem
from kevin_env.record import Turn
from kevin_env.selection import ProblemChoice, ProblemSource, draw_problem, problem_source
from kevin_env.settings import Settings

_LONGEST_SAMPLE = 64


class UnicodeText(spaces.Text):
    """Strings of up to `max_length` characters, with any Unicode.

    Gymnasium's `Text` checks every character against a list, and listing all of Unicode takes
    seconds and megabytes. Samples are short and printable ASCII.
    """

    def __init__(self, max_length: int = 2**20, *, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string of at most `max_length` characters."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short string of printable ASCII; as `Text` with `mask` or `probability`."""
        if mask is not None or probability is not None:
            return super().sample(mask, probability)
        length = int(self.np_random.integers(min(_LONGEST_SAMPLE, self.max_length) + 1))
        return super().sample((length, None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"


@create_shared_memory.register(UnicodeText)
def _refuse_shared_memory(
    space: UnicodeText, n: int = 1, ctx: ModuleType = multiprocessing
) -> NoReturn:
    # AsyncVectorEnv would return the same garbage for all observations (Gymnasium 1.4).
    raise CustomSpaceError(
        "shared memory cannot hold text; use gym.make_vec without vectorization_mode, "
        "or with vector_kwargs={'shared_memory': False}"
    )


def _with_settings(init: Callable[..., None]) -> Callable[..., None]:
    """Replaces `**settings` in the signature by the fields of `Settings`."""
    signature = inspect.signature(init)
    fields = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation
        )
        for name, field in Settings.model_fields.items()
    ]
    *parameters, _ = signature.parameters.values()
    vars(init)["__signature__"] = signature.replace(parameters=[*parameters, *fields])
    return init


class KevinEnv(gymnasium.Env[str, str]):
    """A policy rewrites a PyTorch reference as a GPU kernel over several turns.

    ## Action

    The policy's reply to `info["messages"]`, as text with any Unicode. The submission is the last
    code block that defines `ModelNew`. A reply without one is a turn of category `format`.

    ## Observation

    The last user message, as text. `info["messages"]` is the whole chat to send to a model.

    ## Reward

    The score of the turn: by default 0.3 plus the speedup over the reference for a correct kernel,
    else 0. Repeated code earns nothing more, unless `pay_repeats`. The discounted returns of the
    turns are in `info["returns"]` at the end.

    ## Episode End

    `terminated` is true after `max_turns` turns, which the prompt announces, or when `stop_on`
    holds. `truncated` is always false.

    ## Info

    - `messages`: the chat to send, a list of `{"role": ..., "content": ...}`.
    - After a reset: `problem`, its ID; `level`, unless the file has none; and `sample`, the number
      of earlier episodes of the problem.
    - After a step: `outcome`, a `kevin_env.outcome.Outcome`; `turn`, a `kevin_env.record.Turn`;
      `seconds` of each stage, a `kevin_env.judge.api.Seconds`; and `returns`, one per turn so far.
    - At the end: `trajectory`, a `kevin_env.record.Trajectory`.

    ## Arguments

    Args:
        problem: an ID (`"L1_23_Softmax"`, `"kernelbench:level1/23"`), a level (`"L1"`,
            `"kernelbench:level1"`), a side of the split (`"train"`, `"held_out:L1"`), a path to a
            KernelBench-style file or a folder of them, a `Problem`, or a list of these. Each reset
            draws one with the environment's seed, and held-out problems only if they are named
            alone or by `held_out`. `reset(options={"problem": ...})` overrides it once. A
            `Curriculum` or `MixedDifficulty` of `kevin_env.curriculum` draws with its own seed and
            gets the outcomes of each episode.
        pool: the judges, which the caller closes, the URL of a judge server, or `ray`. By default
            the environment starts judges for this machine's devices and closes them itself.
        render_mode: `"ansi"` (`render` returns the turns as a table), `"human"` (prints it after
            each turn) or None.
        **settings: the fields of `kevin_env.settings.Settings`, such as `max_turns` and `device`.

    Raises:
        ProblemError: if a problem is unknown or cannot be read; from `reset`, if its reference or
            baseline fails.
        ValueError: if an argument is unknown or out of range; from `reset`, if the tokenizer
            cannot be loaded.
        JudgeError: from `reset` and `step`, if the judge itself fails. The turn does not count.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "human"], "render_fps": 1}

    @_with_settings
    def __init__(
        self,
        problem: ProblemChoice | ProblemSource = "train",
        *,
        pool: JudgePool | str | None = None,
        render_mode: Literal["ansi", "human"] | None = None,
        **settings: Any,
    ) -> None:
        self.settings = Settings.of(settings, ("problem", "pool", "render_mode"))
        self.problems = self._source = problem_source(problem)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode is {render_mode!r}; give 'ansi', 'human' or None")
        self.render_mode = render_mode
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self.episode: Episode | None = None
        self._begun: Counter[Problem] = Counter()
        self._pool = connect(pool)
        self._owns_pool = self._pool is not pool
        self._closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode, of `options={"problem": ...}` if given.

        Raises:
            ProblemError: if the problem is unknown, or its reference or baseline fails.
            ValueError: for an unknown option.
        """
        self.begin_reset(seed=seed, options=options)
        return self.end_reset()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Takes one turn with the policy's reply.

        Raises:
            ResetNeeded: before the first `reset`, after one that failed, and after the end.
            ClosedEnvironmentError: after `close`.
            InvalidAction: if the action is not text.
            JudgeError: if the judge fails; the step can be repeated.
        """
        begun = self.begin_step(action)
        try:
            return self.end_step(begun)
        except BaseException:
            begun.turn.cancel()
            raise

    def begin_reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        begun: "Counter[Problem] | None" = None,
    ) -> None:
        """The first half of `reset`, which does not wait for the judge.

        `begun` counts the episodes of each problem, shared by several environments.
        """
        self._require_open()
        options = dict(options or {})
        unknown = options.keys() - {"problem"}
        if unknown:
            raise ValueError(
                f"unknown reset option {sorted(unknown)[0]!r}; the only one is 'problem'"
            )
        if self.episode is not None and self.episode.turns and not self.episode.done:
            self._record(self.episode)  # a wrapper has ended it
        self.episode = None  # if this fails, the one before is not stepped
        super().reset(seed=seed)
        self._source = problem_source(options["problem"]) if "problem" in options else self.problems
        begun = self._begun if begun is None else begun
        problem = draw_problem(self._source, self.np_random)
        self.episode = Episode(problem, self._pool, self.settings, sample=begun[problem])
        begun[problem] += 1

    def end_reset(self) -> tuple[str, dict[str, Any]]:
        """The second half of `reset`: waits for the judge and returns the first prompt."""
        episode = self._require_episode()
        episode.start()
        self._show()
        return _observation(episode), _info(episode)

    def begin_step(self, action: str) -> "BegunStep":
        """The first half of `step`, which does not wait for the judge."""
        episode = self.require_step(action)
        return BegunStep(episode, episode.submit_later(action))

    def require_step(self, action: str) -> Episode:
        """The episode, if it can take this action now. Raises as `step`."""
        self._require_open()
        episode = self._require_episode()
        if not episode.messages:
            raise ResetNeeded("the last reset() failed; call reset() again")
        if episode.done:
            raise ResetNeeded(f"the episode ended after turn {len(episode.turns)}; call reset()")
        if not isinstance(action, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidAction(f"an action is the reply as str, not {type(action).__name__}")
        return episode

    def end_step(self, begun: "BegunStep") -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The second half of `step`: waits for the turn."""
        turn, episode = begun.turn.result(), begun.episode
        if episode.done:
            self._record(episode)
        self._show()
        return _observation(episode), turn.score, episode.done, False, _info(episode, turn)

    def render(self) -> str | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The turns so far as a table: returned for `ansi`, printed for `human`."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                'render() without a render mode; use gym.make("Kevin-v0", render_mode="ansi")'
            )
            return None
        from kevin_env.render import plain_table

        table = plain_table(self._require_episode())
        if self.render_mode == "ansi":
            return table
        sys.stdout.write(table)
        return None

    def close(self) -> None:
        """Closes the pool, unless the caller passed it. Closing twice is allowed."""
        self._closed = True
        if self._owns_pool:
            self._pool.close()

    def _record(self, episode: Episode) -> None:
        if isinstance(self._source, ProblemSource):
            self._source.record(episode.problem, [each.outcome for each in episode.turns])

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedEnvironmentError("the environment is closed; make a new one")

    def _require_episode(self) -> Episode:
        if self.episode is None:
            raise ResetNeeded("there is no episode, or the last reset() failed; call reset() first")
        return self.episode

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()


@dataclass(frozen=True)
class BegunStep:
    """A turn that is being judged, and its episode."""

    episode: Episode
    turn: Future[Turn]


def _observation(episode: Episode) -> str:
    return next(message.content for message in reversed(episode.messages) if message.role == "user")


def _info(episode: Episode, turn: Turn | None = None) -> dict[str, Any]:
    info: dict[str, Any] = {"messages": [message.model_dump() for message in episode.messages]}
    if turn is None:
        level = {} if episode.problem.level is None else {"level": episode.problem.level}
        info |= {"problem": episode.problem.id, **level, "sample": episode.sample}
    else:
        info |= {"outcome": turn.outcome, "turn": turn, "seconds": turn.seconds}
        info["returns"] = episode.returns  # at each turn: a wrapper may end the episode earlier
    if episode.done:
        info["trajectory"] = episode.trajectory
    return info
