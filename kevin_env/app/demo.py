"""An episode with prepared replies, one per kind of outcome, each built, checked and timed."""

from importlib import resources
from pathlib import Path

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kevin_env.app.play.plain import Narrator, take_turns
from kevin_env.app.replay.pieces import sparkline
from kevin_env.app.screen import show
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgePool
from kevin_env.policies.base import ScriptedPolicy
from kevin_env.problem import load_problem
from kevin_env.record import Trajectory, Turn
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

PROBLEM = "L6_4_BilateralFilter"
TURNS = 5


def demo(
    pool: JudgePool, narrator: Narrator, device: str = "auto", recorder: Recorder | None = None
) -> Trajectory:
    """Plays the scripted episode: C++ on a CPU, CUDA and Triton on a GPU.

    Raises:
        JudgeError: if the judge fails before the first turn.
    """
    settings = Settings(max_turns=TURNS, device=device)
    problem = load_problem(PROBLEM)
    episode = Episode(problem, pool, settings, recorder=recorder, model="scripted")
    narrator.start(episode)
    hardware = episode.trajectory.hardware
    replies = demo_replies("gpu" if hardware and hardware.device.startswith("cuda") else "cpu")
    trajectory = take_turns(episode, ScriptedPolicy(replies), narrator)
    narrator.end(trajectory)
    return trajectory


def demo_replies(kind: str) -> tuple[str, ...]:
    """Replies for `cpu` or `gpu`: compile error, runtime error, wrong, correct, faster."""
    folder = resources.files("kevin_env.app") / "demo_replies" / kind
    files = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".md")), key=lambda each: each.name
    )
    return tuple(each.read_text(encoding="utf-8") for each in files)


def show_result(console: Console, turns: tuple[Turn, ...]) -> None:
    """Prints the speedup of the last turn in large type, and those of all turns as a sparkline.

    Of a speedup with a wide interval it is what counts for the score.
    """
    last = turns[-1] if turns else None
    if last is None or last.paid_speedup is None or last.speedup_interval is None:
        show(console, "no kernel was timed", "bold yellow")
        return
    faster, noisy = last.paid_speedup > 1, last.kind == "too_noisy"
    times, about = f"{last.paid_speedup:.1f}x", "about " * noisy
    claim = "faster than PyTorch" if faster else "the speed of PyTorch"
    low, high = last.speedup_interval
    interval = f"95 % interval {low:.2f}x to {high:.2f}x"
    interval += ": times vary on this machine" * noisy
    values = [turn.paid_speedup for turn in turns]
    trend = f"speedup by turn  {sparkline(values)}  "
    trend += "  ".join("-" if value is None else f"{value:.2f}x" for value in values)
    if not console.is_terminal:
        show(console, f"{about}{times} {claim} ({interval})\n{trend}")
        return
    from textual.renderables.digits import Digits  # only now: textual takes a while to import

    grid = Table.grid(padding=(0, 2))
    grid.add_row(Text(f"\n{about}".rstrip()), Digits(times), Text(f"\n{claim}\n{interval}"))
    style = "bold green" if faster and not noisy else "bold yellow"
    console.print(Panel(grid, box=box.HEAVY, style=style, padding=(0, 2), expand=False))
    show(console, trend)


def show_next(console: Console, program: str, file: Path) -> None:
    """Prints the commands to try next."""
    play = f"  {program} play --problem {PROBLEM}"
    show(console, "\nSee each turn, its prompt and its feedback:")
    show(console, f"  {program} replay {file}", "bold")
    show(console, "Ask a model, or play yourself:")
    show(console, f"{play} --model MODEL\n{play} --human", "bold")
