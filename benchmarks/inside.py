"""Call times inside the launching process: CUDA events, and kernel durations from CUPTI.

No judge, no sandbox; started by `kernels.py`. As in the judge's chain, a call finds its input just
written and the L2 overwritten, up to twelve calls follow each other, and the first one does not
count. All are queued before the first starts, so that times exclude launches.

    python benchmarks/inside.py FOLDER [cupti]

FOLDER has pairs of NAME.problem.py and NAME.submission.py. Prints a line of JSON for each: the
name, then seconds by side and tool.
"""

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from one_call import models

ROUNDS = 5
LEAST, CALLS, SECONDS = 3, 12, 0.05
"""Least and most calls to queue together, and the limit of their time."""
FLUSHES = 2
"""Times that the L2 is overwritten before a call."""
REST = 0.02
"""Seconds between rounds."""
CYCLES = 1 << 21
"""Cycles to keep the device busy while calls are queued: a millisecond."""


class Side:
    """One model on its inputs. Calls are only queued."""

    def __init__(self, model: Any, inputs: list[Any], scratch: torch.Tensor) -> None:
        self._model, self._inputs, self._scratch = model, inputs, scratch
        self._source = [each.clone() for each in inputs]
        self._cycles = CYCLES
        self._count = LEAST
        self._count = max(LEAST, min(CALLS, int(SECONDS / self.events())))

    def events(self) -> float:
        """Seconds of a call: the median of those that were queued in time."""
        while True:
            torch.cuda.synchronize()
            torch.cuda._sleep(self._cycles)  # pyright: ignore[reportPrivateUsage]
            pairs = [self._timed() for _ in range(self._count)]
            in_time = not pairs[0][0].query()
            torch.cuda.synchronize()
            if in_time:
                return (
                    statistics.median(start.elapsed_time(stop) for start, stop in pairs[1:]) / 1e3
                )
            self._cycles *= 2

    def cupti(self) -> float | None:
        """Seconds of the kernels of a call together; None if they cannot be distinguished from
        those in between.
        """
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
            for _ in range(self._count):
                self._scratch.zero_()
                self._model(*self._inputs)
            torch.cuda.synchronize()
        of_gpu = [each for each in trace.events() or () if each.device_type.name == "CUDA"]
        spans = [
            each.time_range.elapsed_us()
            for each in sorted(of_gpu, key=lambda each: each.time_range.start)
        ]
        each, left = divmod(len(spans), self._count)
        if left or each < 2:
            print(f"{len(spans)} kernels in {self._count} calls", file=sys.stderr)
            return None
        return (
            statistics.median(sum(spans[i + 1 : i + each]) for i in range(0, len(spans), each))
            / 1e6
        )

    def _timed(self) -> tuple[torch.cuda.Event, torch.cuda.Event]:
        for target, source in zip(self._inputs, self._source, strict=True):
            target.copy_(source)
        self._scratch.zero_()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self._model(*self._inputs)
        stop.record()
        return start, stop


def times(submission: Path, problem: Path, with_cupti: bool) -> dict[str, dict[str, float]]:
    """Seconds of a call by side and tool."""
    *both, inputs = models(str(submission), str(problem))
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    scratch = torch.empty(FLUSHES * l2, dtype=torch.uint8, device="cuda")
    sides = {
        name: Side(model, inputs, scratch)
        for name, model in zip(("reference", "submission"), both, strict=True)
    }
    seconds_of: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            time.sleep(REST)
            seconds_of[name].append(side.events())
    times = {name: {"events": statistics.median(of)} for name, of in seconds_of.items()}
    for name, side in sides.items() if with_cupti else ():
        side.cupti()  # the first time some durations are missing
        if seconds := side.cupti():
            times[name]["cupti"] = seconds
    return times


def main() -> None:
    folder, with_cupti = Path(sys.argv[1]), sys.argv[2:] == ["cupti"]
    if not torch.cuda.is_available():
        raise SystemExit("inside.py needs a CUDA device")
    for problem in sorted(folder.glob("*.problem.py")):
        name = problem.name.removesuffix(".problem.py")
        with torch.no_grad():
            print(
                json.dumps([name, times(folder / f"{name}.submission.py", problem, with_cupti)]),
                flush=True,
            )
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
