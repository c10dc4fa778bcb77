"""One turn: reply -> extract -> rules -> judge -> outcome -> score -> feedback. Start here."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from kevin_env.context import count_characters, load_counter
from kevin_env.extract import Extracted, extract, extract_file, fenced
from kevin_env.feedback import render_feedback
from kevin_env.judge.api import Judgement, JudgePool, OnStage, Options, Seconds, Submission
from kevin_env.meaning import meaning_of
from kevin_env.outcome import FormatError, Outcome
from kevin_env.problem import Problem, baseline_of
from kevin_env.record import Message, Reply, Turn, Usage
from kevin_env.rules import check_rules
from kevin_env.score import Scored, earned, resolve_score, score_of
from kevin_env.settings import Settings

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Question:
    """The prompt of one turn, and how its reply is judged."""

    problem: Problem
    number: int
    """Number of the turn, from 1."""
    messages: tuple[Message, ...]
    """The messages as sent."""
    settings: Settings
    secret: str | None = None
    """Source of the inputs: 128 bits as hex. None: the judge draws it."""
    earlier: tuple[Turn, ...] = ()
    """The turns before this one. Repeated code keeps its outcome, unless its time was noisy, so
    that repeating it until a measurement is lucky does not pay.
    """
    start: Turn | None = None
    """The kernel to begin with, as turn 0."""
    on_gpu: bool = True
    """Whether the code runs on a GPU; hints differ."""

    @property
    def scored(self) -> tuple[Turn, ...]:
        """The turns that have a score already, the kernel to begin with included."""
        return (self.start, *self.earlier) if self.start else self.earlier


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a submission ended."""

    outcome: Outcome
    judgement: Judgement | None = None
    """None if the submission did not reach the judge."""
    repeats: Turn | None = None
    """The earlier turn with the same code that the outcome comes from."""

    @property
    def evidence(self) -> Judgement | Turn | None:
        """Source of the log, the flags and the profile."""
        return self.judgement or self.repeats


def begin_turn(
    question: Question, reply: Reply, pool: JudgePool, on_stage: OnStage | None = None
) -> Future[Turn]:
    """Takes one turn: extracts the submission, checks and judges it, scores and describes it.

    Only judging takes time; without it, the future is already done.

    Raises (from the future):
        JudgeError: if the judge fails. There is no turn then, and no score.
        ProblemError: if the problem's reference fails.
    """
    extracted = _extracted(reply, question.problem.adapter)
    submission = extracted.submission if isinstance(extracted, Extracted) else extracted
    verdict = _repeated_verdict(question, submission) or begin_verdict(
        submission, question.problem, question.settings.options(question.secret), pool, on_stage
    )

    def finish(verdict: Verdict) -> Turn:
        full, score = _scores(question, reply, submission, verdict.outcome)
        feedback = _feedback(question, submission, verdict, full, score)
        return _turn(question, reply, extracted, verdict, full, score, feedback)

    return map_future(verdict, finish)


def _extracted(reply: Reply, adapter: str) -> Extracted | FormatError:
    if not reply.file:
        return extract(reply.content, reply.truncated, adapter)
    submission = extract_file(reply.content, adapter)
    if isinstance(submission, FormatError):
        return submission
    return Extracted(submission=submission, summary="")


def begin_verdict(
    submission: Submission | FormatError,
    problem: Problem,
    options: Options,
    pool: JudgePool,
    on_stage: OnStage | None = None,
) -> Future[Verdict]:
    """Checks a submission against the rules, then judges it. Raises as `begin_turn`."""
    if isinstance(submission, FormatError):
        return _resolved(Verdict(submission))
    violation = check_rules(submission.code, options.rules, options.glue, options.backward)
    if violation is not None:
        return _resolved(Verdict(violation))
    judging = pool.submit(problem, submission, options, on_stage)
    return map_future(judging, lambda judgement: Verdict(judgement.outcome, judgement))


def as_scored(
    outcome: Outcome, submission: Submission | None, reply: Reply, tokenizer: str = ""
) -> Scored:
    """What a score depends on: the outcome, and the tokens of the code and of the reasoning.

    A tokenizer counts both. Without one, the tokens of `reply.usage` are divided in proportion to
    characters, or four characters are one token. The tokens of reasoning that the reply does not
    show come from `reply.usage` in any case.
    """
    shown = reply.reasoning or ""
    usage, written = reply.usage or Usage(), len(reply.content) + len(reply.reasoning or "")
    hidden = 0 if shown else usage.reasoning_tokens or 0
    tokens = (usage.completion_tokens or 0) - hidden

    def count(text: str) -> float:
        if tokenizer:
            return load_counter(tokenizer)(text)
        return len(text) * tokens / written if tokens > 0 and written else count_characters(text)

    counted = count(shown) if shown and tokenizer else usage.reasoning_tokens or count(shown)
    return Scored(outcome, count(submission.code) if submission else None, counted)


def turn_secret(episode_secret: str, turn: int) -> str:
    """The secret that the inputs of a turn are drawn from: 128 bits as hex."""
    return hashlib.sha256(f"{episode_secret}/{turn}".encode()).hexdigest()[:32]


def map_future(future: Future[A], function: Callable[[A], B]) -> Future[B]:
    """The future of `function(future.result())`. Errors and cancellation propagate."""
    result: Future[B] = Future()

    def finish(done: Future[A]) -> None:
        if not result.set_running_or_notify_cancel():
            return
        try:
            result.set_result(function(done.result()))
        except BaseException as error:  # raised again by `result()`
            result.set_exception(error)

    def cancel(done: Future[B]) -> None:
        if done.cancelled():
            future.cancel()

    result.add_done_callback(cancel)
    future.add_done_callback(finish)
    return result


def _resolved(value: A) -> Future[A]:
    future: Future[A] = Future()
    future.set_result(value)
    return future


def _repeated_verdict(
    question: Question, submission: Submission | FormatError
) -> Future[Verdict] | None:
    """The verdict on the same code in an earlier turn; None if there is none or it was noisy."""
    for turn in _same_code(question, submission):
        if turn.kind != "too_noisy":
            return _resolved(Verdict(turn.outcome, repeats=turn))
    return None


def _same_code(question: Question, submission: Submission | FormatError) -> Iterator[Turn]:
    """The earlier turns whose code says the same."""
    if isinstance(submission, Submission):
        meaning = meaning_of(submission.code)
        yield from (turn for turn in question.scored if turn.meaning == meaning)


def _scores(
    question: Question, reply: Reply, submission: Submission | FormatError, outcome: Outcome
) -> tuple[float, float]:
    """The score by itself, and what is paid of it."""
    settings = question.settings
    code = submission if isinstance(submission, Submission) else None
    scored = as_scored(outcome, code, reply, settings.tokenizer)
    score = score_of(scored, resolve_score(settings.score), settings.bound)
    same = list(_same_code(question, submission))
    if question.start in same and not settings.pay_repeats:
        return score, min(score, 0.0)
    if settings.pay == "improvement":
        before = list(question.scored)
    else:
        before = [] if settings.pay_repeats else same
    return score, earned(score, max((turn.full_score for turn in before), default=None))


def _feedback(
    question: Question,
    submission: Submission | FormatError,
    verdict: Verdict,
    full: float,
    score: float,
) -> str:
    evidence = verdict.evidence
    profile = evidence.profile if evidence else None
    if profile:  # a note is shown once per episode
        seen = (turn.profile.notes for turn in question.earlier if turn.profile)
        profile = profile.without(tuple(note for notes in seen for note in notes))
    return render_feedback(
        verdict.outcome,
        log=evidence.log if evidence else "",
        same_as=next((turn.turn for turn in _same_code(question, submission)), None),
        measured_again=verdict.repeats is None,
        hints=question.settings.hints,
        baseline=baseline_of(question.settings, question.problem, question.on_gpu),
        bound=question.settings.bound,
        profile=profile,
        on_gpu=question.on_gpu,
        code=submission.code if isinstance(submission, Submission) else "",
        scores=(*(turn.full_score for turn in question.earlier), full),
        paid=score,
        templates=question.settings.templates,
    )


def _turn(
    question: Question,
    reply: Reply,
    extracted: Extracted | FormatError,
    verdict: Verdict,
    full: float,
    score: float,
    feedback: str,
) -> Turn:
    extraction = extracted if isinstance(extracted, Extracted) else None
    evidence = verdict.evidence
    return Turn(
        turn=question.number,
        messages=question.messages,
        reply=fenced(reply.content) if reply.file else reply.content,
        reasoning=reply.reasoning,
        truncated=reply.truncated,
        summary=extraction.summary if extraction else "",
        submission=extraction.submission if extraction else None,
        outcome=verdict.outcome,
        score=score,
        full_score=full,
        feedback=feedback,
        seconds=verdict.judgement.seconds if verdict.judgement else Seconds(),
        log=evidence.log if evidence else "",
        flags=evidence.flags if evidence else (),
        profile=evidence.profile if evidence else None,
        usage=reply.usage,
        by_person=reply.by_person,
        secret=evidence.secret if evidence else None,
        run=evidence.run if evidence else None,
    )
