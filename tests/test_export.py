import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from trajectories import BROKEN, RIGHT, evil, timed, trajectory, turn, write
from typer.testing import CliRunner

from kevin_env.app.kernelbench_run import FLAG, outcome_of
from kevin_env.app.replay.library import Library
from kevin_env.cli import app
from kevin_env.record import Trajectory
from kevin_env.recorder import read_trajectories

STORY = trajectory(turn(1), RIGHT, BROKEN, returns=(0.92, 2.3, 0.0))
EXAMPLE = Path(__file__).parents[1] / "examples" / "demo.h200.jsonl"


def run(*words: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, result.stdout, result.stderr


def exported(folder: Path, to: str, *episodes: Trajectory) -> str:
    code, out, err = run("export", write(folder / "t.jsonl", *episodes), "--to", to)
    assert (code, err) == (0, "")
    return out


def test_a_chat_is_a_growing_conversation(tmp_path: Path) -> None:
    [line] = exported(tmp_path, "chat", STORY).splitlines()
    messages = json.loads(line)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 3
    assert [message["content"] for message in messages[:4]] == [
        "Go.",
        turn(1).reply,
        "There was no code.",
        "Code.",
    ]


def test_a_sample_a_turn(tmp_path: Path) -> None:
    samples = [json.loads(line) for line in exported(tmp_path, "turns", STORY).splitlines()]
    assert [(sample["score"], sample["return"]) for sample in samples] == [
        (0.0, 0.92),
        (2.3, 2.3),
        (0.0, 0.0),
    ]
    assert samples[2]["prompt"] == [{"role": "user", "content": "Go."}]
    assert samples[2]["reasoning"] == "I think it should be foo."


def test_rows_for_a_spreadsheet(tmp_path: Path) -> None:
    evil_model = trajectory(RIGHT, id="e2", model="=cmd|' /C calc'!A0")
    rows = list(
        csv.DictReader(
            io.StringIO(exported(tmp_path, "csv", STORY, evil_model, evil()), newline="")
        )
    )
    assert len(rows) == 7
    assert (
        rows[1]["speedup"],
        rows[1]["speedup_low"],
        rows[1]["seconds_build"],
        rows[1]["prompt_tokens"],
    ) == ("2.0", "1.8", "1.5", "10")
    assert rows[3]["model"].startswith("'=cmd")


@pytest.mark.parametrize(("to", "lines"), [("chat", 2), ("turns", 4), ("csv", 5)])
def test_an_episode_that_was_continued_or_is_empty_is_left_out(
    tmp_path: Path, to: str, lines: int
) -> None:
    empty = trajectory(id="empty", stop_reason="model_error")
    failed = trajectory(turn(1), id="failed", stop_reason="model_error", sample=0)
    again = trajectory(turn(1), RIGHT, BROKEN, id="again", parent="failed", sample=0)
    other = trajectory(timed(1, 2.0), id="other", stop_reason="model_error", sample=0)
    text = exported(tmp_path, to, empty, failed, again, other)
    assert (len(text.splitlines()), '"messages": []' in text) == (lines, False)
    file = write(tmp_path / "empty.jsonl", empty)
    code, out, err = run("export", file, "--to", to)
    assert (code, out, "no trajectory has a turn" in err) == (2, "", True)


def test_inspect_reads_its_log(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
    file = write(
        tmp_path / "t.jsonl",
        STORY,
        trajectory(timed(1, 2.0), id="e2"),
        trajectory(id="none", stop_reason="refused"),
    )
    assert run("export", file, "--to", "inspect", "--out", tmp_path / "log.json")[0] == 0
    read = log.read_eval_log(str(tmp_path / "log.json"))
    assert [(sample.id, sample.epoch) for sample in read.samples] == [
        ("L1_23_Softmax", n) for n in (1, 2, 3)
    ]
    assert [sample.scores["best_speedup"].value for sample in read.samples] == [2.0, 2.0, 0.0]


def test_an_inspect_log_has_what_its_format_asks_for(tmp_path: Path) -> None:
    log = json.loads(exported(tmp_path, "inspect", STORY))
    assert {"created", "task", "dataset", "model", "config"} <= log["eval"].keys()
    means = {each["name"]: each["metrics"]["mean"]["value"] for each in log["results"]["scores"]}
    assert means == {"return": 0.92, "best_speedup": 2.0, "correct": 1.0}
    [sample] = log["samples"]
    assert sample["scores"]["return"] == {
        "value": 0.92,
        "metadata": sample["scores"]["return"]["metadata"],
    }
    assert len(sample["messages"]) == 6


def kernelbench(folder: Path, results: Any) -> Path:
    run_folder = folder / "my_run"
    run_folder.mkdir()
    for problem in (1, 2, 3):
        (run_folder / f"level_2_problem_{problem}_sample_0_kernel.py").write_text(
            f"class ModelNew: ...  # {problem}\n"
        )
    (run_folder / "eval_results.json").write_text(json.dumps(results))
    return run_folder


def test_a_kernelbench_run_is_read(tmp_path: Path) -> None:
    right = {
        "sample_id": 0, "compiled": True, "correctness": True, "metadata": {}, "runtime": 2.0,
        "ref_runtime": 5.0,
    }  # fmt: skip
    wrong = {
        "sample_id": 0,
        "compiled": True,
        "correctness": False,
        "metadata": {"correctness_issue": "Output mismatch"},
    }
    folder = kernelbench(tmp_path, {"1": [right], "2": wrong, "9": [right]})
    code, _, said = run("import", folder, "--out", tmp_path / "t.jsonl")
    assert code == 0
    assert [
        part in said
        for part in ("sample_0_kernel.py has no result", "problem 9 sample 0 has no kernel file")
    ] == [True, True]
    first, second = read_trajectories(tmp_path / "t.jsonl")
    assert isinstance(first, Trajectory)
    assert (first.problem.id, first.model, first.returns) == ("KernelBench_L2_1", "my_run", (2.8,))
    assert (first.turns[0].speedup, first.turns[0].flags) == (2.5, (FLAG,))
    assert isinstance(second, Trajectory)
    assert (second.turns[0].category, second.turns[0].outcome.message) == (
        "correctness",
        "Output mismatch",
    )


@pytest.mark.parametrize(
    ("result", "ending"),
    [
        (
            {"compiled": False, "metadata": {"compilation_error": "nvcc: error\nmore"}},
            "compile/compiler",
        ),
        ({"compiled": False, "metadata": {"cuda_error": "illegal access"}}, "runtime/exception"),
        (
            {"compiled": True, "correctness": False, "metadata": {"runtime_error": "boom"}},
            "runtime/exception",
        ),
        ({"compiled": True, "correctness": False}, "correctness/values"),
        (
            {"compiled": True, "correctness": True, "runtime": "x", "metadata": []},
            "correct/too_noisy",
        ),
    ],
)
def test_verdicts_of_kernelbench(result: dict[str, Any], ending: str) -> None:
    outcome = outcome_of(result)
    assert f"{outcome.category}/{outcome.kind}" == ending


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("export", "{file}", "--to", "csv", "--out", "{folder}/no/x.csv"),
            "/no/x.csv: No such file or directory",
        ),
        (("import", "{folder}/empty"), "is not an evaluated KernelBench run"),
        (("import", "{folder}/bad"), "eval_results.json: Expecting value"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    file = write(tmp_path / "t.jsonl", STORY)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "eval_results.json").write_text("[")
    filled = [word.format(file=file, folder=tmp_path) for word in words]
    if words[0] == "import":
        filled += ["--out", str(tmp_path / "out.jsonl")]
    code, _, err = run(*filled)
    assert (code, len(err.splitlines()), said in err) == (2, 1, True)


def test_an_export_replaces_nothing_before_it_is_whole(tmp_path: Path) -> None:
    source = write(tmp_path / "t.jsonl", STORY)
    before = source.read_bytes()
    for to in ("turns", "chat", "csv", "inspect"):
        code, _, err = run("export", source, "--to", to, "--out", source)
        assert (code, err.count("\n")) == (2, 1)
        assert "write to another file" in err
    assert run("replay", source, "--export", source)[0] == 2
    assert source.read_bytes() == before
    kept = tmp_path / "kept.csv"
    kept.write_text("precious")
    assert run("export", source, "--to", "csv", "--filter", "L9", "--out", kept)[0] == 2
    assert kept.read_text() == "precious"
    assert run("export", source, "--to", "csv", "--filter", "L9")[:2] == (2, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.csv", "t.jsonl"]


def test_what_an_export_has_written_into_the_folder_is_not_read_by_the_next(tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl", STORY)
    out = tmp_path / "samples.jsonl"
    for _ in range(2):
        assert run("export", tmp_path, "--to", "turns", "--out", out) == (0, "", f"wrote {out}\n")
    assert len(out.read_text().splitlines()) == 3


def test_a_file_that_becomes_shorter_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    source = write(tmp_path / "t.jsonl", STORY, evil())
    library = Library(source)
    source.write_bytes(b"")
    assert not library.advance()
    assert (library.rows, library.progress) == ([], 1.0)
