"""Through how many modules of the judge a submission passes, from `Judge.judge` to the verdict.

A right submission is judged on the CPU in this process. A *stay* is a function that is entered from
another module of the judge, counted once for each module that it is entered from; a *module* is one
that is entered at all. Only the thread that judges is followed.

    python benchmarks/modules.py [--json FILE]
"""

import argparse
import contextlib
import sys
from pathlib import Path
from types import FrameType

from resultfile import plain_row, write_result

from kevin_env.judge import Options, Submission
from kevin_env.judge.judge import Judge
from kevin_env.problem import load_problem

JUDGE = "kevin_env.judge."
SOLUTION = Path(__file__).parent.parent / "problems" / "solutions" / "L1_23_Softmax.cpp.py"


class Followed:
    """What is entered in this thread, as `sys.setprofile` reports it."""

    def __init__(self) -> None:
        self.stays = set[tuple[str, str, str]]()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_back is None:
            return
        before, after = (each.f_globals.get("__name__", "") for each in (frame.f_back, frame))
        if before != after and before.startswith(JUDGE) and after.startswith(JUDGE):
            self.stays.add((before, after, frame.f_code.co_qualname))


def main() -> None:
    """Judges once to fill the caches of the problem, and once more to follow it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    file = parser.parse_args().json
    problem, code = load_problem("L1_23_Softmax"), SOLUTION.read_text()
    followed, options = Followed(), Options(device="cpu")
    with contextlib.closing(Judge("cpu")) as judge:
        judge.judge(problem, Submission(code=code), options, lambda _: None)
        sys.setprofile(followed)
        judgement = judge.judge(problem, Submission(code=code), options, lambda _: None)
        sys.setprofile(None)
    assert judgement.outcome.category == "correct", judgement
    for before, after, function in sorted(followed.stays):
        print(f"{before.removeprefix(JUDGE):24} {after.removeprefix(JUDGE):24} {function}")
    modules = {after for _, after, _ in followed.stays}
    rows = [plain_row("stays", len(followed.stays)), plain_row("modules", len(modules))]
    write_result(file, "cpu", judge.info.versions, rows)


if __name__ == "__main__":
    main()
