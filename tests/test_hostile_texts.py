"""The same hostile texts through everything that shows text. Screens are in test_tui_*.py, pages in
a browser in test_replay_export.py and test_report.py.
"""

import io
import re
from contextlib import closing
from pathlib import Path

import pytest
from episodes import REPLY, problem_file
from hostile_texts import EVIL, TEXTS, controls, harmful
from rich.console import Console
from trajectories import evil, timed, trajectory, turn, write
from typer.testing import CliRunner

from kevin_env.app.errors import BadInput, one_line
from kevin_env.app.play.plain import Narrator, play
from kevin_env.app.replay.plain import print_episodes
from kevin_env.app.report.write import Room, read_run, write_report
from kevin_env.app.screen import make_console, show
from kevin_env.cli import app
from kevin_env.episode import Episode
from kevin_env.feedback import render_feedback
from kevin_env.outcome import CompileError, RulesViolation
from kevin_env.policies import ScriptedPolicy
from kevin_env.pools.scripted import ScriptedPool
from kevin_env.record import ProblemRef, Reply
from kevin_env.settings import Settings
from kevin_env.wording import inline, quoted

every_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@every_text
def test_an_error_is_one_printable_line(text: str) -> None:
    for error in (BadInput(text), OSError(2, text, f"/{text}")):
        line = one_line(error)
        assert not harmful(line) and "\n" not in line


def test_a_command_that_fails_prints_a_printable_line() -> None:
    done = CliRunner().invoke(app, ["show", EVIL.replace("\0", "")])
    assert done.exit_code == 2 and "[red]x[/bad]" in done.stderr
    assert not harmful(done.stderr) and done.stderr.count("\n") == 1


@every_text
@pytest.mark.parametrize("plain", [True, False])
def test_a_console_shows_mere_text(text: str, plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = make_console(plain)
    console.file = page = io.StringIO()
    show(console, text, "red")
    shown = page.getvalue()
    assert not harmful(shown, colored=not plain)
    assert text not in TEXTS["markup"] or text in shown


@every_text
def test_inline_text_stays_in_its_line(text: str) -> None:
    assert not controls(inline(text)) and "\n" not in inline(text)
    assert quoted(text).count("`") == 2


@every_text
def test_feedback_has_no_codes(text: str) -> None:
    outcome = CompileError(kind="compiler", message=text, details=text)
    feedback = render_feedback(outcome, log=text)
    assert not controls(feedback) and "49" not in feedback


def test_an_episode_on_a_terminal(tmp_path: Path) -> None:
    page = io.StringIO()
    console = Console(file=page, width=120, markup=False, highlight=False, emoji=False)
    failed = CompileError(kind="compiler", message=EVIL, details=f"{EVIL} details")
    with closing(ScriptedPool([failed])) as pool:
        episode = Episode(problem_file(tmp_path), pool, Settings(max_turns=2), model=EVIL)
        play(episode, ScriptedPolicy([Reply(content=EVIL), REPLY]), Narrator(console, stream=True))
    shown = page.getvalue()
    assert "[red]x[/bad]" in shown and "details" in shown and not controls(shown)


@pytest.mark.parametrize("colored", [False, True])
def test_a_replay_on_a_terminal(colored: bool) -> None:
    page = io.StringIO()
    console = Console(
        file=page, width=100, markup=False, highlight=False, emoji=False, force_terminal=colored,
        color_system="standard" if colored else None,
    )  # fmt: skip
    print_episodes([evil()], console)
    shown = page.getvalue()
    assert "[red]x[/bad]" in shown and "<U+202E>" in shown and not harmful(shown, colored)


@pytest.mark.parametrize("name", ["t.html", "t.md", "t.svg", "t.txt"])
def test_an_exported_replay(tmp_path: Path, name: str) -> None:
    file, out = write(tmp_path / "t.jsonl", evil()), tmp_path / name
    words = ["replay", str(file), "--export", str(out), "--turn", "1"]
    assert CliRunner().invoke(app, words).exit_code == 0
    text = out.read_text()
    assert not harmful(text)
    if name in ("t.html", "t.svg"):
        assert "<script>alert" not in text and "<img src=x" not in text


@pytest.mark.parametrize("name", ["r.html", "r.md"])
def test_a_report(tmp_path: Path, name: str) -> None:
    forbidden = turn(1, outcome=RulesViolation(kind="torch_compute", message=EVIL * 9))
    episode = evil()
    episode = episode.model_copy(update={"turns": (*episode.turns, forbidden)})
    long = trajectory(
        timed(1, 1e6), id="i" * 3000, model="m" * 5000, returns=(1.0,),
        problem=ProblemRef(id="L1_" + "long" * 1000, sha256="0", level=1),
    )  # fmt: skip
    run = read_run(write(tmp_path / "t.jsonl", episode, long), lambda line: None)
    for room in (Room(), Room(episodes=1)):
        write_report(run, tmp_path / name, lambda *_: None, room)
    for page in [tmp_path / name, *tmp_path.glob("r_trajectories/*")]:
        text = page.read_text()
        assert not harmful(text)
        assert "<script>alert" not in text and "<img" not in text
        assert name == "r.md" or text.count("</script>") == 2
        assert "innerHTML" not in text
        assert not re.search(r"https?://(?!www\.w3\.org)", text)
