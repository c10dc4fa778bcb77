import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trajectories import BROKEN, ESCAPES, RIGHT, evil, timed, trajectory, turn

from kevin_env.app.replay.keys import reduce
from kevin_env.app.replay.list_keys import KEYS as LIST_KEYS
from kevin_env.app.replay.panes import error_lines, lines_of_pane
from kevin_env.app.replay.reward import return_sum, score_sum
from kevin_env.app.replay.rows import row_of
from kevin_env.app.replay.screens import render
from kevin_env.app.replay.state import (
    PANES,
    USUAL,
    Size,
    State,
    found,
    grown,
    opened,
    renewed,
    resized,
)
from kevin_env.app.replay.view_keys import KEYS as VIEW_KEYS
from kevin_env.judge.api import Submission
from kevin_env.outcome import CompileError, Threads
from kevin_env.record import Trajectory
from kevin_env.recorder import BadLine
from kevin_env.roofline import Ceilings, Work, roofline_of

STORY = trajectory(
    timed(1, 0.5), RIGHT, BROKEN, timed(4, 4.0), id="story", returns=(2.0, 3.0, 1.7, 4.3)
)
OTHER = trajectory(timed(1, 1.5), timed(2, 2.5), id="other", model="qwen")
SIZES = [
    Size(1, 1),
    Size(20, 5),
    Size(40, 12),
    Size(80, 24),
    Size(100, 30),
    Size(133, 40),
    Size(250, 70),
]
LIST_80 = """\
 kevin-env replay  t.jsonl                                       3 trajectories
────────────────────────────────────────────────────────────────────────────────
    #  problem                      model                turns     best   return
▌   1  L1_23_Softmax                m                    ●●x●     4.00x    2.000
    2  L1_23_Softmax                qwen                 ●●       2.50x        -
    3  L1_23_Softmax                m                    ?●       2.00x        -
"""
VIEW_80 = """\
 L1_23_Softmax  t.jsonl                                                     1/3
 m  ·  scripted CPU  ·  4 of 4 turns  ·  max_turns          best 4.00x (turn 4)
     turn  verdict           speedup   score  return  [95 %]         seconds
  ●     1  correct/timed       0.50x    0.80    2.00  [0.45, 0.55]       0.0
  ●     2  correct/timed       2.00x    2.30    3.00  [1.80, 2.20]       1.5
▌ x     3  compile/compiler             0.00    1.70                     0.0
  ●     4  correct/timed       4.00x    4.30    4.30  [3.60, 4.40]       0.0
 speedup ▁▄·█  score ▂▅▁█                                          return 2.000
────────────────────────────────────────────────────────────────────────────────
 1 kernel 2 diff 3 feedback 4 prompt 5 reply 6 timings 7 reward
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


def start(*episodes: Trajectory, size: Size = USUAL) -> State:
    return grown(State(title="t.jsonl", size=size), tuple(map(row_of, episodes)), (), 1.0)


EPISODES = {each.episode_id: each for each in (STORY, OTHER, trajectory(turn(1), RIGHT), evil())}


def press(state: State, *keys: str) -> State:
    for key in keys:
        state = reduce(state, key)
        if state.wanted:
            state = opened(state, [EPISODES[row.episode_id] for row in state.wanted])
    return state


def plain(state: State) -> list[str]:
    return [line.plain.rstrip() for line in render(state, state.size)]


def beginning(state: State, golden: str) -> str:
    return "".join(f"{line}\n" for line in plain(state)[: golden.count("\n")])


LIST = start(STORY, OTHER, EPISODES["e1"])


def test_the_list() -> None:
    assert beginning(LIST, LIST_80) == LIST_80


def test_the_view() -> None:
    state = press(LIST, "enter", "l", "l")
    assert beginning(state, VIEW_80) == VIEW_80


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "episode", [STORY, evil(), trajectory(id="empty"), trajectory(turn(1), id="e1")]
)
def test_every_line_is_as_wide_as_the_screen_and_inert(size: Size, episode: Trajectory) -> None:
    state = resized(start(episode, OTHER), size)
    screens = [state, reduce(state, "?"), reduce(state, "/")]
    view = opened(replace(state, wanted=(row_of(episode),)), [episode])
    two = opened(replace(state, wanted=(row_of(episode), row_of(OTHER))), [episode, OTHER])
    for each in (view, two):
        for pane in PANES:
            for at in range(3):
                for toggles in ({}, {"wrap": False}, {"side_by_side": True, "base": 1}):
                    shown = replace(each, pane=pane, **toggles)  # type: ignore[arg-type]
                    screens.append(reduce(shown, "l") if at else shown)
    for screen in screens:
        frame = render(screen, size)
        assert [line.cell_len for line in frame] == [size.columns] * size.rows
        text = "\n".join(line.plain for line in frame)
        assert not [escape for escape in ESCAPES if escape in text]


def test_moving_about() -> None:
    state = press(LIST, "j", "j", "j")
    assert state.listing.at == 2
    assert press(state, "g").listing.at == 0
    assert press(state, ":", "2", "enter").listing.at == 1
    view = press(LIST, "enter")
    at = lambda *keys: press(view, *keys).view.at  # noqa: E731
    assert (at("l"), at("right", "right"), at("$"), at("$", "h"), at("$", "0"), at("h")) == (
        1,
        2,
        3,
        2,
        0,
        0,
    )
    assert (
        at("b"),
        at("e"),
        at("i"),
        at("i", "i"),
        at(":", "3", "enter"),
        at(":", "9", "enter"),
    ) == (3, 2, 1, 3, 2, 0)
    assert press(view, "L").view.episode is OTHER
    assert press(view, "]", "]", "H").view.episode is OTHER
    assert "no further" in press(view, "[").notice
    assert press(view, "q").screen == "list"
    assert press(view, "q", "q").done


def test_a_lone_trajectory_is_left_for_good() -> None:
    assert press(start(STORY), "enter", "q").done


def test_panes_and_toggles() -> None:
    view = press(LIST, "enter")
    for number, pane in enumerate(PANES, start=1):
        assert press(view, str(number)).pane == pane
    assert (press(view, "tab").pane, press(view, "shift-tab").pane) == ("diff", "reward")
    state = press(view, "$", "d")
    assert "previous: turn 3" in "\n".join(plain(state))
    assert "best before: turn 2" in "\n".join(plain(press(state, "d")))
    assert "turn 1: turn 1" in "\n".join(plain(press(state, "D", "1", "enter")))
    assert "│    " in "\n".join(plain(press(state, "s")))
    reasoning = press(view, "l", "l", "5")
    assert "I think it should be foo." in "\n".join(plain(reasoning))
    assert "I think it should be foo." not in "\n".join(plain(press(reasoning, "r")))
    assert "turn  verdict" not in "\n".join(plain(press(view, "t")))


def test_scrolling_ends_where_the_text_ends() -> None:
    long = trajectory(turn(1, feedback="\n".join(f"line {n}" for n in range(100))), id="long")
    EPISODES["long"] = long
    state = press(start(long), "enter", "3")
    assert press(state, "k").view.scroll == 0
    bottom = press(state, "G")
    assert bottom.view.scroll == press(bottom, "j", "j", " ").view.scroll > 50
    assert "line 99" in "\n".join(plain(bottom))
    assert press(bottom, "g").view.scroll == 0
    found = press(state, "/", *"line 70", "enter")
    assert "line 70" in "\n".join(plain(found))
    assert "1 of 1" in found.notice
    assert press(found, "esc").search == ""
    assert "not in this pane" in press(state, "/", *"nowhere", "enter").notice
    several = press(state, "/", *"line 5", "enter")
    assert [press(several, *"n" * n).hit - several.hit for n in (1, 2)] == [45, 46]
    assert press(several, "n", "N").hit == several.hit


def test_lines_are_shifted_when_they_are_not_wrapped() -> None:
    long = trajectory(turn(1, submission=Submission(code=f"x = '{'a' * 200}END'\n")), id="wide")
    EPISODES["wide"] = long
    state = press(start(long), "enter")
    assert "END" in "\n".join(plain(state))
    cut = press(state, "w")
    assert "END" not in "\n".join(plain(cut))
    assert "END" in "\n".join(plain(press(cut, *">" * 20)))


def test_filters_while_typing() -> None:
    state = press(LIST, "/", *"qwen")
    assert [state.listing.rows[n].episode_id for n in state.listing.shown] == ["other"]
    assert press(state, "backspace", "x").listing.shown == []
    assert len(press(state, "esc").listing.shown) == 3
    kept = press(state, "enter")
    assert (kept.typing, len(kept.listing.shown)) == (None, 1)
    assert len(press(kept, "esc").listing.shown) == 3
    assert "unknown" in "\n".join(plain(press(LIST, "/", *"colour:red", "enter")))


def test_a_search_for_text_waits_for_the_library() -> None:
    state = press(LIST, "/", *"text:foo", "enter")
    assert (state.listing.query.text, state.listing.shown) == ("foo", [])
    half = found(state, "foo", frozenset({1}), 2)
    assert (half.listing.shown, "searching 67%" in plain(half)[0]) == ([1], True)
    assert found(state, "older", frozenset({1}), 2) is state


def test_the_cursor_stays_on_its_row() -> None:
    state = press(LIST, "j", "s", "s", "s")
    assert (state.listing.sort, state.listing.at) == ("best", 0)
    state = press(state, "G")
    row = state.listing.current
    assert row is not None
    more = grown(state, (*map(row_of, (evil(), STORY, OTHER, EPISODES["e1"])),), (), 1.0)
    assert more.listing.current is not None
    assert more.listing.current.key == row.key


def test_two_are_compared() -> None:
    state = press(LIST, "m", "j", "c")
    assert [view.episode.episode_id for view in state.views] == ["story", "other"]
    assert [view.at for view in state.views] == [3, 1]
    shown = "\n".join(plain(resized(press(state, "2"), Size(140, 30))))
    assert "the other trajectory: turn 2" in shown
    assert [view.at for view in press(state, "h", "o", "h").views] == [2, 0]
    assert "mark a trajectory" in press(LIST, "c").notice
    assert press(state, "q").screen == "list"


def test_auto_play() -> None:
    state = press(LIST, "enter", "a")
    assert state.playing
    assert press(state, "tick").view.at == 1
    assert press(state, "+").speed == press(state).speed + 1
    ended = press(state, "tick", "tick", "tick", "tick")
    assert (ended.view.at, ended.playing) == (3, False)
    assert press(ended, "a").view.at == 0
    assert not press(state, "j").playing
    assert press(replace(state, playing=False), "tick").view.at == 0


def test_a_running_episode_grows_on_the_screen() -> None:
    running = trajectory(timed(1, 1.0), id="story", stop_reason=None)
    state = opened(replace(LIST, wanted=(row_of(running),), follow=True), [running])
    more = trajectory(timed(1, 1.0), timed(2, 2.0), id="story", stop_reason=None)
    assert renewed(state, [more]).view.at == 1
    elsewhere = trajectory(timed(1, 1.0), timed(2, 2.0), timed(3, 2.0), id="story")
    assert renewed(press(renewed(state, [more]), "h"), [elsewhere]).view.at == 0
    gone = BadLine(Path("t"), 1, "gone")
    assert renewed(state, [gone]).view.episode is running


def test_lines_that_cannot_be_read_are_listed() -> None:
    bad = tuple(BadLine(Path("t.jsonl"), n, f"why {n}") for n in range(1, 40))
    state = grown(LIST, LIST.listing.rows, bad, 1.0)
    assert "39 unreadable" in plain(state)[0]
    assert "t.jsonl: why 1" in "\n".join(plain(press(state, "!")))
    assert "why 39" in "\n".join(plain(press(state, "!", *"j" * 30)))
    assert opened(replace(state, wanted=(LIST.listing.rows[0],)), [bad[0]]).notice.endswith("why 1")


def test_help_knows_every_key() -> None:
    shown = "\n".join(plain(replace(press(LIST, "?"), size=Size(120, 70))))
    words = set(shown.split())
    arrows = {
        "down",
        "up",
        "left",
        "right",
        "pgdn",
        "pgup",
        "enter",
        "tab",
        "shift-tab",
        "backspace",
        "home",
        "end",
        " ",
    }
    known = {*LIST_KEYS, *VIEW_KEYS} - arrows - {"tick", "ctrl-f", "ctrl-b", "^", "=", *"234567"}
    assert {
        key
        for key in known
        if key not in words and f"{key};" not in words and f"{key}," not in words
    } == set()


def test_scores_and_returns_are_written_out() -> None:
    assert score_sum(RIGHT, STORY) == "0.3 correct + 2.000 speedup = 2.300"
    assert score_sum(BROKEN, STORY) == "0.000  (compile: nothing is paid)"
    low = trajectory(
        timed(1, 2.0).model_copy(update={"score": 2.1}), config={"gamma": 0.4, "bound": "lower"}
    )
    assert score_sum(low.turns[0], low) == "0.3 correct + 1.800 lower end of its speedup = 2.100"
    odd = trajectory(timed(1, 2.0), config={"score": "mine.score"})
    assert score_sum(odd.turns[0], odd) == "2.300  (score mine.score)"
    again = RIGHT.model_copy(update={"turn": 3, "score": 0.0})
    once = trajectory(RIGHT, again, config={"pay_repeats": False})
    assert [score_sum(each, once)[:5] for each in once.turns] == ["0.3 c", "0.000"]
    assert score_sum(again, once) == "0.000  (the code of an earlier turn is paid once)"
    sums = trajectory(turn(1), RIGHT, BROKEN)
    assert return_sum(sums, 0) == "0.000 + 0.4 * 2.300 + 0.4^2 * 0.000 = 0.920"
    most = trajectory(turn(1), RIGHT, config={"gamma": 0.5, "returns": "max"})
    assert return_sum(most, 0) == "max(0.000, 0.5 * 2.300) = 1.150"


def timings(episode: Trajectory) -> list[str]:
    """The pane of its last turn."""
    state = press(opened(replace(start(episode), wanted=(row_of(episode),)), [episode]), "l")
    return [line.plain.rstrip() for line in lines_of_pane(state, state.view, "timings", 100)]


def test_a_time_against_the_roofline_is_among_the_timings() -> None:
    work = Work(read=1 << 26, written=1 << 26, products={}, operations=1 << 24)
    held = roofline_of(work, Ceilings(reading=4e12, copying=4e12, rates={"fp32": 50e12}), 1e-4)
    outcome = RIGHT.outcome.model_copy(
        update={"roofline": held, "threads": Threads(busy=1.04, of=8)}
    )
    shown = timings(trajectory(turn(1), RIGHT.model_copy(update={"outcome": outcome})))
    for line in (
        "roofline    33.6% of 33.6 us, bound by memory",
        "bandwidth   1.34 TB/s of 4 TB/s, 134 MB",
        "rate        168 GFLOP/s of 50 TFLOP/s, 16.8 MFLOP",
        "threads     1.0 of 8 busy",
    ):
        assert line in shown, line
    assert not [
        line
        for line in timings(trajectory(turn(1), RIGHT))
        if line.startswith(("roofline", "threads"))
    ]


def test_error_lines() -> None:
    assert error_lines("a\nb\n", CompileError(kind="syntax", message="m", line=2)) == (2,)
    assert error_lines(BROKEN.submission.code, BROKEN.outcome) == (5,)  # type: ignore[union-attr]
    twice = CompileError(kind="compiler", message="m", details="int x = foo;")
    assert error_lines("int x = foo;\nint x = foo;\n", twice) == ()


@pytest.mark.parametrize("seed", range(6))
def test_any_keys_in_any_order(seed: int) -> None:
    """No key fails anywhere, and the screen can be drawn after each."""
    draw = random.Random(seed)
    keys = [
        *LIST_KEYS,
        *VIEW_KEYS,
        "?",
        "!",
        "/",
        ":",
        "D",
        "x",
        "漢",
        "ctrl-x",
        "9",
        "esc",
        "enter",
    ]
    keys = [key for key in keys if key not in ("q", "Q", "ctrl-c")]
    state = start(*EPISODES.values())
    for _ in range(250):
        state = press(state, draw.choice(keys))
        size = draw.choice(SIZES)
        frame = render(resized(state, size), size)
        assert [line.cell_len for line in frame] == [size.columns] * size.rows
        state = replace(state, done=False)


@pytest.mark.timeout(60)
def test_a_pane_of_a_huge_kernel_comes_soon() -> None:
    huge = trajectory(
        turn(1, submission=Submission(code="x = 1  # y\n" * 20_000), outcome=BROKEN.outcome),
        id="huge",
    )
    view: Any = opened(replace(LIST, wanted=(row_of(huge),)), [huge])
    assert len(lines_of_pane(view, view.view, "kernel", 80)) >= 20_000
