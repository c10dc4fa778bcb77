"""The screens of `kevin-env play`, over a scripted pool."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from episodes import another, recorded
from hostile_texts import EVIL, harmful
from piloting import Step, ended, one_size, screens, until
from pseudo_terminal import run_python
from scripted_play import judge, session_of
from textual.pilot import Pilot
from textual.widgets import TextArea
from trajectories import RIGHT, evil, trajectory

from kevin_env.app.play.live import (
    Asked,
    Failed,
    Heard,
    Judged,
    Live,
    Replied,
    Retrying,
    StageBegan,
    Thought,
    happened,
    spent,
    tokens_text,
)
from kevin_env.app.tui.play import PlayApp
from kevin_env.judge import JudgeError
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.record import Message

KERNEL_2 = another(2).split("```python\n")[1].split("```")[0].replace("torch\n", "torch  # 2\n", 1)
OPEN: Any = {"stop_reason": None, "config": {"max_turns": 4, "gamma": 0.4}}


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[ScriptedPool]:
    with closing(ScriptedPool(judge)) as pool:
        yield pool
        for name in ("again", "go"):  # replies that nothing waits for any more end too
            (tmp_path / name).touch()


@pytest.fixture
def played(tmp_path: Path, pool: ScriptedPool) -> Callable[..., list[str]]:
    """The screens after some steps, while these letters are played."""

    def play(letters: str, *steps: Step, human: bool = False, **more: Any) -> list[str]:
        session = session_of(tmp_path, letters, pool)
        found = screens(PlayApp(session, human), *steps, **more)
        session.finish()
        return found

    return play


def touch(path: Path) -> Step:
    async def go(pilot: Pilot[Any]) -> None:
        path.touch()

    return go


def edit(old: str, new: str) -> Step:
    """Replaces a text in the editor."""

    async def change(pilot: Pilot[Any]) -> None:
        area = pilot.app.screen.query_one(TextArea)
        area.load_text(area.text.replace(old, new) if old else new)

    return change


def test_an_episode_runs_to_its_end(played: Callable[..., list[str]], tmp_path: Path) -> None:
    ended, looked, keys = played(
        "w2", until("2 of 2 turns"), until("all turns played"), "left", "?"
    )[1:]
    assert "best 2.00x (turn 2)" in ended
    assert "▌ ~     1  correctness/values" in looked
    assert "enter next" not in ended and "retake" in ended
    assert " q " in keys and "leave" in keys and "stop" not in keys and "back" not in keys
    assert [each.category for each in recorded(tmp_path / "t.jsonl")[0].turns] == [
        "correctness",
        "correct",
    ]


def test_the_reply_is_seen_while_it_comes(played: Callable[..., list[str]], tmp_path: Path) -> None:
    coming, prompt, back, nothing = played(
        ".",
        until("class ModelNew"),
        "p",
        "p",
        "1",
        touch(tmp_path / "go"),
        until("all turns played"),
    )[:4]
    assert "turn 1 of 1  the reply, 529 characters" in coming and "▌ ▸     1  replying" in coming
    assert "── user, " in prompt and "class ModelNew" in back
    assert "no turn has been judged yet" in nothing


def test_retries_and_reasoning_are_seen(played: Callable[..., list[str]], tmp_path: Path) -> None:
    again, _, thinking, shown = played(
        "?", until("trying again in"), touch(tmp_path / "again"), until("thinking, 16"), "r",
        touch(tmp_path / "go"), until("all turns played"),
    )[:4]  # fmt: skip
    assert "HTTP 429, trying again in" in again
    assert "r shows the reasoning" in thinking and "A block per row?" not in thinking
    assert "A block per row?" in shown


def test_steps_a_remark_and_the_same_turn_again(
    played: Callable[..., list[str]], tmp_path: Path
) -> None:
    steps: list[Step] = [
        until("class ModelNew"), "space", touch(tmp_path / "go"), until("pauses after this turn"),
        until("waiting"), "R", '"Use one pass.', "enter", '"And no more.', "ctrl+s",
        until("with a remark"), "n", until("turn 3 of 4"), "t backspace 2 enter",
        until("turn 2 of 4"), "n", until("2.00x"),
    ]  # fmt: skip
    assert "2.00x" in played(".w2w", *steps)[-1]
    first, second = recorded(tmp_path / "t.jsonl")
    assert [len(each.turns) for each in (first, second)] == [2, 2]
    assert (first.stop_reason, second.parent) == ("interrupted", first.episode_id)
    assert first.turns[1].messages[-1].content.endswith("Use one pass.\nAnd no more.")
    assert "Use one pass." not in second.turns[1].messages[-1].content


def test_a_person_may_be_the_policy(played: Callable[..., list[str]], tmp_path: Path) -> None:
    first, draft, same = played(
        "w2", until("you are the policy"), "e", "ctrl+s", human=True
    )  # fmt: skip
    assert "Write a faster version" in first
    assert "# The reference:" in draft and "^s submit" in draft
    assert "nothing was changed" in same
    steps: list[Step] = [
        until("you are the policy"), "e", edit("", KERNEL_2), "ctrl+s",
        until("2.00x"), "R", "e", edit("", "kept"), "escape",
    ]  # fmt: skip
    assert "remarks are for a model" in played("22", *steps, human=True)[5]
    turn = recorded(tmp_path / "t.jsonl")[-1].turns[0]
    assert turn.by_person and KERNEL_2 in turn.reply


def test_the_editor_opens_after_the_running_turn(
    played: Callable[..., list[str]], tmp_path: Path
) -> None:
    said, _, opened, done = played(
        ".w", until("class ModelNew") , "e", touch(tmp_path / "go"), until("the next kernel"),
        edit("# .", "# 2"), "ctrl+s", until("by hand"), until("all turns played"),
    )[1:5]  # fmt: skip
    assert "the editor opens when" in said and "the next kernel" in opened and done
    assert [each.by_person for each in recorded(tmp_path / "t.jsonl")[0].turns] == [False, True]


def test_a_failure_is_shown_and_can_be_tried_again(played: Callable[..., list[str]]) -> None:
    failed, done = played("x2", until("no reply: nobody there"), "n", until("2.00x"))[::2]
    assert "waiting" in failed and "enter tries again" in failed and "best 2.00x" in done


def test_leaving_a_running_turn_takes_two_keys(
    played: Callable[..., list[str]], tmp_path: Path
) -> None:
    asked = played(".", until("class ModelNew"), "q", "q")
    assert len(asked) == 2 and "q again stops" in asked[1]
    assert not [*tmp_path.glob("*.jsonl")]  # an episode without a turn is not recorded
    assert len(played("w", until("all turns played"), "q")) == 1


def test_a_judge_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    def fail(problem: Any, submission: Any) -> Any:
        raise AssertionError

    with closing(ScriptedPool(fail)) as pool:
        session = session_of(tmp_path, "w", pool)
        app = PlayApp(session)
        session.poll = _raise  # type: ignore[method-assign]
        app.run = lambda: screens(app, ended)  # type: ignore[method-assign, assignment]
        with pytest.raises(JudgeError, match="no device"):
            app.play()


def _raise() -> Any:
    raise JudgeError("no device")


@one_size((80, 24), (1, 1), (30, 8), (200, 50))
def test_nothing_hostile_is_shown(
    tmp_path: Path, pool: ScriptedPool, size: tuple[int, int]
) -> None:
    episode = evil().model_copy(update=OPEN)
    chat = (Message(role="user", content=EVIL),)
    events = [
        Asked(chat, 1.0), Thought(EVIL), Heard(EVIL), Retrying(EVIL, 99.0), Replied(EVIL, 3.0),
        StageBegan("build", 3.0), StageBegan("queue", 4.0), Failed(EVIL), Judged(episode, chat, 5.0),
    ]  # fmt: skip

    async def tell(pilot: Pilot[Any]) -> None:
        screen = pilot.app.screen
        for event in events:
            screen.live = happened(screen.live, event)  # type: ignore[attr-defined]
            screen.draw()  # type: ignore[attr-defined]
            await pilot.pause()

    (tmp_path / "go").unlink(missing_ok=True)
    session = session_of(tmp_path, ".", pool)
    keys = (f"{n} p" for n in range(1, 7))
    for shown in screens(PlayApp(session), until(""), tell, *keys, "r", "?", size=size):
        assert not harmful(shown)
        assert len(shown.splitlines()) <= size[1]
    session.finish()


def test_what_goes_on_is_said_in_words() -> None:
    live = Live(trajectory(**OPEN))
    assert live.doing(3.0) == "the judge starts, 3 s"
    live = happened(live, Asked((), 1.0))
    assert live.doing(4.0) == "waiting for the model, 3 s"
    assert happened(live, Thought("xy")).doing(4.0) == "thinking, 2 characters, 3 s"
    again = happened(live, Retrying("HTTP 429", 50.0))
    assert again.doing(7.0) == "HTTP 429, trying again in 43 s"
    assert happened(again, Heard("abc")).doing(4.0) == "the reply, 3 characters, 3 s"
    live = happened(live, Replied("r", 5.0))
    assert live.doing(6.0) == "the judge"
    live = happened(live, StageBegan("queue", 5.0))
    assert live.doing(9.0) == "waiting for its turn, 4 s"
    live = happened(live, StageBegan("build", 9.0))
    assert live.doing(10.5) == "queue 4.0 s  build 1.5 s"
    assert spent((("time", 1.0), ("queue", 2.0), ("time", 5.0)), 6.0) == {"time": 2.0, "queue": 3.0}
    assert tokens_text((RIGHT, RIGHT)) == "20 tokens in, 10 out"
    assert tokens_text(()) == ""


EDITOR = """
from textual.app import App
from kevin_env.app.tui.play import EditScreen

app = App()
app.call_later(app.push_screen, EditScreen("the kernel", "x = 1"), app.exit)
app.run()
raise SystemExit(app.return_code)
"""


def test_an_editor_that_fails_returns_to_the_screen() -> None:
    with run_python("-c", EDITOR, EDITOR="no-such-editor") as screen:
        screen.wait_for("x = 1")
        screen.press("\x05")
        screen.wait_for("the editor failed")
        screen.press("\x13")
        assert screen.end() == 0
