# ruff: noqa: E501
import pytest
from rules_corpus import HEAD
from rules_modules import HIDDEN, PLAIN

from kevin_env.outcome import RulesViolation
from kevin_env.rules import check_rules

MODEL = "class ModelNew(nn.Module):\n    def forward(self, x):\n        ext.f(x)\n"


@pytest.mark.parametrize("name", HIDDEN)
def test_what_computes_is_found_in_modules_without_a_name(name):
    found = check_rules(HEAD + HIDDEN[name])
    assert isinstance(found, RulesViolation) and found.kind in ("torch_compute", "inherits_reference"), found
    assert check_rules(HEAD + HIDDEN[name], "open") is None


@pytest.mark.parametrize("name", PLAIN)
def test_honest_code_that_writes_names_and_loads_passes(name):
    assert check_rules(HEAD + PLAIN[name]) is None


@pytest.mark.parametrize("text", ['"%999999999d" % 1', '"{:>999999999}".format("x")', '"%*d" % (999999999, 1)',
                                  '"{:{}}".format("x", 999999999)', '"x".join(["y" * 3])', '"a".replace("", "b" * 9)'])  # fmt: skip
def test_a_string_that_would_be_long_is_not_made(text):
    assert check_rules(f"{HEAD}NAME = {text}\ngetattr(ext, 'f')\n{MODEL}        return getattr(ext, NAME)(x)\n") is None


@pytest.mark.parametrize("text", ['"softmax"[::-1][::-1]', '"%s%s" % ("soft", "max")', '"{}max".format("soft")', '"".join(["soft", "max"])',
                                  'bytes.fromhex("736f66746d6178").decode()', 'base64.b64decode("c29mdG1heA==").decode()',
                                  'codecs.decode("fbsgznk", "rot13")', 'chr(115) + "oftmax"', 'PART + "max"'])  # fmt: skip
def test_a_name_is_read_however_it_is_written(text):
    code = (
        f"import base64, codecs, importlib\nPART = 'soft'\nNAME = {text}\nm = importlib.import_module('tor' + 'ch')\n"
    )
    found = check_rules(f"{HEAD}{code}{MODEL}        return getattr(m, NAME)(x, 1)\n")
    assert isinstance(found, RulesViolation) and "torch.softmax" in found.message
