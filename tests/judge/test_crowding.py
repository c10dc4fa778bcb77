"""Submissions that lack device memory, and the lease during which it is found out."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kevin_env.judge import bench, crowding
from kevin_env.judge.handshake.handshake import Handshake, Player
from kevin_env.judge.job import Stopwatch


def test_a_submission_is_stopped_before_others_get_the_lease() -> None:
    steps = list[str]()

    @contextmanager
    def shared() -> Iterator[None]:
        steps.append("held")
        yield
        steps.append("given back")

    def freeze(frozen: bool, wait: bool = True) -> None:
        steps.append(
            f"{'stopped' if frozen else 'goes on'}{'' if wait or not frozen else ' later'}"
        )

    worker = SimpleNamespace(freeze=freeze)
    run: Any = SimpleNamespace(
        worker=worker, bench=SimpleNamespace(lease=SimpleNamespace(shared=shared))
    )
    with crowding.leased(run, Stopwatch(lambda stage: None)) as give_way:
        steps.clear()
        give_way()
        assert steps == ["stopped", "given back", "held", "goes on"]


@pytest.mark.parametrize(
    ("free", "patience", "rests"), [([20], 10, 0), ([0, 0, 20], 10, 2), ([0] * 999, 0.1, 1)]
)
def test_others_have_time_to_free_memory_and_idle_baselines_free_theirs(
    monkeypatch: pytest.MonkeyPatch, free: list[int], patience: float, rests: int
) -> None:
    """Of 100 bytes that were free, the candidate holds 15."""
    left, rested = iter(free), list[int]()
    monkeypatch.setattr(bench, "PATIENCE", patience)
    monkeypatch.setattr(bench, "LOOK", 0.06)
    monkeypatch.setattr(bench, "free_memory", lambda device: next(left))
    judges = SimpleNamespace(
        device=None, device_memory=100, candidates=SimpleNamespace(held=lambda worker: 15),
        baselines=SimpleNamespace(rest=lambda: rested.append(1)),
    )  # fmt: skip
    bench.Bench.wait_for_memory(judges, None)  # type: ignore[arg-type]
    assert rests <= len(rested) <= rests + 1


@pytest.mark.parametrize(
    ("device", "free", "held", "mapped", "short"),
    [
        ("cuda", 1000, 700, (), True),
        ("cuda", 1000, 750, (), False),
        ("cuda", 0, 1750, (), False),
        ("cuda", 1000, 500, [(750, False)], False),
        ("cuda", 1000, 500, [(600, False), (1000, True)], True),
        ("cpu", 0, 0, (), False),
    ],
    ids=[
        "too little",
        "enough",
        "hoards it",
        "has let go of what is mapped",
        "baselines map it",
        "no device memory",
    ],
)
def test_a_fair_share_is_three_times_the_outputs_and_weights(
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    free: int,
    held: int,
    mapped: list[tuple[int, bool]],
    short: bool,
) -> None:
    """In MiB: 64 of weights, outputs of 256, and 768 for its context."""
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (free << 20, 1 << 40))
    kept = [Player(None, SimpleNamespace(size=size << 20), ours) for size, ours in mapped]  # type: ignore[arg-type]
    model = torch.nn.Linear(4096, 4096, bias=False, device="meta")
    judges = SimpleNamespace(
        device=torch.device(device), candidates=SimpleNamespace(held=lambda worker: held << 20)
    )
    run: Any = SimpleNamespace(
        bench=judges,
        worker=None,
        case=SimpleNamespace(model=model),
        handshake=SimpleNamespace(
            answer_bytes=256 << 20,
            mapped_bytes=Handshake.mapped_bytes.fget(SimpleNamespace(_players=kept)),  # type: ignore[misc]
        ),
    )
    assert crowding.lacks_fair_share(run) is short
