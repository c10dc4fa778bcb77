"""User errors and exit codes.

0 done, 1 the model ended an episode early or a kernel is not correct (`judge --fail-on-wrong`),
2 wrong arguments or a lack of space, memory or the like, 3 the judge failed, 130 interrupted.
"""

from kevin_env.judge.api import JudgeError
from kevin_env.outcome import visible
from kevin_env.problem import ProblemError
from kevin_env.record import StopReason
from kevin_env.shortage import shortage

ENDED_EARLY = NOT_CORRECT = 1
WRONG_ARGUMENTS, JUDGE_FAILED, INTERRUPTED = 2, 3, 130
_EPISODE_CODES = {
    "max_turns": 0,
    "stop_on": 0,
    "interrupted": INTERRUPTED,
    "judge_error": JUDGE_FAILED,
}


class BadInput(ValueError):
    """An unusable argument or file. The message is one line that says what to do."""


def error_code(error: Exception) -> int | None:
    """The exit code of an error whose message is meant for users; None for any other."""
    # Imported where there is an error: templates alone take 50 ms.
    from kevin_env.policies.base import PolicyError
    from kevin_env.retrieval.operations import RetrievalError
    from kevin_env.templates import PromptError

    if isinstance(error, BadInput | ProblemError | PromptError | RetrievalError):
        return WRONG_ARGUMENTS
    if isinstance(error, OSError) and error.filename is not None:
        return WRONG_ARGUMENTS
    if isinstance(error, PolicyError):
        return ENDED_EARLY
    if isinstance(error, JudgeError):
        return JUDGE_FAILED
    return WRONG_ARGUMENTS if shortage(error) else None


def episode_code(reason: StopReason | None) -> int:
    """The exit code of a command that played an episode."""
    return _EPISODE_CODES.get(reason or "", ENDED_EARLY)


def one_line(error: Exception) -> str:
    """The error's message as one printable line."""
    message = shortage(error) or str(error)
    if isinstance(error, OSError) and error.strerror and not shortage(error):
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(visible(message).split())
