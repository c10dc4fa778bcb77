"""How torch.compile compares with eager, problem by problem, measured by the judge like any
submission.

The reference itself is judged as a submission, with torch.compile as the baseline: its speedup is
then T_compile / T_eager. Times that were taken in different minutes are never divided by each
other.
"""

from kevin_env.judge.api import DeviceInfo, JudgePool, Options, Submission
from kevin_env.outcome import Frozen, Printable, interval_of, speedup_of
from kevin_env.parsing import as_submission
from kevin_env.problem import Problem
from kevin_env.settings import Settings


class Compared(Frozen):
    """T_compile / T_eager of a problem's reference: a speedup against eager times this is one
    against torch.compile.
    """

    sha256: str
    """Of the problem."""
    ratio: float | None
    """None when it could not be told; `why` says so."""
    interval: tuple[float, float] | None = None
    """95 %."""
    why: Printable = ""
    device: DeviceInfo


def compare(problem: Problem, settings: Settings, pool: JudgePool) -> Compared:
    """Measures one problem.

    Raises:
        ProblemError: if its reference fails.
        JudgeError: if the judge fails.
    """
    options = Options(
        device=settings.device, baseline="compile", inputs=settings.inputs, call_timeout=settings.call_timeout,
        build_timeout=settings.build_timeout, retry_noisy=True,
    )  # fmt: skip
    submission = Submission(code=as_submission(problem.source))
    judgement = pool.submit(problem, submission, options).result()
    outcome = judgement.outcome
    ratio = speedup_of(outcome)
    return Compared(
        sha256=problem.sha256,
        ratio=ratio,
        interval=interval_of(outcome),
        why="" if ratio else f"{outcome.category}/{outcome.kind}: {outcome.message}",
        device=judgement.device,
    )
