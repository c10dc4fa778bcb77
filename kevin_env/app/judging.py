"""Judges files and recorded turns, many at once, with results in the order of the requests."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from kevin_env.app.errors import JUDGE_FAILED, NOT_CORRECT, BadInput, one_line
from kevin_env.app.panel import look_of, panel_lines, show_panel
from kevin_env.app.play.live import spent, stages_text
from kevin_env.app.replay.code import unfenced
from kevin_env.app.screen import counted, show, verdict_line, waiting
from kevin_env.context import count_characters
from kevin_env.extract import extract, extract_file
from kevin_env.feedback import render_feedback
from kevin_env.judge.api import JudgeError, JudgePool, Options, Seconds, Stage, Submission
from kevin_env.outcome import (
    FormatError,
    held_roofline,
    input_set_of,
    interval_of,
    printable,
    speedup_of,
)
from kevin_env.problem import Problem, ProblemError, baseline_of, load_problem
from kevin_env.record import ProblemRef, Trajectory, Turn
from kevin_env.recorder import BadLine, read_trajectories
from kevin_env.score import SCORES, Scored, kevin, score_of
from kevin_env.settings import Settings
from kevin_env.turn import Verdict, as_scored, begin_verdict

RECORDED = (
    "device", "baseline", "inputs", "rules", "glue", "bound", "noisy", "tokenizer",
    "dtype", "backward",
    "call_timeout", "build_timeout",
)  # fmt: skip
"""Recorded settings with which a turn is judged again."""
MOST_SHOWN = 5
"""Files whose progress is shown."""
_LOOK = 0.3
"""Seconds between looks at files that are watched."""


@dataclass(frozen=True, slots=True)
class Request:
    """A submission to judge, and how."""

    file: str
    problem: Problem
    submission: Submission | FormatError
    options: Options
    settings: Settings
    """How its score is computed."""
    score: str = "kevin"
    turn: Turn | None = None
    """The recorded turn, if this judges one again."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A request with its verdict."""

    request: Request
    verdict: Verdict
    device: str

    def row(self) -> dict[str, Any]:
        """The object of `judge --json`. `sandbox` is null if nothing ran."""
        outcome, judgement = self.verdict.outcome, self.verdict.judgement
        seconds = judgement.seconds if judgement else Seconds()
        held = held_roofline(outcome)
        return {
            "file": self.request.file,
            "problem": self.request.problem.id,
            "category": outcome.category,
            "kind": outcome.kind,
            "message": outcome.message,
            "line": outcome.line,
            "input_set": input_set_of(outcome),
            "speedup": speedup_of(outcome),
            "speedup_interval": interval_of(outcome),
            "score": self.score,
            "device": self.device,
            "seconds": seconds.model_dump() | {"total": seconds.total},
            "sandbox": judgement.sandbox.model_dump() if judgement else None,
            "flags": list(judgement.flags) if judgement else [],
            "run": judgement.run if judgement else None,
            "profile": judgement.profile.model_dump() if judgement and judgement.profile else None,
            "roofline": held.model_dump() if held else None,
        }

    @property
    def score(self) -> float:
        """The verdict's score; that of `kevin` if a record names a custom one."""
        request, turn, outcome = self.request, self.request.turn, self.verdict.outcome
        submission = request.submission if isinstance(request.submission, Submission) else None
        if turn is not None:
            scored = as_scored(outcome, submission, turn.as_reply(), request.settings.tokenizer)
        else:
            size = count_characters(submission.code) if submission else None
            scored = Scored(outcome, code_tokens=size)
        score = SCORES.get(request.score, kevin)
        return score_of(scored, score, request.settings.bound)


@dataclass(frozen=True, slots=True)
class Failed:
    """A request for which the judge failed."""

    request: Request
    error: str

    def row(self) -> dict[str, Any]:
        """The object of `judge --json`."""
        return {"file": self.request.file, "error": self.error}


def judge(
    requests: Sequence[Request], pool: JudgePool, errors: Console | None = None
) -> Iterator[Judged | Failed]:
    """Judges all requests at once, and yields each in order as soon as possible.

    If `errors` is a terminal, it shows what is being judged. Raises BadInput if a problem's
    reference fails.
    """
    progress = [_Progress(printable(each.file)) for each in requests]
    try:
        describing = [pool.describe(each.problem, each.options) for each in requests]
        judging = [
            begin_verdict(r.submission, r.problem, r.options, pool, each.begin)
            for r, each in zip(requests, progress, strict=True)
        ]
        for future, each in zip(judging, progress, strict=True):
            future.add_done_callback(each.end)
        for request, facts, verdict in zip(requests, describing, judging, strict=True):
            try:
                with waiting(errors, lambda: _running(progress)) if errors else nullcontext():
                    judged = Judged(request, verdict.result(), facts.result().device.device)
            except JudgeError as error:
                yield Failed(request, printable(str(error)))
            else:
                yield judged
    except ProblemError as error:
        raise BadInput(printable(str(error))) from error


class _Progress:
    """The stages of a request that is judged; called from threads of the pool."""

    def __init__(self, file: str) -> None:
        self.file, self.done = file, False
        self.started = time.monotonic()
        self.stages: tuple[tuple[Stage, float], ...] = ()

    def begin(self, stage: Stage) -> None:
        self.stages = (*self.stages, (stage, time.monotonic()))

    def end(self, _: object) -> None:
        self.done = True

    def __str__(self) -> str:
        now = time.monotonic()
        stages = stages_text(spent(self.stages, now))
        return f"{self.file}  {now - self.started:.0f} s  {stages or 'waiting for the judge'}"


def _running(progress: Sequence[_Progress]) -> str:
    """What is being judged, a line each."""
    left = [each for each in progress if not each.done]
    lines = [str(each) for each in left[:MOST_SHOWN]]
    more = len(left) - MOST_SHOWN
    return "\n  ".join([*lines, f"and {more} more"] if more > 0 else lines)


def read_requests(
    files: Sequence[Path],
    problem: str | None,
    turn: tuple[int | None, str],
    settings: Settings,
) -> list[Request]:
    """Requests from files: `.py` submissions and `.jsonl` trajectories.

    Args:
        files: in the order of judging.
        problem: of the submissions. Recorded turns have their own, or are judged against this
            version of it.
        turn: for trajectories, the turn, from 1, and a prefix of the episode id (empty if there is
            only one).
        settings: of the judgements; a record's own take precedence for the names in `RECORDED`.

    Raises:
        BadInput: if a file is of neither kind, or an argument is missing.
        ProblemError: if the problem is unknown.
    """
    if turn != (None, "") and all(file.suffix == ".py" for file in files):
        raise BadInput("--turn and --episode are for trajectories (.jsonl)")
    options = settings.options()
    answered = load_problem(problem) if problem else None
    requests: list[Request] = []
    for file in files:
        if file.suffix == ".jsonl":
            requests.append(_recorded(file, *turn, options, answered))
        elif file.suffix != ".py":
            raise BadInput(
                f"cannot judge {file}: a submission is a .py file, a trajectory a .jsonl file"
            )
        elif answered is None:
            raise BadInput(f"pass --problem ID for {file}; `kevin-env problems` lists them")
        else:
            text = file.read_bytes().decode("utf-8", "replace")
            submission = extract_file(text, answered.adapter)
            requests.append(Request(str(file), answered, submission, options, settings))
    return requests


def watch(
    files: Sequence[Path],
    problem: str | None,
    settings: Settings,
    pool: JudgePool,
    report: Callable[[Judged | Failed], None],
    errors: Console,
) -> None:
    """Judges submissions, and again each that is saved, or all if the problem is, until Ctrl-C.

    Raises:
        BadInput: if a file is no submission.
    """
    if other := next((each for each in files if each.suffix != ".py"), None):
        raise BadInput(f"--watch is for submissions (.py), not {other}")
    reference = [Path(problem)] if problem and Path(problem).is_file() else []
    for saved in saves([*files, *reference]):
        chosen = files if set(reference) & set(saved) else saved
        try:
            for result in judge(read_requests(chosen, problem, (None, ""), settings), pool, errors):
                report(result)
        except (BadInput, ProblemError) as error:
            show(errors, one_line(error), "red")
        show(errors, "judges again when a file is saved; Ctrl-C ends it", "bright_black")


def saves(files: Sequence[Path]) -> Iterator[list[Path]]:
    """All files that exist, then those that were saved, as often as some are."""
    known: dict[Path, tuple[int, int]] = {}
    while True:
        now = {each: (state.st_mtime_ns, state.st_ino) for each, state in _states(files)}
        changed = [each for each in now if now[each] != known.get(each)]
        known |= now  # an editor may remove a file before it writes the new one
        if changed:
            yield changed
        time.sleep(_LOOK)


def _states(files: Sequence[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for file in files:
        with suppress(FileNotFoundError):
            yield file, file.stat()


def exit_code(results: Sequence[Judged | Failed], fail_on_wrong: bool) -> int:
    """The exit code of `judge`."""
    if any(isinstance(each, Failed) for each in results):
        return JUDGE_FAILED
    right = all(
        isinstance(each, Judged) and each.verdict.outcome.category == "correct" for each in results
    )
    return NOT_CORRECT if fail_on_wrong and not right else 0


def print_result(console: Console, result: Judged | Failed) -> None:
    """Prints a verdict and the feedback for a model: a panel on a terminal, else plain lines."""
    if isinstance(result, Failed):
        show(console, f"{result.request.file}: the judge failed: {result.error}", "bold red")
        return
    outcome, judgement = result.verdict.outcome, result.verdict.judgement
    line = verdict_line(outcome, result.score).append("  ")
    seconds = stages_text(judgement.seconds.model_dump()) if judgement else "not run"
    log, profile = (judgement.log, judgement.profile) if judgement else ("", None)
    request, on_gpu = result.request, result.device.startswith("cuda")
    baseline = baseline_of(request.options, request.problem, on_gpu)
    feedback = render_feedback(outcome, log=log, baseline=baseline, profile=profile)
    flags = [f"flag: {flag}" for flag in judgement.flags] if judgement else []
    if console.is_terminal:
        line.append(printable(result.request.file), "bold")
        width = look_of(console).width
        lines = panel_lines("\n".join([unfenced(feedback), *flags]), width)
        show_panel(console, line, lines, f"{result.device}: {seconds}", outcome.category)
        return
    line.append(f"({seconds}; {result.device})  {printable(result.request.file)}")
    console.print(line, soft_wrap=True)
    show(console, "\n".join([unfenced(feedback), *flags]))


def _recorded(
    path: Path, number: int | None, episode: str, options: Options, answered: Problem | None
) -> Request:
    """A request to judge a recorded turn again, on its recorded inputs."""
    trajectory = _choose(path, episode)
    if number is None:
        raise BadInput(f"pass --turn N to choose a turn of {path}")
    if not 1 <= number <= len(trajectory.turns):
        has = f"episode {trajectory.episode_id} has {counted(len(trajectory.turns), 'turn')}"
        raise BadInput(f"{path}: {has}, not {number}")
    turn = trajectory.turns[number - 1]
    known: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("call_timeout", "build_timeout", "timing_precision")
    }
    known |= {name: trajectory.config[name] for name in RECORDED if name in trajectory.config}
    try:
        settings, problem = Settings.of(known), _problem_of(trajectory.problem, answered)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error
    chosen = {"profile", "sanitize", "require_sandbox"}
    chosen |= {"device"} if options.device != "auto" else set()
    options = settings.options(turn.secret).model_copy(update=options.model_dump(include=chosen))
    score = str(trajectory.config.get("score", "kevin"))
    return Request(str(path), problem, _submitted(turn, problem), options, settings, score, turn)


def _problem_of(recorded: ProblemRef, replacement: Problem | None) -> Problem:
    """The recorded problem, or `replacement` if set, which must be a version of it.

    Recorded source is never run: it is untrusted, and references run outside the sandbox.
    """
    if replacement is None:
        try:
            return recorded.load()
        except ProblemError as error:
            hint = "or pass --problem, an id or a path, to judge the turn against"
            raise ProblemError(f"{error}, {hint}") from error
    if replacement.id != recorded.id and replacement.sha256 != recorded.sha256:
        raise ProblemError(
            f"its episode is for {recorded.id}, not {replacement.id}; leave out --problem"
        )
    return replacement.model_copy(update={"id": recorded.id})  # the id of a file lacks its origin


def _submitted(turn: Turn, problem: Problem) -> Submission | FormatError:
    if turn.submission is not None:
        return turn.submission
    found = extract(turn.reply, turn.truncated, problem.adapter)
    return found if isinstance(found, FormatError) else found.submission


def _choose(path: Path, episode: str) -> Trajectory:
    """The episode with this prefix, which must be the only one."""
    lines = list(read_trajectories(path))
    read = [each for each in lines if isinstance(each, Trajectory)]
    by_id = {each.episode_id: each for each in read if each.episode_id.startswith(episode)}
    found = [*by_id.values()]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(each.episode_id[:8] for each in found)
        raise BadInput(f"choose one of {len(found)} episodes in {path} with --episode: {ids}")
    bad = next((each for each in lines if isinstance(each, BadLine)), None)
    raise BadInput(str(bad) if bad else f"{path} holds no episode {episode}".rstrip())
