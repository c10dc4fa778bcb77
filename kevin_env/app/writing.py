"""Atomic writing of files."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from kevin_env.app.errors import BadInput


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A scratch file that replaces `path` at the end of the block, unless it raises.

    Anything but a regular file, such as a pipe, is written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield scratch
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, scratch)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def write_text(out: Path, text: str) -> None:
    """Writes a file.

    Raises:
        BadInput: if it cannot be written.
    """
    try:
        with whole(out) as scratch:
            scratch.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {out}: {error.strerror or error}") from error
