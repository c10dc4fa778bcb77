"""Requests to judges and their answers, for any transport. Imports no torch.

A request and its answer are JSON objects. A connector carries them: to a judge process
(`LocalPool`), to a judge server (`HttpPool`) or to Ray actors (`RayPool`). A request that is
sent again keeps its ID, and at most one answer per ID counts.
"""

import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from pydantic import ValidationError

from kevin_env.judge.api import (
    Facts,
    JudgeError,
    Judgement,
    JudgePool,
    OnStage,
    Options,
    Submission,
)
from kevin_env.judge.environment import redacted
from kevin_env.lint.report import LintReport
from kevin_env.problem import Problem, ProblemError
from kevin_env.shortage import described

Request = dict[str, Any]
"""`id`, `do` (`judge`, `describe`, `lint`), `problem`, `options`, and `submission` or `limits`."""
Answer = dict[str, Any]
"""`judgement`, `facts`, `report`, `problem_error`, or `judge_error` and perhaps `trace`."""
Start = Callable[[JudgePool, OnStage | None], Future[Any]]
"""Starts a request in a pool."""
_VALUES = {"judgement": Judgement, "facts": Facts, "report": LintReport}


def prepare(request: Request) -> Start:
    """Reads a request, and returns what passes it on to another pool.

    Raises:
        KeyError, ValidationError: if it is malformed.
        ValueError: if a pool does nothing of that name.
    """
    problem = Problem.model_validate(request["problem"])
    options = Options.model_validate(request["options"])
    if request["do"] == "describe":
        return lambda pool, _: pool.describe(problem, options)
    if request["do"] != "judge":
        raise ValueError("do: use judge or describe")
    submission = Submission.model_validate(request["submission"])
    return lambda pool, on_stage: pool.submit(problem, submission, options, on_stage)


def answer_of(value: Callable[[], Facts | LintReport | Judgement]) -> Answer:
    """The answer with a value, or with the error that it raises."""
    try:
        result = value()
    except ProblemError as error:
        return {"problem_error": str(error)}
    except JudgeError as error:
        return {"judge_error": str(error)}
    except BaseException as error:  # the boundary of a judgement: a failure of the judge
        text = "".join(traceback.format_exception(error))
        return {"judge_error": described(error), "trace": text}
    key = next(key for key, kind in _VALUES.items() if isinstance(result, kind))
    return {key: result.model_dump(mode="json")}


def value_of(answer: Answer) -> Any:
    """The value of an answer, without secrets of this process's environment.

    Raises:
        ProblemError, JudgeError: if the answer is one, or cannot be read.
    """
    answer = redacted(answer)
    if "problem_error" in answer:
        raise ProblemError(answer["problem_error"])
    if "judge_error" in answer:
        error = JudgeError(answer["judge_error"])
        if "trace" in answer:
            error.add_note(answer["trace"])
        raise error
    try:
        key = next(key for key in _VALUES if key in answer)
        return _VALUES[key].model_validate(answer[key])
    except (StopIteration, ValidationError) as error:
        wrong = error.errors()[0] if isinstance(error, ValidationError) else None
        where = f" ({'.'.join(map(str, wrong['loc']))}: {wrong['msg']})" if wrong else ""
        text = f"the judge's answer cannot be read{where}; the judge may be a different version"
        raise JudgeError(text) from error
