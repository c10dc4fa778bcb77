"""Raw code and a class `Model`: what kernrl's clients send becomes what everything else reads."""

import pytest

pytest.importorskip("openenv")

from kevin_env.extract import Extracted, extract
from kevin_env.integrations.openenv.server.environment import as_reply
from kevin_env.outcome import CompileError, FormatError
from kevin_env.rules import check_rules

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


def code_of(text: str) -> str:
    found = extract(as_reply(text))
    assert isinstance(found, Extracted), found
    return found.submission.code


def kind_of(text: str) -> str:
    found = extract(as_reply(text))
    assert isinstance(found, FormatError)
    return found.kind


def test_a_file_needs_no_fence_and_its_model_may_be_called_model() -> None:
    code = code_of(KERNRL)
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
    assert code_of(code).strip() == code.strip()
    assert kind_of("class Inner:\n    class Model:\n        pass\n") == "no_model"
    both = "class Model:\n    pass\n\n\nclass ModelNew:\n    reference = Model\n"
    assert code_of(both).strip() == both.strip()


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
    assert kind_of("pass") == kind_of("") == "no_code"


@pytest.mark.parametrize("name", ["Model", "ModelNew"])
def test_a_file_that_does_not_parse_is_told_its_error(name: str) -> None:
    verdict = check_rules(code_of(f"import torch\n\nclass {name}(torch.nn.Module:\n    pass\n"))
    assert isinstance(verdict, CompileError)
    assert (verdict.kind, verdict.line) == ("syntax", 3)
