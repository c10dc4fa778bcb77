"""`templates="kevin-paper"`: prompts and feedback in the words of Kevin (arXiv 2507.11948)."""

import pytest
from test_context import PROBLEM, turn
from test_feedback import FACTS

from kevin_env.context import build_messages
from kevin_env.feedback import render_feedback
from kevin_env.outcome import CompileError, Correct, FormatError, Incorrect
from kevin_env.settings import Settings

PAPER = Settings.of({"templates": "kevin-paper", "max_turns": 8})
INSTRUCTION = "Replace pytorch operators in the given architecture with raw CUDA kernels, optimizing for performance on "
SENTENCES = {
    "format": "Your previous answer failed to be parsed due to not adhering to the desired formatting. Here is the "
    "error message: ",
    "compile": "Your previous answer failed to compile. Here is the error message: ",
    "runtime": "Your previous answer compiled successfully but had runtime errors. Here is the error message: ",
    "correctness": "Your previous answer was incorrect. Here is the error message: ",
    "correct": "Your previous answer was correct but can be made faster.",
}


VARIES = (
    " Your answer is checked with case `main`, timed; case `cpu` (ROWS = 3)."
    " Each call gets new inputs, of these kinds: own: as drawn. wide: far out."
)


def prompt(turns, **settings) -> str:
    (message,) = build_messages(PROBLEM, FACTS, turns, PAPER.model_copy(update=settings))
    assert message.role == "user"
    return message.content


def test_the_first_prompt_is_the_architecture_the_instruction_and_an_example():
    text = prompt([])
    architecture = '"""Doubles x."""\n\nimport torch\n\nN = 1024\n\nclass Model(torch.nn.Module):\n'
    architecture += "    def forward(self, x):\n        return x * 2\n\n"
    assert text.startswith(
        f"You are given the following architecture:\n\n{architecture}{INSTRUCTION}NVIDIA H200 (e.g."
    )
    assert "get_inputs" not in text and "# " not in text.partition("Here's an example:")[0]
    assert f"in a few sentences.{VARIES} Here's an example:\n\nimport torch" in text
    assert prompt([], examples="zero").endswith(f"in a few sentences.{VARIES}")


def test_what_varies_is_named_only_where_something_does():
    one = FACTS.model_copy(update={"cases": FACTS.cases[:1], "distributions": ("own: as drawn",)})
    (message,) = build_messages(PROBLEM, one, [], PAPER.model_copy(update={"examples": "zero"}))
    assert message.content.endswith("summarize your changes in a few sentences.")


def test_later_prompts_have_every_kernel_with_summary_and_feedback_and_no_example():
    text = prompt([turn(1, code=""), turn(2, code="")])
    assert text.partition("a few sentences.")[2] == (
        f"{VARIES}\n\nHere are your previous attempts:\n\n"
        "```python\n# code 1\n```\n\nSummary 1.\n\nFeedback 1.\n\n"
        "```python\n# code 2\n```\n\nSummary 2.\n\nFeedback 2.\n\n"
        "Restart your reasoning process and generate new, complete code."
    )


def test_the_oldest_turns_are_left_out_whole():
    long = [turn(number, code=f"# {number}" * 8000) for number in (1, 2, 3)]
    text = prompt(long, context_tokens=16_000)
    assert (
        "# 3" in text and "# 2" in text and "Summary 1." not in text and "Feedback 1." not in text
    )


def test_feedback_has_the_whole_error_message_and_the_speedup():
    broken = CompileError(kind="compiler", message="no", details="x" * 3000)
    assert render_feedback(broken, templates="kevin-paper") == SENTENCES["compile"] + "x" * 3000
    wrong = Incorrect(
        kind="values", message="1 of 2 elements exceed", input_set="main/own", worst_error=0.25
    )
    assert render_feedback(wrong, templates="kevin-paper").endswith(
        "exceed. The largest absolute error is 0.25."
    )
    told = render_feedback(Correct(kind="timed", message="", speedup=1.5), templates="kevin-paper")
    assert (
        told
        == SENTENCES["correct"] + " Here is the speedup you achieved relative to the baseline: 1.50"
    )
    hinted = render_feedback(
        FormatError(kind="no_code", message="No."), hints=True, templates="kevin-paper"
    )
    assert "\n\nHint: " in hinted


@pytest.mark.parametrize("other", [{"language": "triton"}, {"examples": "few"}])
def test_what_the_paper_has_not_is_refused_in_one_line(other):
    with pytest.raises(ValueError, match=r"^templates='kevin-paper' needs language='cuda'"):
        Settings.of({"templates": "kevin-paper", **other})
    assert (PAPER.language, Settings().language) == ("cuda", "auto")
