"""Problems of SOL-ExecBench, flashinfer-bench and kernelbot, as text in KernelBench's form.

`sol:PATH` and `flashinfer:PATH` name a definition file, or the folder of `definition.json`;
`kernelbot:PATH` names the folder of `task.yml`. The reference is taken as it stands. The statement
names the function that a submission may define instead of `ModelNew`, and `ADAPTER` is the class
around it.
"""

from pathlib import Path

from kevin_env.foreign import definition, kernelbot
from kevin_env.foreign.form import ForeignError

__all__ = ["ForeignError", "convert", "is_foreign"]

_READERS = {"sol": definition.read, "flashinfer": definition.read, "kernelbot": kernelbot.read}


def is_foreign(name: str) -> bool:
    """Whether a name begins with `sol:`, `flashinfer:` or `kernelbot:`."""
    kind, colon, _ = name.partition(":")
    return bool(colon) and kind in _READERS


def convert(name: str) -> tuple[str, str, str]:
    """Reads the problem that a name such as `sol:PATH` means.

    Returns:
        Its title, its name with an absolute path, and its source in KernelBench's form.

    Raises:
        ForeignError: in one line, if it cannot be read or judged.
    """
    kind, _, path = name.partition(":")
    try:
        title, source = _READERS[kind](Path(path))
    except ForeignError as error:
        raise ForeignError(" ".join(f"{name}: {error}".split())) from error
    return title, f"{kind}:{Path(path).resolve()}", source
