import random
import re
import signal
import termios
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from hostile_texts import harmful
from piloting import Step, click, one_size, screens, until
from pseudo_terminal import Screen, run_python
from textual.pilot import Pilot
from trajectories import RIGHT, STORY, evil, timed, trajectory, turn, write

from kevin_env.app.replay.describe import PANES
from kevin_env.app.replay.library import Library
from kevin_env.app.tui.replay import ReplayApp, ViewScreen
from kevin_env.judge.api import Submission
from kevin_env.recorder import Recorder

STORY = STORY.model_copy(update={"created": "2026-01-02T00:00:00+00:00"})
OTHER = trajectory(timed(1, 1.5), timed(2, 2.5), id="other", model="qwen")
LIST_80 = """\
 kevin-env replay  t.jsonl                                       3 trajectories
    #  problem                      model               turns     best   return
▌   1  L1_23_Softmax                m                   ●●x●     4.00x    2.000
    2  L1_23_Softmax                m                   ?●       2.00x        -
    3  L1_23_Softmax                qwen                ●●       2.50x        -
"""
VIEW_80 = """\
 L1_23_Softmax  t.jsonl  2026-01-02 00:00                                   1/3
 m  ·  scripted CPU  ·  4 of 4 turns  ·  all turns played   best 4.00x (turn 4)
     turn  verdict           speedup   score  return  95 % interval   seconds
  ●     1  correct/timed       0.50x    0.80    2.00  [0.45, 0.55]        0.0
  ●     2  correct/timed       2.00x    2.30    3.00  [1.80, 2.20]        1.5
▌ x     3  compile/compiler             0.00    1.70                      0.0
  ●     4  correct/timed       4.00x    4.30    4.30  [3.60, 4.40]        0.0
 1 kernel 2 diff 3 feedback 4 prompt 5 reply 6 numbers
   1 │ import torch
   2 │
   3 │ SOURCE = \"\"\"
   4 │ __global__ void f() {
▶  5 │     int x = foo;
     ╰ f.cu(9): error: identifier "foo" is undefined
   6 │ }
   7 │ \"\"\"
   8 │
   9 │ class ModelNew: ...
"""


@pytest.fixture
def replayed(tmp_path: Path) -> Callable[..., list[str]]:
    """The screens after some steps, of a file with these episodes."""

    def replay(*steps: Step, episodes: Any = None, listed: bool = False, **more: Any) -> list[str]:
        """`listed`: from the first screen, and not from the newest trajectory."""
        file = tmp_path / "t.jsonl"
        file.unlink(missing_ok=True)
        write(file, *(episodes or (STORY, OTHER, trajectory(turn(1), RIGHT))))
        size = more.pop("size", (80, 24))
        steps = steps if listed else ("enter", *steps)
        found = screens(ReplayApp(Library(file, newest_first=True), **more), *steps, size=size)
        return found if listed else found[1:]

    return replay


def test_the_only_trajectory_cannot_be_read(tmp_path: Path) -> None:
    line = STORY.model_dump_json().replace('"score":', '"score":NaN,"was":', 1)
    (file := tmp_path / "t.jsonl").write_text(f"{line}\n")
    named = until("t.jsonl line 1: turns.0.score")
    (shown,) = screens(ReplayApp(Library(file)), named, size=(200, 24))
    assert "1 trajectory" in shown


def at(pilot: Pilot[Any]) -> int:
    screen = pilot.app.screen
    assert isinstance(screen, ViewScreen)
    return screen.view.at


def test_several_begin_with_the_list_and_open_at_their_best_turn(
    replayed: Callable[..., list[str]],
) -> None:
    assert replayed("", listed=True)[0].startswith(LIST_80)
    first, turned, behind = replayed("", "h", "q")
    assert "▌ ●     4  correct/timed" in first and "# version 4" in first
    assert turned.startswith(VIEW_80)
    assert behind.startswith(LIST_80)


def test_a_filter_that_leaves_several_begins_with_the_list(
    replayed: Callable[..., list[str]],
) -> None:
    assert "3 of 3 trajectories" in replayed("", words="softmax", listed=True)[0]
    assert "correct/timed" in replayed("", words="qwen", listed=True)[0]
    assert "2.50x" in replayed("", episode="oth", listed=True)[0]


class Untimely(ReplayApp):
    """Its timers come before its table is on the screen, and once more when it is gone."""

    def on_mount(self) -> None:
        self.relist()

    def on_unmount(self) -> None:
        self.action_filter("qwen")


def test_the_list_may_grow_while_it_is_not_on_the_screen(tmp_path: Path) -> None:
    app = Untimely(Library(write(tmp_path / "t.jsonl", STORY, OTHER)), words="softmax")
    [shown] = screens(app, "")
    assert "2 of 2 trajectories" in shown
    assert app.listing.words == "qwen"


def test_moving_through_turns_and_episodes(replayed: Callable[..., list[str]]) -> None:
    seen: list[int] = []

    async def note(pilot: Pilot[Any]) -> None:
        seen.append(at(pilot))

    keys = ("0", "l", "$", "e", "b h", "0 e", ": 2 enter", ": 9 enter")
    replayed(*(step for key in keys for step in (key, note)))
    assert seen == [0, 1, 3, 3, 2, 2, 1, 1]
    further, last, none = replayed("L", "right_square_bracket", "L")
    assert "2.00x" in further and "2.50x" in last
    assert "no further trajectory" in none


def test_a_lone_trajectory_is_left_for_good(replayed: Callable[..., list[str]]) -> None:
    assert replayed("q", episodes=[STORY], listed=True) == []


def test_panes_and_toggles(replayed: Callable[..., list[str]]) -> None:
    view = replayed(*"123456")
    assert "foo" not in view[0] and "It was right." not in view[2]
    for words, screen in zip(("version 4", "nothing|previous", "", "user,", "reply,", "score of turn 4"), view, strict=True):  # fmt: skip
        assert re.search(words, screen), words
    previous, best, first, two = replayed("d", "d", "D 1 enter", "s", size=(100, 24))
    assert "previous: turn 3" in previous
    assert "best before: turn 2" in best
    assert "turn 1 correct" in first
    assert " │ " in two
    shown, hidden, plain = replayed("h 5", "r", "t")
    assert "I think it should be foo." in shown
    assert "I think it should be foo." not in hidden
    assert "verdict" in hidden and "verdict" not in plain


def test_searching_and_scrolling(replayed: Callable[..., list[str]]) -> None:
    long = trajectory(turn(1, feedback="\n".join(f"line {n}" for n in range(100))), id="long")
    top, end, found, _, none = replayed(
        "3", "G", 'g', '/', '"line 7', size=(80, 24), episodes=[long]
    )  # fmt: skip
    assert "line 99" not in top and "line 99" in end and "line 2\n" in found
    assert "search: line 7" in none
    hit, second, gone, missing = replayed(
        '3 / l i n e space 7 enter', "n", "escape", '/ x y z enter', episodes=[long]
    )  # fmt: skip
    assert "1 of 11 lines" in hit and "2 of 11 lines" in second
    assert "line 70" in second and "line 70" in gone
    assert "not in this pane" in missing


def test_lines_move_sideways_and_their_numbers_stay(replayed: Callable[..., list[str]]) -> None:
    wide = trajectory(turn(1, submission=Submission(code=f"x = '{'a' * 200}END'\n")), id="wide")
    assert "> and < scroll" in replayed("w", episodes=[wide])[0]
    whole, cut, moved = replayed("1", "w", " ".join(["greater_than_sign"] * 20), episodes=[wide])
    assert "END" in whole and "END" not in cut
    assert re.search(r"^   1 │ a+END'", moved, re.MULTILINE)
    found = replayed("w", "/ E N D enter", episodes=[wide])[-1]
    assert "END'" in found


def test_filters_while_typing(replayed: Callable[..., list[str]]) -> None:
    one, none, back, kept, again, wrong = replayed(
        "q / q w e n", "x", "escape", "/ q w e n enter", "escape", '/ c : r enter'
    )  # fmt: skip
    assert "1 of 3" in one and "0 of 3" in none and " 3 trajectories" in back.replace("of 3", "")
    assert "1 of 3" in kept and " 3 trajectories" in again.replace("of 3", "")
    assert "unknown" in wrong
    assert "1 of 3" in replayed("q", "/", '"text:foo', "enter", until("1 of 3"))[-1]


def test_sorting_keeps_the_cursor_or_goes_to_the_top(replayed: Callable[..., list[str]]) -> None:
    file, best, reversed_, number = replayed("q G s", "s s s", "r", ": 2 enter")
    assert "sorted by file" in file and "▌   1" in file
    assert "sorted by best" in best and "▌   1" in best
    assert "reversed" in reversed_ and "▌   3" in reversed_ and "3/3" in reversed_
    assert "▌   2" in number


def test_two_are_compared(replayed: Callable[..., list[str]]) -> None:
    none, two, diff, other, back = replayed("c", "m L L c", "2", "o h", "q", size=(150, 30))
    assert "mark a trajectory" in none
    assert "qwen" in two and "4.00x" in two and "2.50x" in two
    assert "the other trajectory: turn 2" in diff
    assert "the other trajectory: turn 1" in other
    assert "kevin-env replay" in back


def test_the_mouse_opens_turns_and_changes_pane(replayed: Callable[..., list[str]]) -> None:
    first = replayed(click(10, 3))[0]
    assert "▌ ●     1" in first
    assert "user," in replayed(click(30, 7))[0]
    chosen, opened = replayed("q", click(10, 3), click(10, 3))[1:]
    assert "▌   2" in chosen and "all turns played" in opened


def test_copying_and_saving(
    replayed: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copied: list[str] = []

    async def note(pilot: Pilot[Any]) -> None:
        copied.append(pilot.app.clipboard)

    asked, saved, again = replayed(
        "y", note, "x", until("save the kernel as"), "enter", until("saved as"), "x",
        until("save the kernel as"), "enter", until("already exists"),
    )[3::3]  # fmt: skip
    assert "# version 4" in copied[0]
    assert "save the kernel as: L1_23_Softmax_turn4.py" in asked
    assert "turn4.py" in saved and "saved as" not in again
    assert (tmp_path / "L1_23_Softmax_turn4.py").read_text() == STORY.turns[3].submission.code  # type: ignore[union-attr]


def test_a_running_episode_grows_on_the_screen(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t.jsonl")
    recorder.begin(trajectory(turn(1), stop_reason=None))

    async def more(pilot: Pilot[Any]) -> None:
        recorder.add("e1", RIGHT)

    async def end(pilot: Pilot[Any]) -> None:
        recorder.finish(trajectory(turn(1), RIGHT, timed(3, 7.5)))

    steps = ("", more, until("2.00x"), end, until("7.50x"), "q", until("all turns played"))
    app = ReplayApp(Library(tmp_path / "t.jsonl"), follow=True)
    assert len(screens(app, *steps[:-2])) == 5


def test_lines_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", STORY, OTHER)
    with file.open("a") as more:
        more.write("nonsense\n" * 3)
    listed, bad = screens(ReplayApp(Library(file)), "", "!")
    assert "3 unreadable" in listed
    assert "t.jsonl line 3" in bad


class Unhurried(Library):
    """Reads few lines at a time."""

    def advance(self, seconds: float) -> bool:
        return super().advance(0.0)


def test_the_title_knows_when_the_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    write(file, STORY)
    with file.open("a") as more:
        more.write("not a record\n" * 100)
    app = ReplayApp(Unhurried(file))
    screens(app, until("1 trajectory  100 unreadable"))


def test_help_knows_every_key(replayed: Callable[..., list[str]]) -> None:
    view, listed = replayed("question_mark", "q q question_mark", size=(120, 120))
    assert "next turn that failed" in view and "all commands" in view
    assert re.search(f"{' '.join(str(n + 1) for n in range(len(PANES)))} +pane by number", view)
    assert "speedup>1.5" in listed and "correctness" in listed


def test_the_palette_offers_every_key(replayed: Callable[..., list[str]]) -> None:
    found, best = replayed("0 ctrl+p", '"best turn', until("key b"), "enter", until("# version 4"))[
        1::3
    ]
    assert "best turn" in found and "▌ ●     4" in best


HOSTILE = (STORY, evil(), trajectory(id="empty"), trajectory(turn(1), id="one"))


@one_size((100, 30), (1, 1), (30, 8), (220, 60))
def test_nothing_hostile_is_shown_on_any_screen(
    replayed: Callable[..., list[str]], size: tuple[int, int]
) -> None:
    steps = [f"{key} l w s" for key in "123456"]
    shown = replayed(*steps, "q", "?", "q j m k c", *"123456", episodes=HOSTILE, size=size)
    for screen in shown:
        assert not harmful(screen)
        assert len(screen.splitlines()) <= size[1]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_any_keys_in_any_order(replayed: Callable[..., list[str]], seed: int) -> None:
    draw = random.Random(seed)
    keys = ["h", "l", "j", "k", "g", "G", "0", "$", "b", "e", "H", "L", "1", "2", "3", "d", "D", "s", "w", "r", "t", "n", "N", "o", "m", "c", "f", "/", ":", "?", "!", "x", "y", "<", ">", "tab", "space", "enter", "escape", "pagedown", "q"]  # fmt: skip
    steps: list[Step] = [draw.choice(keys) for _ in range(60)]
    replayed(*(step for step in steps if step != "q"), episodes=HOSTILE, size=(100, 30))


# ---- in a real terminal


def replay(*words: str, **more: Any) -> AbstractContextManager[Screen]:
    return run_python("-m", "kevin_env", "replay", *words, **more)


def test_the_terminal_is_left_as_it_was_and_got_nothing_hostile(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", evil(), evil("b"))
    with replay(str(file), columns=160, rows=50) as screen:
        before = termios.tcgetattr(screen.slave)
        screen.wait_for("sorted by")
        screen.press("\r")
        screen.wait_for("correct/timed")
        assert termios.tcgetattr(screen.slave) != before
        screen.press("6")
        screen.wait_for("score of turn")
        screen.press("Q")
        assert screen.end() == 0
        assert termios.tcgetattr(screen.slave) == before
    assert "[red]x[/bad]" in screen.raw
    assert "\x1b[?1049h" in screen.raw and "\x1b[?1049l" in screen.raw
    written = re.sub(r"\x1b\]22;\w+\x07", "", screen.raw)  # the shape of the pointer
    hostile = ("\x1b[2J", "\x1b]", "\x1bP", "\x07", "\x9b", "\x00", *"\u202e\u2066\u200b")
    assert not [each for each in hostile if each in written]


@pytest.mark.full
@pytest.mark.parametrize("key", ["\x03", "Q"])
def test_it_ends_at_once(tmp_path: Path, key: str) -> None:
    with replay(str(write(tmp_path / "t.jsonl", STORY))) as screen:
        screen.wait_for("correct/timed")
        screen.press(key)
        assert screen.end() == 0


def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    with replay(str(write(tmp_path / "t.jsonl", STORY))) as screen:
        screen.wait_for("correct/timed")
        assert screen.hang_up() == 128 + signal.SIGHUP


def test_without_color(tmp_path: Path) -> None:
    with replay(str(write(tmp_path / "t.jsonl", STORY)), NO_COLOR="1") as screen:
        screen.wait_for("correct/timed")
        screen.press("Q")
        screen.end()
    assert not re.search(r"\x1b\[(?:\d+;)*[34][0-8][;m]", screen.raw)


@pytest.mark.full
def test_many_episodes_are_shown_at_once(tmp_path: Path) -> None:
    line = STORY.model_dump_json() + "\n"
    with (tmp_path / "t.jsonl").open("w") as file:
        file.writelines(line.replace('"story"', f'"story-{n}"') for n in range(100_000))
    with replay(str(tmp_path / "t.jsonl")) as screen:
        screen.wait_for("reading")
        screen.press("Q")
        assert screen.end() == 0
