"""Many conversations in one process: `gym.make_vec("Kevin-v0", num_envs=N)`."""

from collections import Counter
from collections.abc import Sequence, Sized
from concurrent.futures import wait
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from kevin_env.env import BegunStep, KevinEnv
from kevin_env.judge.api import JudgeError, JudgePool
from kevin_env.pools.http import connect
from kevin_env.problem import Problem, ProblemError
from kevin_env.selection import ProblemChoice, ProblemSource, problem_source

Texts = tuple[str, ...]
Step = tuple[str, float, bool, bool, dict[str, Any]]


def make_vec(
    num_envs: int = 1,
    *,
    problem: ProblemChoice | ProblemSource = "train",
    pool: JudgePool | str | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
    max_episode_steps: int | None = None,
    **arguments: Any,
) -> "KevinVectorEnv":
    """Entry point of `gym.make_vec("Kevin-v0", ...)`.

    Args:
        num_envs: number of conversations.
        problem: as for `KevinEnv`, read once for all.
        pool: the judges of all, the URL of a judge server, or `ray`; by default one pool for this
            machine's devices. A pool that the environment creates is closed with it.
        autoreset_mode: `Disabled`: call `reset(options={"reset_mask": ...})` for ended
            ones. `SameStep`: a conversation that ends restarts in the same step. Next-step
            autoreset is refused, since it would discard one reply per episode.
        max_episode_steps: refused; use `max_turns`.
        **arguments: as for `KevinEnv`.

    Raises:
        ValueError: if an argument is refused or out of range.
    """
    if max_episode_steps is not None:
        raise ValueError(
            "max_episode_steps would cut episodes without the prompt knowing; give max_turns"
        )
    if not isinstance(num_envs, int | np.integer) or num_envs < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"num_envs is {num_envs!r}; give an integer of at least 1")
    if autoreset_mode not in {*AutoresetMode, *(mode.value for mode in AutoresetMode)}:
        raise ValueError(
            f"autoreset_mode is {autoreset_mode!r}; it may be 'Disabled' or 'SameStep'"
        )
    mode = AutoresetMode(autoreset_mode)
    if mode is AutoresetMode.NEXT_STEP:
        raise ValueError(
            "next-step autoreset wastes a reply in every episode; use SameStep or Disabled"
        )
    problems = problem_source(problem)
    shared = connect(pool)
    envs = [KevinEnv(problems, pool=shared, **arguments) for _ in range(num_envs)]
    return KevinVectorEnv(envs, mode, owned_pool=None if shared is pool else shared)


class KevinVectorEnv(VectorEnv[Texts, Texts, NDArray[Any]]):
    """N `KevinEnv`s stepped together: the submissions of a step are judged concurrently.

    Observations and actions are tuples of N strings, `info` is in Gymnasium's vector form: each key
    holds an array of N values, and `_key` masks those that count.

    Args:
        envs: the conversations, which share one pool.
        autoreset_mode: `DISABLED` or `SAME_STEP`.
        owned_pool: closed with the environment.
    """

    def __init__(
        self, envs: Sequence[KevinEnv], autoreset_mode: AutoresetMode, owned_pool: JudgePool | None
    ) -> None:
        self.envs = tuple(envs)
        self.num_envs = len(envs)
        self.render_mode = envs[0].render_mode
        self.metadata = {**KevinEnv.metadata, "autoreset_mode": autoreset_mode}
        self.single_observation_space = envs[0].observation_space
        self.single_action_space = envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._owned_pool = owned_pool
        self._same_step = autoreset_mode is AutoresetMode.SAME_STEP
        self._begun: Counter[Problem] = Counter()
        self._observations = [""] * self.num_envs
        self._failed = dict[int, Exception]()
        """Errors of episodes that `step` could not begin in place of ended ones."""

    def reset(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Texts, dict[str, Any]]:
        """Begins all conversations, or those of `options["reset_mask"]`.

        Args:
            seed: one for each; a single number s means s, s+1, ...; None continues from the last
                one.
            options: `problem` for all, or a list of N, one for each; `reset_mask`, a bool array of
                N.

        Raises:
            ValueError: if one of these does not have length N, or the mask selects nothing, or for
                another option; no conversation is begun then.
        """
        options = dict(options or {})
        indices = self._masked(options.pop("reset_mask", None))
        seeds = self._seeds(seed)
        problems = options.pop("problem", None)
        if options:
            known = "known are 'problem' and 'reset_mask'"
            raise ValueError(f"unknown reset option {sorted(options)[0]!r}; {known}")
        if isinstance(problems, list | tuple):
            self._require_length(problems, "problems")
        for i in indices:
            one = problems[i] if isinstance(problems, list | tuple) else problems
            named = {"problem": one} if one is not None else {}
            self._failed.pop(i, None)
            self.envs[i].begin_reset(seed=seeds[i], options=named, begun=self._begun)
        infos: dict[str, Any] = {}
        for i in indices:
            self._observations[i], info = self.envs[i].end_reset()
            infos = self._add_info(infos, info, i)
        return tuple(self._observations), infos

    def step(
        self, actions: Sequence[str]
    ) -> tuple[Texts, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Takes one turn in every conversation.

        Raises:
            ResetNeeded: if one of them has ended or not begun; none is stepped then.
            InvalidAction: if an action is not text; none is stepped then.
            JudgeError: if the judge failed for one. The others have taken their turn: reset all.
            ProblemError: if in same-step mode the step before ended an episode, and the next one
                could not begin. `JudgeError` may also mean that. Reset that conversation.
        """
        self._require_length(actions, "actions")
        for error in self._failed.values():
            raise error
        self._require_running()
        for env, action in zip(self.envs, actions, strict=True):
            env.require_step(action)
        begun: list[BegunStep] = []
        try:
            begun.extend(
                env.begin_step(action) for env, action in zip(self.envs, actions, strict=True)
            )
            wait([each.turn for each in begun])
        except BaseException:
            for each in begun:
                each.turn.cancel()
            raise
        pairs = zip(self.envs, begun, strict=True)
        steps = [env.end_step(each) for env, each in pairs if not each.turn.exception()]
        for error in filter(None, (each.turn.exception() for each in begun)):
            raise error
        infos = self._observe(steps)
        scores = np.array([score for _, score, _, _, _ in steps], dtype=np.float64)
        ended = np.array([ended for _, _, ended, _, _ in steps], dtype=np.bool_)
        return tuple(self._observations), scores, ended, np.zeros_like(ended), infos

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls the method of this name of each environment, as Gymnasium's `SyncVectorEnv`."""
        values = self.get_attr(name)
        return tuple(each(*args, **kwargs) if callable(each) else each for each in values)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The attribute of this name of each environment."""
        return tuple(env.get_wrapper_attr(name) for env in self.envs)

    def render(self) -> tuple[str | None, ...]:
        """`KevinEnv.render` of each environment."""
        return tuple(env.render() for env in self.envs)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the pool, unless the caller passed it."""
        for env in self.envs:
            env.close()
        if self._owned_pool is not None:
            self._owned_pool.close()

    def _observe(self, steps: list[Step]) -> dict[str, Any]:
        """Stores observations and joins infos; in same-step mode, restarts ended episodes.

        An episode that cannot begin has an empty observation: the turns just judged are not lost.
        """
        renewed = [i for i, (_, _, ended, _, _) in enumerate(steps) if ended and self._same_step]
        for i in renewed:
            try:
                self.envs[i].begin_reset(begun=self._begun)
            except (ProblemError, JudgeError) as error:
                self._failed[i] = error
        infos: dict[str, Any] = {}
        for i, (observation, _, _, _, info) in enumerate(steps):
            if i in renewed:
                infos = self._add_info(infos, {"final_obs": observation, "final_info": info}, i)
                observation, info = self._begun_anew(i)
            self._observations[i] = observation
            infos = self._add_info(infos, info, i)
        return infos

    def _begun_anew(self, i: int) -> tuple[str, dict[str, Any]]:
        if i not in self._failed:
            try:
                return self.envs[i].end_reset()
            except (ProblemError, JudgeError) as error:
                self._failed[i] = error
        return "", {}

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return range(seed, seed + self.num_envs)
        self._require_length(seed, "seeds")
        return seed

    def _masked(self, mask: Any) -> list[int]:
        if mask is None:
            return list(range(self.num_envs))
        self._require_length(mask, "bools in reset_mask")
        if np.asarray(mask).dtype != np.bool_:
            raise ValueError(f"reset_mask must be of dtype bool, not {np.asarray(mask).dtype}")
        indices = [int(i) for i in np.flatnonzero(mask)]
        if not indices:
            raise ValueError("reset_mask selects no environment")
        return indices

    def _require_length(self, values: Any, what: str) -> None:
        sized = isinstance(values, Sized) and not isinstance(values, str)
        if not sized or len(values) != self.num_envs:
            raise ValueError(f"{self.num_envs} {what} are needed, one for each environment")

    def _require_running(self) -> None:
        over = [
            i for i, env in enumerate(self.envs) if env.episode is not None and env.episode.done
        ]
        if over:
            remedy = "reset(options={'reset_mask': terminations | truncations})"
            raise ResetNeeded(f"episodes {over} have ended; {remedy} begins new ones")
