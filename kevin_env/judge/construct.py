"""How a model is constructed in a process, with the reference's weights."""

from contextlib import closing
from typing import Any

from kevin_env.candidate.region import Region
from kevin_env.judge.device import finish
from kevin_env.judge.handshake.memory import Image, SharedRegion
from kevin_env.judge.inputs.cases import construction, model_tensors
from kevin_env.judge.inputs.reference import Case, seed_from
from kevin_env.judge.workers.worker import Patience, Worker


def construct(
    worker: Worker, case: Case, secret: str, limit: float | Patience,
    weights: Region | None = None, record: dict[str, Any] | None = None, compiled: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Constructs a model in a case; errors as `Worker.ask`.

    Args:
        worker: A process that has loaded its class.
        case: With the weights drawn.
        secret: What a model draws for itself follows from it.
        limit: As of `Worker.ask`.
        weights: Where the weights are handed over; None: in a region of their own.
        record: Arguments of a recorder of its next call.
        compiled: Whether it is compiled by torch.

    Returns:
        The answer of the process.
    """
    image = Image([tensor.to(case.device) for tensor in model_tensors(case)], case.device)
    seed = seed_from(secret, case.name, "weights")
    order = construction(case, image.specs, seed, compiled)
    if weights is not None:
        image.write_to(weights)
        finish(case.device)
        return worker.ask("construct", limit, **order, record=record)
    with closing(SharedRegion(image.end, case.device)) as region:
        image.write_to(region)
        worker.share("weights", region, limit)
        return worker.ask("construct", limit, **order, record=record)
