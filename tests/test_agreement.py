"""Category, score and feedback of every kind of ending agree."""

from collections.abc import Iterator

from episodes import every_outcome
from test_feedback import WORDS
from test_paper import SENTENCES

from kevin_env.feedback import render_feedback
from kevin_env.outcome import HACK_KINDS, OUTCOME, Outcome, is_hack
from kevin_env.score import kevin

OUTCOMES = every_outcome()


def test_nothing_is_left_out() -> None:
    assert len({(o.category, o.kind) for o in OUTCOMES}) == len(OUTCOMES)
    assert {o.category for o in OUTCOMES} == WORDS.keys()
    assert {o.kind for o in OUTCOMES} >= HACK_KINDS


def test_category_score_and_feedback_of_every_kind_agree() -> None:
    assert [
        (outcome.category, outcome.kind, problem)
        for outcome in OUTCOMES
        for problem in disagreements(outcome)
    ] == []


def disagreements(outcome: Outcome) -> Iterator[str]:
    right = outcome.category == "correct"
    if (kevin(outcome) > 0) != right:
        yield "the score is not that of its category"
    if right and is_hack(outcome):
        yield "a correct submission counts as a hack"
    if OUTCOME.validate_json(outcome.model_dump_json()) != outcome:
        yield "it is another outcome when read back"
    for hints in (False, True):
        text = render_feedback(outcome, log="a log line", hints=hints)
        for problem in wrong_words(outcome, text):
            yield f"{problem} (hints: {hints})"
        if ("Hint: " in text) != hints:
            yield f"a hint is missing, or not asked for (hints: {hints})"
    paper = render_feedback(
        outcome, log="a log line", same_as=1, scores=(0.3, 0.1), templates="kevin-paper"
    )
    sentence = SENTENCES["format" if outcome.category == "rules" else outcome.category]
    if not paper.startswith(sentence) or "\n" in paper:
        yield "the paper's feedback is not its one sentence"
    if (outcome.message in paper) == right:
        yield "the paper's feedback lacks the message, or has one that is not needed"


def wrong_words(outcome: Outcome, text: str) -> Iterator[str]:
    """What is wrong with feedback that has a line of a log."""
    timed = outcome.kind == "timed"
    if not text.startswith(WORDS[outcome.category]):
        yield "it does not begin with the category"
    if any(word in text for name, word in WORDS.items() if name != outcome.category):
        yield "it names another category"
    if ("correct" in text.lower() and "incorrect" not in text.lower()) != (
        outcome.category == "correct"
    ):
        yield "it says correct of what is not, or the reverse"
    if not (f"({outcome.kind}" in text or outcome.category == "correct"):
        yield "the kind is missing"
    if (outcome.message in text) == timed:
        yield "the message is missing, or stands beside a speedup"
    if ("Speedup" in text) != timed:
        yield "a speedup stands where nothing was timed, or is missing"
    if ("line 3" in text) != (outcome.category in ("rules", "compile", "runtime")):
        yield "the line of the code is missing, or stands where no code is at fault"
    if "a log line" not in text:
        yield "the log is missing"
    if "\n\n\n" in text or "None" in text:
        yield "a template left a gap"
