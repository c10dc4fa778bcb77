"""Claims of candidates: bytes in, claims or `Broken` out, never another error of the judge."""

import copy
import json
import random
from typing import Any, NoReturn

import pytest
import torch

from kevin_env.candidate import tree
from kevin_env.candidate.region import Region, spec_of
from kevin_env.candidate.wire import WireError, decode
from kevin_env.judge.compare.check import given_of
from kevin_env.judge.compare.outputs import Right, find_wrong_output
from kevin_env.judge.compare.values import Mismatch
from kevin_env.judge.handshake.claims import (
    CallClaim,
    Mappings,
    claims_of,
    require_skeletons,
)
from kevin_env.judge.workers.errors import Broken

CPU = torch.device("cpu")
MOST = 1024
"""Tensors per call."""
SIZES = {"inbox": 4096, "outbox": 4096}
OUTPUT = {"y": torch.ones(2, 3), "n": 3, "z": (torch.zeros(1, 4), 0.5, None, torch.tensor(True))}
SKELETON, TENSORS = tree.flatten(OUTPUT)
CALL = {
    "skeleton": SKELETON,
    "tensors": [
        {**spec_of(t, 512 * i), "device": "cpu", "in": "outbox"} for i, t in enumerate(TENSORS)
    ],
}
HONEST = {"claims": [CALL]}


def mappings() -> Mappings:
    outbox = Region(torch.full((SIZES["outbox"],), 0xFF, dtype=torch.uint8))
    for i, tensor in enumerate(TENSORS):
        outbox.tensor(spec_of(tensor, 512 * i)).copy_(tensor)
    return Mappings(Region(torch.zeros(SIZES["inbox"], dtype=torch.uint8)), outbox, CPU)


def read_body(body: bytes) -> CallClaim:
    """As the judge reads an answer to one call."""
    try:
        (claim,) = claims_of(decode(body), 1)
    except WireError as error:
        raise Broken(str(error)) from error
    require_skeletons([claim])
    return claim


def read(message: Any) -> CallClaim:
    """And with each tensor's place checked."""
    claim, places = read_body(json.dumps(message).encode()), mappings()
    for tensor in claim.tensors:
        places.resolve(tensor)
    return claim


def judged(message: Any, places: Mappings) -> Mismatch | None:
    """Reads a message, finds the tensors in memory, and compares them."""
    claim = read(message)
    outputs = [places.resolve(each) for each in claim.tensors]
    if claim.unsupported is not None:
        return Mismatch("type", claim.unsupported)
    given = [given_of(output.taken()) for output in outputs]
    return find_wrong_output(Right(OUTPUT), claim.skeleton, given, "main/own", {})


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    answer = copy.deepcopy(HONEST)
    place: Any = answer
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return answer


def test_an_honest_answer_is_right() -> None:
    assert judged(HONEST, mappings()) is None


FIRST = ["claims", 0]
TENSOR = [*FIRST, "tensors", 0]
ENTRIES = [*FIRST, "skeleton", "dict"]


def many(count: int) -> dict[str, Any]:
    """An honest answer of this many tensors."""
    skeleton, tensors = tree.flatten([torch.ones(2)] * count)
    claimed = [{**spec_of(t, 0), "device": "cpu", "in": "outbox"} for t in tensors]
    return {"claims": [{"skeleton": skeleton, "tensors": claimed}]}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\xff\xfe", b"[]", b'{"claims":', b'{"claims":' + b"[" * 100_000, b"{}",
        b'{"failure": {}}', b'{"sandbox": {}, "ended": 0, "done": true}',
    ],
    ids=repr,
)  # fmt: skip
def test_bytes_that_are_no_answer_are_broken(body: bytes) -> None:
    with pytest.raises(Broken):
        read_body(body)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        # the number of calls and of tensors
        (["claims"], None), (["claims"], {}), (["claims"], []), (["claims"], [CALL] * 2),
        (["claims"], many(MOST + 1)["claims"]),
        ([*FIRST, "tensors"], []), ([*FIRST, "tensors"], [{}]), ([*FIRST, "extra"], 1),
        ([*TENSOR, "extra"], 1), (TENSOR, None),
        # places
        ([*TENSOR, "offset"], -512), ([*TENSOR, "offset"], 1), ([*TENSOR, "offset"], 4096),
        ([*TENSOR, "offset"], 1 << 60), ([*TENSOR, "offset"], float("nan")),
        ([*TENSOR, "offset"], True), ([*TENSOR, "offset"], 0.0), ([*TENSOR, "offset"], 10**400),
        ([*TENSOR, "in"], "weights"), ([*TENSOR, "in"], "memory"), ([*TENSOR, "in"], "ab" * 64),
        ([*TENSOR, "in"], "a" * 129), ([*TENSOR, "in"], 3),
        # forms
        ([*TENSOR, "shape"], [-2, -3]), ([*TENSOR, "shape"], [1 << 40, 3]),
        ([*TENSOR, "shape"], [2]), ([*TENSOR, "shape"], None),
        ([*TENSOR, "stride"], [-3, 1]), ([*TENSOR, "stride"], [1 << 50, 1]),
        ([*TENSOR, "stride"], [1 << 60, 1]), ([*TENSOR, "stride"], [10**300, 1]),
        (TENSOR, {**CALL["tensors"][0], "shape": [1] * 65, "stride": [1] * 65}),
        ([*TENSOR, "dtype"], "Tensor"), ([*TENSOR, "dtype"], "x" * 1000),
        ([*TENSOR, "device"], "x" * 1000), ([*TENSOR, "layout"], "x" * 1000),
        ([*FIRST, "unsupported"], "x" * 1000),
        # skeletons
        ([*FIRST, "skeleton"], None), ([*FIRST, "skeleton"], {"t": 0}),
        ([*FIRST, "skeleton"], {"no": 1}), ([*FIRST, "skeleton"], {"dict": [1]}),
        ([*FIRST, "skeleton"], {"dict": 3}), ([*FIRST, "skeleton"], {"list": []}),
        ([*FIRST, "skeleton"], {"list": [{"t": 0}, {"t": 0}, {"t": 1}]}),
        ([*ENTRIES, 0, 1, "t"], 7), ([*ENTRIES, 0, 1, "t"], True), ([*ENTRIES, 1, 0], "y"),
        ([*ENTRIES, 1, 1], {"v": [3]}), ([*ENTRIES, 1, 1], {"float": "0x1p99999"}),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_a_malformed_answer_is_broken(path: list[Any], value: Any) -> None:
    with pytest.raises(Broken):
        read(changed(path, value))


@pytest.mark.parametrize("depth", [300, 100_000])
def test_a_deeply_nested_skeleton_is_broken(depth: int) -> None:
    """Whether reading it as JSON or walking it exceeds the limit of recursion."""
    skeleton = b'{"list":[' * depth + b'{"v":1}' + b"]}" * depth
    with pytest.raises(Broken):
        read_body(b'{"claims":[{"skeleton":' + skeleton + b"}]}")


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ([*ENTRIES, 1, 1], {"v": 4}, "values"),
        ([*ENTRIES, 1, 1], {"v": True}, "values"),
        ([*ENTRIES, 1, 1], {"v": "x" * 100_000}, "values"),
        ([*ENTRIES, 1, 1], {"v": "\ud800\x1b[2J"}, "values"),
        ([*ENTRIES, 1, 0], "k" * 100_000, "type"),
        (FIRST, {"skeleton": {"v": 1}}, "arity"),
        ([*TENSOR, "device"], "cuda", "device"),
        ([*TENSOR, "layout"], "torch.sparse_coo", "type"),
        ([*TENSOR, "shape"], [3, 2], "shape"),
        ([*TENSOR, "dtype"], "int32", "dtype"),
        ([*TENSOR, "stride"], [0, 0], None),  # every element is 1
        ([*TENSOR, "in"], "inbox", "values"),
        ([*FIRST, "unsupported"], "a set", "type"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_well_formed_answer_is_judged(path: list[Any], value: Any, kind: str | None) -> None:
    wrong = judged(changed(path, value), mappings())
    assert (wrong.kind if wrong else None) == kind
    assert wrong is None or len(wrong.message) < 2_000


def test_an_output_of_the_right_size_cannot_have_been_too_large() -> None:
    uncopied = {**CALL["tensors"][0], "in": None}
    with pytest.raises(Broken, match="too large"):
        judged(changed(TENSOR, uncopied), mappings())
    wrong = judged(changed(TENSOR, {**uncopied, "shape": [9, 9]}), mappings())
    assert wrong is not None and wrong.kind == "shape"


def test_a_call_may_have_many_tensors_and_no_more() -> None:
    assert len(read(many(MOST)).tensors) == MOST
    assert len(json.dumps(many(MOST + 1))) < 1 << 18, "the frame is not too long"


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
        answer: Any = copy.deepcopy(HONEST)
        for _ in range(draw.randint(1, 3)):
            answer = mutated(answer, draw)
        try:
            wrong = judged(answer, places)
        except Broken:
            ends["broken"] += 1
            continue
        ends["wrong" if wrong else "right"] += 1
    assert min(ends.values()) > 20, ends


def test_an_output_reaches_no_byte_outside_its_region() -> None:
    draw, places, refused = random.Random(3), mappings(), 0
    for _ in range(3_000):
        shape = [draw.choice([0, 1, 2, 3, 64, 1024]) for _ in range(draw.randint(0, 3))]
        stride = [draw.choice([0, 1, 2, 64, 1023, 4096]) for _ in shape]
        offset = draw.choice([0, 4, 512, 4088, 4092, 4096])
        claimed = {**CALL["tensors"][0], "offset": offset, "shape": shape, "stride": stride}
        (call,) = claims_of({"claims": [{"skeleton": {"t": 0}, "tensors": [claimed]}]}, 1)
        try:
            output = places.resolve(call.tensors[0])
        except Broken:
            refused += 1
            continue
        tensor = output.tensor()
        assert tensor is not None and output.flat is not None
        assert output.flat.numel() <= 4096
        assert int(tensor.count_nonzero()) >= 0  # reads every element
    assert 0 < refused < 3_000


@pytest.mark.parametrize(
    "change", [{"dtype": "Tensor"}, {"shape": [2]}, {"offset": 1}, {"offset": 4096}, {"in": "x"}]
)
def test_memory_is_not_looked_up_for_a_malformed_tensor(change: dict[str, Any]) -> None:
    claim = {"skeleton": {"t": 0}, "tensors": [{**CALL["tensors"][0], **change}]}
    (call,) = claims_of({"claims": [claim]}, 1)
    with pytest.raises(Broken):
        mappings().resolve(call.tensors[0])


def test_a_taken_output_no_longer_changes() -> None:
    outbox = Region(torch.zeros(4096, dtype=torch.uint8))
    places = Mappings(Region(torch.zeros(8, dtype=torch.uint8)), outbox, CPU)
    output = places.resolve(read(HONEST).tensors[0])
    taken = output.taken()
    outbox.bytes.fill_(7)
    assert taken.flat is not None and not taken.flat.any()
    assert output.flat is not None and bool((output.flat == 7).all())


def test_a_handle_has_one_name() -> None:
    """Under two names the same memory would be mapped twice, which the driver refuses."""
    body = json.dumps(changed([*TENSOR, "in"], "aB" * 64)).encode()
    assert read_body(body).tensors[0].place == "ab" * 64


def test_claims_of_more_calls_than_were_made_are_refused_unread() -> None:
    with pytest.raises(Broken, match="2 outputs of 1"):
        claims_of({"claims": Unread([{}, {}])}, 1)


class Unread(list[Any]):
    def __iter__(self) -> NoReturn:
        raise AssertionError("it was read")
