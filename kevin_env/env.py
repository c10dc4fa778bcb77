"""`Kevin-v0`: an `Episode` as a Gymnasium environment."""

import sys
from collections import Counter
from concurrent.futures import Future
from typing import Any, ClassVar, Literal

import gymnasium
from gymnasium.error import ClosedEnvironmentError, InvalidAction, ResetNeeded

from kevin_env.context import require_context
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgePool
from kevin_env.profile import ProfileKind
from kevin_env.record import Turn
from kevin_env.rules import Rules
from kevin_env.score import Bound, Noisy, ReturnsKind, Score
from kevin_env.selection import ProblemChoice, ProblemSource, draw_problem, problem_source
from kevin_env.settings import Language, Settings, Templates
from kevin_env.spaces import UnicodeText


class KevinEnv(gymnasium.Env[str, str]):
    """A policy rewrites a PyTorch reference as a GPU kernel, turn by turn, and is told how each
    attempt did.

    ## Action

    The policy's reply as text, any Unicode: what an LLM answers to `info["messages"]`. The last
    code block that defines `ModelNew` is the submission. A reply without one is a turn too
    (category `format`).

    ## Observation

    The last user message as text. `info["messages"]` is the whole chat as to be sent to a model.

    ## Reward

    The turn's score. By default 0.3 for a correct kernel plus its speedup over the reference, else
    0. Code that an earlier turn gave earns nothing more, unless `pay_repeats`. The discounted
    returns, which belong to the turns and not to the steps' sum, are in `info["returns"]` at the
    end.

    ## Episode End

    After `max_turns` turns `terminated` is true: the prompt shows the turns left, so the end is
    part of the task. A correct kernel does not end the episode, unless `stop_on` says so.
    `truncated` is always false.

    ## Info

    - `messages`: the chat to be sent, a list of `{"role": ..., "content": ...}`.
    - `problem`: after a reset, the problem's id.
    - `level`: after a reset, its level; not there for a file whose folder tells none.
    - `sample`: after a reset, how many episodes of this problem were begun before, so that each has
      its own number.
    - `outcome`: after a step, the `kevin_env.outcome.Outcome`: `.category`, `.kind`, `.message`.
    - `turn`: after a step, the whole `kevin_env.record.Turn`: `.score`, `.feedback`, `.submission`,
      ...
    - `seconds`: after a step, the time of each stage (`kevin_env.judge.api.Seconds`).
    - `returns`: at the end, the discounted return of each turn.
    - `trajectory`: at the end, the episode as a `kevin_env.record.Trajectory`.

    ## Arguments

    Args:
        problem: an id (`"L1_23_Softmax"`, `"kernelbench:level1/23"`), a level (`"L1"`,
            `"kernelbench:level1"`), a side of the split (`"train"`, `"held_out:L1"`), a path to a
            KernelBench-style file or a folder of them, a `Problem`, or a list of these. Each reset
            draws one by the environment's seed, a held-out problem only if it is named alone or by
            `held_out`; `reset(options={"problem": ...})` says which. A `Curriculum` or a
            `MixedDifficulty` of `kevin_env.curriculum` draws by its own seed, and is told how it
            went.
        max_turns: turns of an episode.
        gamma: discount of the returns from one turn to the next.
        returns: `"sum"` or `"max"` of the discounted scores.
        device: `"auto"` (a GPU when there is one), `"cpu"`, `"cuda"`, `"cuda:1"` or `"cuda:0,1"`.
        language: what the prompt asks for: `"cuda"`, `"triton"`, `"cpp"`, or `"auto"` (Triton on a
            GPU, C++ without).
        rules: `"kernel"` (all computing is done in the submission's own kernels), `"partial"` (at
            least one own kernel runs, the rest may be torch) or `"open"` (any code).
        glue: under the rules `"kernel"`, torch may also compute on fewer elements than this share
            of the largest tensor, such as 0.01.
        score: a name, or a function from an outcome to a finite number.
        bound: which end of a speedup the score pays: its `"median"`, or the `"lower"` end of its
            interval.
        pay_repeats: whether code that an earlier turn gave is paid again, as in the paper. By
            default it is paid once.
        noisy: what a speedup with a wide interval is paid by: its `"lower"` end; `"retry"`: the
            same, after it was measured again; `"floor"`: nothing, as a correct kernel without a
            speedup.
        templates: what prompts and feedback are written with: `"default"`, or `"kevin-paper"`, the
            paper's own words.
        context: which earlier turns the prompt shows.
        context_tokens: tokens of a whole prompt.
        tokenizer: counts them, and those of replies for scores that depend on lengths; a
            `tokenizer.json` or a name on the Hugging Face Hub.
        hints: whether feedback goes beyond facts.
        examples: what the first prompt shows: `"zero"`, `"one"`, `"few"`, or `"retrieved"` from
            `index`; True is one.
        index: the folder of an index, as `kevin-env index build` makes it.
        baseline: what the speedup is relative to: the reference `"eager"`, or under torch's
            `"compile"`.
        inputs: `"varied"` (also drawn in other ways than the problem's own) or `"shipped"` (the
            problem's own alone).
        call_timeout: seconds for constructing `ModelNew` and for any one call; None: max(2, 200
            times the reference's time), and 30 more for constructing it and the first call in each
            case.
        build_timeout: seconds for importing the submission, compilers included.
        precision: half-width of the speedup's interval, relative to it, that timing tries to reach;
            None: 0.02 on a GPU, 0.05 on a CPU.
        profile: what feedback on a right answer adds to its time: `"kernels"`, or `"ncu"` for
            Nsight Compute's digest.
        sanitize: whether compute-sanitizer looks for the cause of an illegal access or an output
            that changes.
        pool: who judges. By default judges of this machine's devices, closed with the environment;
            a pool that is given stays the caller's to close.
        stop_on: what ends an episode early: `"correct"`, or a speedup.
        render_mode: `"ansi"` (`render` gives the turns as a table), `"human"` (prints it after each
            turn) or None.

    Raises:
        ProblemError: if a problem is unknown or cannot be read; from `reset`, if its reference
            fails.
        ValueError: if an argument is out of its range.
        JudgeError: from `reset` and `step`, if the judge itself fails. The turn has not happened
            then.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "human"], "render_fps": 1}

    def __init__(
        self,
        problem: ProblemChoice | ProblemSource = "train",
        *,
        max_turns: int = 4,
        gamma: float = 0.4,
        returns: ReturnsKind = "sum",
        device: str = "auto",
        language: Language = "auto",
        rules: Rules = "kernel",
        glue: float = 0.0,
        score: str | Score = "kevin",
        bound: Bound = "median",
        pay_repeats: bool = False,
        noisy: Noisy = "lower",
        templates: Templates = "default",
        context: str = "kevin",
        context_tokens: int = 32_768,
        tokenizer: str = "",
        hints: bool = False,
        examples: str | bool = "one",
        index: str = "",
        baseline: Literal["eager", "compile"] = "eager",
        inputs: Literal["varied", "shipped"] = "varied",
        call_timeout: float | None = None,
        build_timeout: float = 300.0,
        precision: float | None = None,
        profile: ProfileKind = "none",
        sanitize: bool = False,
        pool: JudgePool | None = None,
        stop_on: Literal["correct"] | float | None = None,
        render_mode: Literal["ansi", "human"] | None = None,
    ) -> None:
        self.settings = Settings.of({
            "max_turns": max_turns, "gamma": gamma, "returns": returns, "device": device, "language": language,
            "rules": rules, "glue": glue, "score": score, "bound": bound, "pay_repeats": pay_repeats,
            "noisy": noisy, "templates": templates, "context": context, "context_tokens": context_tokens,
            "tokenizer": tokenizer, "hints": hints, "examples": examples, "index": index, "baseline": baseline,
            "inputs": inputs, "call_timeout": call_timeout, "build_timeout": build_timeout, "precision": precision,
            "profile": profile, "sanitize": sanitize, "stop_on": stop_on,
        })  # fmt: skip
        require_context(self.settings)
        self.problems = self._source = problem_source(problem)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode is {render_mode!r}; it may be 'ansi', 'human' or None")
        if pool is not None and (isinstance(pool, type) or not isinstance(pool, JudgePool)):
            raise ValueError(
                f"pool is {pool!r}; give one such as kevin_env.judge.pool.LocalPool(), or None"
            )
        self.render_mode = render_mode
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self.episode: Episode | None = None
        self._begun: Counter[str] = Counter()
        self._given_pool = pool
        self._own_pool: JudgePool | None = None
        self._closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode. `options={"problem": ...}` takes the place of the argument `problem`
        for this once.

        Raises:
            ProblemError: if the problem is unknown, or its reference fails.
            ValueError: for an unknown option.
        """
        self.begin_reset(seed=seed, options=options)
        return self.end_reset()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Takes one turn with the policy's reply.

        Raises:
            ResetNeeded: before the first `reset`, after one that failed, and after the end of an
                episode.
            ClosedEnvironmentError: after `close`.
            InvalidAction: if the action is not text.
            JudgeError: if the judge fails; the same reply may be given again.
        """
        future = self.begin_step(action)
        try:
            return self.end_step(future)
        except BaseException:
            future.cancel()
            raise

    def begin_reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        begun: "Counter[str] | None" = None,
    ) -> None:
        """The first half of `reset`, which does not wait for the judge; `end_reset` is the second.

        `begun` counts the episodes of each problem, by id, where several environments number theirs
        together.
        """
        super().reset(seed=seed)
        options = options or {}
        unknown = options.keys() - {"problem"}
        if unknown:
            raise ValueError(f"unknown reset option {sorted(unknown)[0]!r}; there is 'problem'")
        self._source = problem_source(options["problem"]) if "problem" in options else self.problems
        problem, begun = (
            draw_problem(self._source, self.np_random),
            self._begun if begun is None else begun,
        )
        self.episode = Episode(problem, self._pool(), self.settings, sample=begun[problem.id])
        begun[problem.id] += 1

    def end_reset(self) -> tuple[str, dict[str, Any]]:
        """Waits until the judge knows the problem, and gives the first prompt."""
        episode = self._require_episode()
        episode.start()
        self._show()
        return _observation(episode), _info(episode)

    def begin_step(self, action: str) -> Future[Turn]:
        """The first half of `step`, which does not wait for the judge; `end_step` is the second."""
        return self.require_step(action).submit_later(action)

    def require_step(self, action: str) -> Episode:
        """The episode, if it can take this action now; errors as `step`."""
        self._require_open()
        episode = self._require_episode()
        if not episode.messages:
            raise ResetNeeded("the last reset() failed; call reset() again")
        if episode.done:
            raise ResetNeeded(f"the episode ended after turn {len(episode.turns)}; call reset()")
        if not isinstance(action, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidAction(f"an action is the reply as str, not {type(action).__name__}")
        return episode

    def end_step(self, future: Future[Turn]) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Waits for the turn, and gives what `step` gives."""
        turn = future.result()
        episode = self._require_episode()
        if episode.done and isinstance(self._source, ProblemSource):
            self._source.record(episode.problem, [each.outcome for each in episode.turns])
        self._show()
        return _observation(episode), turn.score, episode.done, False, _info(episode, turn)

    def render(self) -> str | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The turns so far as a table: given as text for `ansi`, printed for `human`."""
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
        """Ends the judge's processes, unless the pool was given. Closing twice is fine."""
        self._closed = True
        if self._own_pool is not None:
            self._own_pool.close()
            self._own_pool = None

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedEnvironmentError("the environment is closed; make a new one")

    def _pool(self) -> JudgePool:
        self._require_open()
        if self._given_pool is not None:
            return self._given_pool
        if self._own_pool is None:
            from kevin_env.judge.pool import LocalPool

            self._own_pool = LocalPool()
        return self._own_pool

    def _require_episode(self) -> Episode:
        if self.episode is None:
            raise ResetNeeded("call reset() first")
        return self.episode

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()


def _observation(episode: Episode) -> str:
    return next(message.content for message in reversed(episode.messages) if message.role == "user")


def _info(episode: Episode, turn: Turn | None = None) -> dict[str, Any]:
    info: dict[str, Any] = {"messages": [message.model_dump() for message in episode.messages]}
    if turn is None:
        level = {} if episode.problem.level is None else {"level": episode.problem.level}
        info |= {"problem": episode.problem.id, **level, "sample": episode.sample}
    else:
        info |= {"outcome": turn.outcome, "turn": turn, "seconds": turn.seconds}
    if episode.done:
        info |= {"returns": episode.returns, "trajectory": episode.trajectory}
    return info
