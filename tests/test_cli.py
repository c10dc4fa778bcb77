import io
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from episodes import KERNEL, REPLY, SOURCE, WRONG, another, correct, problem_file
from rich.console import Console
from stub_server import Answer, delta, serve
from trajectories import trajectory, write
from typer.main import get_command
from typer.testing import CliRunner

from kevin_env.app.catalogue import choose_problems, print_problems
from kevin_env.app.doctor import checks, show_check, works
from kevin_env.app.errors import BadInput
from kevin_env.app.judging import exit_code as judge_code
from kevin_env.app.judging import judge, print_result, read_requests, watch
from kevin_env.app.linting import exit_code, lint, show_lint
from kevin_env.cli import app
from kevin_env.episode import Episode
from kevin_env.judge import JudgeError, Judgement, Options
from kevin_env.judge.api import Sandbox, Seconds
from kevin_env.lint.report import Cost, Finding, LintReport
from kevin_env.outcome import CompileError
from kevin_env.pools.scripted import SCRIPTED_GPU, ScriptedPool
from kevin_env.problem import Problem, ProblemError
from kevin_env.record import Reply
from kevin_env.recorder import Recorder
from kevin_env.roofline import Ceilings, Work, roofline_of
from kevin_env.selection import our_sides
from kevin_env.settings import Settings

KEYS = (
    "file problem category kind message line input_set speedup speedup_interval score device "
    "seconds sandbox flags run roofline profile"
)
ARITHMETIC = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("command", ["play --problem", "eval --problem"])
def test_an_endpoint_is_tried_before_the_judge_starts(tmp_path: Path, command: str) -> None:
    run = tmp_path / "run"
    environment = {"KEVIN_ENV_POOL": "no pool", "OPENAI_API_KEY": "sk-test"}
    words = f"{command} L1_23_Softmax --model m --out {run} --base-url".split()
    with serve() as stub:
        stub.lists_models = 401
        for url, said in (
            ("http://127.0.0.1:9", "check --base-url"),
            (stub.url, "rejects the key"),
        ):
            result = CliRunner().invoke(app, [*words, url], env=environment)
            assert (result.exit_code, result.stdout) == (1, "")
            assert re.fullmatch(f"kevin-env: .*{said}.*\n", result.stderr)
    assert not run.is_dir()


def submissions(folder: Path, **codes: str) -> list[Path]:
    files = [folder / f"{name}.py" for name in codes]
    for file, code in zip(files, codes.values(), strict=True):
        file.write_text(code)
    return files


def judged(
    files: list[Path], folder: Path, answers: Any, console: Console | None = None, **settings: Any
) -> list[Any]:
    """The results of judging submissions to a problem, printed to the console if there is one."""
    problem, results = problem_file(folder).path, []
    with closing(ScriptedPool(answers)) as pool:
        requests = read_requests(files, problem, (None, ""), Settings.of(settings))
        for result in judge(requests, pool, console):
            results.append(result)
            if console:
                print_result(console, result)
    return results


def rows(files: list[Path], folder: Path, answers: Any, **settings: Any) -> list[dict[str, Any]]:
    return [result.row() for result in judged(files, folder, answers, **settings)]


def recorded(
    folder: Path, answers: list[Any], *replies: Any, **settings: Any
) -> tuple[Path, Episode]:
    """A trajectory file with one more episode, in which these are the replies."""
    file = folder / "t.jsonl"
    with closing(ScriptedPool(answers)) as pool:
        chosen = Settings.of({"max_turns": len(replies)} | settings)
        episode = Episode(problem_file(folder), pool, chosen, recorder=Recorder(file))
        episode.start()
        for reply in replies:
            episode.submit(reply)
    return file, episode


def test_help_and_version() -> None:
    assert run("--version") == (0, f"kevin-env {version('kevin-env')}\n", "")
    code, short, _ = run("-h")
    assert code == 0 and short == run("--help")[1] and "doctor" in short and short.count("...") == 1
    assert all(value in run("play", "-h")[1] for value in ("--stop-on", "cuda, triton, cpp,"))


def test_the_help_of_every_command_ends_with_an_example_that_can_be_run() -> None:
    def commands(group: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from commands(command, *names, name)
            if command.callback:
                yield (*names, name), command

    root = get_command(app)
    every = dict(commands(root))
    assert len(every) == 20
    for names, command in every.items():
        start = f"Example: `kevin-env {' '.join(names)}"
        assert command.epilog.startswith(start)
        words = shlex.split(command.epilog.removeprefix(start).rstrip("`"))
        command.make_context("", words)
        shown = run(*names, "-h")[1]
        assert "Example:" in shown and "<bool>" not in shown


@pytest.mark.parametrize(
    ("width", "last"), [(60, "id"), (80, "difficulty"), (100, "task"), (140, "tags")]
)
def test_a_terminal_has_a_line_for_each_problem(width: int, last: str) -> None:
    page = io.StringIO()
    problems = choose_problems(level=1)
    console = Console(file=page, width=width, force_terminal=True, no_color=True)
    print_problems(console, problems, our_sides())
    head, *lines, end = page.getvalue().splitlines()
    assert head.split()[-1] == last
    assert [line.split()[0] for line in lines] == [each.id for each in problems]
    hidden = {"id": "split, difficulty, task, tags", "difficulty": "task, tags", "task": "tags"}
    more = f"; a wider terminal shows {hidden[last]}" if last in hidden else ""
    assert end == f"{len(problems)} problems{more}"


def test_help_needs_nothing_heavy() -> None:
    code = "import sys, kevin_env.cli; print([m for m in ('torch', 'triton', 'openai', 'tomli_w', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['rich']")  # some versions of typer bring rich


def test_problems_are_listed() -> None:
    code, out, _ = run("problems", "--level", "1", "--json")
    listed = json.loads(out)
    assert code == 0
    assert {"L1_23_Softmax", "L1_36_RMSNorm_"} <= {row["id"] for row in listed}
    assert {row["level"] for row in listed} == {1}
    tagged = json.loads(run("problems", "--tag", "stencil", "--json")[1])
    assert "L6_5_Sobel_EdgeDetect" in {row["id"] for row in tagged}
    assert all("stencil" in row["tags"] for row in tagged)
    head, *lines = run("problems")[1].splitlines()
    assert head.split("\t") == ["id", "split", "difficulty", "task", "tags"]
    scan = next(line for line in lines if line.startswith("L9_1_PrefixSum_ExclusiveScan\t"))
    assert scan.count("\t") == 4 and len(lines) == len(json.loads(run("problems", "--json")[1]))
    found = json.loads(run("problems", "--search", "LAYER norm", "--json")[1])
    assert "L1_40_LayerNorm" in {row["id"] for row in found} and len(found) < 20


def test_problems_are_listed_by_split_and_difficulty() -> None:
    def listed(*words: str) -> list[dict[str, Any]]:
        return json.loads(run("problems", "--json", *words)[1])

    every, train, held_out = listed(), listed("--split", "train"), listed("--split", "held_out")
    assert {row["id"] for row in train} | {row["id"] for row in held_out} == {
        row["id"] for row in every
    }
    assert [row["id"] for row in every if row["split"] == "held_out"] == [
        row["id"] for row in held_out
    ]
    assert {row["split"] for row in train} == {"train"}
    other = listed("--split", "held_out", "--split-seed", "1")
    assert {row["split"] for row in other} == {"held_out"} and other != held_out
    ordered = [
        row["measured"]["difficulty"] for row in listed("--order", "difficulty", "--level", "5")
    ]
    assert ordered == sorted(ordered) and len(set(ordered)) > 10
    assert {row["measured"]["bound"] for row in listed("--tag", "memory-bound")} == {"memory-bound"}


def test_a_problem_is_shown() -> None:
    text = run("show", "L1_23_Softmax")[1]
    assert "class Model" in text and "reduction, activation, memory-bound, float32" in text
    assert re.search(r"difficulty +0\.\d\d \(1 operator; reference [\d.]+ ms on H200, ", text)
    shown = json.loads(run("show", "L1_23_Softmax", "--json")[1])
    assert shown["id"] == "L1_23_Softmax"
    assert "get_inputs" in shown["source"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "L1_23_Sofmax"], "did you mean L1_23_Softmax"),
        (["show", "L1_47"], "did you mean L1_47_Sum_reduction_over_a_dimension?"),
        (["problems", "--level", "3", "lint"], "options for `problems lint` go after `lint`"),
        (["show", "kevin-bench-1"], "kevin-bench-1 is a set of problems: give one that"),
        (
            ["show", "L1"],
            "L1 is a set of problems: give one that `kevin-env problems --level 1` lists",
        ),
        (["play", "--problem", "L2", "--model", "human"], "L2 is a set of problems"),
        (
            ["eval", "--problem", "L1_23_Softmax", "L1_36_RMSNorm_", "--model", "m"],
            "with commas: --problem L1_23_Softmax,L1_36_RMSNorm_",
        ),
        (["export-problems", "--out", "{folder}/kevin.csv"], "a .parquet file or a folder"),
        (
            ["judge", "{folder}/missing.py", "--problem", "L1_23_Softmax"],
            "missing.py: No such file",
        ),
        (["judge", "{folder}", "--problem", "L1_23_Softmax"], "a submission is a .py file"),
        (["judge", "{file}"], "--problem"),
        (["judge", "{file}", "--problem", "{file}"], "does not define"),
        (["judge", "{file}", "--problem", "L1_23_Softmax", "--device", "tpu"], "device"),
        (["judge", "{trajectory}"], "pass --turn N"),
        (
            ["judge", "{file}", "--problem", "L1_23_Softmax", "--turn", "1"],
            "--turn and --episode are for trajectories",
        ),
        (["judge", "{bad}", "--turn", "1"], "line 1"),
        (["judge", "{folder}/missing.jsonl"], "missing.jsonl: no such trajectory file"),
        (["play", "--problem", "L1_23_Softmax"], "--model"),
        (["play", "--problem", "L1_23_Softmax", "--model", "m", "--extra-body", "["], "JSON"),
        (["problems", "lint", "{folder}/missing.py"], "cannot read"),
        (
            ["problems", "lint", "L1_23_Softmax", "--level", "2"],
            "no problem of level 2 among L1_23_Softmax",
        ),
        (["problems", "--tag", "nonsense"], "unknown tag 'nonsense'; tags are activation, "),
        (["problems", "--search", "nonsense"], "no problem matches"),
        (["problems", "lint", "L1_23_Softmax", "--device", "tpu"], "device"),
        (["problems", "lint", "kernelbench:level9/1"], "levels 1 to 3"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, words: list[str], said: str) -> None:
    [file] = submissions(tmp_path, kernel=KERNEL)
    names = {"file": file, "folder": tmp_path, "bad": tmp_path / "bad.jsonl"}
    names["bad"].write_text("nonsense\n")
    names["trajectory"] = write(tmp_path / "t.jsonl", trajectory())
    code, out, err = run(*(word.format(**names) for word in words))
    last = err.splitlines()[-1]
    assert (code, out) == (2, "")
    assert last.startswith("kevin-env: ")
    assert said in last


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("play --problem L1_36", ["L1_36_RMSNorm_"]),
        ("eval --problem L1_1_x,L1_36", ["L1_1_x,L1_36_RMSNorm_"]),
        ("show L1_36", ["L1_36_RMSNorm_"]),
        ("play --language tri", ["triton"]),
        ("play --max-t", ["--max-turns", "--max-tokens"]),
    ],
)
def test_problems_and_values_are_completed(words: str, completed: list[str]) -> None:
    environment = {
        "_KEVIN_ENV_COMPLETE": "complete_bash",
        "COMP_WORDS": f"kevin-env {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    result = CliRunner().invoke(app, [], env=environment, prog_name="kevin-env")
    assert sorted(result.stdout.split()) == sorted(completed)


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    code, _, err = run("play", "--problem", "L1_23_Softmax", "--model", "m")
    assert code == 2
    assert "OPENAI_API_KEY" in err


def test_rows_come_in_the_order_given(tmp_path: Path) -> None:
    slow = submissions(tmp_path, first=KERNEL, second=KERNEL + "# 2\n", third=KERNEL + "# 3\n")

    def answer(problem: Any, submission: Any) -> Any:
        time.sleep(0.2 if "# " not in submission.code else 0)
        return WRONG if "# 2" in submission.code else correct(2.0)

    found = rows(slow, tmp_path, answer)
    assert [row["file"] for row in found] == [str(file) for file in slow]
    assert [row["category"] for row in found] == ["correct", "correctness", "correct"]
    assert all(row.keys() == {*KEYS.split()} for row in found)
    first = found[0]
    assert (first["speedup"], first["speedup_interval"], first["score"]) == (2.0, (1.8, 2.2), 2.3)
    assert first["seconds"]["total"] == pytest.approx(0.91)
    assert set(first["sandbox"].values()) == {"enforced"}
    assert (first["problem"], first["device"]) == ("7_Double", "cpu")


def test_a_row_says_how_far_from_the_roofline_it_is(tmp_path: Path) -> None:
    held = roofline_of(
        Work(read=100, written=0, products={}, operations=1),
        Ceilings(reading=100, copying=100, rates={"fp32": 1}),
        4.0,
    )
    outcome = correct(2.0).model_copy(update={"roofline": held})
    told, untold = rows(
        submissions(tmp_path, a=KERNEL, b=KERNEL), tmp_path, [outcome, correct(2.0)]
    )
    assert told["roofline"] == held.model_dump() | {
        "fraction": 0.25,
        "bound": "memory",
        "bandwidth": 25.0,
    }
    assert untold["roofline"] is None
    assert json.loads(json.dumps(told, allow_nan=False))["roofline"]["seconds"] == 1.0


def test_every_readable_file_has_a_verdict(tmp_path: Path) -> None:
    files = submissions(tmp_path, broken="class ModelNew(:\n", other="x = 1\n", ruled=ARITHMETIC)
    files.append(tmp_path / "binary.py")
    files[-1].write_bytes(b"\xff\xfe\x00class")
    found = rows(files, tmp_path, [])
    assert [(row["category"], row["kind"], row["sandbox"]) for row in found] == [
        ("compile", "syntax", None),
        ("format", "no_model", None),
        ("rules", "torch_compute", None),
        ("compile", "syntax", None),
    ]
    assert found[2]["line"] == 4
    assert rows(files[2:3], tmp_path, [WRONG], rules="open")[0]["input_set"] == WRONG.input_set
    assert all(
        row.keys() == {*KEYS.split()} and row["score"] == 0 and row["device"] == "cpu"
        for row in found
    )
    assert rows(files[2:3], tmp_path, [correct(1.0)], rules="open")[0]["category"] == "correct"


def test_a_judge_that_fails_is_a_row_of_its_own(tmp_path: Path) -> None:
    files = submissions(tmp_path, a=KERNEL, b=KERNEL)
    found = rows(files, tmp_path, [JudgeError("the device\x1b[2J is gone"), correct(2.0)])
    assert found[0] == {"file": str(files[0]), "error": "the device is gone"}
    assert found[1]["category"] == "correct"


def test_a_reference_that_fails_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="get_inputs"):
        rows(
            submissions(tmp_path, a=KERNEL),
            tmp_path,
            [ProblemError("get_inputs raised ValueError")],
        )


FIT = LintReport(
    problem="p",
    device="cpu",
    findings=(),
    reference="accepted",
    accepted=(),
    accepted_as_shipped=(),
)


class Linter:
    """Answers as prepared, in order, or that all problems are fit. Fails on the broken device; the
    slow problem is done when the test says so.
    """

    def __init__(
        self, *answers: LintReport | JudgeError, slow: str = "", broken: str = "none"
    ) -> None:
        self.answers, self.slow, self.broken = list(answers), slow, broken
        self.asked: list[tuple[str, str]] = []
        self.inputs: set[str] = set()
        self.slow_one: Future[LintReport] = Future()

    def lint(self, problem: Problem, options: Options) -> Future[LintReport]:
        self.asked.append((problem.id, options.device))
        self.inputs.add(options.inputs)
        if problem.id == self.slow:
            return self.slow_one
        future: Future[LintReport] = Future()
        answer = self.answers.pop(0) if self.answers else FIT
        if isinstance(answer, JudgeError) or options.device == self.broken:
            future.set_exception(JudgeError("gone\x1b[2J"))
        else:
            future.set_result(answer)
        return future


def linted(problems: list[Problem], linter: Linter, device: str = "cpu", **more: Any) -> Any:
    return lint(problems, linter, Options(device=device), Console(file=io.StringIO()), **more)


def test_a_lint_has_a_row_for_each_problem_and_says_what_is_wrong(tmp_path: Path) -> None:
    problems = [problem_file(tmp_path, name) for name in ("1_Fit", "2_[red]Unfit", "3_Failed")]
    cost = Cost(seconds=0.012, peak_bytes=1, flops=2_000_000_000, elements=3, moved_bytes=5_000_000)
    unfit = FIT.model_copy(
        update={
            "findings": (Finding(check="answers", message="a verdict accepts zeros [/x]"),),
            "accepted": ("zeros",),
            "accepted_as_shipped": ("input 0", "zeros"),
        }
    )
    linter = Linter(FIT.model_copy(update={"cost": cost}), unfit, JudgeError())
    page = io.StringIO()
    console = Console(file=page, width=120, markup=False, highlight=False)
    found = list(lint(problems, linter, Options(inputs="shipped"), console))
    assert ([id for id, _ in linter.asked], linter.inputs) == (
        [p.id for p in problems],
        {"shipped"},
    )
    show_lint(console, found)
    text = page.getvalue()
    assert "2_[red]Unfit: answers: a verdict accepts zeros [/x]" in text
    assert "3_Failed: the judge failed: gone" in text
    assert "3 problems: 1 fit; own reference accepted: 2; a trivial answer accepted: 1" in text
    assert "0.012" in text and "\x1b" not in text
    assert [exit_code(each) for each in (found[:1], found[:2], found)] == [0, 1, 3]
    rows = [each.row() for each in found]
    assert [row.get("ok") for row in rows] == [True, False, None]
    assert rows[1]["findings"] == [{"check": "answers", "message": "a verdict accepts zeros [/x]"}]
    assert rows[2] == {"id": "3_Failed", "error": "gone"}
    assert json.loads(json.dumps(rows, allow_nan=False))[0]["cost"]["flops"] == cost.flops


def test_each_device_lints_one_problem_at_a_time(tmp_path: Path) -> None:
    problems = [problem_file(tmp_path, f"{number}_P") for number in (1, 2, 3)]
    linter = Linter(slow="1_P")
    found = linted(problems, linter, "cuda:0,1")
    assert next(found).problem.id == "2_P"
    assert linter.asked == [("1_P", "cuda:0"), ("2_P", "cuda:1")], (
        "a third was begun beside one of them"
    )
    assert next(found).problem.id == "3_P"
    assert linter.asked[2:] == [("3_P", "cuda:1")], "the device that was free"
    linter.slow_one.set_result(FIT)
    assert [each.problem.id for each in found] == ["1_P"]


def test_a_device_whose_judge_fails_does_not_take_every_problem(tmp_path: Path) -> None:
    problems = [problem_file(tmp_path, f"{number}_P") for number in (1, 2, 3, 4)]
    linter = Linter(slow="1_P", broken="cuda:1")
    found = linted(problems, linter, "cuda:0,1")
    assert next(found).report is None
    linter.slow_one.set_result(FIT)
    assert [each.problem.id for each in found] == ["1_P", "3_P", "4_P"]
    assert [device for _, device in linter.asked] == ["cuda:0", "cuda:1", "cuda:0", "cuda:0"]


def test_a_device_whose_judge_fails_goes_on_where_there_is_no_other(tmp_path: Path) -> None:
    problems = [problem_file(tmp_path, f"{number}_P") for number in (1, 2)]
    linter = Linter(broken="cuda:1")
    assert len(list(linted(problems, linter, "cuda:1"))) == 2


def test_a_lint_begins_no_problem_when_its_time_is_over(tmp_path: Path) -> None:
    linter = Linter()
    assert not list(linted([problem_file(tmp_path, "1_P")], linter, until=time.monotonic()))
    assert not linter.asked


def test_a_recorded_turn_is_judged_again_on_the_same_inputs(tmp_path: Path) -> None:
    settings = {"rules": "open", "baseline": "compile", "device": "cpu", "inputs": "shipped"}
    replies = (REPLY, "no code", REPLY)
    file, episode = recorded(tmp_path, [WRONG, correct(2.0)], *replies, **settings)
    for number, turn in enumerate(episode.turns, start=1):
        with closing(ScriptedPool([turn.outcome])) as pool:
            which = (number, episode.episode_id[:6])
            requests = read_requests([file], None, which, Settings(require_sandbox=True))
            [row] = (result.row() for result in judge(requests, pool))
        assert [row["category"], row["kind"], row["score"]] == [
            *(turn.category, turn.kind, turn.score)
        ]
        kept = episode.settings.model_copy(update={"require_sandbox": True}).options(turn.secret)
        for _, submission, options in pool.submissions:
            assert (submission, options) == (turn.submission, kept)
    with pytest.raises(BadInput, match="3 turns"):
        read_requests([file], None, (4, ""), Settings())
    with pytest.raises(BadInput, match="holds no episode zz"):
        read_requests([file], None, (1, "zz"), Settings())


@pytest.mark.parametrize("bound", ["median", "lower"])
def test_a_recorded_turn_is_scored_again_with_all_that_it_has(tmp_path: Path, bound: str) -> None:
    score = {"median": "kernel_rl_default", "lower": "log_speed"}[bound]
    replies = (
        Reply(content=another(1), reasoning="x" * 3000),
        Reply(content=another(2).replace("Double it.", "y" * 3500)),
        Reply(content=another(3)),
        Reply(content="no code"),
    )
    answers = [correct(1.5), correct(2.0), WRONG]
    file, episode = recorded(tmp_path, answers, *replies, score=score, bound=bound)
    for number, turn in enumerate(episode.turns, start=1):
        with closing(ScriptedPool([turn.outcome])) as pool:
            [result] = judge(read_requests([file], None, (number, ""), Settings()), pool)
        assert result.row()["score"] == turn.score


def test_a_problem_that_has_changed_must_be_asked_for(tmp_path: Path) -> None:
    file, episode = recorded(tmp_path, [], "no code")
    problem, path = episode.problem, Path(episode.problem.path)
    path.write_text(path.read_text().replace("1024", "512"))
    code, out, err = run("judge", str(file), "--turn", "1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "7_Double is not available as recorded: its source has changed since; restore it" in err
    assert "--problem" in err

    def asked(name: Path) -> Problem:
        [request] = read_requests([file], str(name), (1, ""), Settings())
        return request.problem

    assert asked(path).source == path.read_text()
    before = tmp_path / "before.py"
    before.write_text(problem.source)
    assert (asked(before).id, asked(before).source) == (problem.id, problem.source)
    other = tmp_path / "8_Other.py"
    other.write_text(SOURCE.replace("x * 2", "x * 3"))
    with pytest.raises(BadInput, match="is for 7_Double, not 8_Other"):
        asked(other)
    path.unlink()
    with pytest.raises(BadInput, match="its ID and path are gone"):
        read_requests([file], None, (1, ""), Settings())


def test_several_episodes_must_be_told_apart(tmp_path: Path) -> None:
    (file, first), (_, second) = (recorded(tmp_path, [], "no code") for _ in range(2))
    with pytest.raises(BadInput, match="--episode") as caught:
        read_requests([file], None, (1, ""), Settings())
    assert all(each.episode_id[:8] in str(caught.value) for each in (first, second))
    [request] = read_requests([file], None, (1, second.episode_id[:8]), Settings())
    assert request.turn == second.turns[0]


def test_a_verdict_is_printed_for_a_person(tmp_path: Path) -> None:
    page = io.StringIO()
    console = Console(file=page, width=100, markup=False, highlight=False)
    wrong = CompileError(
        kind="compiler", message="no [/x]\x1b[2J", details="a.cpp:1: error: [red]no[/y]"
    )
    files = submissions(tmp_path, a=KERNEL, b=KERNEL, c=KERNEL)
    results = judged(files, tmp_path, [correct(2.0), wrong, JudgeError("gone")], console)
    shown = page.getvalue()
    assert "correct/timed  2.00x [1.80, 2.20]  score 2.30  (build 0.5 s  load 0.1 s  v" in shown
    assert "error: [red]no[/y]" in shown
    assert "c.py: the judge failed: gone" in shown
    assert "\x1b" not in shown
    codes = [(1, False), (1, True), (2, False), (2, True), (3, True)]
    assert [judge_code(results[:n], fail) for n, fail in codes] == [0, 0, 0, 1, 3]


def test_on_a_terminal_a_judgement_shows_progress_and_ends_in_a_panel(tmp_path: Path) -> None:
    page = io.StringIO()
    console = Console(file=page, width=110, force_terminal=True, no_color=True, markup=False)
    quoted = f"    4 |  {'x' * 110} y\n      |  ^"
    wrong = CompileError(kind="compiler", message="a.cpp:1: error: no", details=quoted)
    files = submissions(tmp_path, a=KERNEL, b=KERNEL)

    def answer(*_: Any) -> Any:
        time.sleep(0.3)
        return wrong

    judged(files, tmp_path, answer, console)
    shown = page.getvalue()
    assert f"{files[1]}  0 s" in shown
    assert "╭─ compile/compiler" in shown and "cpu: build 0.5 s" in shown
    line, mark, *_ = (each for each in shown.splitlines() if each[:2] == "│ " and "|" in each)
    assert line.endswith("x… │") and mark.index("^") == line.index("x")


def test_watched_files_are_judged_again_when_they_or_the_problem_are_saved(tmp_path: Path) -> None:
    a, b = submissions(tmp_path, a=KERNEL, b=KERNEL)
    problem = tmp_path / "7_Double.py"
    problem.write_text(SOURCE)
    seen = list[str]()

    class Errors(io.StringIO):
        def write(self, words: str) -> int:
            if "invalid syntax" in words:
                problem.write_text(SOURCE)
            return super().write(words)

    def report(result: Any) -> None:
        seen.append(result.request.file)
        if len(seen) == 2:
            b.write_text(KERNEL + "\n# saved")
        if len(seen) == 3:
            problem.write_text("this is no Python")
        if len(seen) == 5:
            raise KeyboardInterrupt

    with closing(ScriptedPool(lambda *_: correct(2.0))) as pool, pytest.raises(KeyboardInterrupt):
        watch([a, b], str(problem), Settings(), pool, report, Console(file=Errors(), width=300))
    assert seen == [str(each) for each in (a, b, b, a, b)]


def test_a_verdict_names_its_baseline_and_shows_what_was_printed(tmp_path: Path) -> None:
    page = io.StringIO()
    enforced = Sandbox(
        network="enforced", filesystem="enforced", limits="enforced", processes="enforced"
    )
    told = Judgement(
        outcome=correct(2.0), seconds=Seconds(), device=SCRIPTED_GPU, sandbox=enforced, secret="0" * 32,
        log="ptxas info: used 40 registers",
    )  # fmt: skip
    files = submissions(tmp_path, a=KERNEL)
    judged(files, tmp_path, [told], Console(file=page, width=300), baseline="compile")
    shown = page.getvalue()
    assert "Speedup over torch.compile: 2.00x" in shown and "PyTorch eager" not in shown
    assert "used 40 registers" in shown


@pytest.mark.parametrize("name", ["no/such", "a file", ""])
def test_doctor_says_that_a_folder_for_temporary_files_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path / name) if name else "")
    monkeypatch.setattr("tempfile.tempdir", None)
    with closing(ScriptedPool([correct(1.0)])) as pool:
        check = next(each for each in checks(pool) if each.name == "scratch")
    assert ("TMPDIR is not used" in check.advice) is bool(name)


def test_the_doctor_looks_at_everything() -> None:
    with closing(ScriptedPool([correct(1.0)])) as pool:
        found = list(checks(pool))
    names = {check.name for check in found}
    gpu = next(check.ok for check in found if check.name == "gpu")
    assert len({"ncu", "compute-sanitizer"} & names) == (2 if gpu else 0)
    basic = "python gpu nvcc g++ ninja problems prompts scratch judge"
    assert {*basic.split()} <= names
    found_times = next(check.found for check in found if check.name == "times")
    assert found_times == "a speedup is known to within 11% here"
    assert {f"sandbox {name}" for name in ("network", "filesystem", "limits", "processes")} <= names
    assert works(found)
    assert all(check.advice for check in found if not check.ok)


def test_the_doctor_says_when_nothing_can_be_judged() -> None:
    with closing(ScriptedPool([JudgeError("no [red]torch\x1b[2J")])) as pool:
        found = list(checks(pool))
    assert not works(found)
    page = io.StringIO()
    for check in found:
        show_check(Console(file=page, width=100, markup=False, highlight=False), check)
    assert "no [red]torch" in page.getvalue()
    assert "\x1b" not in page.getvalue()


@pytest.mark.usefixtures("one_pool")
def test_files_are_judged_for_real(tmp_path: Path) -> None:
    problem = tmp_path / "7_Double.py"
    problem.write_text(SOURCE)
    fails = KERNEL.replace("import torch\n", "import torch\nraise RuntimeError('not today')\n", 1)
    hangs = KERNEL.replace("import torch\n", "import torch\nwhile True: pass\n", 1)
    broken = "class ModelNew(:\n"
    files = submissions(tmp_path, fails=fails, broken=broken, ruled=ARITHMETIC, hangs=hangs)
    words = ["judge", *map(str, files), "--problem", str(problem), "--device", "cpu", "--json"]
    code, out, err = run(*words, "--timeout", "2", "--fail-on-wrong")
    assert code == 1, err
    judged = [json.loads(line) for line in out.splitlines()]
    assert [row["category"] for row in judged] == ["compile", "compile", "rules", "compile"]
    assert judged[3]["kind"] == "timeout" and 2 <= judged[3]["seconds"]["build"] < 30
    assert run(*words[:2], "--timeout", "0")[0] == 2
    assert "not today" in judged[0]["message"]
    assert judged[0]["sandbox"].keys() == {"network", "filesystem", "limits", "processes"}


@pytest.mark.full
@pytest.mark.usefixtures("one_pool")
def test_problems_are_linted_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clamped = SOURCE.replace("return x * 2", "return x.clamp(-100, 100)").replace(
        "torch.rand(", "torch.randn("
    )
    for level, body in (("level1", clamped), ("level2", SOURCE)):
        (tmp_path / level).mkdir()
        (tmp_path / level / "7_Double.py").write_text(body)
    (tmp_path / "level3").mkdir()
    monkeypatch.setenv("KEVIN_ENV_KERNELBENCH", str(tmp_path))

    def linted(*words: str, said: str = "") -> tuple[int, Any]:
        code, out, err = run("problems", "lint", *words, "--device", "cpu", "--json")
        assert err.startswith(said) and bool(err) is bool(said)
        return code, json.loads(out)

    code, rows = linted("kernelbench:")
    assert [row["id"] for row in rows] == [
        "kernelbench:level1/7_Double",
        "kernelbench:level2/7_Double",
    ]
    assert (code, [row["ok"] for row in rows]) == (0, [True, True])
    assert [row["accepted_as_shipped"] for row in rows] == [["input 0"], []]
    code, rows = linted(str(tmp_path / "level1"), "--inputs", "shipped")
    assert (code, [row["findings"][0]["check"] for row in rows]) == (1, ["answers"])
    missing = str(tmp_path / "no.py")
    said = f"{missing} is left out: cannot read"
    code, rows = linted(missing, str(tmp_path / "level2"), said=said)
    assert (code, len(rows)) == (2, 1)


@pytest.mark.usefixtures("one_pool")
def test_a_model_plays_for_real(tmp_path: Path) -> None:
    problem, out = tmp_path / "7_Double.py", tmp_path / "t.jsonl"
    problem.write_text(SOURCE)
    reply = f"```python\n{ARITHMETIC}```\nDoubled."
    with serve(Answer([delta(content=reply), delta(finish="stop")])) as stub:
        options = "--model m --max-turns 2 --device cpu --plain"
        files = ["--problem", str(problem), "--out", str(out)]
        code, said, err = run("play", *options.split(), *files, "--base-url", stub.url)
    assert code == 0, err
    assert "rules/torch_compute" in said
    assert "all turns played" in said
    assert len(stub.requests) == 2
    assert "ModelNew" in stub.requests[1]["messages"][-1]["content"]
    code, shown, _ = run("replay", str(out), "--plain")
    assert code == 0
    assert "return x * 2" in shown


@pytest.mark.full
@pytest.mark.skipif(any(Path("/dev").glob("nvidia[0-9]*")), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    [file] = submissions(tmp_path, a=KERNEL)
    code, out, err = run("judge", str(file), "--problem", "L1_23_Softmax", "--device", "cuda")
    assert (code, out) == (2, "")
    assert "choose the device cpu" in err
    assert len(err.splitlines()) == 1
