"""What a policy is told of held-out cases: that there was a failure, and of which kind."""

import re
from pathlib import Path

import pytest

from kevin_env.app.dataset import export_problems
from kevin_env.app.play.editor import draft_of
from kevin_env.episode import Episode
from kevin_env.judge.inputs.source import overrides_of
from kevin_env.outcome import HELD_OUT
from kevin_env.pools.local import LocalPool
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.problem import Problem, ProblemError, list_problems, parse_problem
from kevin_env.record import Turn
from kevin_env.retrieval.sources import read_source
from kevin_env.settings import Settings

SIZE, NAME = 4321, "tall_rows"
SOURCE = f'''"""Doubles x, of any number of rows."""
import torch

size = 256
CASES = {{"cpu": {{"size": 100}}, "odd": {{"size": 7}}}}
HIDDEN = {{"{NAME}": {{"size": {SIZE}}}}}


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def get_inputs():
    return [torch.randn(size, 3)]


def get_init_inputs():
    return []
'''
HIDDEN = [problem for problem in list_problems() if problem.hidden]


def written(folder: Path, source: str = SOURCE) -> Problem:
    path = folder / "level1" / "7_Double.py"
    path.parent.mkdir()
    path.write_text(source)
    return parse_problem(path)


def told(pool: LocalPool, problem: Problem, body: str) -> tuple[Turn, str]:
    """The turn of a right answer that runs `body` before each call, and all that a policy reads."""
    code = f"""
import os
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        many = len(x) > 999
        {body}
        return 2 * x
"""
    options = {"device": "cpu", "rules": "open", "max_turns": 2, "sanitize": True}
    episode = Episode(problem, pool, Settings.of(options))
    first = episode.start()
    turn = episode.submit(f"```python\n{code}\n```")
    facts = pool.describe(problem, episode.settings.options()).result()
    texts = [facts.model_dump_json(), turn.feedback, turn.log, turn.outcome.model_dump_json()]
    texts += [message.content.replace(code.strip(), "") for message in (*first, *episode.messages)]
    return turn, "\n".join(texts)


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("if many: x = x + len(x)", "correctness/values"),
        ("if many: x = x[:17]", "correctness/shape"),
        ("if many: raise ValueError(str(x.shape))", "runtime/exception"),
        ("if many: os._exit(len(x) % 256)", "runtime/exit"),
        ("print(tuple(x.shape), flush=True)\n        if many: x = -x", "correctness/values"),
        ("print(tuple(x.shape), flush=True)", "correct/timed correct/too_noisy"),
    ],
)
def test_nothing_tells_the_shapes_of_a_held_out_case(
    pool: LocalPool, tmp_path: Path, body: str, verdict: str
) -> None:
    turn, texts = told(pool, written(tmp_path), body)
    assert f"{turn.category}/{turn.kind}" in verdict
    assert not re.search(rf"\b{SIZE}\b", texts) and NAME not in texts
    assert ("(100, 3)" in turn.log) == ("print" in body)
    if turn.category != "correct":
        assert str(SIZE % 256) not in turn.feedback and "17" not in turn.feedback
        assert "in a held-out case: its shapes and values are not shown" in turn.feedback
        outcome = turn.outcome.model_dump()
        assert outcome["input_set"] == HELD_OUT and outcome["line"] is None
        assert {each.partition("/")[0] for each in outcome["passed"]} == {"cpu", "odd"}


def test_a_call_that_breaks_the_rules_in_a_held_out_case_alone_is_rejected(
    pool: LocalPool, tmp_path: Path
) -> None:
    code = """
import torch
from torch.utils.cpp_extension import load_inline
CPP = '''
#include <pybind11/pybind11.h>
#include <cstdint>
void twice(int64_t x, int64_t y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) ((float*)y)[i] = 2 * ((const float*)x)[i];
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice); }
'''
ext = load_inline(name="twice", cpp_sources=CPP, no_implicit_headers=True)
names = ["mul", "empty_like"]
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        ext.twice(x.data_ptr(), out.data_ptr(), out.numel())
        for name in names[: len(x) > 999]:
            out = getattr(torch, name)(x, 2)
        return out
"""
    episode = Episode(written(tmp_path), pool, Settings(device="cpu", max_turns=1))
    episode.start()
    turn = episode.submit(f"```python\n{code}\n```")
    assert (turn.category, turn.kind) == ("rules", "torch_compute"), turn.feedback
    assert "The outputs of a held-out case were right" in turn.feedback
    assert str(SIZE) not in turn.feedback and "mul" not in turn.feedback


def test_no_text_that_is_made_of_a_shipped_problem_has_its_held_out_case(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet")
    assert len(HIDDEN) >= 20
    pairs = {pair.id.rpartition(".")[0]: pair for pair in read_source("solutions")}
    pool = ScriptedPool([])
    for problem in HIDDEN:
        (case,) = problem.hidden
        values = overrides_of(problem, case).values()
        known = re.sub(r"(?ms)^HIDDEN.*?(\}\}|^\})", "", problem.source)
        sizes = (str(each) for each in values if each > 9)  # a prompt has small numbers of its own
        secret = [each for each in sizes if not re.search(rf"\b{each}\b", known)]
        assert secret, problem.id
        messages = Episode(problem, pool, Settings(device="cpu")).start()
        texts = [message.content for message in messages] + [draft_of(problem, [])]
        if pair := pairs.get(problem.id):
            texts.append(pair.reference)
        for text in texts:
            assert "HIDDEN" not in text and not any(re.search(rf"\b{n}\b", text) for n in secret)
    export_problems([problem.id for problem in HIDDEN], tmp_path / "all.parquet")
    assert b"HIDDEN" not in (tmp_path / "all.parquet").read_bytes()


def test_a_held_out_case_has_a_name_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="case odd already exists"):
        written(tmp_path, SOURCE.replace(NAME, "odd"))
