"""A problem's own reference as a submission, through the real judge but for the clock."""

from kevin_env.judge.api import Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.lint.target import SECRET
from kevin_env.judge.submission_run import SubmissionRun
from kevin_env.judge.verdict import verdict
from kevin_env.judge.workers.errors import CandidateError
from kevin_env.outcome import Outcome
from kevin_env.parsing import as_submission
from kevin_env.problem import Problem


def screen_reference(bench: Bench, problem: Problem, options: Options) -> Outcome | None:
    """`screen` of the reference as a submission."""
    return screen(bench, problem, as_submission(problem.source), options)


def screen(bench: Bench, problem: Problem, code: str, options: Options) -> Outcome | None:
    """What is wrong with a submission, on every input set of a verdict; None when it is accepted.
    Nothing is timed.

    Raises:
        ProblemError: when the reference fails in the judge itself.
        JudgeError: when the judge fails.
    """
    worker = bench.candidates.take()
    run = SubmissionRun(bench, problem, options, SECRET, worker)
    try:
        run.build(code)
        with bench.lease.shared():
            return run.screen()
    except CandidateError as error:
        return verdict(error, run.place, str(worker.folder), worker.fault_line)
    finally:
        run.end()
