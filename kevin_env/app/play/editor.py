"""Kernels written by a person: the initial text of the editor, and its conversion to a reply."""

import ast
from collections.abc import Sequence

from kevin_env.feedback import block
from kevin_env.parsing import tree_of
from kevin_env.problem import Problem, shown_source
from kevin_env.record import Reply, Turn

_START = '''\
# ^s submits this, escape goes back, ^e opens it in $EDITOR.
# The reference:
#
{reference}

import torch
from torch.utils.cpp_extension import load_inline

KERNEL = r"""
void kernel(const torch::Tensor& x, torch::Tensor out) {{
}}
"""

library = load_inline(name="kernel", cpp_sources=KERNEL, functions=["kernel"])


class ModelNew(torch.nn.Module):
{methods}
'''


def draft_of(problem: Problem, turns: Sequence[Turn], at: int | None = None) -> str:
    """The text that the editor starts with: the kernel of turn index `at`, else the last kernel.

    Without a kernel it is the reference as comments above a `ModelNew` with its signatures.
    """
    wanted = [*turns, turns[at]] if at is not None else turns
    last = next((turn.submission for turn in reversed(wanted) if turn.submission is not None), None)
    if last is not None:
        return last.code
    source = shown_source(problem).strip()
    reference = "\n".join(f"# {line}".rstrip() for line in source.split("\n"))
    return _START.format(reference=reference, methods="\n\n".join(_methods(source)))


def _methods(source: str) -> list[str]:
    """The constructor and `forward` of the reference's `Model`, without their bodies."""
    classes = (each for each in tree_of(source).body if isinstance(each, ast.ClassDef))
    model = next((each.body for each in classes if each.name == "Model"), [])
    found = {each.name: each for each in model if isinstance(each, ast.FunctionDef)}
    heads = [
        (name, ast.unparse(found[name].args) if name in found else "self")
        for name in ("__init__", "forward")
    ]
    bodies = {"__init__": "super().__init__()", "forward": "..."}
    return [f"    def {name}({args}):\n        {bodies[name]}" for name, args in heads]


def reply_of(code: str) -> Reply:
    """A person's code as a reply."""
    return Reply(content=block(code, "python", limit=None) + "\n", by_person=True)
