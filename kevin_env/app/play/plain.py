"""A policy plays an episode, printed as it happens."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from kevin_env.app.panel import look_of, panel_lines, show_panel
from kevin_env.app.play.live import Live, Phase, StageBegan, happened, stages_text
from kevin_env.app.replay.panes import pane_lines
from kevin_env.app.replay.pieces import Look, join, paragraph
from kevin_env.app.screen import (
    PIPE_WIDTH,
    best_text,
    ended_text,
    show,
    show_lines,
    turns_table,
    verdict_line,
    waiting,
)
from kevin_env.episode import Episode
from kevin_env.extract import Extracted, extract
from kevin_env.judge.api import JudgeError, OnStage, Stage
from kevin_env.outcome import visible
from kevin_env.policies.base import Policy, PolicyError
from kevin_env.record import Reply, StopReason, Trajectory, Turn, best_turn

MOST_LINES = 12
"""Lines of message and diagnostics printed for a turn; the record has all."""


class Narrator:
    """Prints what happens in an episode: panels on a terminal, plain lines elsewhere.

    It is a `kevin_env.policies.base.Listener`. Failures go to `errors`, by default `console`.
    Replies are printed as they arrive if `stream`; otherwise their summaries, and the first kernel.
    """

    def __init__(
        self, console: Console, errors: Console | None = None, stream: bool = True
    ) -> None:
        self.console, self.errors = console, errors or console
        self._stream = stream
        self._thinking = False
        self._printed = ""
        """The last kernel that was printed."""

    def start(self, episode: Episode) -> None:
        """Starts an episode. Raises as `Episode.start`."""
        with self._waiting(episode, "starting"):
            episode.start()
        device = episode.trajectory.hardware
        where = f" on {device.name} ({device.device})" if device else ""
        show(self.console, f"{episode.problem.id}{where}, model {episode.model}", "bold")

    def turn(self, episode: Episode) -> None:
        """A turn begins."""
        self._thinking = False
        number = f"turn {len(episode.turns) + 1} of {episode.settings.max_turns}"
        self.console.print()
        self.console.rule(number, align="left")

    def __call__(self, piece: str) -> None:
        """Prints a piece of the reply, without escape codes even if one is split over pieces."""
        if self._stream:
            self.console.out(visible(piece), end="", highlight=False)

    def thought(self, text: str) -> None:
        """The model is reasoning; printed once per turn."""
        if self._stream and not self._thinking:
            self._thinking = True
            show(self.console, "the model is thinking", "italic")

    def retrying(self, why: str, seconds: float) -> None:
        """The endpoint failed."""
        show(self.errors, f"{why}, trying again in {seconds:.0f} s", "yellow")

    @contextmanager
    def judging(self, episode: Episode, reply: Reply) -> Iterator[OnStage]:
        """The reply is complete and is judged in this block."""
        found = extract(reply.content, reply.truncated, episode.problem.adapter)
        if self._stream:
            self.console.print()
        elif isinstance(found, Extracted):
            for line in paragraph(found.summary, look_of(self.console).width, "italic"):
                self.console.print(line)
        with self._waiting(episode, "judging") as begin:
            yield begin

    def verdict(self, episode: Episode, turn: Turn) -> None:
        """The turn has been judged."""
        title = verdict_line(turn.outcome, turn.score)
        seconds = stages_text(turn.seconds.model_dump()) or "not judged"
        lines = self._kernel(episode)
        if self.console.is_terminal:
            for line in _details(turn):
                lines += panel_lines(line, look_of(self.console).width)
            show_panel(self.console, title, lines, seconds, turn.category)
            return
        show_lines(self.console, (join("  ", line) for line in lines))
        self.console.print(f"{title.plain}  ({seconds})", soft_wrap=True)
        for line in _details(turn):
            show(self.console, f"    {line}")

    def trouble(self, message: str) -> None:
        """The episode ends early."""
        self.console.print()  # a partial reply may not end in a newline
        show(self.errors, message, "bold red")

    def end(self, trajectory: Trajectory) -> None:
        """The episode is over."""
        self.console.print()
        if trajectory.turns:
            self.console.print(turns_table(trajectory.turns, trajectory.returns, trajectory.model))
        ended = ended_text(trajectory.stop_reason or "interrupted")
        show(self.console, f"{ended}; {best_of(trajectory.turns)}")

    def _kernel(self, episode: Episode) -> list[Text]:
        """The turn's kernel or its diff; nothing if it has been printed already."""
        at, turn = len(episode.turns) - 1, episode.turns[-1]
        changed = any(each.submission for each in episode.turns[:at])
        if turn.submission is None or turn.submission.code == self._printed:
            return []
        self._printed = turn.submission.code
        if self._stream and not changed:
            return []
        terminal = self.console.is_terminal
        look = look_of(self.console) if terminal else Look(PIPE_WIDTH, wrap=False)
        return [*pane_lines(episode.trajectory, at, "diff" if changed else "kernel", look), Text()]

    @contextmanager
    def _waiting(self, episode: Episode, phase: Phase) -> Iterator[OnStage]:
        """Shows progress on a terminal; yields a function to call at the start of each stage."""
        state = Live(episode.trajectory, phase, time.monotonic())

        def begin(stage: Stage) -> None:
            nonlocal state
            state = happened(state, StageBegan(stage, time.monotonic()))

        with waiting(self.console, lambda: state.doing(time.monotonic())):
            yield begin


def play(episode: Episode, policy: Policy, narrator: Narrator) -> Trajectory:
    """Plays an episode to its end.

    A failing model or judge, or Ctrl-C, ends it early.

    Raises:
        ProblemError: if the problem's reference fails.
        JudgeError: if the judge fails before the first turn.
    """
    narrator.start(episode)
    trajectory = take_turns(episode, policy, narrator)
    narrator.end(trajectory)
    return trajectory


def take_turns(episode: Episode, policy: Policy, narrator: Narrator) -> Trajectory:
    """Plays a started episode to its end, as `play` does, and prints no summary."""
    reason: StopReason = "interrupted"
    try:
        while not episode.done:
            narrator.turn(episode)
            reply = policy.reply(episode.messages, narrator)
            with narrator.judging(episode, reply) as begin:
                turn = episode.submit(reply, begin)
            narrator.verdict(episode, turn)
    except KeyboardInterrupt:
        kept = "every finished turn is kept" if episode.turns else "no turn was finished"
        narrator.trouble(f"interrupted; {kept}")
    except PolicyError as error:
        narrator.trouble(f"no reply: {error}")
        reason = error.stop_reason
    except JudgeError as error:
        narrator.trouble(f"the judge failed: {error}")
        reason = "judge_error"
    return episode.finish(reason)


def best_of(turns: Sequence[Turn]) -> str:
    """The fastest correct turn so far."""
    best = best_turn(turns)
    if best is None:
        right = any(turn.category == "correct" for turn in turns)
        return "best not timed" if right else "none correct yet"
    return best_text(best)


def _details(turn: Turn) -> list[str]:
    """The message and the diagnostics of a turn, cut to `MOST_LINES`; not what its title says."""
    if turn.speedup is not None:
        return []
    details = getattr(turn.outcome, "details", "").strip("\n").splitlines()
    message = turn.outcome.message
    lines = details if message in details else [*message.splitlines(), *details]
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"... {more} more lines"]
