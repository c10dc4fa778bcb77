"""Renders the prompts of a model: task, history and feedback, from templates in `prompts/`.

Text from a submission or a compiler is capped, stripped of control characters, and fenced so that
it cannot close the fence.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from kevin_env.judge.api import DeviceInfo, Facts
from kevin_env.languages import LANGUAGES, Name, available
from kevin_env.outcome import (
    NOISY,
    CompileError,
    Correct,
    Incorrect,
    Outcome,
    Profile,
    RulesViolation,
    RuntimeFailure,
    held_roofline,
    speedup_of,
)
from kevin_env.parsing import flags_of
from kevin_env.problem import (
    Baseline,
    KernelFile,
    Problem,
    baseline_name,
    baseline_of,
    data_folder,
    shown_source,
    shown_statement,
)
from kevin_env.retrieval.operations import Pair
from kevin_env.score import CORRECT_SHARE, Bound, Score, WeightedSum, at_bound, resolve_score
from kevin_env.settings import Language, Settings, Templates
from kevin_env.templates import render
from kevin_env.wording import (
    BLOCK_LIMIT,
    block,
    describe_input_sets,
    describe_place,
    inline,
    sentence,
)

FEEDBACK_TOKENS = 600
"""Upper bound of plain feedback, at four characters per token."""
PROFILE_TOKENS = 1000
"""Upper bound of feedback with a profile."""
LOG_LIMIT = 500
"""Limit in characters of a submission's output; the details get the rest of the budget."""
PROFILED_LOG_LIMIT = 100
"""The same with a profile that has findings."""
OUTPUT_LIMIT = 100
"""Limit in characters of an output's path."""
MOST_PAIRS = 4
"""Limit of pairs of a weight of the reference and one of the submission."""
LINE_LIMIT = 160
"""Limit in characters of a line of the submission."""
FAST_MATH = ("--use_fast_math", "-use_fast_math", "-ffast-math", "-Ofast")
"""Flags that allow a compiler coarser functions."""
NOTES_LIMIT = 200
"""Limit in characters of the reasons why something could not be measured."""

KEVIN_SCORING = (
    f"A turn scores 0 unless every input set passes, and then {CORRECT_SHARE} plus the speedup."
)
_OTHER_SCORING = "The score of a turn depends on whether every input set passes and on the speedup."


class PastTurn(NamedTuple):
    """One earlier turn in the history."""

    number: int
    code: str
    """Empty if the reply had none, or there is no room for it."""
    summary: str
    feedback: str
    had_code: bool = True
    """Whether the reply had code."""


def render_system() -> str:
    """The system message; empty if none is sent."""
    return render("system.j2").strip()


def render_task(
    problem: Problem, facts: Facts, settings: Settings, *, example: bool = False,
    pairs: Sequence[Pair] = (), start: PastTurn | None = None, for_agent: bool = False,
) -> str:  # fmt: skip
    """The task: reference, device, what is checked, what is allowed, how to answer.

    Args:
        problem: the problem.
        facts: the judge's description of it.
        settings: those of the episode.
        example: whether to show a worked example in the requested language.
        pairs: further references to show with their kernels.
        start: the kernel to begin with.
        for_agent: whether it is for a coding agent, which submits files instead of replies.
    """
    language = resolve_language(settings.language, facts.device)
    on_gpu = facts.device.device.startswith("cuda")
    chosen, shown = LANGUAGES.get(language), example_language(language, facts.device)
    interpreted = not on_gpu and chosen is not None and chosen.on_cpu == "interpreted"
    baseline = baseline_of(settings, problem, on_gpu)
    return render(
        "agents/task.j2" if for_agent else _template("task.j2", settings.templates),
        statement=shown_statement(problem),
        source=shown_source(problem),
        architecture=shown_source(problem, to_model=True).strip(),
        device=facts.device,
        on_gpu=on_gpu,
        cases=facts.cases,
        distributions=facts.distributions,
        structured=any(each.structure for case in facts.cases for each in case.inputs),
        tolerance=facts.tolerance,
        precision=facts.precision,
        dtype=settings.dtype,
        backward=settings.backward,
        weights=facts.weights,
        buffers=facts.buffers,
        **_floats(facts),
        limits=facts.limits.interpreted if interpreted else facts.limits,
        interpreted=interpreted,
        language=chosen,
        available=available(on_gpu, facts.device.versions),
        max_turns=settings.max_turns,
        rules=settings.rules,
        glue=settings.glue,
        baseline=baseline_name(baseline),
        own_baseline=isinstance(baseline, KernelFile),
        pay=settings.pay,
        pay_repeats=settings.pay_repeats,
        scoring=" ".join([_scoring(settings.score), *_conditions(settings)]),
        example=_example(shown, settings) if example else "",
        pairs=pairs,
        start=start,
    )


def resolve_language(language: Language, device: DeviceInfo) -> Name | Literal["any"]:
    """The language that `auto` stands for: Triton on a GPU, C++ on a CPU."""
    return example_language("any", device) if language == "auto" else language


def example_language(language: Language, device: DeviceInfo) -> Name:
    """The language of examples: with `any`, that of `auto`."""
    if language in ("auto", "any"):
        return "triton" if device.device.startswith("cuda") else "cpp"
    return language


def render_history(
    turns: Sequence[PastTurn],
    dropped: int,
    turn: int,
    max_turns: int,
    templates: Templates = "default",
    over: bool = False,
) -> str:
    """The part of the prompt below the task, from the second turn on.

    Args:
        turns: those that are shown, in order.
        dropped: how many earlier turns are not.
        turn: the number of the turn to come, from 1.
        max_turns: the number of turns.
        templates: as in `Settings`.
        over: whether the last turn has ended the episode.
    """
    name = _template("history.j2", templates)
    return render(name, turns=turns, dropped=dropped, turn=turn, max_turns=max_turns, over=over)


def render_feedback(
    outcome: Outcome,
    *,
    log: str = "",
    same_as: int | None = None,
    measured_again: bool = False,
    hints: bool = False,
    baseline: Baseline = "eager",
    bound: Bound = "median",
    profile: Profile | None = None,
    on_gpu: bool = True,
    code: str = "",
    scores: Sequence[float] = (),
    paid: float | None = None,
    templates: Templates = "default",
) -> str:
    """The feedback on a turn, in at most `FEEDBACK_TOKENS` without hints.

    In the paper's wording it is one sentence with the whole error message, without log, score and
    repeats.

    Args:
        outcome: how the turn ended; its category selects the template.
        log: the submission's stdout and stderr; shown unless empty.
        same_as: number of an earlier turn with the same code.
        measured_again: whether that code was judged again, or has the same result.
        hints: whether to add advice.
        baseline: what the speedup is relative to.
        bound: what the score pays of the speedup.
        profile: the profile; the feedback then takes at most `PROFILE_TOKENS`.
        on_gpu: whether the code ran on a GPU; hints differ.
        code: the submission; the line that the outcome points at is quoted, and a flag that can
            make values wrong is named.
        scores: the scores by themselves of the turns up to this one, for the line with score and
            best.
        paid: what of the last one is paid; None: all.
        templates: as in `Settings`.
    """
    if templates == "kevin-paper":
        log, same_as, scores = "", None, ()
    limit = PROFILED_LOG_LIMIT if profile and profile.holds_findings else LOG_LIMIT
    printed = f"Output of your code:\n\n{block(log, limit=limit)}" if log.strip() else ""
    room = BLOCK_LIMIT - len(printed)
    parts = [_render_outcome(outcome, baseline, bound, room, code, templates)]
    parts += _payment(scores, paid, same_as, measured_again)
    parts += render_profile(profile) if profile else []
    if printed:
        parts.append(printed)
    if hints:
        parts.append(_render_hint(outcome, on_gpu))
    return "\n\n".join(part.strip() for part in parts)


def _payment(
    scores: Sequence[float], paid: float | None, same_as: int | None, measured_again: bool
) -> list[str]:
    """Which turn had the same code, what is paid, and the best score so far."""
    full = scores[-1] if scores else 0.0
    paid = full if paid is None else paid
    by = f" minus the {full - paid:.3g} already scored" if paid else ", not above an earlier score"
    of = f"{full:.3g}{by}" if paid < full else ""
    parts: list[str] = []
    if same_as is not None:
        result = "measured again" if measured_again else "so it has the same result"
        if same_as == 0 and of:
            parts.append("This is the code that you started from, which earns nothing.")
        else:
            which = f"of turn {same_as}" if same_as else "that you started from"
            parts.append(f"This is the code {which}, {result}{of and f'; its score is {of}'}.")
    if scores:
        line = f"Score: {paid:.3g}{f' ({of})' if of and same_as is None else ''}."
        best = max(range(len(scores)), key=scores.__getitem__)
        if best < len(scores) - 1 and scores[best] > full:
            line += f" Best so far: {scores[best]:.3g} (turn {best + 1})."
        parts.append(line)
    return parts


def _line_of(code: str, number: int | None) -> str:
    """A line of the submission with its number; empty if there is none."""
    lines = code.split("\n")
    line = lines[number - 1].strip() if number and number <= len(lines) else ""
    return f"{number}: {inline(line, LINE_LIMIT)}" if line else ""


def _render_outcome(
    outcome: Outcome,
    baseline: Baseline,
    bound: Bound,
    room: int,
    code: str,
    templates: Templates,
) -> str:
    name = (
        f"feedback/{outcome.category}.j2" if templates == "default" else f"{templates}/feedback.j2"
    )
    passed = describe_input_sets(getattr(outcome, "passed", ()))
    shown: dict[str, Any] = {
        "category": outcome.category,
        "kind": outcome.kind,
        "message": sentence(inline(outcome.message)),
        "line": outcome.line,
        "source_line": _line_of(code, outcome.line),
        "input_set": getattr(outcome, "input_set", None),
        "passed": passed,
    }
    match outcome:
        case CompileError() | RuntimeFailure():
            details = outcome.details
            if templates == "default":  # whose template shows the message above the details
                lines, message = details.split("\n"), outcome.message.strip()
                details = "\n".join(x for x in lines if x.strip() != message).strip("\n")
            shown |= {"details": details, "room": room - len(passed)}
        case Incorrect():
            pairs = outcome.paired[:MOST_PAIRS]
            flags = flags_of(code) if outcome.kind in ("values", "not_finite") else ()
            shown |= {
                "fast_math": next((flag for flag in FAST_MATH if flag in flags), None),
                "output": inline(outcome.output, OUTPUT_LIMIT),
                "worst_error": outcome.worst_error,
                "tolerance": outcome.tolerance,
                "differences": outcome.differences,
                "pattern": outcome.pattern,
                "paired": [[inline(name, OUTPUT_LIMIT) for name in pair] for pair in pairs],
            }
        case RulesViolation():
            shown |= {"case": outcome.case}
        case Correct():
            times = ("speedup", "speedup_interval", "reference_seconds", "submission_seconds")
            shown |= {name: getattr(outcome, name) for name in (*times, "roofline", "threads")}
            shown |= {"baseline_name": baseline_name(baseline)}
            shown |= {"counts": speedup_of(at_bound(outcome, bound))}
        case _:
            pass
    return render(name, **shown)


def render_profile(profile: Profile) -> list[str]:
    """The findings of the profile, and what could not be measured."""
    sections = (
        [inline(" ".join(map(sentence, profile.notes)), NOTES_LIMIT)] if profile.notes else []
    )
    if profile.kernels or profile.ncu:
        sections.insert(
            0,
            render("feedback/profile.j2", kernels=profile.kernels, ncu=profile.ncu),
        )
    if (sanitizer := profile.sanitizer) is not None:
        section = render(
            "feedback/sanitizer.j2",
            tool=sanitizer.tool,
            count=sanitizer.count,
            error=inline(sanitizer.error, 150),
            details=inline(sanitizer.details, 200),
            where=describe_place(sanitizer),
        )
        sections.insert(0, section)
    return sections


def _render_hint(outcome: Outcome, on_gpu: bool) -> str:
    """One piece of advice."""
    return render(
        "hints.j2",
        category=outcome.category,
        kind=outcome.kind,
        on_gpu=on_gpu,
        roofline=held_roofline(outcome),
        pattern=outcome.pattern if isinstance(outcome, Incorrect) else None,
    )


def _template(name: str, templates: Templates) -> str:
    return name if templates == "default" else f"{templates}/{name}"


def _scoring(score: str | Score) -> str:
    """How a turn is scored, for the prompt."""
    if score == "kevin":
        return KEVIN_SCORING
    score = resolve_score(score)
    if not isinstance(score, WeightedSum):
        return _OTHER_SCORING
    *parts, last = dict.fromkeys(
        component.description or component.name for _, component in score.terms
    )
    return f"A turn is scored on {' and '.join([', '.join(parts), last] if parts else [last])}."


def _conditions(settings: Settings) -> list[str]:
    """What counts of the speedup, and what ends the episode if anything does."""
    times = "" if settings.bound == "lower" else f"at most {1 + NOISY:g} times "
    sentences = [f"The speedup counts as {times}the lower end of its 95 % interval."]
    if settings.stop_on == "correct":
        sentences.append("The first correct kernel ends the episode.")
    elif settings.stop_on is not None:
        sentences.append(
            f"The first kernel with a speedup of at least {settings.stop_on:g} ends the episode."
        )
    return sentences


def _floats(facts: Facts) -> dict[str, Any]:
    """Whether floats occur in the timed case, and which of 16 bits."""
    case = facts.cases[0]
    labels = [each.dtype for each in case.inputs if each.shape is not None]
    labels += [*case.outputs, *(each.partition(": ")[2] for each in facts.weights + facts.buffers)]
    dtypes = sorted({label.partition("[")[0] for label in labels})
    return {
        "floats": any(each.startswith(("float", "bfloat", "complex")) for each in dtypes),
        "halves": [each for each in dtypes if each in ("float16", "bfloat16")],
    }


def _example(language: str, settings: Settings) -> str:
    folder = data_folder("prompts")
    if settings.templates != "default":
        return (folder / settings.templates / "example.py").read_text(encoding="utf-8")
    plain, both = (folder / name / f"{language}.py" for name in ("examples", "examples/backward"))
    file = both if settings.backward and both.exists() else plain
    return file.read_text(encoding="utf-8")
