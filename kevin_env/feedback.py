"""The words that a model reads: task, history and feedback, each rendered from a template in `prompts/`.

Templates get named fields only, and a missing one is an error. Text that a submission or a compiler wrote is capped,
stripped of control characters, and put into a fence that it cannot close.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import jinja2

from kevin_env.judge.api import Facts, InputFacts
from kevin_env.outcome import CompileError, Correct, Difference, Incorrect, Outcome, RuntimeFailure, printable
from kevin_env.parsing import parse
from kevin_env.problem import Problem, data_folder
from kevin_env.retrieval.pair import Pair

MESSAGE_LIMIT = 800
BLOCK_LIMIT = 3000
LOG_LIMIT = 1200
"""Characters that are shown of an outcome's message, of one block of details, and of a submission's log."""

KEVIN_SCORING = "A turn scores 0 unless the output is right on every input set, and then 0.3 plus the speedup."


@dataclass(frozen=True)
class TaskSettings:
    """What the task says besides the problem and its facts."""

    language: Literal["cuda", "triton", "cpp"]
    max_turns: int
    rules: Literal["kernel", "open"] = "kernel"
    baseline: Literal["eager", "compile"] = "eager"
    scoring: str = KEVIN_SCORING
    """One or two sentences: how a turn's score comes about."""
    example: bool = False
    """Whether to show a worked example in the language asked for."""
    pairs: tuple[Pair, ...] = ()
    """References with kernels for them to show besides."""


@dataclass(frozen=True)
class PastTurn:
    """What the history says of one turn."""

    number: int
    code: str
    """Empty when the reply held none."""
    summary: str
    feedback: str


def render_system() -> str:
    """The system message; empty when none is to be sent."""
    return _template("system.j2").render().strip()


def render_task(problem: Problem, facts: Facts, settings: TaskSettings) -> str:
    """The task: reference, device, what is checked, what is allowed, how to answer."""
    example = data_folder("prompts") / "examples" / f"{settings.language}.py"
    return _template("task.j2").render(
        statement=problem.statement.strip(),
        source=_without_docstring(problem.source) if problem.statement else problem.source,
        device=facts.device,
        on_gpu=facts.device.device.startswith("cuda"),
        cases=facts.cases,
        distributions=facts.distributions,
        tolerance=facts.tolerance,
        precision=facts.precision,
        weights=facts.weights,
        **vars(settings) | {"example": example.read_text(encoding="utf-8") if settings.example else ""},
    )


def render_history(turns: Sequence[PastTurn], dropped: int, turn: int, max_turns: int) -> str:
    """What comes below the task from the second turn on.

    Args:
        turns: those that are shown, in order.
        dropped: how many earlier turns are not.
        turn: the number of the turn to come, from 1.
        max_turns: how many there are.
    """
    return _template("history.j2").render(turns=turns, dropped=dropped, turn=turn, max_turns=max_turns)


def render_feedback(
    outcome: Outcome,
    *,
    log: str = "",
    same_as: int | None = None,
    hints: bool = False,
    baseline: Literal["eager", "compile"] = "eager",
) -> str:
    """What a policy is told of its turn: the facts of the outcome, at most about 6,000 characters.

    Args:
        outcome: how the turn ended; its category chooses the template.
        log: what the submission wrote to stdout and stderr; shown when there is any.
        same_as: the number of the turn that gave the same code; it was not judged again.
        hints: adds a piece of advice to the facts.
        baseline: what the speedup is relative to.
    """
    parts = [_render_outcome(outcome, baseline)]
    if same_as is not None:
        parts.append(f"This is the code of turn {same_as} again, so it has the result of turn {same_as}.")
    if log.strip():
        parts.append(f"The submission printed:\n\n{block(log, limit=LOG_LIMIT)}")
    if hints:
        parts.append(_template("hints.j2").render(category=outcome.category, kind=outcome.kind))
    return "\n\n".join(part.strip() for part in parts)


def _render_outcome(outcome: Outcome, baseline: str) -> str:
    template = _template(f"feedback/{outcome.category}.j2")
    render = functools.partial(template.render, kind=outcome.kind, message=_sentence(_inline(outcome.message)))
    match outcome:
        case CompileError():
            return render(line=outcome.line, details=outcome.details)
        case RuntimeFailure():
            return render(line=outcome.line, details=outcome.details, input_set=outcome.input_set)
        case Incorrect():
            return render(
                input_set=outcome.input_set,
                output=_inline(outcome.output),
                wrong=outcome.wrong,
                total=outcome.total,
                worst_error=outcome.worst_error,
                tolerance=outcome.tolerance,
                differences=outcome.differences,
            )
        case Correct():
            return render(
                baseline=baseline,
                speedup=outcome.speedup,
                speedup_interval=outcome.speedup_interval,
                reference_seconds=outcome.reference_seconds,
                submission_seconds=outcome.submission_seconds,
            )
        case _:
            return render(line=outcome.line)


def elide(text: str, limit: int) -> str:
    """`text`, or its head and tail with a line between them that says how many characters are left out."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 3 // 5], text[-(limit * 2 // 5) :]
    head = head[: head.rfind("\n")] if "\n" in head[len(head) // 2 :] else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail[: len(tail) // 2] else tail
    return f"{head}\n[... {len(text) - len(head) - len(tail):,} characters left out ...]\n{tail}"


@functools.lru_cache(maxsize=1024)  # the code of earlier turns stands in every prompt
def block(text: str, language: str = "", limit: int | None = BLOCK_LIMIT) -> str:
    """`text` as a fenced block that nothing in it can close, elided to `limit` characters (None: whole)."""
    text = printable(text).strip("\n")
    text = text if limit is None else elide(text, limit)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _inline(text: str) -> str:
    """`text` on one line, elided, so that it stays within its paragraph."""
    return " ".join(elide(printable(text), MESSAGE_LIMIT).split())


def _table(differences: Sequence[Difference]) -> str:
    """Coordinates, expected and got of wrong elements, in aligned columns."""
    rows = [("index", "expected", "got")]
    rows += [(str(list(each.index))[:80], each.expected[:60], each.got[:60]) for each in differences]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows)


def _describe_input(given: InputFacts) -> str:
    """`x`: float32[128, 64], values from -1 to 1."""
    shape = "" if given.shape is None else str(list(given.shape))
    values = ""
    if given.low is not None and given.high is not None:
        values = f", values from {given.low:.6g} to {given.high:.6g}"
    return f"`{given.name}`: {given.dtype}{shape}{values}"


def _size(count: float) -> str:
    """A number of bytes in binary units."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def _rate(bytes_a_second: float) -> str:
    """A bandwidth, in decimal units as data sheets give it."""
    return f"{bytes_a_second / 1e12:.3g} TB/s" if bytes_a_second >= 1e12 else f"{bytes_a_second / 1e9:.3g} GB/s"


def _duration(seconds: float) -> str:
    """A time with three digits and the unit that fits it."""
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def _sentence(text: str) -> str:
    """`text` with a full stop, for a judge's clause that has none."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _without_docstring(source: str) -> str:
    """A problem's source without the docstring that the task has stated already."""
    first = parse(source).body[0]
    lines = source.split("\n")
    return "\n".join(lines[: first.lineno - 1] + lines[first.end_lineno :])


def _template(name: str) -> jinja2.Template:
    return _environment(data_folder("prompts")).get_template(name)


@functools.cache
def _environment(folder: Path) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {
        "block": block,
        "duration": _duration,
        "input": _describe_input,
        "rate": _rate,
        "sentence": _sentence,
        "size": _size,
        "table": _table,
    }
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]
    return environment
