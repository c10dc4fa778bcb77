"""What a person can do when the machine, or one of its limits, has run out of something."""

import errno
import os

_SPACE = "free some there, or use a folder on another disk (TMPDIR for temporary files)"
_FILES = "raise the limit (ulimit -n)"
_MEMORY = "out of memory; end other programs, or raise the limit (ulimit -v, or the container's)"
_TASKS = (
    "no thread or process can be started; end others, or raise the limit (ulimit -u, or the "
    "container's)"
)
_REMEDIES = {
    errno.EFBIG: "raise the limit (ulimit -f), or use a folder on another disk",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
}


def shortage(error: BaseException) -> str | None:
    """What has run out, of which file if any, and what to do; None for any other error."""
    text = str(error)
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{os.strerror(error.errno)}; {_REMEDIES[error.errno]}"
    if (
        isinstance(error, MemoryError)
        or isinstance(error.__cause__, MemoryError)  # of torch's error in the judge
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, ImportError) and "failed to map segment" in text)
    ):
        return _MEMORY
    # CPython tells neither by type: a thread's error has no number, a fork's is that of any call
    if isinstance(error, RuntimeError | BlockingIOError) and text.endswith(
        ("can't start new thread", os.strerror(errno.EAGAIN))
    ):
        return _TASKS
    return None


def described(error: BaseException) -> str:
    """The shortage behind an error that is not meant for users, or its type and message."""
    return shortage(error) or f"{type(error).__name__}: {error}"
