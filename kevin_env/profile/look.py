"""What is examined after a verdict, if requested. Failures here never change the verdict."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kevin_env.judge.api import Judgement, Options
from kevin_env.judge.bench import Bench
from kevin_env.judge.device import finish
from kevin_env.judge.trial import Trial
from kevin_env.judge.verdict import flag
from kevin_env.judge.workers.worker import Worker
from kevin_env.outcome import Correct, KernelProfile, Outcome, Profile
from kevin_env.problem import Problem
from kevin_env.profile.kernels import read_claim, read_local_memory
from kevin_env.profile.outside import Outside
from kevin_env.profile.sanitizer import cause_of
from kevin_env.profile.tools import OUTPUT_LIMIT, find_tool
from kevin_env.rules import Rules

Found = TypeVar("Found")
PROFILE_SECONDS = 60.0
FILES = 4
"""Files of device code that are looked at."""
RESOURCES_SECONDS = 3.0
TOO_LONG = 2.0
"""Factor on its timed duration above which a profiled call must be a different call."""
LAUNCH_ERROR = 20e-6
LOW_COVERAGE = 0.05
"""Share of a call's time below which a submission's own kernels did next to nothing."""


@dataclass(frozen=True)
class Look:
    """Examines one submission in fresh candidates."""

    bench: Bench
    problem: Problem
    code: str
    options: Options
    notes: list[str] = field(default_factory=list[str])

    def at(self, outcome: Outcome) -> Profile | None:
        """What was requested for this outcome; None if nothing was, or it does not apply."""
        profile = self.options.profile if isinstance(outcome, Correct) else "none"
        cause = cause_of(outcome) if self.options.sanitize else None
        cause = None if cause == "values" and self.bench.device.type == "cpu" else cause
        if profile == "none" and cause is None:
            return None
        outside = Outside(self.bench, self.problem, self.code, self.options, self.notes)
        kernels = self._tried(self._inside) if profile != "none" else None
        ncu = self._tried(outside.ncu) if profile == "ncu" else None
        sanitizer = self._tried(lambda: outside.sanitizer(outcome)) if cause else None
        notes = tuple(self.notes)
        result = Profile(kernels=kernels, ncu=ncu, sanitizer=sanitizer, notes=notes)
        return None if result == Profile() else result

    def _tried(self, part: Callable[[], Found]) -> Found | None:
        """The result of one part; None, and a note, if it fails."""
        try:
            return part()
        except Exception as error:  # boundary: what is read here is the submission's
            text = " ".join(str(error).split())[:200]
            self.notes.append(f"the submission could not be inspected: {text}")
            return None

    def _inside(self) -> KernelProfile | None:
        """What the submission's process claims of a call."""
        bench, worker = self.bench, self.bench.candidates.take()
        trial = Trial(bench, self.problem, self.options, secrets.token_hex(16), worker)
        try:
            trial.build(self.code)
            trial.open()
            with bench.lane.entered():
                trial.enter(trial.cases[-1])
                claim = self._claim(trial)
            local = self._local_memory(worker) if bench.device.type == "cuda" else {}
        finally:
            trial.close()
            bench.candidates.retire(worker)
        profile = read_claim(claim, local)
        if profile is None:
            self.notes.append("the submission's process sent no readable profile")
        return profile

    def _claim(self, trial: Trial) -> dict[str, object]:
        device = self.bench.device
        drawn = trial.draw("own")
        drawn.image.write_to(trial.handshake.inbox)
        finish(device)
        seconds, worker = trial.limits.first, trial.worker
        worker.ask(
            "stage", seconds, inputs=drawn.skeleton, specs=drawn.image.specs, seed=drawn.seed
        )
        return worker.ask("profile", max(seconds, PROFILE_SECONDS))

    def _local_memory(self, worker: Worker) -> dict[str, int]:
        """Bytes by kernel, from files in the candidate's folder; the tool runs in the sandbox."""
        tool, found = find_tool("cuobjdump"), dict[str, int]()
        if tool is None:
            return found
        first, folder = self.options.limits().first, str(worker.folder)
        files = worker.ask("artefacts", first, folder=folder).get("files")
        for path in (files if isinstance(files, list) else [])[:FILES]:
            ran = worker.ask(
                "run", 2 * RESOURCES_SECONDS, command=[tool, "-res-usage", str(path)],
                seconds=RESOURCES_SECONDS, environment={}, limit=OUTPUT_LIMIT,
            )  # fmt: skip
            found |= read_local_memory(str(ran.get("output")))
        return found


def with_profile(judgement: Judgement, profile: Profile | None, rules: Rules) -> Judgement:
    """Adds a profile to a judgement. A correct outcome's coverage is measured from outside.

    If the profiled call is not the timed one, this gives a flag and no coverage. So does, under the
    rules `kernel`, a call whose time is nearly all in kernels of others, although torch and
    vendors' libraries were recorded not to compute.
    """
    judgement = judgement.model_copy(update={"profile": profile})
    outcome, ncu = judgement.outcome, profile.ncu if profile else None
    if profile is None or not isinstance(outcome, Correct):
        return judgement
    coverage = profile.kernels.coverage if profile.kernels else None
    if ncu is not None and outcome.submission_seconds is not None:
        if ncu.seconds > TOO_LONG * outcome.submission_seconds + LAUNCH_ERROR:
            text = f"a profiled call took {ncu.seconds * 1e6:.3g} us on the device"
            text += ", more than a timed call"
            return judgement.model_copy(
                update={"flags": (*judgement.flags, flag("profile_differs", text))}
            )
        coverage = ncu.coverage
        judgement = judgement.model_copy(
            update={"outcome": outcome.model_copy(update={"coverage": coverage})}
        )
    if rules != "kernel" or coverage is None or coverage >= LOW_COVERAGE:
        return judgement
    text = f"its kernels took {coverage:.1%} of the time, but no torch call was recorded"
    return judgement.model_copy(
        update={"flags": (*judgement.flags, flag("record_contradicted", text))}
    )
