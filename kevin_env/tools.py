"""The tools of an agent: their names, arguments and results, for servers of any framework."""

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from kevin_env.frozen import Frozen
from kevin_env.session import AgentSession, Best, Profiled, Report, Standing, Task, Verdict
from kevin_env.templates import render

MOST_CODE = 1 << 20
"""Characters of a file that is submitted."""


class _Arguments(Frozen):
    model_config: ClassVar[ConfigDict] = ConfigDict(use_attribute_docstrings=True)


class GetProblem(_Arguments):
    """The task: a PyTorch module to rewrite as a faster kernel.

    The first call starts the episode and its time.
    """

    problem_id: str | None = None
    """Which problem to start with; by default one is drawn. It cannot be changed later."""


class SubmitKernel(_Arguments):
    """Builds, checks and times a kernel; returns its verdict, feedback and score.

    Takes one turn; resubmitting the last code takes none. It may take minutes.
    """

    code: str = Field(max_length=MOST_CODE)
    """One complete Python file that defines `ModelNew`."""


class ProfileKernel(_Arguments):
    """Shows where a correct kernel's time goes. Takes no turn."""

    turn: int | None = None
    """The turn whose kernel to profile; by default the best one."""
    kind: Literal["kernels", "ncu"] = "kernels"
    """Time by kernel, or what Nsight Compute says about the longest one (on GPUs)."""


class BestSoFar(_Arguments):
    """The best kernel so far with its code, a list of turns, and the turns and time left."""


TOOLS: dict[str, tuple[type[_Arguments], type[Standing]]] = {
    "get_problem": (GetProblem, Task),
    "submit_kernel": (SubmitKernel, Verdict),
    "profile_kernel": (ProfileKernel, Profiled),
    "best_so_far": (BestSoFar, Best),
}
"""By name: arguments and structured result."""


def described() -> dict[str, tuple[str, dict[str, Any], dict[str, Any]]]:
    """By name: the description, and the JSON schemas of arguments and result."""
    return {
        name: (
            " ".join((given.__doc__ or "").split()),
            given.model_json_schema(),
            answer.model_json_schema(mode="serialization"),
        )
        for name, (given, answer) in TOOLS.items()
    }


async def use(
    session: AgentSession, name: str, values: dict[str, Any],
    report: Report | None = None, agent: str = "agent",
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    """Calls a tool, with its arguments as they came. Its result as text, and structured.

    Raises:
        ValueError: for an unknown tool or bad arguments, in one line without the values.
        EpisodeError, ProblemError, JudgeError: as the methods of `AgentSession`.
    """
    match given := _arguments(name, values):
        case GetProblem():
            answer = await session.start(given.problem_id, agent)
        case SubmitKernel():
            answer = await session.submit(given.code, report)
        case ProfileKernel():
            answer = await session.profile(given.turn, given.kind, report)
        case _:
            answer = session.best()
    fields = answer.model_dump(mode="json")
    return render(f"agents/{name}.j2", **fields).strip(), fields


def _arguments(name: str, values: dict[str, Any]) -> _Arguments:
    if name not in TOOLS:
        raise ValueError(f"unknown tool {name[:100]!r}; there are {', '.join(TOOLS)}")
    kind, _ = TOOLS[name]
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(map(_fault, error.errors()))
        takes = ", ".join(map("`{}`".format, kind.model_fields)) or "no arguments"
        raise ValueError(f"{name}: {faults}; it takes {takes}") from None


def _fault(error: ErrorDetails) -> str:
    """What is wrong with an argument, without its value."""
    name = "`" + ".".join(map(str, error["loc"]))[:100] + "`"
    match error["type"]:
        case "missing":
            return f"the argument {name} is missing"
        case "extra_forbidden":
            return f"there is no argument {name}"
        case "string_too_long":
            return f"{name} is longer than {error.get('ctx', {}).get('max_length'):,} characters"
    return f"{name}: {error['msg']}"
