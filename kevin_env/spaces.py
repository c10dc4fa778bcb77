"""Text as a Gymnasium space that admits any Unicode."""

import multiprocessing
import string
from types import ModuleType
from typing import Any, NoReturn

from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils.shared_memory import create_shared_memory

_LONGEST_SAMPLE = 64


class UnicodeText(spaces.Text):
    """Strings of up to `max_length` characters, whatever the characters.

    Gymnasium's own `Text` admits a listed set of characters, tests each of them at every step, and
    takes seconds and megabytes to list all of Unicode. Here membership is type and length; samples
    are short and printable ASCII.
    """

    def __init__(self, max_length: int = 2**20, *, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=string.printable, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short string of printable ASCII; with `mask` or `probability` what `Text` gives for
        them.
        """
        if mask is not None or probability is not None:
            return super().sample(mask, probability)
        length = int(self.np_random.integers(min(_LONGEST_SAMPLE, self.max_length) + 1))
        return super().sample((length, None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"


@create_shared_memory.register(UnicodeText)
def _refuse_shared_memory(
    space: UnicodeText, n: int = 1, ctx: ModuleType = multiprocessing
) -> NoReturn:
    """Stops AsyncVectorEnv, which would give the same garbage for every observation (seen on
    Gymnasium 1.4).
    """
    raise CustomSpaceError(
        "text cannot be in shared memory; use gym.make_vec without vectorization_mode, "
        "or vector_kwargs={'shared_memory': False}"
    )
