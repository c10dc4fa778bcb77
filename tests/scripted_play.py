"""The screens of `kevin-env play` over a scripted pool: a program for tests that press its keys.

    scripted_play.py FOLDER REPLIES [human | SAMPLES]

REPLIES are letters: `w` is judged wrong, `2` is twice as fast, `x` is no reply, `.` comes only when
the file FOLDER/go is there.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from episodes import WRONG, another, correct, problem_file

from kevin_env.app.play.batch_run import BatchRun
from kevin_env.app.play.loop import PlayScreen
from kevin_env.app.play.session import Session
from kevin_env.app.screen import make_console
from kevin_env.episode import Episode
from kevin_env.judge import ScriptedPool
from kevin_env.policies import PolicyError
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
        if on_text:
            on_text(text)
        while letter == "." and not self._go.exists():
            time.sleep(0.01)
        return Reply(content=text)


def judge(problem: Any, submission: Any) -> Any:
    return correct(2.0) if "# 2" in submission.code else WRONG


def main(folder: Path, letters: str, how: str = "") -> None:
    settings, recorder = (
        Settings(max_turns=len(letters.replace("x", ""))),
        Recorder(folder / "t.jsonl"),
    )
    pool, problem = ScriptedPool(judge), problem_file(folder)

    def session(sample: int | None) -> Session:
        episode = Episode(
            problem, pool, settings, recorder=recorder, model="letters", sample=sample
        )
        return Session(episode, Letters(letters, folder / "go"))

    if how.isdecimal():
        run = BatchRun([session(number) for number in range(int(how))])
        run.run(make_console())
        run.summary(make_console())
    else:
        ended = PlayScreen(session(None), human=how == "human").run(make_console())
        print("ended:", ended.stop_reason)
    pool.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
