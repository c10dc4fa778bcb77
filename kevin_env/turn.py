"""One turn: reply -> extract -> rules -> judge -> Outcome -> score -> feedback -> Turn. Read this
first.
"""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from kevin_env.context import count_characters, load_counter
from kevin_env.extract import Extracted, extract, part_reasoning
from kevin_env.feedback import render_feedback
from kevin_env.judge.api import Judgement, JudgePool, OnStage, Options, Seconds, Submission
from kevin_env.outcome import FormatError, Outcome
from kevin_env.parsing import meaning_of
from kevin_env.problem import Problem
from kevin_env.profile import Profile
from kevin_env.record import Message, Reply, Turn, Usage
from kevin_env.rules import check_rules
from kevin_env.score import Bound, Noisy, Score, Scored, earned, score_of
from kevin_env.settings import Templates

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Question:
    """What one turn asks of the policy, and how the answer will be judged."""

    problem: Problem
    number: int
    """From 1."""
    messages: tuple[Message, ...]
    """The chat as sent."""
    options: Options
    score: Score
    bound: Bound = "median"
    pay_repeats: bool = False
    noisy: Noisy = "lower"
    tokenizer: str = ""
    hints: bool = False
    templates: Templates = "default"
    on_gpu: bool = True
    """Where the code runs: what hints advise depends on it."""
    earlier: tuple[Turn, ...] = ()
    """The turns before this one: the same code again is not judged again, so nobody is paid for a
    lucky measurement, unless its time was noisy.
    """


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a submission ended; `judgement` is None when it never reached the judge."""

    outcome: Outcome
    judgement: Judgement | None = None


def begin_turn(
    question: Question, reply: Reply, pool: JudgePool, on_stage: OnStage | None = None
) -> Future[Turn]:
    """Judges a reply; the turn comes when the judge has answered, at once when there is nothing for
    it to do.

    Raises (from the future):
        JudgeError: if the judge fails. There is no turn then, and no score.
        ProblemError: if the problem's reference fails.
    """
    extracted = extract(reply.content, truncated=reply.truncated)
    submission = extracted.submission if isinstance(extracted, Extracted) else extracted
    repeated = (
        _repeated(submission, question.earlier) if isinstance(submission, Submission) else iter(())
    )
    same = next((turn for turn in repeated if turn.kind != "too_noisy"), None)
    if same is not None:
        return _resolved(_turn(question, reply, extracted, Verdict(same.outcome), same))
    judging = begin_verdict(submission, question.problem, question.options, pool, on_stage)
    return then(judging, lambda verdict: _turn(question, reply, extracted, verdict))


def begin_verdict(
    submission: Submission | FormatError,
    problem: Problem,
    options: Options,
    pool: JudgePool,
    on_stage: OnStage | None = None,
) -> Future[Verdict]:
    """Checks what was extracted against the rules, then judges it. Errors as `begin_turn`."""
    if isinstance(submission, FormatError):
        return _resolved(Verdict(submission))
    violation = check_rules(submission.code, options.rules, options.glue)
    if violation is not None:
        return _resolved(Verdict(violation))
    judging = pool.submit(problem, submission, options, on_stage)
    return then(judging, lambda judgement: Verdict(judgement.outcome, judgement))


def take_turn(
    question: Question, reply: Reply, pool: JudgePool, on_stage: OnStage | None = None
) -> Turn:
    """As `begin_turn`, waiting for the turn."""
    return begin_turn(question, reply, pool, on_stage).result()


def as_scored(
    outcome: Outcome, submission: Submission | None, reply: str, reasoning: str | None, usage: Usage | None = None,
    tokenizer: str = "",
) -> Scored:  # fmt: skip
    """What a score may look at of a turn: how it ended, and the tokens of its code and of all its
    reasoning.

    They are counted with the tokenizer, where the settings name one. Else they are those of
    `usage`: what it tells of the whole reply is divided by characters, and without it four
    characters are a token. Reasoning that is not in the reply is counted by `usage` alone.
    """
    thought = ((reasoning or "") + part_reasoning(reply)[1]).strip()
    usage, written = usage or Usage(), len(reply) + len(reasoning or "")
    told = (usage.completion_tokens or 0) - (
        0 if thought else usage.reasoning_tokens or 0
    )  # hidden: not in `written`

    def count(text: str) -> float:
        if tokenizer:
            return load_counter(tokenizer)(text)
        return len(text) * told / written if told > 0 and written else count_characters(text)

    return Scored(
        outcome,
        code_tokens=count(submission.code) if submission else None,
        reasoning_tokens=count(thought)
        if thought and tokenizer
        else usage.reasoning_tokens or count(thought),
    )


def turn_secret(episode_secret: str, turn: int) -> str:
    """What a turn's inputs are drawn from: 128 bits as hex, of the episode's secret and the turn's
    number.
    """
    return hashlib.sha256(f"{episode_secret}/{turn}".encode()).hexdigest()[:32]


def then(future: Future[A], function: Callable[[A], B]) -> Future[B]:
    """The future of `function` of that future's result. Errors pass through; cancelling it cancels
    that future.
    """
    result: Future[B] = Future()

    def finish(done: Future[A]) -> None:
        if not result.set_running_or_notify_cancel():
            return
        try:
            result.set_result(function(done.result()))
        except BaseException as error:  # a future carries every error to whoever waits for it
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


def _repeated(submission: Submission, earlier: tuple[Turn, ...]) -> Iterator[Turn]:
    """The turns whose code is the same but for comments and layout, in order."""
    meaning = meaning_of(submission.code)
    return (turn for turn in earlier if turn.meaning == meaning)


def _earned_before(question: Question, submission: Submission) -> float | None:
    """What the same code has earned so far; None for new code, and where repeats are paid."""
    scores = (
        []
        if question.pay_repeats
        else [turn.score for turn in _repeated(submission, question.earlier)]
    )
    return sum(scores) if scores else None


def _new_in(evidence: Judgement | Turn | None, earlier: tuple[Turn, ...]) -> Profile | None:
    """The profile without notes that an earlier turn has told."""
    if evidence is None or evidence.profile is None:
        return None
    return evidence.profile.without(
        tuple(note for turn in earlier if turn.profile for note in turn.profile.notes)
    )


def _turn(
    question: Question,
    reply: Reply,
    extracted: Extracted | FormatError,
    verdict: Verdict,
    same: Turn | None = None,
) -> Turn:
    found = extracted if isinstance(extracted, Extracted) else None
    judgement = verdict.judgement
    evidence = judgement or same
    log = evidence.log if evidence else ""
    scored = as_scored(
        verdict.outcome,
        found.submission if found else None,
        reply.content,
        reply.reasoning,
        reply.usage,
        question.tokenizer,
    )
    before = _earned_before(question, found.submission) if found else None
    score = earned(score_of(scored, question.score, question.bound, question.noisy), before)
    told = render_feedback(
        verdict.outcome, log=log, same_as=same.turn if same else None, hints=question.hints,
        baseline=question.options.baseline, profile=_new_in(evidence, question.earlier), on_gpu=question.on_gpu,
        code=found.submission.code if found else "", scores=(*(turn.score for turn in question.earlier), score),
        templates=question.templates,
    )  # fmt: skip
    return Turn(
        turn=question.number,
        messages=question.messages,
        reply=reply.content,
        reasoning=reply.reasoning,
        truncated=reply.truncated,
        summary=found.summary if found else "",
        submission=found.submission if found else None,
        outcome=verdict.outcome,
        score=score,
        feedback=told,
        seconds=judgement.seconds if judgement else Seconds(),
        log=log,
        flags=evidence.flags if evidence else (),
        profile=evidence.profile if evidence else None,
        usage=reply.usage,
        by_person=reply.by_person,
        secret=evidence.secret if evidence else None,
    )
