"""The order of problems: all difficulties in every batch, or in stages.

    mixed = MixedDifficulty("train", bands=4)       # Kevin's: batches with easy and hard problems
    curriculum = Curriculum("train", by="level", promote_at=0.5)
    env = gym.make("Kevin-v0", problem=curriculum)  # or make_vec: one source for all conversations

Other trainers call `sample` for the problems of a batch and `record` for each finished episode.
"""

import itertools
import random
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np

from kevin_env.difficulty import by_difficulty
from kevin_env.outcome import Correct, Ending, Frozen, Outcome, speedup_of
from kevin_env.problem import Problem
from kevin_env.score import at_bound
from kevin_env.selection import ProblemChoice, find_problems

Result = bool | np.bool_ | Outcome | Iterable[Outcome]
"""Success of an episode, the outcomes of its turns, or the outcome that counts."""


class CurriculumState(Frozen):
    """The progress of a curriculum, as JSON from which another process can continue."""

    stages: tuple[tuple[str, ...], ...]
    """The IDs of the problems, which identify the curriculum."""
    stage: int
    """From 0."""
    drawn: int
    """Number of problems sampled; with the seed, this and the next field determine the next draws.
    """
    dealt: int
    """Episodes of this stage's problems since it began."""
    recent: tuple[bool, ...]
    """The last results of the stage, oldest first."""
    tried: dict[str, int]
    """Recorded episodes of each problem, in all stages."""
    solved: dict[str, int]


class _Shared:
    """State that several threads share, and copies of an environment's arguments."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Returns itself: Gymnasium copies arguments, but the state must be shared."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())


class Curriculum(_Shared):
    """Samples problems of the current stage and of earlier ones, and advances with success.

    Within a stage, each problem comes once before any is repeated, in an order that the seed
    decides. Thread-safe.

    Args:
        problems: as for `find_problems`, such as `"train"`. Levels exclude held-out problems.
        by: the stages: `"level"`, or `"difficulty"`: `bands` of equal size.
            Problems without measurements are in the hardest band.
        bands: number of bands for `by="difficulty"`.
        promote_at: success rate, 0 to 1, that starts the next stage.
        window: number of the stage's last episodes to average; a stage lasts at least that long.
        review: share of samples from earlier stages, 0 to 1, against forgetting.
        least_speedup: an episode succeeds if one of its turns is correct and at least this fast;
            with 0, correctness suffices, even with a noisy time.
        seed: seed of all draws.

    Raises:
        ProblemError: if a problem is unknown.
        ValueError: if an argument is out of range.
    """

    def __init__(
        self,
        problems: ProblemChoice = "train",
        *,
        by: Literal["level", "difficulty"] = "level",
        bands: int = 5,
        promote_at: float = 0.5,
        window: int = 64,
        review: float = 0.2,
        least_speedup: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not (0 <= promote_at <= 1 and 0 <= review <= 1):
            raise ValueError(
                f"promote_at is {promote_at} and review {review}; both must be between 0 and 1"
            )
        if window < 1:
            raise ValueError(f"window is {window}; it must hold at least one episode")
        self.stages = _stages(find_problems(problems, held_out=False), by, bands)
        self.promote_at, self.review, self.least_speedup, self.seed = (
            promote_at,
            review,
            least_speedup,
            seed,
        )
        self._recent: deque[bool] = deque(maxlen=window)
        self._stage = self._drawn = self._dealt = 0
        self._tried: dict[str, int] = {}
        self._solved: dict[str, int] = {}

    @property
    def stage(self) -> int:
        """The index of the current one of `stages`."""
        return self._stage

    @property
    def success_rate(self) -> float | None:
        """Of the stage's last episodes, at most `window`; None before the first."""
        with self._lock:
            return sum(self._recent) / len(self._recent) if self._recent else None

    def sample(self, n: int = 1) -> list[Problem]:
        """The next `n` problems; the same for the same seed and the same records."""
        with self._lock:
            return [self._draw() for _ in range(n)]

    def record(self, problem: Problem | str, result: Result) -> bool:
        """Records a finished episode, and starts the next stage when it is due.

        Args:
            problem: the problem, or its ID.
            result: success, or the outcomes of the turns, to compare with `least_speedup`. For a
                score, pass `score >= 1.3`.

        Returns:
            Whether the episode was a success.

        Raises:
            ValueError: if the problem is not in this curriculum.
            TypeError: if the result is anything else, such as a score.
        """
        id = problem if isinstance(problem, str) else problem.id
        stage = self._stage_of(id)
        success = self._succeeded(result)
        with self._lock:
            self._tried[id] = self._tried.get(id, 0) + 1
            self._solved[id] = self._solved.get(id, 0) + success
            if stage == self._stage:
                self._recent.append(success)
                self._promote()
        return success

    @property
    def state(self) -> CurriculumState:
        """The progress; `model_dump_json` writes it."""
        with self._lock:
            return CurriculumState(
                stages=self._ids(),
                stage=self._stage,
                drawn=self._drawn,
                dealt=self._dealt,
                recent=tuple(self._recent),
                tried=dict(self._tried),
                solved=dict(self._solved),
            )

    def restore(self, state: CurriculumState) -> None:
        """Continues from the state of a curriculum with the same stages.

        Raises:
            ValueError: if the stages differ.
        """
        if state.stages != self._ids():
            raise ValueError("the state is of a curriculum with other problems or stages")
        with self._lock:
            self._stage, self._drawn, self._dealt = state.stage, state.drawn, state.dealt
            self._tried, self._solved = dict(state.tried), dict(state.solved)
            self._recent = deque(state.recent, maxlen=self._recent.maxlen)

    def _draw(self) -> Problem:
        """A problem of this stage or an earlier one, determined by the seed and the counts."""
        draw = random.Random(f"{self.seed}/{self._drawn}")
        self._drawn += 1
        if self._stage and draw.random() < self.review:
            return draw.choice([each for stage in self.stages[: self._stage] for each in stage])
        stage = self.stages[self._stage]
        self._dealt += 1
        return problem_at(stage, f"{self.seed}/{self._stage}", self._dealt - 1)

    def _promote(self) -> None:
        full = len(self._recent) == self._recent.maxlen
        if (
            full
            and sum(self._recent) >= self.promote_at * len(self._recent)
            and self._stage + 1 < len(self.stages)
        ):
            self._stage += 1
            self._dealt = 0
            self._recent.clear()

    def _succeeded(self, result: Result) -> bool:
        if isinstance(result, bool | np.bool_):
            return bool(result)
        given: Any = result
        one = isinstance(given, Ending) or not hasattr(given, "__iter__")
        outcomes: list[Any] = [given] if one else list(given)
        if not all(isinstance(each, Ending) for each in outcomes):
            raise TypeError(
                f"the result is {result!r}; give True or False, or the outcomes of the turns"
            )
        return any(
            isinstance(each, Correct) and (speedup_of(at_bound(each)) or 0.0) >= self.least_speedup
            for each in outcomes
        )

    def _stage_of(self, id: str) -> int:
        for number, stage in enumerate(self.stages):
            if any(each.id == id for each in stage):
                return number
        raise ValueError(f"problem {id!r} is not in this curriculum")

    def _ids(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(each.id for each in stage) for stage in self.stages)


class MixedDifficulty(_Shared):
    """Samples problems of all difficulties together, so that no batch is all easy or all hard.

    Kevin (arXiv 2507.11948, 6.3) balances the difficulty of each batch: a policy that was trained
    on easy problems stopped improving. The first `bands` draws are one from each band of measured
    difficulty, in any order, and so are the next; within a band, each problem comes once before any
    is repeated. Thread-safe.

    Args:
        problems: as for `find_problems`. Levels exclude held-out problems.
        bands: number of bands of equal size; preferably a divisor of the batch size. Problems
            without measurements are in the hardest band.
        seed: of all draws.
        drawn: number of earlier draws, to continue from there.

    Raises:
        ProblemError: if a problem is unknown.
        ValueError: if there are fewer problems than bands.
    """

    def __init__(
        self, problems: ProblemChoice = "train", *, bands: int = 4, seed: int = 0, drawn: int = 0
    ) -> None:
        super().__init__()
        self.bands = _stages(find_problems(problems, held_out=False), "difficulty", bands)
        self.seed, self.drawn = seed, drawn

    def sample(self, n: int = 1) -> list[Problem]:
        """The next `n` problems; the same for the same seed."""
        with self._lock:
            first, self.drawn = self.drawn, self.drawn + n
        return [self._at(number) for number in range(first, first + n)]

    def record(self, problem: Problem, result: Result) -> None:
        """Does nothing: draws do not depend on results."""

    def _at(self, number: int) -> Problem:
        round, at = divmod(number, len(self.bands))
        order = random.Random(f"{self.seed}/{round}").sample(
            range(len(self.bands)), len(self.bands)
        )
        return problem_at(self.bands[order[at]], f"{self.seed}/{order[at]}", round)


def problem_at(problems: Sequence[Problem], key: str, number: int) -> Problem:
    """The problem at an index of endless rounds of all problems, shuffled by `key`."""
    deal, at = divmod(number, len(problems))
    return random.Random(f"{key}/{deal}").sample(problems, len(problems))[at]


def _stages(problems: Sequence[Problem], by: str, bands: int) -> tuple[tuple[Problem, ...], ...]:
    """The problems, each once, divided by level or into bands of difficulty; no stage is empty."""
    problems = list({each.id: each for each in problems}.values())
    if by == "level":
        levels = sorted({each.level or 0 for each in problems})
        return tuple(
            tuple(each for each in problems if (each.level or 0) == level) for level in levels
        )
    if by != "difficulty":
        raise ValueError(f"by is {by!r}; it may be 'level' or 'difficulty'")
    if not 1 <= bands <= len(problems):
        raise ValueError(
            f"bands is {bands}; it must be between 1 and the number of problems, {len(problems)}"
        )
    ordered = by_difficulty(problems)
    bounds = [len(ordered) * band // bands for band in range(bands + 1)]
    return tuple(tuple(ordered[first:last]) for first, last in itertools.pairwise(bounds))
