"""The problems that a server offers, by ID or by split and index."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field, ValidationError

from kevin_env.outcome import Frozen
from kevin_env.problem import Problem
from kevin_env.selection import drawable, is_held_out, named

ALL = "all"


class ResetRequest(Frozen):
    """The options of a client's `reset`. By default, a problem that is not held out is drawn."""

    seed: int | None = Field(default=None, ge=0)
    """Draws the problem if none is named. Inputs do not depend on it, or answers could be
    precomputed.
    """
    episode_id: str | None = Field(default=None, max_length=255, pattern=r"^[\x20-\x7e]+$")
    problem_id: str | None = None
    split: str | None = None
    index: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The request as it came.

        Raises:
            ValueError: in one line, for an unknown name or a value out of its range.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])[:100]
            if first["type"] == "extra_forbidden":
                raise ValueError(
                    f"unknown reset option {name!r}; there are {', '.join(cls.model_fields)}"
                ) from error
            raise ValueError(f"reset option {name}: {first['msg']}") from error


@dataclass(frozen=True)
class Tasks:
    """The problems of a server. Clients name them by ID; no path that a client names is read."""

    problems: Sequence[Problem]

    def splits(self) -> dict[str, list[Problem]]:
        """The problems of each split in order: all, train, held out, and each level."""
        splits: dict[str, list[Problem]] = {ALL: list(self.problems), "train": [], "held_out": []}
        for problem in self.problems:
            splits["held_out" if is_held_out(problem) else "train"].append(problem)
        for level in sorted({each.level for each in self.problems if each.level is not None}):
            splits[f"L{level}"] = [each for each in self.problems if each.level == level]
        return {name: problems for name, problems in splits.items() if problems}

    def of_split(self, split: str) -> list[Problem]:
        """The problems of a split, in order.

        Raises:
            ValueError: if there is none of that name.
        """
        splits = self.splits()
        if split not in splits:
            raise ValueError(f"unknown split {split[:100]!r}; there are {', '.join(splits)}")
        return splits[split]

    def rows(self, split: str) -> list[dict[str, Any]]:
        """The entries of the task API for a split."""
        return [
            {
                "id": problem.id,
                "split": split,
                "index": index,
                "level": problem.level,
                "name": problem.name,
                "tags": list(problem.tags),
                "description": problem.statement,
            }
            for index, problem in enumerate(self.of_split(split))
        ]

    def choose(self, request: ResetRequest, source: random.Random) -> Problem:
        """The named problem, or one drawn from `source`.

        Held-out problems are drawn only from the split `held_out`, or if nothing else is served.

        Raises:
            ProblemError: if it is unknown.
            ValueError: for an unknown split, an index out of range, or a problem named twice.
        """
        if request.problem_id is not None:
            if request.split is not None or request.index is not None:
                raise ValueError("give problem_id, or split and index, not both")
            return named(self.problems, request.problem_id)
        if request.index is not None and request.split is None:
            raise ValueError("an index needs a split; give both, or problem_id")
        problems = self.of_split(request.split or ALL)
        if request.index is None:
            return source.choice(drawable(problems))
        if not 0 <= request.index < len(problems):
            raise ValueError(
                f"split {request.split} has {len(problems)} tasks; "
                f"there is no index {request.index}"
            )
        return problems[request.index]
