"""The lint process of a device: a judge process that lints problems, one at a time.

Run as `python -m kevin_env.lint.server FD PID`, as `kevin_env.judge.server` is. Its client ends the
process if a problem takes too long, and starts another.
"""

from typing import TYPE_CHECKING

from kevin_env.candidate.wire import Channel
from kevin_env.judge.api import Options, Pace
from kevin_env.judge.protocol import Request
from kevin_env.judge.server import Server, main, start_judge
from kevin_env.lint.report import Limits, LintReport
from kevin_env.problem import Problem

if TYPE_CHECKING:
    from kevin_env.judge.job import Cancellation
    from kevin_env.judge.server import Judge


class LintServer(Server):
    """Lints the problems of requests in place of judging submissions."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel, _start_untimed)

    def perform(self, judge: "Judge", request: Request, wanted: "Cancellation") -> LintReport:
        """See `Server.perform`."""
        from kevin_env.lint.examine import examine

        wanted.require_wanted()
        problem = Problem.model_validate(request["problem"])
        options = Options.model_validate(request["options"])
        return examine(
            judge, problem, options, Limits.model_validate(request["limits"]),
            lambda stage: self._send({"id": request["id"], "stage": stage}),
        )  # fmt: skip


def _start_untimed(device: str, pace: Pace | None, memory: int | None) -> "Judge":
    from kevin_env.lint.examine import untimed

    return start_judge(device, pace, memory, untimed)


if __name__ == "__main__":
    main(LintServer)
