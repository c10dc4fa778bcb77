"""Trajectories for the tests of everything that shows or converts them."""

from pathlib import Path

from episodes import correct
from hostile_texts import EVIL

from kevin_env.judge.api import Seconds, Submission
from kevin_env.outcome import CompileError, FormatError
from kevin_env.pools.scripted import SCRIPTED_CPU
from kevin_env.record import Message, ProblemRef, Trajectory, Turn, Usage


def turn(number: int, **more) -> Turn:
    values = {
        "turn": number,
        "messages": (Message(role="user", content="Go."),),
        "reply": "I would rather talk.",
        "outcome": FormatError(kind="no_code", message="There was no code."),
        "score": 0.0,
        "feedback": "There was no code.",
    }
    return Turn(**(values | more))


RIGHT = turn(
    2,
    reply="Code.",
    submission=Submission(code="import torch\n\nclass ModelNew: ...\n"),
    outcome=correct(2.0),
    score=2.3,
    feedback="It was right.",
    seconds=Seconds(build=1.5),
    usage=Usage(prompt_tokens=10, completion_tokens=5),
)

BROKEN = turn(
    3,
    reasoning="I think it should be foo.",
    submission=Submission(
        code='import torch\n\nSOURCE = """\n__global__ void f() {\n    int x = foo;\n}\n"""\n\nclass ModelNew: ...\n'
    ),
    outcome=CompileError(
        kind="compiler",
        message='f.cu(9): error: identifier "foo" is undefined',
        details="f.cu(9): error\n  int x = foo;\n  ^",
    ),
    feedback="Compilation failed.",
)


def trajectory(*turns: Turn, id: str = "e1", **more) -> Trajectory:
    values = {
        "episode_id": id,
        "created": "2026-01-01T00:00:00+00:00",
        "problem": ProblemRef(id="L1_23_Softmax", sha256="0", level=1),
        "config": {"gamma": 0.4, "max_turns": len(turns)},
        "model": "m",
        "hardware": SCRIPTED_CPU,
        "turns": turns,
        "stop_reason": "max_turns",
    }
    return Trajectory(**(values | more))


def timed(number: int, speedup: float, kind: str = "timed") -> Turn:
    code = f"import torch\n# version {number}\nclass ModelNew: ...\n"
    return turn(
        number,
        submission=Submission(code=code),
        outcome=correct(speedup).model_copy(update={"kind": kind}),
        score=0.3 + speedup,
        reply="r",
    )


STORY = trajectory(
    timed(1, 0.5), RIGHT, BROKEN, timed(4, 4.0), id="story", returns=(2.0, 3.0, 1.7, 4.3)
)


def evil(id: str = "evil") -> Trajectory:
    """One whose every text is hostile."""
    first = turn(
        1,
        reply=EVIL,
        feedback=EVIL,
        outcome=CompileError(kind="compiler", message=EVIL, details=EVIL),
        log=EVIL,
    )
    second = turn(
        2,
        submission=Submission(code=f"x = 1\n# {EVIL}\n\tclass ModelNew: ...\n"),
        reply=f"```python\n{EVIL}",
        reasoning=EVIL,
        feedback=EVIL,
        summary=EVIL,
        messages=(Message(role="user", content=EVIL),),
        outcome=correct(1.5),
        flags=(EVIL,),
        score=1.8,
    )
    third = turn(3, submission=Submission(code="y = 2\n"), outcome=correct(1.2), score=1.5)
    return trajectory(
        first,
        second,
        third,
        id=f"{id}{EVIL}",
        model=EVIL,
        problem=ProblemRef(id=f"P{EVIL}", sha256=""),
    )


def write(path: Path, *episodes: Trajectory) -> Path:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{each.model_dump_json()}\n" for each in episodes)
    return path
