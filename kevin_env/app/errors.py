"""What a person got wrong, and the exit codes of everything that can end a command.

0 done, 1 an episode that the model ended early, 2 wrong arguments, 3 the judge itself failed, 130
interrupted.
"""

import errno

from kevin_env.judge.api import JudgeError
from kevin_env.outcome import visible
from kevin_env.problem import ProblemError
from kevin_env.record import StopReason
from kevin_env.retrieval.pair import RetrievalError
from kevin_env.templates import PromptError

ENDED_EARLY, WRONG_ARGUMENTS, JUDGE_FAILED, INTERRUPTED = 1, 2, 3, 130
_EPISODE_CODES = {
    "max_turns": 0,
    "stop_on": 0,
    "interrupted": INTERRUPTED,
    "judge_error": JUDGE_FAILED,
}


_PLACES = frozenset(
    (
        *(
            errno.EACCES,
            errno.EPERM,
            errno.EROFS,
            errno.ENOENT,
            errno.EEXIST,
            errno.EISDIR,
            errno.ENOTDIR,
        ),
        *(errno.ENAMETOOLONG, errno.ELOOP, errno.EFBIG, errno.EDQUOT, errno.ENOSPC),
    )
)
"""Of files that cannot be read or written where they are."""


class BadInput(ValueError):
    """An argument or a file that cannot be used. The message is one line that says what to do."""


def error_code(error: Exception) -> int | None:
    """The exit code of an error whose message is meant for a person; None for every other."""
    unwritable = isinstance(error, OSError) and error.errno in _PLACES
    if unwritable or isinstance(error, BadInput | ProblemError | PromptError | RetrievalError):
        return WRONG_ARGUMENTS
    return JUDGE_FAILED if isinstance(error, JudgeError) else None


def episode_code(reason: StopReason | None) -> int:
    """The exit code of a command that played an episode."""
    return _EPISODE_CODES.get(reason or "", ENDED_EARLY)


def one_line(error: Exception) -> str:
    """The error's message as one line that is safe to print."""
    told = str(error)
    if isinstance(error, OSError) and error.strerror:
        told = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(visible(told).split())
