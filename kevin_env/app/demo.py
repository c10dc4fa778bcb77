"""An episode with prepared replies, one per kind of outcome, each built, checked and timed."""

from importlib import resources

from kevin_env.app.play.plain import Narrator, play
from kevin_env.episode import Episode
from kevin_env.judge.api import JudgePool, Options
from kevin_env.policies.base import ScriptedPolicy
from kevin_env.problem import load_problem
from kevin_env.record import Trajectory
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings

PROBLEM = "L1_36_RMSNorm_"


def demo(
    pool: JudgePool, narrator: Narrator, device: str = "auto", recorder: Recorder | None = None
) -> Trajectory:
    """Plays the scripted episode: C++ on a CPU, CUDA and Triton on a GPU.

    Raises:
        JudgeError: if the judge fails before the first turn.
    """
    problem = load_problem(PROBLEM)
    facts = pool.describe(problem, Options(device=device)).result()
    replies = demo_replies("gpu" if facts.device.device.startswith("cuda") else "cpu")
    settings = Settings.of({"max_turns": len(replies), "device": device})
    episode = Episode(problem, pool, settings, recorder=recorder, model="scripted")
    return play(episode, ScriptedPolicy(replies), narrator)


def demo_replies(kind: str) -> tuple[str, ...]:
    """Replies for `cpu` or `gpu`: compile error, runtime error, wrong, correct, faster."""
    folder = resources.files("kevin_env.app") / "demo_replies" / kind
    files = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".md")), key=lambda each: each.name
    )
    return tuple(each.read_text(encoding="utf-8") for each in files)
