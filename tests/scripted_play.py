"""The screens of `kevin-env play` over a scripted pool: a program for tests that press its keys.

    scripted_play.py FOLDER REPLIES [human | SAMPLES]

REPLIES are letters: `w` is judged wrong, `2` is twice as fast, `x` is no reply. `.` comes only when
the file FOLDER/go is there; so does `?`, which thinks and is asked again before.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from episodes import WRONG, another, correct, problem_file

from kevin_env.app.play.batch import BatchRun
from kevin_env.app.play.session import Session
from kevin_env.app.screen import make_console
from kevin_env.app.tui.play import PlayApp
from kevin_env.episode import Episode
from kevin_env.policies import PolicyError
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.record import Message, Reply
from kevin_env.recorder import Recorder
from kevin_env.settings import Settings


class Letters:
    """A policy that plays the letters, one a turn."""

    name = "letters"

    def __init__(self, letters: str, go: Path) -> None:
        self._letters, self._go, self._count = iter(letters), go, 0

    def reply(
        self, messages: Sequence[Message], on_text: Callable[[str], None] | None = None
    ) -> Reply:
        self._count += 1
        letter = next(self._letters)
        if letter == "x":
            raise PolicyError("nobody there")
        text = another(self._count).replace("import torch\n", f"import torch  # {letter}\n", 1)
        if on_text and letter == "?":
            on_text.retrying("HTTP 429", 30.0)  # type: ignore[attr-defined]
            while not self._go.with_name("again").exists():
                time.sleep(0.01)
            on_text.thought("A block per row?")  # type: ignore[attr-defined]
        elif on_text:
            on_text(text)
        while letter in ".?" and not self._go.exists():
            time.sleep(0.01)
        return Reply(content=text)


def judge(problem: Any, submission: Any) -> Any:
    return correct(2.0) if "# 2" in submission.code else WRONG


def session_of(
    folder: Path, letters: str, pool: ScriptedPool, sample: int | None = None
) -> Session:
    """An episode that plays the letters and is recorded in FOLDER/t.jsonl."""
    settings = Settings(max_turns=len(letters.replace("x", "")))
    recorder, problem = Recorder(folder / "t.jsonl"), problem_file(folder)
    episode = Episode(problem, pool, settings, recorder=recorder, model="letters", sample=sample)
    return Session(episode, Letters(letters, folder / "go"))


def main(folder: Path, letters: str, how: str = "") -> None:
    with closing(ScriptedPool(judge)) as pool:
        if how.isdecimal():
            run = BatchRun([session_of(folder, letters, pool, n) for n in range(int(how))])
            console = make_console()
            run.play(console, screen=console.is_terminal)
            run.summary(console)
        else:
            ended = PlayApp(session_of(folder, letters, pool), human=how == "human").play()
            print("ended:", ended.stop_reason)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
