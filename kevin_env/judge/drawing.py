"""Draws the input sets of a judgement. Each follows from its secret and its number alone."""

from collections.abc import Collection
from dataclasses import dataclass

from kevin_env.candidate import tree
from kevin_env.judge.handshake.memory import Image
from kevin_env.judge.inputs.distributions import add_outliers, has_outliers
from kevin_env.judge.inputs.reference import Case, seed_from


@dataclass(frozen=True)
class DrawnSet:
    """An input set in private memory.

    Attributes:
        skeleton: Its structure.
        image: Its bytes.
        seed: For a random model that is called with it. The candidate gets to know it.
    """

    skeleton: tree.Skeleton
    image: Image
    seed: int


def draw_set(
    case: Case, distribution: str, admitted: Collection[str], secret: str, number: int
) -> DrawnSet:
    """An input set of a case.

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
    return DrawnSet(skeleton, image, seed_from(secret, "call", number))
