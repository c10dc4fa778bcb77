import threading

import pytest
from episodes import REPLY, SOURCE, WRONG, correct

from kevin_env.judge import JudgeError, Options, Submission
from kevin_env.outcome import Correct
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem, ProblemError
from kevin_env.record import Message, Reply
from kevin_env.settings import Settings
from kevin_env.turn import Question, begin_turn

OPTIONS = Options(
    secret="ab" * 16, language="auto", rules="kernel", baseline="auto", retry_noisy=True
)
PROBLEM = Problem(id="double", source=SOURCE, name="double")


def question(number: int = 2, earlier=(), **settings) -> Question:
    messages = (Message(role="user", content="Double x."),)
    return Question(PROBLEM, number, messages, Settings(**settings), "ab" * 16, earlier)


def ask(reply: str | Reply, answer, **more):
    pool = ScriptedPool([answer])
    reply = Reply(content=reply) if isinstance(reply, str) else reply
    turn = begin_turn(question(**more), reply, pool).result()
    pool.close()
    return turn, pool


def test_a_judged_reply_becomes_a_whole_turn() -> None:
    turn, pool = ask(Reply(content=REPLY, reasoning="Hm."), correct(2.0))
    assert (turn.turn, turn.messages, turn.reply, turn.reasoning) == (
        2,
        question().messages,
        REPLY.removeprefix("<think>Double it.</think>\n"),
        "Hm.\n\nDouble it.",
    )
    assert (
        turn.submission
        and "class ModelNew" in turn.submission.code
        and turn.submission.language == "triton"
    )
    assert turn.summary == "One program a block of 1024 elements."
    assert (turn.outcome, turn.score) == (correct(2.0), pytest.approx(2.3))
    assert "Speedup over PyTorch eager: 2.00x" in turn.feedback
    assert turn.seconds.build > 0
    assert turn.secret == "ab" * 16
    assert pool.submissions == [(PROBLEM, turn.submission, OPTIONS)]


def test_a_reply_without_code_never_reaches_the_judge() -> None:
    turn, pool = ask("I would rather not.", correct(2.0))
    assert (turn.category, turn.kind, turn.score, turn.submission, turn.secret) == (
        "format", "no_code", 0.0, None, None,
    )  # fmt: skip
    assert not pool.submissions


def test_a_reply_that_was_cut_off_is_said_to_be_so() -> None:
    turn, _ = ask(Reply(content="```python\nimport torch", truncated=True), correct(2.0))
    assert (turn.category, turn.kind, turn.truncated) == ("format", "truncated", True)


def test_the_rules_stop_a_reply_before_the_judge() -> None:
    code = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.add(x, x)\n"
    turn, pool = ask(f"```python\n{code}```", correct(2.0))
    assert (turn.category, turn.score) == ("rules", 0.0)
    assert turn.submission and turn.submission.code.strip() == code.strip()
    assert not pool.submissions
    turn, pool = ask(f"```python\n{code}```", correct(2.0), rules="open")
    assert turn.category == "correct"


def test_where_glue_is_admitted_only_a_call_tells_how_much_torch_computes() -> None:
    code = (
        "import torch, triton\n@triton.jit\ndef kernel(x): pass\nclass ModelNew(torch.nn.Module):\n"
        "    def forward(self, x):\n        kernel[(1,)](x)\n        return x.new_ones(4).sum()\n"
    )
    for settings in ({"glue": 0.01}, {"rules": "partial"}):
        turn, _ = ask(f"```python\n{code}```", correct(2.0), **settings)
        assert turn.category == "correct"
    turn, _ = ask(
        f"```python\nfrom reference import Model\n{code}```",
        correct(2.0),
        rules="partial",
    )
    assert turn.kind == "inherits_reference"


@pytest.mark.parametrize(
    "error", [JudgeError("the device is gone"), ProblemError("the reference fails")]
)
def test_failures_of_ours_are_raised_and_never_scored(error) -> None:
    with pytest.raises(type(error), match=str(error)):
        ask(REPLY, error)


def test_a_score_that_is_no_number_is_an_error_not_a_turn() -> None:
    with pytest.raises(ValueError, match="gave nan"):
        ask(REPLY, WRONG, score=lambda _: float("nan"))


def test_the_policy_reads_what_its_kernel_printed_and_what_it_was_compared_with() -> None:
    judgement = (
        ScriptedPool([correct(2.0)]).submit(PROBLEM, Submission(code=""), Options()).result()
    )
    judgement = judgement.model_copy(update={"log": "ptxas info", "flags": ("odd",)})
    turn, _ = ask(REPLY, judgement, baseline="compile")
    assert "ptxas info" in turn.feedback and "torch.compile" in turn.feedback
    assert (turn.log, turn.flags) == ("ptxas info", ("odd",))


def test_cancelling_a_turn_cancels_the_judging() -> None:
    judged, hold = [], threading.Event()

    def answer(problem, submission):
        judged.append(submission)
        hold.wait(60)
        return WRONG

    pool = ScriptedPool(answer, workers=1)
    first, second = (begin_turn(question(), Reply(content=REPLY), pool) for _ in range(2))
    assert second.cancel()
    hold.set()
    assert first.result().outcome == WRONG
    pool._threads.shutdown(wait=True)
    assert second.cancelled() and len(judged) == 1


def test_the_same_code_is_measured_again_after_a_noisy_time_alone() -> None:
    noisy = Correct(kind="too_noisy", message="Correct.", speedup=2.0, speedup_interval=(0.5, 6.0))
    first, _ = ask(REPLY, noisy, number=1)
    again, pool = ask(REPLY, correct(1.5), earlier=(first,))
    assert (len(pool.submissions), again.outcome, first.score) == (
        1,
        correct(1.5),
        pytest.approx(0.925),
    )
    third, pool = ask(REPLY, correct(9.0), number=3, earlier=(first, again))
    assert (len(pool.submissions), third.outcome) == (0, correct(1.5)), (
        "a time that is not noisy stays"
    )
