"""The judge's own processes beside a submission on a GPU: what they load and map again, and when."""

from typing import Any

import pytest
import torch

from kevin_env.judge.api import JudgeError
from kevin_env.judge.handshake.arena import Arena, Sizes
from kevin_env.judge.timing.partners import Partner
from kevin_env.judge.workers.errors import Failed, Failure

CPU = torch.device("cpu")


class Process:
    """Stands where a worker does.

    Attributes:
        orders: What it was asked for.
        waiting: Whether it is alive.
    """

    path, memory, waiting = "submission.py", None, True

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.given: dict[str, Any] = {}

    def ask(self, order: str, timeout: float, **fields: Any) -> dict[str, Any]:
        self.orders.append(order)
        self.given[order] = fields
        return {}

    def answers_within(self, _: float) -> bool:
        return not self.waiting

    def close(self) -> None:
        self.waiting = False


def test_the_parts_of_an_arena_lie_apart_and_hold_what_they_have_to() -> None:
    process = Process()
    arena = Arena(CPU, Sizes(inputs=5000, outputs=600, weights=100), l2=1)
    player = arena.admit(process, 1.0, trusted=True)  # type: ignore[arg-type]
    parts, end = process.given["arena"]["parts"], 0
    for offset, size in parts.values():
        assert offset == end and offset % 512 == 0
        end += size
    assert end <= process.given["arena"]["size"]
    assert (arena.inbox.size, arena.outbox.size) == (parts["inbox"][1], parts["outbox"][1])
    assert arena.inbox.size >= 5000 and arena.outbox.size >= 600 and arena.weights.size >= 100
    assert player.home is arena
    arena.close()


def test_a_partner_loads_what_is_new_and_maps_what_is_larger() -> None:
    started: list[Process] = []

    def start() -> Any:
        started.append(Process())
        return started[-1]

    partner = Partner(start, CPU, l2=1)

    def used(key: str, size: int) -> list[str]:
        for process in started:
            process.orders.clear()
        partner.load(key, "code", "Model")
        partner.seated(Sizes(size, size, size))
        return [order for process in started for order in process.orders]

    assert used("softmax", 10 << 20) == ["load", "arena"]
    assert used("softmax", 10 << 20) == []
    assert used("sum", 1 << 20) == ["forget", "load"]
    assert used("sum", 20 << 20) == ["rest", "arena"]
    started[-1].waiting = False
    assert used("sum", 1 << 20) == ["load", "arena"] and len(started) == 2
    partner.close()
    assert not started[-1].waiting


def test_a_partner_whose_code_did_not_load_loads_it_again() -> None:
    class Fails(Process):
        def ask(self, order: str, timeout: float, **fields: Any) -> dict[str, Any]:
            super().ask(order, timeout, **fields)
            if self.orders == ["load"]:
                raise Failed(
                    Failure.read(
                        {
                            "kind": "exception",
                            "type": "E",
                            "message": "m",
                            "frames": [],
                            "output": "",
                        }
                    )
                )
            return {}

    process = Fails()
    partner = Partner(lambda: process, CPU, l2=1)  # type: ignore[arg-type,return-value]
    with pytest.raises(JudgeError):
        partner.load("sum", "code", "Model")
    assert partner.load("sum", "code", "Model")[1]
