"""What the screen of a played episode shows, and what keys and events do to it; no terminal is
needed.
"""

import random
from dataclasses import replace
from typing import Any

import pytest
from trajectories import BROKEN, ESCAPES, EVIL, RIGHT, evil, timed, trajectory, turn

from kevin_env.app.play.events import (
    Asked,
    Event,
    Failed,
    Heard,
    Judged,
    Noticed,
    Replied,
    Resized,
    StageBegan,
    Started,
    Ticked,
)
from kevin_env.app.play.keys import reduce
from kevin_env.app.play.screens import render
from kevin_env.app.play.state import State, Want, spent
from kevin_env.app.play.tail import tail
from kevin_env.app.replay.code import Line, fenced
from kevin_env.app.replay.panes import PANES
from kevin_env.app.replay.state import USUAL, Size
from kevin_env.judge.api import Seconds
from kevin_env.record import Message, Trajectory, Turn

CHAT = (Message(role="user", content="Make it fast."),)
SIZES = [
    Size(1, 1),
    Size(20, 5),
    Size(40, 12),
    Size(80, 24),
    Size(131, 40),
    Size(133, 40),
    Size(250, 70),
]
REPLYING_80 = """\
 L1_23_Softmax  turn 3 of 4  the model replies 3 s          best 2.00x (turn 2)
 scripted CPU (cpu)  ·  m                                            running on
     turn  verdict          speedup  [95 %]         score  return  seconds
  ?     1  format/no_code                            0.00    0.92      0.0
  ●     2  correct/timed      2.00x  [1.80, 2.20]    2.30    2.30      1.5
  ▸     3  replying                                                    3.0
── turn 3: the reply, 49 characters ────────────────────────────────────────────
I use shared memory.
```python
import torch
x = 1
"""


def story(*turns: Turn, **more: Any) -> Trajectory:
    return trajectory(
        *turns, **({"stop_reason": None, "config": {"max_turns": 4, "gamma": 0.4}} | more)
    )


def played(*events: Event | str, state: State | None = None, **more: Any) -> State:
    state = state or State(story(hardware=None), **more)
    for event in events:
        state = reduce(state, event)
    return state


def waiting(*turns: Turn, human: bool = False) -> State:
    """The person is asked before the next turn."""
    return reduce(State(story(hardware=None), human=human, step=True), Started(story(*turns), CHAT))


def obeyed(state: State) -> State:
    """Whoever runs the screen has taken note of what is wanted."""
    return replace(state, wanted=None)


def lines(state: State, size: Size = USUAL) -> list[str]:
    return [line.plain.rstrip() for line in render(state, size)]


def page(state: State, size: Size = USUAL) -> str:
    return "\n".join(lines(state, size))


def test_a_turn_while_its_reply_comes_in() -> None:
    state = played(
        Started(story(turn(1), RIGHT), CHAT),
        Asked(CHAT, 10.0),
        Heard("I use shared memory.\n```python\n"),
        Heard("import torch\nx = 1"),
        Ticked(13.0),
    )
    shown = lines(state)
    assert shown[:11] == [line.rstrip() for line in REPLYING_80.splitlines()]
    assert shown[22] == " turn 2 was correct/timed: 2.00x [1.80, 2.20]"
    assert shown[23].startswith(" space pause")


def test_only_the_end_of_a_long_reply_is_shown() -> None:
    long = "\n".join(f"line {n} {'x' * 100}" for n in range(500))
    shown = page(played(Started(story(), CHAT), Asked(CHAT, 0.0), Heard(long)))
    assert "line 499" in shown
    assert "line 480" not in shown


def test_stages_are_shown_with_their_time() -> None:
    state = played(
        Started(story(), CHAT), Asked(CHAT, 0.0), Heard("x"), Replied("x", 1.0), StageBegan("queue", 1.0),
        StageBegan("build", 1.5), StageBegan("queue", 4.0), StageBegan("verify", 4.25), Ticked(6.0),
    )  # fmt: skip
    assert spent(state.stages, 6.0) == {"queue": 0.75, "build": 2.5, "verify": 1.75}
    assert "judge: queue 0.8  build 2.5  verify 1.8" in page(state)
    assert "5.0 s" in page(state)
    assert "▸     1  verify" in page(state)


def test_a_judged_turn_is_shown_with_all_that_came_out() -> None:
    slow = RIGHT.model_copy(update={"seconds": Seconds(build=1.5, time=0.5)})
    state = waiting(turn(1), slow)
    shown = page(state)
    for piece in (
        "●     2  correct/timed      2.00x  [1.80, 2.20]    2.30    2.30      2.0",
        "best 2.00x (turn 2)",
        "turn 2: feedback",
        "It was right.",
        "judge: build 1.5  time 0.5",
        "waiting for you",
    ):
        assert piece in shown
    wide = page(played(Resized(Size(160, 45)), state=state), Size(160, 45))
    assert "turn 2: kernel" in wide
    assert "It was right." in wide
    assert "class ModelNew" in wide
    chosen = page(played(Resized(Size(160, 45)), "3", state=state), Size(160, 45))
    assert chosen.count("turn 2: feedback") == chosen.count("turn 2: kernel") == 1, (
        "never one of them twice"
    )


def test_it_runs_on_unless_told_to_wait() -> None:
    started = played(Started(story(), CHAT))
    assert started.wanted == Want("turn")
    running = played(Asked(CHAT, 0.0), state=obeyed(started))
    assert played(Judged(story(RIGHT), CHAT), state=running).wanted == Want("turn")
    paused = played(" ", Judged(story(RIGHT), CHAT), state=running)
    assert (paused.wanted, paused.phase) == (None, "waiting")
    one = played("enter", state=paused)
    assert (one.wanted, one.step) == (Want("turn"), True)
    on = played(" ", state=paused)
    assert (on.wanted, on.step) == (Want("turn"), False)


def test_an_ended_episode_waits_to_be_left() -> None:
    state = played(
        Started(story(), CHAT),
        Asked(CHAT, 0.0),
        Judged(story(RIGHT, stop_reason="max_turns"), CHAT),
    )
    assert (state.phase, state.done) == ("ended", False)
    assert "max_turns" in page(state)
    assert played("enter", state=obeyed(state)).wanted is None
    assert "t takes a turn again" in page(played(" ", state=obeyed(state)))
    assert played("q", state=state).done


def test_a_remark_goes_with_the_next_turn() -> None:
    state = played("r", *"Use  one pasz", "backspace", *"s.", state=waiting())
    assert "remark before the next turn: Use  one pass.▏" in page(state)
    state = played("enter", state=state)
    assert state.remark == "Use one pass."
    assert "remark: Use one pass." in page(state)
    assert played("r", "esc", state=state).remark == "Use one pass."
    assert played("r", "ctrl-u", "enter", state=state).remark == ""
    assert played(Asked(CHAT, 0.0), state=state).remark == ""
    # Given while a turn runs, it waits for the next one.
    later = played(Asked(CHAT, 0.0), "r", "x", "enter", Judged(story(RIGHT), CHAT), state=waiting())
    assert later.remark == "x"


def test_keys_are_letters_while_a_line_is_typed() -> None:
    state = played("r", *"quite e t", state=waiting())
    assert (state.typing and state.typing.text, state.done, state.wanted) == (
        "quite e t",
        False,
        None,
    )
    assert played("ctrl-c", state=state).done


def test_the_editor_opens_when_no_turn_runs() -> None:
    assert played("e", state=waiting(RIGHT)).wanted == Want("edit")
    state = played(Asked(CHAT, 0.0), "e", state=obeyed(played(Started(story(), CHAT))))
    assert state.wanted is None
    assert "the editor is next" in page(state)
    assert played(Judged(story(RIGHT), CHAT), state=state).wanted == Want("edit")
    assert played("e", Judged(story(RIGHT), CHAT), state=state).wanted == Want("turn")
    assert "has ended" in page(
        played("e", Judged(story(stop_reason="max_turns"), CHAT), "e", state=state)
    )


def test_a_turn_is_taken_again() -> None:
    state = waiting(RIGHT, timed(2, 3.0))
    asked = played("t", state=state)
    assert "take again from turn: 2▏" in page(asked)
    assert played("enter", state=asked).wanted == Want("again", 2)
    assert played("backspace", "1", "enter", state=asked).wanted == Want("again", 1)
    for wrong in ("0", "3", "x", "²"):
        refused = played("backspace", wrong, "enter", state=asked)
        assert refused.wanted is None
        assert f"there is no turn {wrong}" in page(refused)
    running = played(Asked(CHAT, 0.0), "t", "enter", state=state)
    assert running.wanted == Want("again", 3)
    assert played("t", state=waiting()).typing is None
    assert played("t", state=State(story(RIGHT))).typing is None
    back = played(Started(story(RIGHT), CHAT), state=obeyed(running))
    assert (back.phase, back.wanted, len(back.turns)) == ("waiting", None, 1)


def test_a_failure_is_told_and_waits() -> None:
    state = played(
        Started(story(RIGHT), CHAT), Asked(CHAT, 0.0), "e", Failed("no reply: [red]unreachable")
    )
    assert state.phase == "waiting"
    assert "no reply: [red]unreachable" in page(state)
    assert not state.edit_next
    assert played("enter", state=obeyed(state)).wanted == Want("turn")
    assert played(" ", state=obeyed(state)).wanted == Want("turn")
    assert "unreachable" not in page(played(Asked(CHAT, 1.0), state=state))


def test_leaving_a_running_turn_takes_two_keys() -> None:
    state = played(Asked(CHAT, 0.0), state=waiting())
    once = played("q", state=state)
    assert not once.done
    assert "q again stops" in page(once)
    assert played("q", state=once).done
    assert not played("j", "q", state=once).done
    assert played("q", state=waiting()).done
    assert not played(Judged(story(RIGHT), CHAT), state=once).leaving


def test_a_person_may_be_the_policy() -> None:
    state = played(Started(story(), CHAT), human=True)
    assert (state.wanted, state.phase) == (None, "waiting")
    assert "Make it fast." in page(state)
    for key in ("e", "enter"):
        assert played(key, state=state).wanted == Want("edit")
    for key in (" ", "r"):
        refused = played(key, state=state)
        assert (refused.wanted, refused.typing) == (None, None)
        assert "you are the policy" in page(refused)
    after = played(Replied("code", 1.0), Judged(story(RIGHT), CHAT), state=state)
    assert (after.phase, after.wanted) == ("waiting", None)
    assert "It was right." in page(after)


def test_earlier_turns_can_be_looked_at() -> None:
    state = waiting(timed(1, 0.5), RIGHT, BROKEN)
    assert "turn 3: kernel" in page(played("left", state=state))
    first = played("left", "h", "left", "left", state=state)
    assert "# version 1" in page(first)
    assert "turn 1: reply" in page(played("5", state=first))
    assert "turn 1: diff" in page(played("tab", state=first))
    assert "turn 1: reward" in page(played("shift-tab", state=first))
    assert played("l", "l", "l", state=first).at is None
    assert played("esc", state=first).at is None
    assert "turn 3: feedback" in page(played("3", state=state))
    assert "no turn has been judged" in page(played("1", state=waiting()))
    # A turn that begins is what is looked at then.
    assert played(Asked(CHAT, 0.0), state=first).at is None


def test_the_prompt_is_the_chat_as_sent() -> None:
    chat = (Message(role="system", content="Be brief."), *CHAT)
    state = played(Asked(chat, 0.0), "p", state=waiting())
    assert "Be brief." in page(state)
    assert "Make it fast." in page(state)
    assert "Be brief." not in page(played("p", state=state))


def test_panes_scroll_as_far_as_they_go() -> None:
    long = turn(1, feedback="\n".join(f"line {n}" for n in range(100)))
    state = waiting(long)
    assert "line 3" in page(state)
    assert "line 99" in page(played("G", state=state))
    assert page(played("G", "j", "pgdn", state=state)) == page(played("G", state=state))
    assert page(played("G", "g", "k", state=state)) == page(state)
    assert played("j", state=waiting()).scroll == 0


def test_a_turn_by_hand_is_marked() -> None:
    by_hand = RIGHT.model_copy(update={"by_person": True})
    assert "correct/timed by hand" in page(waiting(turn(1), by_hand))
    assert "by hand" not in page(waiting(turn(1), by_hand, human=True))
    assert "reply by hand" in page(played("5", state=waiting(turn(1), by_hand)))


def test_help_shows_and_closes() -> None:
    state = played("?", state=waiting())
    assert "$EDITOR" in page(state)
    assert played("q", state=state).help is False
    assert not played("q", state=state).done


@pytest.mark.parametrize("size", SIZES)
def test_every_screen_fits_and_holds_nothing_hostile(size: Size) -> None:
    """Keys and events at random: every line is as wide as the screen, and no text of others does
    anything.
    """
    events: list[Event] = [
        Started(story(), CHAT),
        Started(evil(), (Message(role="user", content=EVIL),)),
        Asked((Message(role="user", content=EVIL),), 1.0),
        Heard(EVIL),
        Heard(f"```python\n{EVIL}\n" * 30),
        Replied(EVIL, 2.0),
        StageBegan("build", 3.0),
        Judged(evil().model_copy(update={"stop_reason": None}), ()),
        Judged(evil(), CHAT),
        Failed(EVIL),
        Noticed(EVIL),
        Ticked(9.0),
        Resized(size),
    ]
    keys = [
        *" nretpq?hl0jkgG1234567x",
        "enter",
        "esc",
        "tab",
        "backspace",
        "left",
        "right",
        "pgdn",
        "é",
        "\x1b",
        "\u202e",
    ]
    chance = random.Random(size.columns)
    state = State(story(), size=size)
    for _ in range(150):
        state = reduce(obeyed(state), chance.choice([*events, *keys, *keys]))
        state = replace(state, done=False)
        frame = render(state, size)
        assert [line.cell_len for line in frame] == [size.columns] * size.rows
        assert not any(sign in line.plain for line in frame for sign in ESCAPES)


def test_every_pane_has_a_key() -> None:
    state = waiting(RIGHT)
    assert [played(str(n), state=state).pane for n in range(1, len(PANES) + 1)] == list(PANES)


REPLY = """\
Prose with `code`.
```python
import torch
SOURCE = r\"\"\"
#include <cmath>
__global__ void f() { int x = 1; }
\"\"\"
def g():
    '''A word
    on it.'''
    return SOURCE
```
More prose.
~~~cuda
int y;
~~~
"""


def by_letter(line: Line) -> list[tuple[str, str]]:
    return [(kind, letter) for kind, piece in line for letter in piece]


def test_a_whole_reply_looks_as_in_replay() -> None:
    assert list(map(by_letter, tail(REPLY, 100))) == list(map(by_letter, fenced(REPLY)))


@pytest.mark.parametrize("cut", range(1, len(REPLY.splitlines())))
def test_the_end_of_a_reply_has_the_colours_of_the_whole(cut: int) -> None:
    """Wherever the window begins, its lines look as they would in the whole reply."""
    whole = tail(REPLY, 100)
    assert list(map(by_letter, tail(REPLY, cut))) == list(map(by_letter, whole[len(whole) - cut :]))


def test_a_reply_is_coloured_before_it_is_whole() -> None:
    unfinished = REPLY[: REPLY.index("int x")]
    *_, last = tail(unfinished, 3)
    assert ("builtin", "void") in last
    [word] = tail('```python\nx = """\nnothing but words', 1)
    assert word == (("string", "nothing but words"),)


def test_arrows_tell_of_turns_that_the_table_has_no_room_for() -> None:
    state = waiting(*(timed(number, 1.0) for number in range(1, 13)))

    def rows(state: State) -> list[str]:
        return [line.plain for line in render(state, USUAL)[2:9]]

    assert rows(state)[0].startswith("↑    turn") and rows(state)[-1].startswith("  ▸    13")
    first = reduce(state, "left")
    for _ in range(12):
        first = reduce(first, "left")
    assert rows(first)[0].startswith("     turn") and rows(first)[1].startswith("▌ ●     1")
    assert rows(first)[-1].startswith("↓ ●     6")
