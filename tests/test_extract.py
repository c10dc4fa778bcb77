import re
import textwrap
import time

import pytest

from kevin_env.extract import (
    SUMMARY_LIMIT,
    Extracted,
    as_reply,
    extract,
    extract_file,
    guess_language,
    is_chat,
)
from kevin_env.outcome import CompileError, FormatError
from kevin_env.rules import check_rules

MODEL = "class ModelNew:\n    def forward(self, x):\n        return x\n"
OTHER = MODEL.replace("return x", "return draft(x)")
STUB = "class ModelNew(Module):\n    "


def _fenced(code=MODEL, tag="python", fence="```"):
    return f"{fence}{tag}\n{code}{fence}\n"


def _code(reply, **keywords):
    found = extract(reply, **keywords)
    assert isinstance(found, Extracted), found
    return found.submission.code


def _kind(reply, **keywords):
    found = extract(reply, **keywords)
    assert isinstance(found, FormatError), found
    return found.kind


@pytest.mark.parametrize("tag", ["python", "py", "", "cuda", "Python title=x"])
@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_one_block_with_any_fence_and_tag(tag, fence):
    assert _code(f"Here it is.\n\n{_fenced(tag=tag, fence=fence)}\nDone.") == MODEL


@pytest.mark.parametrize(
    "reply",
    [
        f"{_fenced(OTHER)}\nBetter:\n{_fenced()}",
        f"{_fenced()}\nUse it like this:\n{_fenced('model = ModelNew()')}",
        f"{_fenced()}\nBuild:\n```bash\npip install x\n```\n",
        f"{_fenced()}\nNested:\n{_fenced('def f():' + chr(10) + '    class ModelNew: pass' + chr(10))}",
        f"{_fenced()}\n```\n# class ModelNew\n```",
    ],
)
def test_the_last_block_that_defines_the_model_counts(reply):
    assert _code(reply) == MODEL


@pytest.mark.parametrize(
    "left_out",
    [
        "def forward(self, x): ...",
        "...",
        "...\n    def helper(self):\n        return 1",
        "pass",
        "# unchanged",
        "# unchanged\n    pass",
        '"""As above."""',
        "size = 3",
        "def forward(self, x):\n        ...  # as above",
        "def forward(self, x):\n        pass",
        "def forward(self, x):\n        # as above",
        "def forward(self, x):\n        ... as above",
        'def forward(self, x):\n        """As above."""\n        raise NotImplementedError("above")',
        "def forward(self, x):\n        return None",
        "def forward(self, x):\n        return x",  # Module is not imported
    ],
)
def test_a_reminder_of_the_model_counts_where_there_is_no_other(left_out):
    reminder = _fenced(f"{STUB}{left_out}\n")
    assert _code(f"{_fenced()}\nOnly this is new:\n{reminder}") == MODEL
    assert left_out in _code(reminder)


@pytest.mark.parametrize(
    "code",
    [
        "class Fast:\n    pass\nModelNew = Fast\n",
        "class Fast:\n    pass\nModelNew: type = Fast\n",
        "try:\n    x = 1\nexcept ImportError:\n    class ModelNew:\n        pass\n",
        "if True:\n    class ModelNew:\n        pass\n",
        "from shared import *\nclass ModelNew(Base): forward = run\n",
        "import torch as t\nclass ModelNew(t.nn.Module):\n    forward = t.relu\n",
    ],
)
def test_a_class_that_is_given_the_name_or_stands_in_a_branch_counts(code):
    assert _code(f"{_fenced()}\nBetter:\n{_fenced(code)}") == code
    assert not isinstance(extract_file(code), FormatError)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", "no_code"), ("I cannot do that.", "no_code"),
        ("The class ModelNew would use `torch`.", "no_code"), ("x = 1", "no_code"),
        (_fenced("x = 1\n"), "no_model"), (_fenced("x = ModelNew()\n"), "no_model"),
        (f"```python\n{MODEL}", "truncated"),
        (f"{_fenced('x = 1')}\n```python\n{MODEL}", "truncated"),
        (f"<think>\nstill going {_fenced()}", "truncated"),
    ],
)  # fmt: skip
def test_replies_without_a_submission(reply, kind):
    assert _kind(reply) == kind


@pytest.mark.parametrize(
    ("reply", "limited", "words"),
    [
        ("Let me think", True, "token limit"),
        (f"<think>\nstill going {_fenced()}", True, "token limit"),
        (f"<think>\nstill going {_fenced()}", False, "reasoning tag is never closed"),
        (f"```python\n{MODEL}", False, "code block is never closed"),
    ],
)
def test_what_is_missing_of_a_reply_that_breaks_off_is_reported(reply, limited, words):
    found = extract(reply, truncated=limited)
    assert isinstance(found, FormatError) and found.kind == "truncated" and words in found.message


def test_cut_off_by_the_token_limit():
    assert _kind("Let me think about", truncated=True) == "truncated"
    assert _kind(MODEL, truncated=True) == "truncated"
    assert _kind(_fenced("x = 1\n"), truncated=True) == "truncated"
    assert _code(_fenced() + "This kernel is", truncated=True) == MODEL
    assert _code(f"{_fenced()}\nBetter still:\n```python\nimport torch\nclass Mod") == MODEL


def test_a_block_that_does_not_parse_is_left_to_the_rules():
    code = "import torch\nclass ModelNew(:\n"
    assert _code(_fenced(code)) == code
    assert isinstance(check_rules(code), CompileError)


EXAMPLES = [
    '"""Use:\n\n```\nmodel()\n```\n"""\n',
    '"""Use:\n\n```python\nmodel()\n```\n"""\n',
    "r'''\n~~~\n```\n'''\n",
    "# ```python\n# model()\n# ```\n",
    's = "```"  # ```\n',
    "s = \"'''\"  # '''\n",
    "s = '''\n<think>\n'''\n",
    "s = '''\n</think>\n'''\n",
    'note = "<think> about"  # <think>\n',
]
"""Code that could be taken for a fence or a mark."""
ANSWERS = [
    "```python\n{code}```",
    "```python\n{code}```\n```",
    "```python\n{code}```<|im_end|>",
    "```python\n{code}```</answer>",
    "```python\n{code}``` Done.",
    "```python\n{code}```Done.",
    "```python\n{code}  ```",
    "```python\n{code}`````",
    "<answer>```python\n{code}```</answer>",
    "<answer>\n```\n{code}```\n</answer>",
    "Here is the code: ```python\n{code}```",
    "Here is the code: ```\n{code}```",
    "1. ```Python\n{code}```",
    "``` python\n{code}```",
    "```{{.python}}\n{code}```",
    "```cuda title=kernel.py\n{code}```",
    "~~~\n{code}~~~",
    "````python\n{code}````",
    "```markdown\nThe code:\n```python\n{code}```\n```\n",
    "```python\nimport torch\n\nNo:\n```python\n{code}```",
    "```bash\nmake\n```\n```python\n{code}```\n```text\nfast\n```",
    "Like ```this``` one:\n```python\n{code}```",
]
"""Complete answers."""


@pytest.mark.parametrize("example", ["", *EXAMPLES])
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_complete_answer_is_taken(answer, example):
    code = example + MODEL
    reply = answer.format(code=code)
    assert _code(reply) == code
    assert _code(textwrap.indent(reply, "> ", lambda line: True)) == code
    found = extract(f"{reply}\nNow it is fast.\n")
    assert isinstance(found, Extracted) and "Now it is fast." in found.summary
    assert not any(word in found.summary for word in ("ModelNew", "```", "answer>", "im_end"))


def _first_by_backticks(reply: str) -> str:
    """What KernelBench takes from a reply: what is between the first pairs of backticks."""
    found = re.search(r"```(.*?)```", reply.strip(), re.DOTALL)
    return "" if found is None else found[1].strip().removeprefix("python").strip()


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_kernelbench_takes_from_a_reply_is_taken(answer):
    reply = answer.format(code=MODEL)
    theirs = _first_by_backticks(reply)
    assert theirs != MODEL.strip() or _code(reply).strip() == theirs


def test_kernelbench_takes_most_answers():
    """Otherwise the comparison above would say nothing."""
    taken = [_first_by_backticks(each.format(code=MODEL)) == MODEL.strip() for each in ANSWERS]
    assert sum(taken) > len(ANSWERS) / 2


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (f"```python import torch\n{MODEL}```", f"import torch\n{MODEL}"),
        (f"```import torch\n{MODEL}```", f"import torch\n{MODEL}"),
        (f"```python\n{MODEL.rstrip()}```", MODEL),
        (f"```python\n{MODEL.rstrip()}```<|im_end|>", MODEL),
        (f"- ```python\n{textwrap.indent(MODEL, '  ')}  ```", MODEL),
        (f"```python\n{textwrap.indent(MODEL, '    ')}```", MODEL),
        (f"<answer>\n{MODEL}</answer>", MODEL),
        (f"Here:\n<code>\n{MODEL}</code>\n<|im_end|>", MODEL),
    ],
)
def test_code_on_the_line_of_a_fence_and_indented_or_in_a_tag_is_taken(reply, code):
    assert _code(reply) == code


def test_an_unfinished_string_does_not_hide_the_next_block():
    assert _code(f"```python\nx = '''\n```\n{_fenced()}") == MODEL


@pytest.mark.parametrize(
    "reply",
    [
        f"```markdown\n# Answer\n{_fenced()}```\nDone.",
        f"```python\nimport torch\n\nNo, again:\n{_fenced()}Done.",
        f"{_fenced(OTHER)}Better:\n```python\nclass ModelNew:\n\nNo:\n{_fenced()}Done.",
    ],
)
def test_a_fence_with_a_language_opens_a_block_within_one_that_does_not_parse(reply):
    assert _code(reply) == MODEL and _summary(reply) == "Done."


def test_a_later_block_that_does_not_parse_is_an_answer():
    assert _code(f"{_fenced()}Better:\n{_fenced('class ModelNew(:')}") == "class ModelNew(:\n"


def test_an_indented_fence():
    reply = "1. First\n" + textwrap.indent(_fenced(), "   ") + "2. Then\n"
    assert _code(reply) == MODEL


def test_windows_line_ends_and_odd_characters():
    assert _code(_fenced().replace("\n", "\r\n")) == MODEL
    assert _code("\ufeff" + _fenced("x = '\ud800'\n" + MODEL)) == "x = '?'\n" + MODEL
    assert _code(_fenced("s = 'a\u2028b'\n" + MODEL)) == "s = 'a\u2028b'\n" + MODEL


def _summary(reply):
    found = extract(reply)
    assert isinstance(found, Extracted)
    return found.summary


def test_the_summary_is_the_prose_after_the_code_else_before():
    assert _summary(f"Plan.\n{_fenced()}\nFused both loops.\n\nNow it is one pass.") == (
        "Fused both loops.\n\nNow it is one pass."
    )
    assert _summary(f"I fused both.\n{_fenced()}\n") == "I fused both."
    assert _summary(f"{_fenced()}\nRun:\n```bash\nmake\n```\nFast.") == "Run:\nFast."
    assert _summary(_fenced()) == ""


def test_the_summary_is_shortened_at_a_sentence_and_has_no_control_characters():
    long = _summary(_fenced() + "This is a sentence. " * 100)
    assert SUMMARY_LIMIT - 25 < len(long) <= SUMMARY_LIMIT and long.endswith("sentence.")
    assert len(_summary(_fenced() + "x" * 3000)) == SUMMARY_LIMIT
    assert _summary(_fenced() + "Red \x1b[31malert\x1b[0m.") == "Red alert."


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("import triton\n@triton.jit\ndef k(x): pass\n", "triton"),
        ("from triton import jit\n@jit\ndef k(x): pass\n", "triton"),
        ("import triton\n", "python"),
        ("from torch.utils.cpp_extension import load_inline\nload_inline(cuda_sources='')", "cuda"),
        ("SOURCE = '__global__ void k() {}'", "cuda"),
        (
            "# __global__\nfrom torch.utils.cpp_extension import load_inline\nload_inline(cpp_sources='')",
            "cpp",
        ),
        ("import ctypes\nctypes.CDLL('x.so')", "cpp"),
        ("import torch\n", "python"),
        ("def (", "python"),
    ],
)
def test_the_language(code, language):
    assert guess_language(code) == language
    assert extract_file(code + "\n" + MODEL).language == language  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "piece",
    [
        "```\n", "```python\n", "~~~\n", "```python\nx = 1\n```\n", "a: ```\n", "a: ```python\n",
        "a```b\n", "```a", "```python\n'''\n", "```python\n# ModelNew\n```\n", "````python\n```\n",
        "```\nclass ModelNew(:\n```\n",
    ],
)  # fmt: skip
def test_a_megabyte_of_fences_takes_a_tenth_of_a_second(piece):
    reply = piece * (1_000_000 // len(piece)) + MODEL

    def seconds() -> float:
        began = time.process_time()
        extract(reply)
        return time.process_time() - began

    assert min(seconds() for _ in range(3)) < 0.1


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "reply",
    [
        "<think>\n" * 50000,
        "<think>\n" * 50000 + "</think>",
        " " * 200000 + "```",
        "```python\nclass ModelNew(:\n" * 3000 + "```\n" * 3000,
        "```\na </think>\n```\n" * 30000,
        '```\n"""' + '\\"""' * 50000 + "\n```\n",
        "<|channel|>" * 50000,
        "<think>a</think>\n" * 20000 + "```python\n" * 1000,
        f"```python\n{MODEL}        y = {'x + ' * 800}x\n```",  # deeper than Python's stack
    ],
)
def test_hostile_replies_end_soon(reply):
    extract(reply)


KERNRL = '''"""A Model of one kernel."""
import torch  # the Model's own

TICKS = """
```
"""


class Model(torch.nn.Module):
    """Model."""

    size: "int" = 3

    def __init__(self, Model=None):
        super(Model, self).__init__()
        self.Model = f"{'Model'} é" + Model.__name__; self.other = Model

    def forward(self, x):
        return x
'''


def test_a_file_needs_no_fence_and_its_model_may_be_called_model() -> None:
    code = _code(as_reply(KERNRL))
    assert "class ModelNew(torch.nn.Module):" in code and "class Model(" not in code
    assert "def __init__(self, ModelNew=None):" in code
    assert "super(ModelNew, self).__init__()" in code
    assert """self.Model = f"{'Model'} é" + ModelNew.__name__; self.other = ModelNew""" in code
    assert "A Model of one kernel." in code and "# the Model's own" in code
    assert [len(line) for line in code.split("\n")[:6]] == [
        len(line) for line in KERNRL.split("\n")[:6]
    ]
    assert code.count("\n") == KERNRL.count("\n")


def test_an_inner_class_and_another_name_stay() -> None:
    code = "class Inner:\n    class Model:\n        pass\n\n\nclass ModelNew:\n    inner = Inner.Model\n"
    assert _code(as_reply(code)).strip() == code.strip()
    assert _kind(as_reply("class Inner:\n    class Model:\n        pass\n")) == "no_model"
    both = "class Model:\n    pass\n\n\nclass ModelNew:\n    reference = Model\n"
    assert _code(as_reply(both)).strip() == both.strip()


def test_a_reply_is_left_alone() -> None:
    for reply in (
        f"Here it is.\n```python\n{KERNRL.replace('class Model(', 'class ModelNew(').replace('```', '')}```\n",
        "I would start with the memory traffic.",
        "<think>hm</think>\nclass ModelNew: no code after all",
        "```python\nclass ModelNew:",
        "",
        "pass",
    ):
        assert as_reply(reply) == reply
    assert _kind(as_reply("pass")) == _kind(as_reply("")) == "no_code"


@pytest.mark.parametrize("name", ["Model", "ModelNew"])
def test_a_file_that_does_not_parse_is_told_its_error(name: str) -> None:
    verdict = check_rules(
        _code(as_reply(f"import torch\n\nclass {name}(torch.nn.Module:\n    pass\n"))
    )
    assert isinstance(verdict, CompileError)
    assert (verdict.kind, verdict.line) == ("syntax", 3)


def test_a_file_is_taken_whole_and_without_a_fence_round_it() -> None:
    for file in (MODEL, _fenced(), f"\n{_fenced()}\n"):
        assert extract_file(file).code.strip() == MODEL.strip()  # type: ignore[union-attr]
    broken = f"""r'''Version 1:\n{_fenced()}\n'''\ndef f(:\n    pass\n"""
    assert extract_file(broken).code == broken  # type: ignore[union-attr]
    assert as_reply(broken) != broken and not is_chat(broken) and not is_chat(MODEL)
    for reply in (f"Here it is:\n{_fenced()}", _fenced(), f"<think>x</think>\n{_fenced()}"):
        assert is_chat(reply) and as_reply(reply) == reply
    for file in ("", "x = 1\0", "def f(:\n    pass\n"):
        assert not is_chat(file)
