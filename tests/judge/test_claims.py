"""Whatever a candidate answers is a claim: it is either well formed or `Broken`, never another
error of the judge's.
"""

import copy
import json
import random
from typing import Any, NoReturn

import pytest
import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import Region, spec_of
from kevin_env.judge.compare.check import check_answer
from kevin_env.judge.handshake.claims import (
    Mappings,
    Output,
    read_claims,
    require_skeletons,
)
from kevin_env.judge.handshake.handshake import Answer
from kevin_env.judge.inputs.reference import Case, Expected
from kevin_env.judge.workers.errors import Broken
from kevin_env.outcome import Incorrect
from kevin_env.problem import Problem

CPU = torch.device("cpu")
SOURCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.ones(2, 3)]
def get_init_inputs():
    return []
"""
OUTPUT = {"y": torch.ones(2, 3), "n": 3, "z": (torch.zeros(1, 4), 0.5, None, torch.tensor(True))}
GOOD = {
    "claims": [
        {
            "skeleton": tree.flatten(OUTPUT)[0],
            "tensors": [
                {**spec_of(t, 512 * i), "device": "cpu", "in": "outbox"}
                for i, t in enumerate(tree.flatten(OUTPUT)[1])
            ],
        }
    ]
}


def mappings() -> Mappings:
    outbox = Region(torch.full((4096,), 0xFF, dtype=torch.uint8))
    for i, tensor in enumerate(tree.flatten(OUTPUT)[1]):
        outbox.tensor(spec_of(tensor, 512 * i)).copy_(tensor)
    return Mappings(Region(torch.zeros(4096, dtype=torch.uint8)), outbox, CPU)


CASE = Case(Problem(id="p", source=SOURCE, name="p"), "main", CPU)


def judged(told: dict[str, Any], places: Mappings) -> Incorrect | None:
    """All that the judge does with an answer on a CPU."""
    (claim,) = read_claims(told, 1)
    outputs = [places.resolve(tensor).taken() for tensor in claim.tensors]
    require_skeletons([claim])
    answer = Answer(claim, outputs, outputs, 1.0)
    return check_answer(answer, Expected(OUTPUT, lambda: None), CASE, "main/own", {})


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    answer = copy.deepcopy(GOOD)
    place: Any = answer
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return answer


def test_the_true_answer_is_right() -> None:
    assert judged(copy.deepcopy(GOOD), mappings()) is None


TENSOR = ["claims", 0, "tensors", 0]
SKELETON = ["claims", 0, "skeleton"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["claims"], None), (["claims"], {}), (["claims"], GOOD["claims"] * 2), (["claims", 0, "extra"], 1),
        (["claims", 0, "tensors"], []), (["claims", 0, "tensors"], [{}]),
        ([*TENSOR, "offset"], -512), ([*TENSOR, "offset"], 1), ([*TENSOR, "offset"], 4096),
        ([*TENSOR, "offset"], float("nan")), ([*TENSOR, "offset"], True), ([*TENSOR, "offset"], 10**400),
        ([*TENSOR, "shape"], [-2, -3]), ([*TENSOR, "shape"], [1 << 40, 3]), ([*TENSOR, "shape"], [2] * 65),
        ([*TENSOR, "stride"], [-3, 1]), ([*TENSOR, "stride"], [1 << 60, 1]), ([*TENSOR, "stride"], [10**300, 1]),
        ([*TENSOR, "dtype"], "Tensor"), ([*TENSOR, "in"], "elsewhere"), ([*TENSOR, "in"], "ab" * 64),
        ([*TENSOR, "in"], None), (SKELETON, None), (SKELETON, {"t": 0}), (SKELETON, {"no": 1}), (SKELETON, {"dict": [1]}),
        ([*SKELETON, "dict", 0, 1, "t"], 7), ([*SKELETON, "dict", 0, 1, "t"], True), ([*SKELETON, "dict", 1, 0], "y"),
        ([*SKELETON, "dict", 1, 1], {"v": [3]}), ([*SKELETON, "dict", 1, 1], {"float": "0x1p99999"}),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_a_malformed_answer_is_broken(path: list[Any], value: Any) -> None:
    with pytest.raises(Broken):
        judged(changed(path, value), mappings())


def test_a_deeply_nested_answer_is_broken() -> None:
    nested: Any = {"v": 1}
    for _ in range(3000):
        nested = {"list": [nested]}
    with pytest.raises(Broken):
        judged(changed(SKELETON, nested), mappings())


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ([*SKELETON, "dict", 1, 1], {"v": 4}, "values"),
        ([*SKELETON, "dict", 1, 1], {"v": True}, "values"),
        ([*SKELETON, "dict", 1, 1], {"v": "x" * 100_000}, "values"),
        ([*SKELETON, "dict", 1, 1], {"v": "\ud800\x1b[2J"}, "values"),
        ([*SKELETON, "dict", 1, 0], "k" * 100_000, "type"),
        ([*TENSOR, "device"], "cuda", "device"),
        ([*TENSOR, "layout"], "torch.sparse_coo", "type"),
        ([*TENSOR, "shape"], [3, 2], "shape"),
        ([*TENSOR, "dtype"], "int32", "dtype"),
        ([*TENSOR, "stride"], [0, 0], None),
        ([*TENSOR, "in"], "inbox", "values"),
        (["claims", 0, "unsupported"], "a set", "type"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_well_formed_answer_is_judged(path: list[Any], value: Any, kind: str | None) -> None:
    wrong = judged(changed(path, value), mappings())
    assert (wrong.kind if wrong else None) == kind
    assert wrong is None or len(wrong.message) < 2_000


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 512, 4096, 2**31, 2**63, 2**64, 10**30),
    *(0.0, 0.5, -1.5, float("nan"), float("inf"), "", "x", "inbox", "outbox", "cpu", "cuda"),
    *("float32", "bool", "int64", "t", "v", "list", "0x1p3", "\udcff", "ab" * 64),
    *([], {}, [0], [2, 3], {"t": 0}, {"v": 1}, {"list": []}, [["y", {"t": 0}]]),
]  # fmt: skip


def mutated(value: Any, draw: random.Random) -> Any:
    """`value` with something in it replaced, removed, doubled or moved."""
    if isinstance(value, dict | list) and value and draw.random() < 0.85:
        value = copy.copy(value)
        key = draw.choice(list(value)) if isinstance(value, dict) else draw.randrange(len(value))
        match draw.randrange(8):
            case 0:
                del value[key]
            case 1 if isinstance(value, list):
                value.insert(key, copy.deepcopy(draw.choice(value)))
            case 2 if isinstance(value, dict):
                value[draw.choice(["t", "v", "list", "in", "layout", "unsupported", "size"])] = (
                    value.pop(key)
                )
            case _:
                value[key] = mutated(value[key], draw)
        return value
    return copy.deepcopy(draw.choice(VALUES))


def test_ten_thousand_random_answers_are_right_wrong_or_broken() -> None:
    draw, places, ends = random.Random(7), mappings(), {"right": 0, "wrong": 0, "broken": 0}
    for _ in range(10_000):
        answer: Any = copy.deepcopy(GOOD)
        for _ in range(draw.randint(1, 3)):
            answer = mutated(answer, draw)
        if not isinstance(answer, dict):  # the channel lets no other frame through
            continue
        try:
            wrong = judged(json.loads(json.dumps(answer)), places)
        except Broken:
            ends["broken"] += 1
            continue
        ends["wrong" if wrong else "right"] += 1
        if wrong:
            wrong.model_dump_json()
    assert min(ends.values()) > 20, ends


def test_an_output_reaches_no_byte_outside_its_region() -> None:
    draw, places = random.Random(3), mappings()
    for _ in range(3_000):
        shape = [draw.choice([0, 1, 2, 3, 64, 1024]) for _ in range(draw.randint(0, 3))]
        stride = [draw.choice([0, 1, 2, 64, 1023, 4096]) for _ in shape]
        claim = {
            "offset": draw.choice([0, 4, 512, 4088, 4092, 4096]),
            "shape": shape,
            "stride": stride,
        }
        answer = changed(TENSOR, {**GOOD["claims"][0]["tensors"][0], **claim})
        (call,) = read_claims(answer, 1)
        try:
            output = places.resolve(call.tensors[0])
        except Broken:
            continue
        tensor = output.tensor()
        assert tensor is not None and output.flat is not None
        assert (
            output.flat.numel() <= 4096 and int(tensor.count_nonzero()) >= 0
        )  # reads every element


def test_a_taken_output_no_longer_changes() -> None:
    outbox = Region(torch.zeros(4096, dtype=torch.uint8))
    places = Mappings(Region(torch.zeros(8, dtype=torch.uint8)), outbox, CPU)
    (claim,) = read_claims(copy.deepcopy(GOOD), 1)
    output: Output = places.resolve(claim.tensors[0])
    taken = output.taken()
    outbox.bytes.fill_(7)
    assert taken.flat is not None and not taken.flat.any()
    assert output.flat is not None and bool((output.flat == 7).all())


def test_a_handle_has_one_name_of_a_length_that_handles_have() -> None:
    """Under two names the same memory would be mapped twice, which the driver refuses."""
    (call,) = read_claims(changed([*TENSOR, "in"], "aB" * 64), 1)
    assert call.tensors[0].place == "ab" * 64
    with pytest.raises(Broken, match="malformed"):
        read_claims(changed([*TENSOR, "in"], "a" * 129), 1)


def test_claims_of_more_calls_than_were_made_are_refused_unread() -> None:
    with pytest.raises(Broken, match="2 outputs of 1"):
        read_claims({"claims": Unread([{}, {}])}, 1)


class Unread(list[Any]):
    def __iter__(self) -> NoReturn:
        raise AssertionError("it was read")
