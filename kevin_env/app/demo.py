"""An episode with prepared replies, one per kind of outcome, each built, checked and timed."""

from importlib import resources
from pathlib import Path

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kevin_env.app.errors import BadInput
from kevin_env.app.play.plain import Narrator, take_turns
from kevin_env.app.screen import show, turns_table
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgePool
from kevin_env.policies.base import ScriptedPolicy
from kevin_env.problem import load_problem
from kevin_env.record import Trajectory, Turn, best_turn
from kevin_env.recorder import Recorder, partial_path, read_trajectories
from kevin_env.render import speedup_text
from kevin_env.settings import Settings

PROBLEM = "L6_4_BilateralFilter"
MODEL = "scripted"
TURNS = 6


def demo(
    pool: JudgePool, narrator: Narrator, device: str = "auto", recorder: Recorder | None = None
) -> Trajectory:
    """Plays the scripted episode: C++ on a CPU, CUDA and Triton on a GPU. Prints its turns.

    Raises:
        JudgeError: if the judge fails before the first turn.
    """
    show(
        narrator.console,
        f"{TURNS} prepared replies stand for a model that has to make an image filter faster than "
        "PyTorch's.\nEach is compiled, run, checked and timed on this machine: about 30 s.",
    )
    settings = Settings(max_turns=TURNS, device=device)
    problem = load_problem(PROBLEM)
    episode = Episode(problem, pool, settings, recorder=recorder, model=MODEL)
    narrator.start(episode)
    hardware = episode.trajectory.hardware
    replies = demo_replies("gpu" if hardware and hardware.device.startswith("cuda") else "cpu")
    trajectory = take_turns(episode, ScriptedPolicy(replies), narrator)
    if trajectory.turns:
        narrator.console.print()
        narrator.console.print(turns_table(trajectory.turns, trajectory.returns))
    return trajectory


def demo_replies(kind: str) -> tuple[str, ...]:
    """Replies for `cpu` or `gpu`: compile error, runtime error, wrong, correct, faster, a cheat."""
    folder = resources.files("kevin_env.app") / "demo_replies" / kind
    files = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".md")), key=lambda each: each.name
    )
    return tuple(each.read_text(encoding="utf-8") for each in files)


def show_result(console: Console, turns: tuple[Turn, ...]) -> None:
    """Prints the largest speedup in large type, what the cheat was paid, and whether times vary."""
    best = best_turn(turns)
    if best is None or best.speedup is None:
        show(console, "no kernel was timed", "bold yellow")
        return
    times, faster = speedup_text(best.speedup), best.speedup > 1
    claim = f"{'faster than' if faster else 'the speed of'} PyTorch (turn {best.turn}"
    if best.kind == "too_noisy" and best.speedup_interval is not None:
        claim += ", between {} and {}".format(*map(speedup_text, best.speedup_interval))
    claim += ")"
    if console.is_terminal:
        from textual.renderables.digits import Digits  # only now: textual takes a while to import

        grid = Table.grid(padding=(0, 2))
        grid.add_row(Digits(times), Text(f"\n{claim}"))
        style = "bold green" if faster else "bold yellow"
        console.print(Panel(grid, box=box.HEAVY, style=style, padding=(0, 2), expand=False))
    else:
        show(console, f"{times} {claim}")
    if len(turns) == TURNS and turns[-1].category != "correct":
        show(console, f"The cheat of turn {TURNS} was noticed and is paid {turns[-1].score:g}.")
    if best.kind == "too_noisy":
        console.print(
            "Times vary on this machine, so a score counts less than the speedup: for better ones, "
            "close other programs or use a GPU."
        )


def show_next(console: Console, program: str, file: Path) -> None:
    """Prints the commands to try next."""
    play = f"  {program} play --problem {PROBLEM}"
    show(console, "\nSee each turn, its prompt and its feedback:")
    show(console, f"  {program} replay {file}", "bold")
    show(console, "Ask a model, or play yourself:")
    show(console, f"{play} --model MODEL\n{play} --human", "bold")


def clear(file: Path) -> None:
    """Removes the trajectories of earlier demos.

    Raises:
        BadInput: if the file holds anything else.
    """
    if file.exists():
        for each in read_trajectories(file):
            if not isinstance(each, Trajectory) or each.model != MODEL:
                raise BadInput(f"{file} holds other trajectories: give another file with --out")
    for old in (file, partial_path(file)):
        old.unlink(missing_ok=True)
