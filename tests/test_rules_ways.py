"""No way through Python brings a tensor, an operation, a function or a layer out of the reader's sight."""

import pytest
from rules_ways import MISSED, REFLECTED, WAYS

from kevin_env.outcome import RulesViolation
from kevin_env.rules import check_rules

HEAD = """
import asyncio, array, collections, contextlib, contextvars, copy, ctypes, dataclasses, enum, functools, gc, heapq
import inspect, io, itertools, json, operator, queue, random, string, struct, subprocess, sys, threading, types
import typing, weakref
from dataclasses import dataclass
import torch
from torch import nn
lib = ctypes.CDLL("./kernel.so")
def work(a, b): return torch.softmax(a, b)
layer = nn.Softmax(1)
def same(x):
    y = torch.empty_like(x)
    lib.run(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), x.numel())
    return y
"""
MODEL = """
class ModelNew(nn.Module):
    def go(self, a, b): return a
    def forward(self, x):
"""
PAYLOADS = {
    "tensor": ("same(x)", "return R * 2"),
    "op": ("torch.softmax", "return R(same(x), 1)"),
    "fn": ("work", "return R(same(x), 1)"),
    "layer": ("layer", "return R(same(x))"),
}
"""What goes in, and how what comes out is used."""


def submission(name: str, payload: str, place: str) -> str:
    value, use = PAYLOADS[payload]
    before, lines = (text.replace("PAYLOAD", value) for text in WAYS[name])
    if place == "module":
        return f"{HEAD}{before}{lines}\n{MODEL}        {use}\n"
    return HEAD + before + MODEL + "".join(f"        {line}\n" for line in [*lines.split("\n"), use])


@pytest.mark.parametrize("name", WAYS)
def test_what_goes_in_is_known_where_it_comes_out(name: str) -> None:
    needs_forward = any(word in WAYS[name][1] for word in ("self", "x."))
    unseen: set[str] = set()
    for payload in PAYLOADS:
        for place in ["forward"] if payload == "tensor" or needs_forward else ["forward", "module"]:
            found = check_rules(submission(name, payload, place))
            if not (isinstance(found, RulesViolation) and found.kind == "torch_compute"):
                unseen.add(f"{payload} at {place}")
    assert unseen <= MISSED.get(name, set())


@pytest.mark.parametrize("name", [name for name in WAYS if name not in REFLECTED])
def test_a_number_that_goes_the_same_way_is_one(name: str) -> None:
    before, lines = (text.replace("PAYLOAD", "x.shape[0]") for text in WAYS[name])
    code = (
        HEAD + before + MODEL + "".join(f"        {line}\n" for line in [*lines.split("\n"), "same(x)", "return R * 2"])
    )
    assert check_rules(code) is None
