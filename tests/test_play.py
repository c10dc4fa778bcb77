import io
from contextlib import closing
from pathlib import Path

import pytest
from episodes import REPLY, WRONG, another, correct, problem_file, recorded
from rich.console import Console
from rich.text import Text
from stub_server import Answer, delta, serve
from trajectories import trajectory
from typer.testing import CliRunner

from kevin_env.app import arguments
from kevin_env.app.demo import MODEL, PROBLEM, clear, demo, demo_replies, show_result
from kevin_env.app.errors import BadInput
from kevin_env.app.play.opening import last_episodes, open_episode
from kevin_env.app.play.plain import Narrator, play
from kevin_env.app.screen import make_console
from kevin_env.cli import app
from kevin_env.episode import Episode
from kevin_env.extract import Extracted, extract
from kevin_env.judge import DeviceInfo, JudgeError
from kevin_env.outcome import CompileError, Correct, RuntimeFailure
from kevin_env.policies import ContextOverflow, Quit, Refused, ScriptedPolicy
from kevin_env.policies.base import Listener
from kevin_env.pools.scripted import SCRIPTED_CPU, SCRIPTED_GPU, ScriptedPool
from kevin_env.recorder import Recorder, partial_path
from kevin_env.rules import check_rules
from kevin_env.settings import Settings


def screen(stream: bool = True) -> tuple[Narrator, io.StringIO]:
    page = io.StringIO()
    console = Console(file=page, width=120, markup=False, highlight=False, emoji=False)
    return Narrator(console, stream=stream), page


def episode_of(tmp_path: Path, pool: ScriptedPool, turns: int = 3) -> Episode:
    recorder = Recorder(tmp_path / "out.jsonl")
    return Episode(
        problem_file(tmp_path), pool, Settings(max_turns=turns), recorder=recorder, model="scripted"
    )


def test_an_episode_is_played_shown_and_recorded(tmp_path: Path) -> None:
    narrator, page = screen()
    with closing(ScriptedPool([WRONG, correct(2.0), correct(1.5)])) as pool:
        trajectory = play(
            episode_of(tmp_path, pool),
            ScriptedPolicy([another(number) for number in range(3)]),
            narrator,
        )
    assert [turn.category for turn in trajectory.turns] == ["correctness", "correct", "correct"]
    assert trajectory.stop_reason == "max_turns"
    assert recorded(tmp_path / "out.jsonl") == [trajectory]
    assert not partial_path(tmp_path / "out.jsonl").exists()
    shown = page.getvalue()
    for piece in (
        "7_Double on scripted CPU",
        "turn 2 of 3",
        "class ModelNew",
        "turn 1 correctness  →  turn 2 correct 2.00x   +1 -1",
        "(build 0.5 s  load 0.1 s  verify 0.2 s  time 0.1 s)",
        "correctness/values",
        "512 of 1024 elements differ.",
        "2.00x [1.80, 2.20]  score 2.30  (",
        "1.50x [1.35, 1.65]  score 1.80  (",
        "all turns played; best 2.00x (turn 2)",
    ):
        assert piece in shown


@pytest.mark.parametrize(
    ("error", "reason", "said"),
    [
        (ContextOverflow("4096 tokens"), "context_length", "4096 tokens"),
        (Refused("I won't"), "refused", "I won't"),
        (Quit("bye"), "interrupted", "bye"),
        (KeyboardInterrupt(), "interrupted", "every finished turn is kept"),
    ],
)
def test_a_policy_that_gives_no_reply_ends_the_episode(
    tmp_path: Path, error: BaseException, reason: str, said: str
) -> None:
    narrator, page = screen()
    with closing(ScriptedPool([correct(2.0)])) as pool:
        trajectory = play(episode_of(tmp_path, pool), ScriptedPolicy([REPLY, error]), narrator)
    assert (len(trajectory.turns), trajectory.stop_reason) == (1, reason)
    assert recorded(tmp_path / "out.jsonl") == [trajectory]
    assert said in page.getvalue()


def test_a_judge_that_fails_ends_the_episode_without_a_score(tmp_path: Path) -> None:
    narrator, _ = screen()
    with closing(ScriptedPool([correct(2.0), JudgeError("the device is gone")])) as pool:
        trajectory = play(episode_of(tmp_path, pool), ScriptedPolicy([REPLY, another(2)]), narrator)
    assert (len(trajectory.turns), trajectory.stop_reason) == (1, "judge_error")


def named(name: str) -> ScriptedPolicy:
    return ScriptedPolicy([], name=name)


def test_an_interrupted_episode_is_resumed_to_its_end(tmp_path: Path) -> None:
    narrator, _ = screen()
    file = tmp_path / "out.jsonl"
    with closing(ScriptedPool([WRONG, correct(2.0), correct(3.0)])) as pool:
        first = play(
            episode_of(tmp_path, pool), ScriptedPolicy([REPLY, KeyboardInterrupt()]), narrator
        )
        again = open_episode(
            last_episodes(file, print)[0],
            pool,
            Settings(max_turns=9),
            Recorder(file),
            named("other"),
        )
        second = play(again, ScriptedPolicy([another(2), another(3)]), narrator)
    assert second.turns[:1] == first.turns
    assert (len(second.turns), second.stop_reason, second.model) == (3, "max_turns", "other")
    assert recorded(tmp_path / "out.jsonl") == [first, second]


def test_a_finished_episode_is_not_resumed(tmp_path: Path) -> None:
    narrator, _ = screen()
    with closing(ScriptedPool([correct(2.0)])) as pool:
        play(episode_of(tmp_path, pool, turns=1), ScriptedPolicy([REPLY]), narrator)
        file = tmp_path / "out.jsonl"
        with pytest.raises(BadInput, match="all its turns"):
            open_episode(
                last_episodes(file, print)[0], pool, Settings(), Recorder(file), named("m")
            )


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """An episode of three turns that was stopped after one."""
    narrator, _ = screen()
    with closing(ScriptedPool([WRONG])) as pool:
        play(episode_of(tmp_path, pool), ScriptedPolicy([REPLY, KeyboardInterrupt()]), narrator)
    return tmp_path / "out.jsonl"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-turns", "9"], "max_turns=3, not 9"),
        (["--max-turns", "4"], "max_turns=3, not 4"),
        (["--hints"], "hints=False, not True"),
        (["-o", "settings.gamma=0.8"], "gamma=0.4, not 0.8"),
        (["--device", "cuda"], "device=auto, not cuda"),
    ],
)
def test_settings_that_contradict_the_record_are_refused(
    unfinished: Path, words: list[str], said: str
) -> None:
    before = unfinished.read_bytes()
    resume = f"play --model m --base-url http://127.0.0.1:9/v1 --resume {unfinished}"
    result = CliRunner().invoke(app, [*resume.split(), *words])
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith(f"kevin-env: cannot resume: {unfinished} was begun with {said}")
    assert unfinished.read_bytes() == before


def test_resuming_says_which_lines_are_left_out(unfinished: Path) -> None:
    running = partial_path(unfinished)
    running.write_text("torn\n")
    resume = f"play --model m --base-url http://127.0.0.1:9/v1 --resume {unfinished} --max-turns 9"
    result = CliRunner().invoke(app, resume.split())
    left_out, refused = result.stderr.splitlines()
    assert left_out.startswith(f"left out: {running} line 1: ")
    assert refused.startswith("kevin-env: cannot resume: ")


def test_an_episode_is_resumed_on_the_device_of_its_record(
    unfinished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = unfinished.read_text()
    unfinished.write_text(text.replace('"device":"auto"', '"device":"cuda:1"', 1))
    assert unfinished.read_text() != text
    asked: list[str] = []

    def open_pool(device: str) -> ScriptedPool:
        asked.append(device)
        raise BadInput("no such device here")

    monkeypatch.setattr(arguments, "open_pool", open_pool)
    same = ["--max-turns", "3", "--rules", "kernel", "--device", "auto"]
    with serve() as stub:
        words = ["--resume", str(unfinished), "--model", "m", "--base-url", stub.url, *same]
        assert "no such device" in CliRunner().invoke(app, ["play", *words]).stderr
    assert asked == ["cuda:1"]


@pytest.mark.usefixtures("one_pool")
def test_an_episode_goes_on_at_the_endpoint_of_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, file = problem_file(tmp_path).path, tmp_path / "out.jsonl"
    refusal = Answer(status=400, body={"error": {"message": "not today"}})
    first = Answer([delta("stop", content="Not yet.")])
    with serve(first, refusal) as own, serve(refusal) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        secret = own.url.replace("//", "//me:hunter2@") + "?key=1"
        new = ["--problem", problem, "--model", "m", "--base-url", secret, "--device", "cpu"]
        for words in ([*new, "--out", str(file)], ["--resume", str(file)]):
            result = CliRunner().invoke(app, ["play", *words])
            assert "not today" in result.stderr and "not today" not in result.stdout
            assert f"kevin-env play --resume {file}" in result.stderr
        assert (len(own.requests), other.requests) == (3, [])
        assert {each.base_url for each in recorded(tmp_path / "out.jsonl")} == {own.url}
        assert "hunter2" not in file.read_text()
        CliRunner().invoke(app, ["play", "--resume", str(file), "--base-url", other.url])
        assert len(other.requests) == 1


@pytest.mark.usefixtures("one_pool")
def test_a_request_is_repeated_as_often_as_asked_for(tmp_path: Path) -> None:
    busy = Answer(status=503, body={"error": {"message": "busy"}}, headers={"retry-after-ms": "1"})
    with serve(busy) as stub:
        words = ["--problem", problem_file(tmp_path).path, "--out", str(tmp_path / "t.jsonl")]
        words += ["--model", "m", "--base-url", stub.url, "--device", "cpu", "--retries", "2"]
        result = CliRunner().invoke(app, ["play", *words])
    assert ("busy" in result.stderr, len(stub.requests)) == (True, 3)


def test_an_endpoint_that_was_not_recorded_is_not_guessed(unfinished: Path) -> None:
    result = CliRunner().invoke(app, ["play", "--resume", str(unfinished), "--model", "m"])
    assert (result.exit_code, "give --base-url" in result.stderr) == (2, True)


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(BadInput, match="no readable trajectory"):
        last_episodes(tmp_path / "empty.jsonl", print)


def test_a_piece_of_an_escape_is_inert() -> None:
    narrator, page = screen()
    for piece in ("a\x1b", "[2Jb", "\r", "\n"):
        narrator(piece)
    assert page.getvalue() == "a[2Jb\n"


def test_plain_output_tells_of_reasoning_and_retries() -> None:
    narrator, page = screen()
    assert isinstance(narrator, Listener)
    narrator.thought("Let me ")
    narrator.thought("see.")
    narrator.retrying("429: slow down", 3.2)
    assert page.getvalue() == "the model is thinking\n429: slow down, trying again in 3 s\n"


def test_colors_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert make_console().is_terminal
    assert not make_console(plain=True).is_terminal
    monkeypatch.setenv("NO_COLOR", "1")
    assert make_console().no_color


DEMO = (
    CompileError(kind="compiler", message="no"),
    RuntimeFailure(kind="exception", message="no"),
    WRONG,
    correct(0.5),
)
UNWRITTEN = WRONG.model_copy(
    update={"kind": "not_written", "message": "nothing was written", "details": ""}
)
NOISY = Correct(kind="too_noisy", message="about 1.5x", speedup=1.5, speedup_interval=(0.9, 2.5))


@pytest.mark.parametrize(("kind", "device"), [("cpu", SCRIPTED_CPU), ("gpu", SCRIPTED_GPU)])
def test_the_demo_plays_its_replies_and_ends_with_the_speedup_and_the_cheat(
    kind: str, device: DeviceInfo
) -> None:
    narrator, page = screen()
    with closing(ScriptedPool([*DEMO, correct(2.0), UNWRITTEN], device)) as pool:
        trajectory = demo(pool, narrator)
    assert [turn.outcome for turn in trajectory.turns] == [*DEMO, correct(2.0), UNWRITTEN]
    assert [turn.reply for turn in trajectory.turns] == list(demo_replies(kind))
    assert trajectory.problem.id == PROBLEM
    show_result(narrator.console, trajectory.turns)
    shown = page.getvalue()
    assert shown.splitlines()[-2:] == [
        "2.00x faster than PyTorch (turn 5)",
        "The cheat of turn 6 was noticed and is paid 0.",
    ]
    assert shown.count(UNWRITTEN.message) == 1 and "turn 6 of 6" in shown


def test_the_demo_says_once_that_times_vary() -> None:
    narrator, page = screen(stream=False)
    with closing(ScriptedPool([*DEMO, NOISY, UNWRITTEN])) as pool:
        trajectory = demo(pool, narrator)
    show_result(narrator.console, trajectory.turns)
    shown = page.getvalue()
    assert "1.50x faster than PyTorch (turn 5, between " in shown and NOISY.message not in shown
    assert shown.count("Times vary on this machine") == 1
    show_result(narrator.console, (trajectory.turns[0],))
    assert page.getvalue().endswith("no kernel was timed\n")


def test_a_demo_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    narrator, _ = screen()
    file = tmp_path / "demo.jsonl"
    for _ in range(2):
        clear(file)
        with closing(ScriptedPool([*DEMO, correct(2.0), UNWRITTEN])) as pool:
            demo(pool, narrator, recorder=Recorder(file))
        assert [each.model for each in recorded(file)] == [MODEL]
    Recorder(file).finish(trajectory(model="m"))
    with pytest.raises(BadInput, match="holds other trajectories"):
        clear(file)
    assert len(recorded(file)) == 2


@pytest.mark.parametrize("width", [80, 120])
def test_the_demo_breaks_no_word_of_a_terminal(width: int) -> None:
    page = io.StringIO()
    console = Console(file=page, width=width, force_terminal=True, markup=False, no_color=True)
    with closing(ScriptedPool([*DEMO, correct(2.0), UNWRITTEN])) as pool:
        trajectory = demo(pool, Narrator(console, stream=False))
    show_result(console, trajectory.turns)
    shown = Text.from_ansi(page.getvalue()).plain
    for reply in demo_replies("cpu"):
        words = extract(reply)
        assert isinstance(words, Extracted)
        assert all(word in shown for word in words.summary.split())
    assert all(line.rstrip() in shown for line in demo_replies("cpu")[0].split("\n")[1:-4])
    assert "╭─ compile/compiler" in shown and "faster than PyTorch" in shown
    assert "╭─ correct/timed  2.00x [1.80, 2.20]  score 2.30 ─" in shown


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_the_demo_replies_keep_the_rules(kind: str) -> None:
    replies = demo_replies(kind)
    misspelt = ["sigma * sigma" in reply for reply in replies]
    assert misspelt == [True, *[False] * 5]
    for reply in replies:
        found = extract(reply)
        assert isinstance(found, Extracted)
        assert found.summary
        assert check_rules(found.submission.code) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "m"], "--problem ID or --resume FILE"),
        (
            ["--problem", "{problem}", "--model", "m", "--resume", "{file}"],
            "--problem ID or --resume FILE",
        ),
        (["--problem", "{problem}", "--model", "m", "--samples", "0"], "give 1 or more"),
        (
            ["--problem", "{problem}", "--human", "--device", "cpu", "--language", "cuda"],
            "language='cuda' needs a GPU",
        ),
        (["--problem", "{problem}", "--human", "--samples", "2"], "several samples"),
        (["--problem", "{problem}", "--model", "human", "--samples", "2"], "several samples"),
        (["--problem", "{problem}", "--human", "--model", "m"], "--human or --model m"),
        (["--resume", "{file}", "--samples", "2"], "leave out --samples"),
        (["--resume", "{file}", "--model", "m"], "no readable trajectory"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "t.jsonl").write_text("nonsense\n")
    problem_file(tmp_path)
    places = {"problem": tmp_path / "7_Double.py", "file": tmp_path / "t.jsonl"}
    result = CliRunner().invoke(app, ["play", *(word.format(**places) for word in words)])
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith("kevin-env: ") and said in line
