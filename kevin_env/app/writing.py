"""Atomic writing of files."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A scratch file that replaces `path` at the end of the block, unless it raises.

    Anything but a regular file, such as a pipe, is written to directly.

    Raises:
        OSError: with the name of the file if writing failed.
    """
    target = Path(os.path.realpath(path))
    special = target.exists() and not target.is_file()
    scratch = target if special else target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield scratch
        if special:
            return
        with scratch.open("rb") as file:
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, scratch)
        scratch.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if not special:
            scratch.unlink(missing_ok=True)


def write_text(out: Path, text: str) -> None:
    """Writes a file. Raises OSError with its name if that fails."""
    with whole(out) as scratch:
        scratch.write_text(text, encoding="utf-8")
