"""A run folder: one writer at a time, and files that are always complete."""

import csv
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from trajectories import RIGHT, timed, trajectory, turn

import kevin_env.recorder
from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.config import parse_config
from kevin_env.app.evaluate.folder import Compared, RunFolder, read_episodes
from kevin_env.app.evaluate.metrics import measure
from kevin_env.app.evaluate.samples import without_texts
from kevin_env.pools.scripted import SCRIPTED_CPU
from kevin_env.record import ProblemRef
from kevin_env.recorder import BadLine, partial_path

HOLD = """
import sys
from pathlib import Path
from kevin_env.app.evaluate.folder import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def never(line: BadLine) -> None:
    raise AssertionError(str(line))


def test_one_evaluation_at_a_time_whatever_becomes_of_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "a")
    words = [sys.executable, "-c", HOLD, str(folder.path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with (
            pytest.raises(BadInput, match=r"another kevin-env eval is writing to .*a: .*--out"),
            folder.locked(),
        ):
            pass
        other.kill()
        other.wait()
        with folder.locked():
            pass
        with folder.locked():
            pass


def test_a_folder_that_nobody_can_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError), RunFolder(tmp_path / "file" / "run").locked():
        pass


def test_the_configuration_is_kept_without_the_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(BadInput, match=r" is not a run folder: it has no config\.toml"):
        folder.config()
    config = parse_config({"problem": "L1", "policy": {"model": "m"}, "out": str(folder.path)})
    folder.write_config(config)
    assert folder.config() == config
    assert str(tmp_path) not in folder.config_file.read_text()
    folder.config_file.write_text("samples = 'many'")
    with pytest.raises(BadInput, match="is missing"):
        folder.config()


def test_episodes_are_read_without_their_texts_and_the_last_of_an_id_counts(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.trajectories(never) == []
    first = trajectory(turn(1), RIGHT, id="a", sample=0, stop_reason="model_error")
    second = trajectory(timed(1, 2.0), id="b", sample=1)
    running = trajectory(timed(1, 1.0), id="c", sample=0, parent="a", stop_reason=None)
    folder.recorder.finish(first)
    folder.recorder.finish(second)
    folder.recorder.begin(running)
    folder.recorder.finish(first.model_copy(update={"stop_reason": "pruned"}))
    found = folder.trajectories(never)
    assert [(each.episode_id, each.stop_reason) for each in found] == [
        ("a", "pruned"),
        ("b", "max_turns"),
        ("c", None),
    ]
    assert [turn.reply for each in found for turn in each.turns] == [""] * 4
    assert found[0].turns[1].outcome == RIGHT.outcome
    assert folder.recorder.episode("c") == running
    assert folder.recorder.episode("b") == second
    with pytest.raises(LookupError, match="no episode d"):
        folder.recorder.episode("d")


def test_an_episode_is_read_whole_while_another_thread_writes_it_anew(
    tmp_path: Path, monkeypatch
) -> None:
    recorder, halfway = RunFolder(tmp_path).recorder, threading.Event()
    append = kevin_env.recorder.append_lines
    running = trajectory(timed(1, 1.0), timed(2, 2.0), id="a", stop_reason=None)
    recorder.begin(running)

    def append_slowly(path: Path, lines: list[str]) -> None:
        append(path, lines[:2])
        halfway.set()
        time.sleep(0.2)
        append(path, lines[2:])

    monkeypatch.setattr(kevin_env.recorder, "append_lines", append_slowly)
    writer = threading.Thread(target=recorder.begin, args=(running,))
    writer.start()
    halfway.wait()
    assert len(recorder.episode("a").turns) == 2
    writer.join()


def test_figures_need_no_texts() -> None:
    whole = [trajectory(turn(1), RIGHT, id="a"), trajectory(timed(1, 2.0), timed(2, 0.5), id="b")]
    assert measure([without_texts(each) for each in whole]) == measure(whole)


def test_a_line_that_was_cut_off_is_expected_and_any_other_bad_one_is_told(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.recorder.finish(trajectory(RIGHT, id="a"))
    folder.recorder.begin(trajectory(RIGHT, id="b", stop_reason=None))
    partial = partial_path(folder.trajectories_file)
    partial.write_bytes(partial.read_bytes()[:-20])
    assert [len(each.turns) for each in folder.trajectories(never)] == [1, 0]
    told: list[BadLine] = []
    with folder.trajectories_file.open("a") as file:
        file.write("nonsense\n")
        file.flush()
        assert len(read_episodes(folder.trajectories_file, told.append)) == 2
        file.write('{"schema": "kevin')
    assert len(read_episodes(folder.trajectories_file, told.append)) == 2
    assert [each.line for each in told] == [2, 2, 3], "a whole episode is missing"


def test_what_is_known_of_torch_compile_comes_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.compared() == {}
    first = Compared(sha256="0", ratio=0.8, interval=(0.7, 0.9), device=SCRIPTED_CPU)
    second = Compared(sha256="0", ratio=None, why="correct/too_noisy: noisy", device=SCRIPTED_CPU)
    known = {"L1_1": first, "L1_2": second}
    folder.write_compared(known)
    assert folder.compared() == known
    folder.baselines_file.write_text("{")
    with pytest.raises(BadInput, match=r"cannot read .*baselines\.json; delete it"):
        folder.compared()


def test_figures_are_written_as_json_and_as_rows(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    other = trajectory(RIGHT, problem=ProblemRef(id='b, "c"', sha256="0"))
    metrics = measure([trajectory(timed(1, 2.0)), other])
    folder.write_metrics(metrics)
    assert json.loads(folder.metrics_file.read_text()) == metrics.model_dump(mode="json")
    with folder.summary_file.open() as file:
        rows = [(row["problem"], row["level"]) for row in csv.DictReader(file)]
    assert rows == [("L1_23_Softmax", "1"), ('b, "c"', "")]
    assert sorted(path.name for path in folder.path.iterdir()) == ["metrics.json", "summary.csv"]
