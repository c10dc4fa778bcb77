"""Problems of SOL-ExecBench, flashinfer-bench and kernelbot, as text in KernelBench's form.

`sol:PATH` and `flashinfer:PATH` name a definition file, or the folder of `definition.json`;
`kernelbot:PATH` names the folder of `task.yml`. The reference is taken as it stands. The statement
names the function that a submission may define instead of `ModelNew`, and `ADAPTER` is the class
around it.
"""

from dataclasses import dataclass
from pathlib import Path

from kevin_env.foreign import definition, kernelbot
from kevin_env.foreign.form import ForeignError

__all__ = ["Converted", "ForeignError", "convert", "is_foreign"]

_READERS = {"sol": definition.read, "flashinfer": definition.read, "kernelbot": kernelbot.read}


@dataclass(frozen=True, slots=True)
class Converted:
    """A problem in KernelBench's form."""

    name: str
    path: str
    """Its name with an absolute path, which loads it from any folder."""
    source: str


def is_foreign(name: str) -> bool:
    """Whether a name begins with `sol:`, `flashinfer:` or `kernelbot:`."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in _READERS


def convert(name: str) -> Converted:
    """Reads the problem that a name such as `sol:PATH` means.

    Raises:
        ForeignError: in one line, if it cannot be read or judged.
    """
    kind, _, path = name.partition(":")
    try:
        title, source = _READERS[kind](Path(path))
    except ForeignError as error:
        raise ForeignError(" ".join(f"{name}: {error}".split())) from error
    return Converted(title, f"{kind}:{Path(path).resolve()}", source)
