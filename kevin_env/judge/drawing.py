"""Draws the input sets of a judgement. Each follows from its secret and its number alone."""

from collections.abc import Collection

from kevin_env.judge.handshake.handshake import Drawn
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.inputs.distributions import add_outliers, has_outliers
from kevin_env.judge.inputs.reference import Case, seed_from


def draw_set(
    case: Case, distribution: str, admitted: Collection[str], secret: str, number: int
) -> Drawn:
    """An input set of a case, in private memory.

    Args:
        case: The case, with its structures.
        distribution: Of the inputs.
        admitted: All distributions of the case.
        secret: Of the judgement.
        number: Of the input set; no two of a judgement have the same.
    """
    seed = seed_from(secret, case.name, distribution, number)
    skeleton, tensors = case.draw_inputs(distribution, seed)
    image = Image(tensors, case.device)
    if has_outliers(distribution, admitted):
        add_outliers(image.tensors, case.structures, seed_from(secret, "plant", number))
    # not the seed of the inputs: from that the candidate could draw them before it is called
    called, name = seed_from(secret, "call", number), f"{case.name}/{distribution}"
    return Drawn(skeleton, image, called, name, case.traits.stochastic)
