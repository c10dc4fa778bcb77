"""A policy plays an episode, told in lines as it happens."""

from rich.console import Console

from kevin_env.app.screen import StageDisplay, show, turns_table, verdict_text
from kevin_env.episode import Episode
from kevin_env.extract import Extracted, extract
from kevin_env.judge.api import JudgeError
from kevin_env.outcome import visible
from kevin_env.policies.base import Policy, PolicyError
from kevin_env.record import Reply, StopReason, Trajectory, Turn, best_turn
from kevin_env.render import speedup_text

MOST_LINES = 12
"""Lines of message and diagnostics that are shown for a turn; the whole is in the record."""


class Narrator:
    """Tells on a console what happens in an episode.

    Args:
        console: where.
        errors: where failures are shown; by default there, too.
        stream: whether replies are shown as they come; otherwise only their summaries.
    """

    def __init__(
        self, console: Console, errors: Console | None = None, stream: bool = True
    ) -> None:
        self.console, self.errors = console, errors or console
        self._stream = stream

    def begin(self, episode: Episode) -> None:
        """Says what is played."""
        device = episode.trajectory.hardware
        where = f" on {device.name} ({device.device})" if device else ""
        show(self.console, f"{episode.problem.id}{where}, model {episode.model}", "bold")

    def turn(self, number: int, of: int) -> None:
        """A turn begins."""
        self.console.rule(f"turn {number} of {of}", align="left")

    def text(self, piece: str) -> None:
        """Prints a piece of the reply, without escape codes even if one is split over pieces."""
        if self._stream:
            self.console.out(visible(piece), end="", highlight=False)

    def judging(self, reply: Reply) -> StageDisplay:
        """The reply is whole and goes to the judge."""
        found = extract(reply.content, truncated=reply.truncated)
        if self._stream:
            self.console.print()
        elif isinstance(found, Extracted):
            show(self.console, found.summary, "italic")
        return StageDisplay(self.console)

    def verdict(self, episode: Episode, turn: Turn) -> None:
        """The turn has been judged."""
        line = verdict_text(turn.outcome)
        line.append(f"  {speedup_text(turn.speedup, turn.speedup_interval)}".rstrip())
        line.append(
            f"  score {turn.score:.2f}  {best_text(episode.turns)}  ({turn.seconds.total:.1f} s)"
        )
        self.console.print(line, soft_wrap=True)
        details = getattr(turn.outcome, "details", "").strip().splitlines()
        lines = details if turn.outcome.message in details else [turn.outcome.message, *details]
        for line in lines[:MOST_LINES]:
            show(self.console, f"    {line}")
        if len(lines) > MOST_LINES:
            show(self.console, f"    ... {len(lines) - MOST_LINES} more lines", "dim")

    def trouble(self, message: str) -> None:
        """The episode ends early."""
        self.console.print()  # a piece of a reply may have no end of its line
        show(self.errors, message, "bold red")

    def end(self, trajectory: Trajectory) -> None:
        """The episode is over."""
        self.console.print()
        if trajectory.turns:
            self.console.print(turns_table(trajectory.turns, trajectory.returns))
        show(self.console, f"ended: {trajectory.stop_reason}; {best_text(trajectory.turns)}")


def play(episode: Episode, policy: Policy, narrator: Narrator) -> Trajectory:
    """Plays an episode to its end, which may be an early one: a failing model or judge, or Ctrl-C.

    Raises:
        ProblemError: if the problem's reference fails.
        JudgeError: if the judge fails before the first turn.
    """
    episode.start()
    narrator.begin(episode)
    reason = _take_turns(episode, policy, narrator)
    trajectory = episode.finish(reason) if reason else episode.trajectory
    narrator.end(trajectory)
    return trajectory


def best_text(turns: tuple[Turn, ...]) -> str:
    """Which turn was the fastest correct one so far."""
    best = best_turn(turns)
    if best is None:
        return (
            "best: none correct yet"
            if not any(turn.category == "correct" for turn in turns)
            else "best: not timed"
        )
    return f"best: {best.speedup:.2f}x (turn {best.turn})"


def _take_turns(episode: Episode, policy: Policy, narrator: Narrator) -> StopReason | None:
    """Takes turns until the episode is done, or until something gives a reason to end it."""
    try:
        while not episode.done:
            narrator.turn(len(episode.turns) + 1, episode.settings.max_turns)
            reply = policy.reply(episode.messages, narrator.text)
            with narrator.judging(reply) as stages:
                turn = episode.submit(reply, stages.begin)
            narrator.verdict(episode, turn)
    except KeyboardInterrupt:
        narrator.trouble("interrupted; every finished turn is kept")
        return "interrupted"
    except PolicyError as error:
        narrator.trouble(f"no reply: {error}")
        return error.stop_reason
    except JudgeError as error:
        narrator.trouble(f"the judge failed: {error}")
        return "judge_error"
    return None
