import contextlib
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from episodes import REPLY, SOURCE, WRONG, correct

from kevin_env.judge.api import Seconds, Submission
from kevin_env.outcome import Outcome
from kevin_env.problem import Problem, ProblemError, parse_problem
from kevin_env.record import Message, ProblemRef, Trajectory, Turn, Usage, best_speedup, best_turn
from kevin_env.recorder import (
    BadLine,
    Recorder,
    append_lines,
    partial_path,
    read_running,
    read_trajectories,
)

PROBLEM = ProblemRef.of(Problem(id="double", source=SOURCE, name="double"))


def turn(number: int, outcome: Outcome = WRONG) -> Turn:
    return Turn(
        turn=number,
        messages=(Message(role="user", content="Double x. µ 😀"),),
        reply=REPLY,
        reasoning="Hm.",
        submission=Submission(code="class ModelNew: ...", language="triton"),
        outcome=outcome,
        score=0.0,
        feedback="Wrong.",
        seconds=Seconds(build=1.5),
        usage=Usage(prompt_tokens=3),
        secret="ab" * 16,
    )


def episode(name: str, turns: int = 2, **more) -> Trajectory:
    values = {
        "created": "2026-01-01T00:00:00+00:00",
        "problem": PROBLEM,
        "config": {},
        "model": "m",
    }
    return Trajectory(
        episode_id=name, turns=tuple(turn(i + 1) for i in range(turns)), **values, **more
    )


def finished(name: str) -> Trajectory:
    return episode(name, returns=(0.0, 0.0), stop_reason="max_turns", secret="cd" * 16)


def play(recorder: Recorder, name: str, turns: int = 2, end: bool = True) -> None:
    recorder.begin(episode(name, turns=0))
    for number in range(1, turns + 1):
        recorder.add(name, turn(number))
    if end:
        recorder.finish(finished(name))


def test_an_episode_comes_back_as_it_was(tmp_path) -> None:
    file = tmp_path / "new folder" / "run.jsonl"
    play(Recorder(file), "a")
    assert list(read_trajectories(file)) == [finished("a")]
    assert not partial_path(file).exists()


def test_records_from_before_there_were_samples_are_read(tmp_path) -> None:
    values = json.loads(finished("a").model_dump_json())
    assert (values.pop("sample"), values.pop("parent")) == (None, None)
    file = tmp_path / "run.jsonl"
    file.write_text(json.dumps(values) + "\n")
    assert list(read_trajectories(file)) == [finished("a")]


def test_which_sample_it_is_and_of_what_stands_in_a_running_episode_too(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    Recorder(file).begin(episode("a", turns=1, sample=2, parent="b"))
    assert list(read_trajectories(file)) == [episode("a", turns=1, sample=2, parent="b")]


def test_what_follows_from_the_outcome_stands_beside_it_and_is_not_believed(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    quick = episode("a", turns=0, stop_reason="interrupted").model_copy(
        update={"turns": (turn(1, correct(2.0)),)}
    )
    Recorder(file).finish(quick)
    values = json.loads(file.read_text())
    line = values["turns"][0]
    derived = [line[key] for key in ("category", "kind", "speedup", "speedup_interval")]
    assert derived == ["correct", "timed", 2.0, [1.8, 2.2]]
    line["speedup"] = 900.0
    file.write_text(json.dumps(values) + "\n")
    (read,) = read_trajectories(file)
    assert isinstance(read, Trajectory)
    assert read.turns[0].speedup == 2.0


def test_the_best_turn_is_the_one_with_the_largest_median() -> None:
    noisy = correct(3.0).model_copy(update={"kind": "too_noisy", "speedup_interval": (0.8, 7.0)})
    turns = [turn(1), turn(2, correct(1.5)), turn(3, noisy), turn(4, correct(1.5))]
    assert best_turn(turns) is turns[2] and turns[2].paid_speedup == 1.0
    assert best_turn(turns[:2] + turns[3:]) is turns[1]
    assert best_turn(turns[:1]) is None
    assert [best_speedup(each) for each in (turns, turns[:2], ())] == [3.0, 1.5, 0.0]


def test_a_running_episode_is_on_disk_turn_by_turn(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    recorder = Recorder(file)
    play(recorder, "a", turns=1, end=False)
    assert list(read_trajectories(file)) == [episode("a", turns=1)]
    recorder.add("a", turn(2))
    assert list(read_trajectories(file)) == [episode("a", turns=2)]


def test_whoever_reads_while_the_last_episode_ends_sees_it(tmp_path) -> None:
    file, over = tmp_path / "run.jsonl", threading.Event()
    recorder = Recorder(file)

    def write() -> None:
        for number in range(300):
            play(recorder, str(number), turns=0)
        over.set()

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writer = threading.Thread(target=write)
        writer.start()
        while not over.is_set():
            list(read_running(file))
        writer.join()
    finally:
        sys.setswitchinterval(usual)
    assert len(list(read_trajectories(file))) == 300


def test_secrets_of_turns_to_come_are_not_on_disk(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    Recorder(file).begin(episode("a", turns=0, secret="cd" * 16))
    assert "cd" * 16 not in partial_path(file).read_text()


def test_episodes_that_share_a_file_are_kept_apart(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    recorder = Recorder(file)
    for name in ("a", "b"):
        recorder.begin(episode(name, turns=0))
    for name, number in (("a", 1), ("b", 1), ("a", 2)):
        recorder.add(name, turn(number))
    assert list(read_trajectories(file)) == [episode("a"), episode("b", turns=1)]
    recorder.finish(finished("a"))
    assert list(read_trajectories(file)) == [finished("a"), episode("b", turns=1)]


def test_a_resumed_episode_replaces_its_partial_lines(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    recorder = Recorder(file)
    play(recorder, "a", turns=2, end=False)
    recorder.begin(episode("a", turns=2))
    recorder.add("a", turn(3))
    assert list(read_trajectories(file)) == [episode("a", turns=3)]


def test_an_episode_killed_between_its_end_and_the_clean_up_is_read_once(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    play(Recorder(file), "a", end=False)
    file.write_text(finished("a").model_dump_json() + "\n")
    assert list(read_trajectories(file)) == [finished("a")]


def test_bad_lines_are_named_and_the_others_read(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    good = finished("a").model_dump_json()
    other = json.dumps(json.loads(good) | {"schema": "kevin-trajectory/2"})
    nan = good.replace('"score":0.0', '"score":NaN')
    lines = [good, "not json", other, '"text"', "", nan, "[" * 100_000, "\0", good[:-9] + "!}"]
    file.write_text("\n".join(lines) + "\n" + good[:80])
    read = list(read_trajectories(file))
    assert read[0] == finished("a")
    bad = [line for line in read if isinstance(line, BadLine)]
    assert [line.line for line in bad] == [2, 3, 4, 6, 7, 8, 9, 10]
    assert (
        "schema is 'kevin-trajectory/2', this version reads 'kevin-trajectory/1'" in bad[1].reason
    )
    assert "turns.0.score" in bad[3].reason
    assert bad[-1].reason.startswith("half-written")
    assert str(bad[0]).startswith(f"{file} line 2: ")


def test_unknown_keys_are_ignored_at_every_depth(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    values = json.loads(finished("a").model_dump_json())
    values["new"] = values["problem"]["new"] = values["turns"][0]["outcome"]["new"] = values[
        "turns"
    ][0]["new"] = 1
    file.write_text(json.dumps(values) + "\n")
    assert list(read_trajectories(file)) == [finished("a")]


DAMAGED = {
    "deep list": b"[" * 200_000 + b"]" * 200_000,
    "deep fields": b'{"turn":' * 200_000,
    "huge": b'{"episode_id":"' + b"x" * 3_000_000 + b'"}',
    "huge number": b"9" * 100_000,
    "half": b'{"episode_id":"a","turn":1,"mess',
    "no fields": b'["episode_id"]',
    "ID of another kind": b'{"episode_id":["a"],"turn":{}}',
    "NUL": b"\0" * 100,
    "no UTF-8": b'{"episode_id":"\xff"}',
}


@pytest.mark.parametrize("line", [pytest.param(DAMAGED[name], id=name) for name in DAMAGED])
def test_a_damaged_line_of_running_episodes_costs_that_line_only(tmp_path, line: bytes) -> None:
    file = tmp_path / "run.jsonl"
    recorder = Recorder(file)
    play(recorder, "a", turns=1, end=False)
    with partial_path(file).open("ab") as partial:
        partial.write(line + b"\n")
    play(recorder, "b")
    recorder.add("a", turn(2))
    bad = [each for each in read_trajectories(file) if isinstance(each, BadLine)]
    assert [each.line for each in bad] == [3]
    read = [each for each in read_trajectories(file) if isinstance(each, Trajectory)]
    assert read == [finished("b"), episode("a", turns=2)]
    recorder.finish(finished("a"))
    assert partial_path(file).read_bytes() == line + b"\n"


@pytest.mark.parametrize(
    ("torn", "kept", "line", "said"),
    [
        (2, 1, 4, "turns 3, 4 of episode a cannot be used after turn 1: when resumed, it plays "
         "turn 2 again"),
        (0, None, 2, "turns 1, 2, 3, 4 of episode a cannot be used: the first line of the episode "
         "is missing"),
    ],
)  # fmt: skip
def test_turns_after_a_torn_line_are_named_together(tmp_path, torn, kept, line, said) -> None:
    file = tmp_path / "run.jsonl"
    play(Recorder(file), "a", turns=4, end=False)
    play(Recorder(file), "b", turns=1, end=False)
    partial = partial_path(file)
    lines = partial.read_text().splitlines()
    lines[torn] = lines[torn][:40]
    partial.write_text("\n".join(lines) + "\n")
    read = list(read_trajectories(file))
    bad = [each for each in read if isinstance(each, BadLine)]
    assert [each.line for each in bad] == [torn + 1, line]
    assert bad[1].reason == said
    others = [each for each in read if isinstance(each, Trajectory)]
    assert others == [*([episode("a", turns=kept)] if kept else []), episode("b", turns=1)]


def test_a_resumed_episode_no_longer_misses_its_torn_turn(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    recorder = Recorder(file)
    play(recorder, "a", turns=3, end=False)
    partial = partial_path(file)
    partial.write_text(partial.read_text().replace('"turn":2', '"turn":2x'))
    recorder.begin(episode("a", turns=1))
    recorder.add("a", turn(2))
    torn, resumed = read_trajectories(file)
    assert isinstance(torn, BadLine) and torn.line == 3
    assert resumed == episode("a", turns=2)


def test_writing_goes_on_after_a_half_written_line(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"schema":')
    play(Recorder(file), "a")
    bad, good = read_trajectories(file)
    assert isinstance(bad, BadLine) and bad.line == 1
    assert good == finished("a")


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file grows beyond `size`: writes fail half-way, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_loses_no_line_and_leaves_no_half_one(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    partial = partial_path(file)
    recorder = Recorder(file)
    play(recorder, "a", turns=1, end=False)
    play(recorder, "b", turns=1, end=False)
    size = partial.stat().st_size
    with files_up_to(size + 100), pytest.raises(OSError, match="File too large"):
        recorder.add("b", turn(2))
    assert partial.stat().st_size == size
    recorder.add("b", turn(2))
    with files_up_to(100), pytest.raises(OSError, match="File too large"):
        recorder.finish(finished("b"))
    assert file.stat().st_size == 0
    assert list(read_trajectories(file)) == [episode("a", 1), episode("b", 2)]


def test_an_episode_ends_though_there_is_no_room_to_tidy_up(tmp_path, monkeypatch) -> None:
    file = tmp_path / "run.jsonl"
    recorder = Recorder(file)
    play(recorder, "a", turns=1, end=False)
    play(recorder, "b", end=False)
    monkeypatch.setattr(Path, "write_bytes", _no_room)
    recorder.finish(finished("b"))
    assert list(read_trajectories(file)) == [finished("b"), episode("a", 1)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, partial_path(file).name]


def _no_room(path: Path, data: bytes) -> int:
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
    raise OSError("no space left on device")


def test_a_problem_is_found_again_only_as_it_was(tmp_path) -> None:
    path = tmp_path / "1_Double.py"
    path.write_text(SOURCE)
    problem = parse_problem(path)
    ref = ProblemRef.of(problem)
    assert ref.load() == problem
    path.write_text(SOURCE.replace("1024", "512"))
    with pytest.raises(ProblemError, match="not available as recorded"):
        ref.load()


WRITER = """
import sys, time
sys.path.insert(0, {tests!r})
from test_record import Recorder, episode, turn, finished
recorder, name = Recorder(sys.argv[1]), sys.argv[2]
for n in range(int(sys.argv[3])):
    recorder.begin(episode(f"{{name}}{{n}}", turns=0))
    for number in (1, 2):
        recorder.add(f"{{name}}{{n}}", turn(number))
        print(number, flush=True)
    recorder.finish(finished(f"{{name}}{{n}}"))
"""


def writer(file: Path, name: str, episodes: int) -> subprocess.Popen[bytes]:
    code = WRITER.format(tests=str(Path(__file__).parent))
    return subprocess.Popen(
        [sys.executable, "-c", code, file, name, str(episodes)], stdout=subprocess.PIPE
    )


def test_a_killed_writer_loses_at_most_the_running_turn(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    process = writer(file, "a", 10_000)
    assert process.stdout
    said = [process.stdout.readline() for _ in range(7)]
    os.kill(process.pid, signal.SIGKILL)
    said += process.stdout.readlines()
    process.wait()
    read = list(read_trajectories(file))
    turns = sum(len(each.turns) for each in read if isinstance(each, Trajectory))
    # What the writer said it has written is there; at most the half-written line is lost.
    assert len([line for line in said if line.endswith(b"\n")]) <= turns <= len(said) + 1
    assert all("half-written" in each.reason for each in read if isinstance(each, BadLine))
    play(Recorder(file), "b")
    assert finished("b") in list(read_trajectories(file))


def test_a_write_waits_while_another_writer_holds_the_file(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    recorder = Recorder(file)
    a = finished("a")
    writes = [
        lambda: recorder.begin(a),
        lambda: recorder.add("a", turn(3)),
        lambda: recorder.finish(a),
    ]
    for write in writes:
        with file.open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            thread = threading.Thread(target=write)
            thread.start()
            thread.join(0.2)
            assert thread.is_alive()
        thread.join(10)
        assert not thread.is_alive()


def test_two_writers_share_a_file(tmp_path) -> None:
    file = tmp_path / "run.jsonl"
    writers = [writer(file, name, 40) for name in ("a", "b")]
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    read = list(read_trajectories(file))
    assert sorted(each.episode_id for each in read if isinstance(each, Trajectory)) == sorted(
        f"{name}{n}" for name in ("a", "b") for n in range(40)
    )
    assert not partial_path(file).exists()


def test_a_file_with_something_else_in_it_is_left_alone(tmp_path) -> None:
    file = tmp_path / "server.py"
    file.write_text("print(1)\n")
    with pytest.raises(OSError, match="not a trajectory file; choose another name"):
        Recorder(file).require()
    assert file.read_text() == "print(1)\n"


def test_a_full_disk_is_reported_with_the_file() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        append_lines(Path("/dev/full"), ["{}"])
