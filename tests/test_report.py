"""`kevin-env report`: its contents, its files, and its page in a browser."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest
from browser import Page, find_browser
from evaluations import run as evaluate
from evaluations import values_of
from hostile_texts import EVIL
from trajectories import BROKEN, evil, timed, trajectory, turn, write
from typer.testing import CliRunner

from kevin_env.app.report.summary import MOST_LINES, summarise
from kevin_env.app.report.write import SINGLE, Room, default_file, read_run, write_report
from kevin_env.cli import app
from kevin_env.judge.api import Seconds
from kevin_env.judge.verdict import flag
from kevin_env.outcome import Correct, Incorrect, RulesViolation
from kevin_env.record import ProblemRef, Trajectory, Turn, Usage
from kevin_env.roofline import Ceilings, Work, roofline_of
from kevin_env.settings import Settings

needs_browser = pytest.mark.skipif(
    find_browser() is None, reason="there is no chromium; apt install chromium"
)

FORBIDDEN = turn(1, outcome=RulesViolation(kind="torch_compute", message="It lets torch\ncompute."))
UNDONE = Incorrect(kind="early_done", message="It was not done.", input_set="main/own")
EARLY = turn(2, outcome=UNDONE)
NOISY = turn(1, outcome=Correct(kind="too_noisy", message="Correct."), score=0.3)


def played(problem: str, id: str, *turns: Turn, **more: Any) -> Trajectory:
    turns = tuple(each.model_copy(update={"turn": at}) for at, each in enumerate(turns, start=1))
    level = int(problem[1]) if re.match(r"L\d", problem) else None
    reference = ProblemRef(id=problem, sha256="0", level=level)
    return trajectory(*turns, id=id, problem=reference, **({"returns": (1.0,) * len(turns)} | more))


ABOVE = flag("above_roofline", "faster than the reference's own work")
SPENT = {
    "usage": Usage(prompt_tokens=30_000, completion_tokens=2_000),
    "seconds": Seconds(verify=1.0, time=0.5),
}
RUN = [
    played("L1_1_Add", "a0", BROKEN, timed(2, 2.0).model_copy(update=SPENT)),
    played("L1_1_Add", "a1", timed(1, 0.8), timed(2, 1.2)),
    played("L2_3_Mul", "b0", FORBIDDEN, turn(2)),
    played("L2_3_Mul", "b1", timed(1, 1.0), EARLY),
]


CEILINGS = Ceilings(reading=4e12, copying=3.6e12, rates={"fp32": 50e12})


def held(number: int, work: Work, seconds: float, *flags: str) -> Turn:
    """A timed turn with its roofline."""
    turn = timed(number, 1.0)
    outcome = turn.outcome.model_copy(update={"roofline": roofline_of(work, CEILINGS, seconds)})
    return turn.model_copy(update={"outcome": outcome, "flags": flags})


SOFTMAX = Work(read=10**8, written=10**8, products={}, operations=10**8)
MATMUL = Work(read=2 * 10**8, written=10**8, products={"fp32": 10**12}, operations=0)
GATHER = Work(read=10**8, written=10**8, products={}, operations=0)
MATMULS = (held(1, MATMUL, 0.3), held(2, MATMUL, 0.025), held(3, MATMUL, 0.015, ABOVE))
ROOFLINES = [
    played("L1_23_Softmax", "r0", held(1, SOFTMAX, 1e-3), BROKEN, held(3, SOFTMAX, 6e-5)),
    played("L1_1_Matmul", "r1", *MATMULS),
    played("L9_7_Gather", "r2", held(1, GATHER, 1e-4)),
]


def never(line: object) -> None:
    raise AssertionError(line)


def told(folder: Path, *episodes: Trajectory) -> Any:
    run = read_run(write(folder / "t.jsonl", *episodes), never)
    text = json.dumps(summarise(run.title, run.recorded, run.metrics, {}))
    return json.loads(text, object_hook=lambda fields: SimpleNamespace(**fields))


def report(*words: str | Path) -> Any:
    return CliRunner().invoke(app, ["report", *map(str, words)])


def data_of(page: Path) -> dict[str, Any]:
    """What is embedded in a page."""
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert found is not None
    return json.loads(found[1])


# ---- values


def test_the_distribution_has_every_trajectory_once(tmp_path: Path) -> None:
    bins = told(tmp_path, *RUN).bins
    # Fastest kernels: 2.0, 1.2, none, 1.0; a bin holds where it begins.
    found = [(each.low, each.high, each.count) for each in bins]
    assert found[:3] == [(None, None, 1), (1.0, 1.2, 1), (1.2, 1.5, 1)]
    assert found[3:] == [(1.5, 2.0, 0), (2.0, 3.0, 1)]


def test_speedups_that_no_bin_ends_after(tmp_path: Path) -> None:
    turns = {"a": timed(1, 1e6), "b": timed(1, 0.01), "c": NOISY}
    bins = told(tmp_path, *(played("L1_1", id, each) for id, each in turns.items())).bins
    assert (bins[0].low, bins[0].count) == (None, 1)
    assert (bins[1].low, bins[1].count) == (0.0, 1)
    assert (bins[-1].low, bins[-1].high, bins[-1].count) == (100.0, None, 1)


def test_turns_by_outcome(tmp_path: Path) -> None:
    kinds = told(tmp_path, *RUN).kinds
    assert [(f"{each.category}/{each.kind}", each.turns, each.hack) for each in kinds] == [
        ("format/no_code", 1, False),
        ("rules/torch_compute", 1, True),
        ("compile/compiler", 1, False),
        ("correctness/early_done", 1, True),
        ("correct/timed", 4, False),
    ]


def test_hacks_say_where_they_are(tmp_path: Path) -> None:
    first, second = told(tmp_path, *RUN).hacks
    assert (first.problem, first.place.id, first.turn) == ("L2_3_Mul", "b0", 1)
    assert (first.kind, first.message) == ("torch_compute", "It lets torch compute.")
    assert (second.place.id, second.turn, second.kind) == ("b1", 2, "early_done")


def test_problems_have_their_numbers_and_trajectories(tmp_path: Path) -> None:
    first, second = told(tmp_path, *RUN).problems
    assert (first.numbers.problem, first.numbers.samples) == ("L1_1_Add", 2)
    assert (second.numbers.problem, second.numbers.hack_rate) == ("L2_3_Mul", 0.5)
    assert [(line.place.id, line.marks, line.best, line.best_turn) for line in first.lines] == [
        ("a0", "x●", 2.0, 2),
        ("a1", "●●", 1.2, 2),
    ]
    assert (second.top.place.id, second.lines[0].best) == ("b1", None)


def test_a_report_in_one_page_links_to_every_trajectory(tmp_path: Path) -> None:
    run = [played("L1_1", f"e{at}", timed(1, 1.0)) for at in range(MOST_LINES + 1)]
    [problem] = told(tmp_path, *run).problems
    assert (len(problem.lines), problem.more, problem.pages) == (MOST_LINES + 1, 0, [])


def test_what_a_search_gave_up_is_shown_and_does_not_count(tmp_path: Path) -> None:
    begun = played("L1_1", "a", FORBIDDEN, timed(2, 1.0), stop_reason="pruned")
    fork = played("L1_1", "b", FORBIDDEN, timed(2, 2.0), parent="a")
    found = told(tmp_path, begun, fork)
    lines = [(line.place.id, line.counts) for line in found.problems[0].lines]
    assert lines == [("b", True), ("a", False)]
    # The shared turn once.
    assert [(each.place.id, each.turn) for each in found.hacks] == [("b", 1)]


def test_facts_and_notes(tmp_path: Path) -> None:
    empty = trajectory(id="e", stop_reason="model_error")
    found = told(tmp_path, *RUN, played("L1_1_Add", "q", timed(1, 1.0), model="qwen"), empty)
    facts = dict(found.facts)
    assert facts["model"] == "m, qwen"
    assert (facts["max_turns"], facts["played"]) == ("2, 1, 0", "1 Jan 2026")
    assert "trajectories without a turn, left out: 1" in found.notes
    assert (found.k, found.baseline, found.title) == (2, "eager", "t.jsonl")


def test_settings_other_than_their_defaults_are_facts(tmp_path: Path) -> None:
    kernel = {"name": "Flash", "code": "class ModelNew: ..."}
    defaults = Settings().model_dump(mode="json")
    del defaults["timing_precision"]  # as in older records, which have the name `precision`
    config = defaults | {"baseline": kernel, "backward": True, "pay": "improvement"}
    episodes = [
        played("L1_1", "a", timed(1, 1.0), config=config | {"precision": 0.05}),
        played("L1_1", "b", timed(1, 1.0), config=config | {"dtype": "float16"}),
    ]
    found = told(tmp_path, *episodes)
    facts = dict(found.facts)
    assert (facts["baseline"], found.baseline) == ("Flash", "own")
    assert [bin.count for bin in found.bins if bin.count] == [2]  # their speedups are known
    assert list(facts.items())[9:-1] == [  # after those that are always there
        ("dtype", "default, float16"),
        ("backward", "True"),
        ("pay", "improvement"),
        ("timing_precision", "0.05"),
    ]


def test_of_several_with_one_id_the_last_counts(tmp_path: Path) -> None:
    episodes = [played("L1_1", "a", timed(1, 1.0)), *RUN[:1], *RUN[:1]]
    run = read_run(write(tmp_path / "t.jsonl", *episodes), never)
    assert [(each, len(rows)) for each, rows in run.problems] == [("L1_1", 1), ("L1_1_Add", 1)]
    out = write_report(run, tmp_path / "r.html", lambda *_: None)
    assert [each["id"] for each in data_of(out)["episodes"]] == ["a", "a0"]


def test_timed_turns_are_held_against_the_roofline(tmp_path: Path) -> None:
    found = told(tmp_path, *ROOFLINES)
    plot = found.roofline
    marks = [(each.problem, each.turn, each.place.id, each.roofline.bound) for each in plot]
    assert marks[:3] == [("L1_1_Matmul", turn, "r1", "compute") for turn in (1, 2, 3)]
    assert marks[3:] == [("L1_23_Softmax", turn, "r0", "memory") for turn in (1, 3)]
    assert plot[-1].roofline.flops / plot[-1].roofline.bytes == pytest.approx(0.5)
    assert found.roofline_left_out == 1  # what only moves data has no intensity
    fractions = [each.roofline for each in found.problems]
    assert fractions == pytest.approx([20 / 15, 2e8 / 3.6e12 / 6e-5, 2e8 / 3.6e12 / 1e-4])
    assert [note for note in found.notes if "flagged above_roofline (faster than" in note]


def test_turns_from_before_there_were_rooflines_have_none(tmp_path: Path) -> None:
    found = told(tmp_path, *RUN)
    assert not found.roofline and not [note for note in found.notes if "flagged" in note]
    assert {each.roofline for each in found.problems} == {None}


def test_a_plot_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kevin_env.app.report.summary.MOST_MARKS", 2)
    found = told(tmp_path, *ROOFLINES)
    assert (len(found.roofline), found.roofline_left_out) == (2, 4)


# ---- files


def test_a_run_folder_of_eval(tmp_path: Path) -> None:
    folder = evaluate(values_of(tmp_path)).folder
    done = report(folder.path)
    assert (done.exit_code, done.stdout) == (0, "")
    data = data_of(folder.path / "report.html")
    lines = [line for each in data["report"]["problems"] for line in each["lines"]]
    assert sorted(line["sample"] for line in lines) == [0, 0, 0, 1, 1, 1]
    assert {line["place"]["id"] for line in lines} == {each["id"] for each in data["episodes"]}
    printed = report(folder.path, "--json")
    assert json.loads(printed.stdout) == json.loads(folder.metrics_file.read_text())
    assert printed.stderr == ""


def test_where_a_report_goes(tmp_path: Path) -> None:
    assert default_file(tmp_path) == tmp_path / "report.html"
    assert default_file(tmp_path / "demo.cpu.jsonl") == tmp_path / "demo.cpu.report.html"
    file = write(tmp_path / "t.jsonl", *RUN)
    assert report(file, "--json").exit_code == 0
    assert list(tmp_path.iterdir()) == [file]  # figures alone write nothing
    assert report(file).exit_code == 0
    assert (tmp_path / "t.report.html").exists()


def test_models_have_figures_of_their_own(tmp_path: Path) -> None:
    update = {"model": "other", "turns": (BROKEN,), "returns": (0.0,)}
    others = [
        each.model_copy(update=update | {"episode_id": f"o{at}"}) for at, each in enumerate(RUN)
    ]
    file = write(tmp_path / "t.jsonl", *RUN, *others)
    models = json.loads(report(file, "--json").stdout)["models"]
    alone = json.loads(report(write(tmp_path / "u.jsonl", *RUN), "--json").stdout)
    assert models == {RUN[0].model: alone["overall"], "other": models["other"]}
    assert models["other"]["correct"]["avg"]["value"] == 0
    assert (alone["models"], alone["languages"]) == ({}, {})
    assert report(file, "--out", tmp_path / "r.md").exit_code == 0
    rows = (tmp_path / "r.md").read_text().split("## Groups, speedup over eager\n")[1]
    assert re.search(r"^\| other \| 2 \| 0.0% ", rows, re.MULTILINE)


def test_markdown(tmp_path: Path) -> None:
    done = report(write(tmp_path / "t.jsonl", *RUN), "--out", tmp_path / "r.md")
    assert (done.exit_code, done.stderr) == (0, f"wrote {tmp_path / 'r.md'}\n")
    text = (tmp_path / "r.md").read_text()
    assert "| correct | 75.0% \\[50.0, 100.0\\] | 100.0% \\[100.0, 100.0\\] |" in text
    assert "| 2 to 3 | 1 |" in text
    assert "| rules/torch\\_compute | 1 | hack |" in text
    assert "| L2\\_3\\_Mul |  | b1 | 2 | correctness/early\\_done |" in text
    assert "| L1\\_1\\_Add | 2 | 100.0% | 2.00x | 1.60x | 100.0% |  | 0.0% | 4 |" in text
    table = text.split("## Trajectories\n")[1].split("##")[0].splitlines()
    assert len({line.count("|") for line in table if line}) == 1


@pytest.mark.parametrize(
    ("lines", "words", "said"),
    [
        (None, (), "no such trajectory file"),
        ("", (), "no trajectory with a turn"),
        ("{}\n[1, 2\n", (), "no trajectory with a turn"),
        (RUN[0].model_dump_json() + "\n", ("--out", "r.pdf"), ".html or .md"),
        (
            RUN[0].model_dump_json() + "\n",
            ("--out", "no/r.html"),
            "kevin-env: no/r.html: No such file",
        ),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path: Path, lines, words, said, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    if lines is not None:
        Path("t.jsonl").write_text(lines)
    done = report("t.jsonl", *words)
    *left_out, last = done.stderr.splitlines()
    assert (done.exit_code, said in last) == (2, True)
    assert all(line.startswith("left out: t.jsonl line ") for line in left_out)


def test_folders_that_hold_nothing(tmp_path: Path) -> None:
    for folder in (tmp_path / "no", tmp_path):
        done = report(folder)
        assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)


def test_damaged_lines_are_named_and_the_rest_is_reported(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", RUN[0])
    file.write_text(file.read_text() + '{"schema": "kevin-trajectory/9"}\n\x1b[2J{\n')
    write(file, RUN[1])
    done = report(file)
    assert (done.exit_code, "\x1b" in done.stderr) == (0, False)
    assert [line.split(":")[0] for line in done.stderr.splitlines()[:2]] == ["left out", "left out"]
    assert " line 2: " in done.stderr
    assert " line 3: " in done.stderr
    assert len(data_of(tmp_path / "t.report.html")["episodes"]) == 2


# ---- large runs


def test_a_large_run_has_its_trajectories_in_pages_beside_it(tmp_path: Path) -> None:
    more = [played("L1_1_Add", f"c{at}", timed(1, 1.0 + at / 100)) for at in range(MOST_LINES)]
    run = read_run(write(tmp_path / "t.jsonl", *RUN, *more), never)
    pages: list[tuple[int, int]] = []
    file, room = tmp_path / "a #1.html", Room(episodes=20)
    out = write_report(run, file, lambda *page: pages.append(page), room)
    assert pages == [(1, 3), (2, 3), (3, 3)]
    data = data_of(out)
    assert data["episodes"] == []
    first = data["report"]["problems"][0]
    assert (len(first["lines"]), first["more"], len(first["pages"])) == (MOST_LINES, 2, 2)
    for line in (line for each in data["report"]["problems"] for line in each["lines"]):
        shown = data_of(tmp_path / unquote(line["place"]["page"]))
        assert line["place"]["id"] in {each["id"] for each in shown["episodes"]}
        assert len(shown["episodes"]) <= 20
        assert (tmp_path / "pages" / unquote(shown["home"])).resolve() == out


def test_how_much_is_large(tmp_path: Path) -> None:
    run = read_run(write(tmp_path / "t.jsonl", *RUN), never)
    rows = [row for _, each in run.problems for row in each]
    size = sum(row.place.size for row in rows)
    assert size == (tmp_path / "t.jsonl").stat().st_size
    assert Room(episodes=4, bytes=size).holds(rows)
    assert not Room(episodes=3, bytes=size).holds(rows)
    assert not Room(episodes=4, bytes=size - 1).holds(rows)


def test_names_of_problems_stay_in_their_folder(tmp_path: Path) -> None:
    names = ["../../up", "a/b", "x" * 5000, "<b>&'\"#?%00", "..", ""]
    episodes = [played(name, f"e{at}", timed(1, 1.0)) for at, name in enumerate(names)]
    run = read_run(write(tmp_path / "t.jsonl", *episodes), never)
    write_report(run, tmp_path / "r.html", lambda *_: None, Room(episodes=1))
    pages = list((tmp_path / "r_trajectories").iterdir())
    assert len(pages) == len(names)
    assert all(re.fullmatch(r"\d{3}-[A-Za-z0-9_-]{0,60}\.html", page.name) for page in pages)
    assert {each.name for each in tmp_path.iterdir()} == {"t.jsonl", "r.html", "r_trajectories"}


# ---- hostile text


HOSTILE = turn(1, outcome=RulesViolation(kind="torch_compute", message=EVIL * 9))


def hostile() -> list[Trajectory]:
    episode = evil()
    long = played("L1_" + "long" * 1000, "i" * 3000, timed(1, 1e6), model="m" * 5000)
    return [episode.model_copy(update={"turns": (*episode.turns, HOSTILE)}), long]


# ---- in a browser


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Page]:
    def open_report(
        *episodes: Trajectory, room: Room = SINGLE, fragment: str = "", dark: bool = False
    ) -> Page:
        run = read_run(write(tmp_path / "t.jsonl", *episodes), never)
        out = write_report(run, tmp_path / "r.html", lambda *_: None, room)
        return Page(find_browser() or "", tmp_path / "profile", out.as_uri() + fragment, dark)

    return open_report


def words(selector: str) -> str:
    return f"[...document.querySelectorAll('{selector}')].map(each => each.textContent.trim())"


PROBLEMS = words("#problems a.link")
TRAJECTORY = "document.querySelector('#columns').hidden ? '' : location.hash"


@pytest.mark.full
@needs_browser
def test_a_page_says_what_the_figures_are(opened: Any) -> None:
    with opened(*RUN) as shown:
        names, values = (shown.value(words(f".tiles {tag}")) for tag in ("span", "b"))
        tiles = dict(zip(names, values, strict=True))
        assert tiles == {
            "correct": "75.0%",
            "pass@2": "100.0%",  # each problem has one
            "mean speedup": "1.05x",  # (2.0 + 1.2) / 2 and (0 + 1.0) / 2
            "best@2": "1.50x",  # 2.0 and 1.0
            "fast_1": "75.0%",
            "hack rate": "25.0%",  # 0 of 4 and 2 of 4 turns
            "tokens": "32K",
            "device seconds": "1.5",
        }
        assert shown.value("document.querySelectorAll('.charts svg[role]').length") == 8
        bars = "document.querySelectorAll('.charts figure:nth-child(3) svg rect.bar').length"
        assert shown.value(bars) == 5
        told = "[...document.querySelectorAll('.charts figure:nth-child(2) title')].map(each => each.textContent)"
        assert shown.value(told)[1] == "k = 2\neager: 1.50x [1.00x, 2.00x]"
        assert shown.value(words("#kinds th"))[1] == "rules/torch_compute"
        row = "document.querySelectorAll('#problems tbody tr')[0]"
        cells = shown.value(f"[...{row}.cells].map(each => each.innerText)")
        assert " ".join(cells[:9]) == "L1_1_Add 1 2 100.0% 2.00x 1.60x 100.0% 0.0% 4"
        assert (shown.requests[1:], shown.errors) == ([], [])


@needs_browser
def test_charts_of_zeros_are_left_out_and_what_is_special_is_marked(opened: Any) -> None:
    slow = played("L1_1_Add", "a", timed(1, 0.8), timed(2, 0.8))
    noisy = played("L1_2_Mul", "b", NOISY, NOISY)
    with opened(slow, noisy) as shown:
        titles = shown.value(words(".charts b"))
        assert "Turns: shares" in titles
        assert "Turns: fast_1" not in titles  # nothing is faster than eager
        series = shown.value(words(".charts figure:nth-last-child(3) .entry"))
        assert series == ["compile", "correct", "correct so far"]  # no hack
        # All are 100 %: what is below is broad.
        under = "document.querySelectorAll('.charts figure:nth-last-child(3) .under').length"
        assert shown.value(under) == 2
        assert shown.value(words("#problems td .slow")) == ["0.80x", "0.80x"]
        assert shown.value(words("#problems .line .noisy")) == ["○", "○"]
        assert shown.value(words("#kinds .noisy")) == ["correct/too_noisy", ""]


@pytest.mark.full
@needs_browser
def test_a_page_works_by_keys(opened: Any) -> None:
    with opened(*RUN) as shown:
        assert shown.value("getComputedStyle(document.querySelector('#columns')).display") == "none"
        shown.press("j")
        shown.press("j")
        assert shown.value("document.activeElement.innerText") == "L2_3_Mul"
        shown.press("Enter")
        assert shown.awaited(TRAJECTORY) == "#b1/1/kernel"
        shown.press("l")
        shown.press("3")
        chosen = shown.value("document.querySelector('#turns tr.chosen').innerText")
        assert chosen.split()[:2] == ["~", "2"]
        shown.press("r")
        where = shown.value("[document.querySelector('#report').hidden, location.hash]")
        assert where == [False, "#report"]
        assert shown.value("document.activeElement.innerText") == "L2_3_Mul"
        shown.press("r")
        assert shown.value("location.hash") == "#b1/2/feedback"
        shown.value("document.querySelector('#rows a').click()")
        shown.awaited("location.hash === '#a0/2/feedback'")
        assert shown.value("document.querySelector('#report').hidden")
        shown.value("history.go(-2)")
        shown.awaited("!document.querySelector('#report').hidden")
        for key in "ssss":
            shown.press(key)
        sorted_by = "document.querySelector('#problems th[aria-sort]').innerText"
        assert shown.value(sorted_by) == "correct ▼"
        shown.press("S")
        assert shown.value(PROBLEMS) == ["L2_3_Mul", "L1_1_Add"]
        shown.value("document.querySelector('#hacks tbody tr:nth-child(2) a').click()")
        assert shown.awaited(TRAJECTORY) == "#b1/2/kernel"
        assert (shown.requests[1:], shown.errors) == ([], [])


@pytest.mark.full
@needs_browser
def test_the_roofline_is_drawn(opened: Any) -> None:
    with opened(*ROOFLINES, dark=True) as shown:
        label = shown.value("document.querySelector('#roofline').getAttribute('aria-label')")
        assert label == "Roofline: 5 timed turns, 133.3% of it reached at best"
        assert shown.value("document.querySelector('#roofline > title').textContent") == label
        roofs = ["memory: 3.72 TB/s", "arithmetic: 50 TFLOP/s"]
        assert shown.value(words("#roofline .roof title")) == roofs
        lines = shown.value(words("#roofline .mark title"))[3].split("\n")
        assert lines[:2] == ["L1_23_Softmax, turn 1", "5.6% of the roofline, bound by memory"]
        assert lines[2:] == ["100 GFLOP/s, 200 GB/s", "0.5 FLOP/B"]
        inside = """[...document.querySelectorAll('#roofline .mark')].every(mark => {
            const at = mark.getBoundingClientRect(), all = mark.ownerSVGElement.getBoundingClientRect();
            return at.x >= all.x && at.right <= all.right && at.y >= all.y && at.bottom <= all.bottom; })"""
        assert shown.value(inside)
        ends = shown.value("document.querySelector('#roofline .roof').getAttribute('d')")
        assert "NaN" not in ends and "Infinity" not in ends
        charts = shown.value("document.querySelector('.charts').innerText")
        assert "come after the first 5: 1 turn" in charts
        notes = shown.value("document.querySelector('.notes').innerText")
        assert "turns flagged above_roofline (" in notes
        shown.resize(400, 800)
        assert shown.value("document.documentElement.scrollWidth <= innerWidth")
        shown.value(
            "document.querySelector('#roofline .mark').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
        )
        assert shown.awaited(TRAJECTORY) == "#r1/1/kernel"
        assert shown.errors == []


@pytest.mark.full
@needs_browser
def test_problems_are_filtered(opened: Any) -> None:
    with opened(*RUN) as shown:
        found = {"": 2, "hacks>0 level:1": 0, "nowhere": 0} | dict.fromkeys(
            ("add", "-add", "level:2", "best>1.5x", "correct<=50%", "category:compile", "a1"), 1
        )
        for filter, many in found.items():
            shown.press("/")
            assert shown.value("document.activeElement.id") == "filter"
            box = "document.activeElement"
            typed = f"{box}.dispatchEvent(new Event('input', {{bubbles: true}}))"
            shown.value(f"{box}.value = '{filter}'; {typed}")
            assert (filter, len(shown.value(PROBLEMS))) == (filter, many)
            table = shown.value("document.querySelector('#problems').innerText")
            assert ("No problem matches" in table) == (many == 0)
            shown.press("Escape")


@pytest.mark.full
@needs_browser
def test_a_page_fits_wide_and_narrow_in_dark_and_light(opened: Any) -> None:
    with opened(*RUN, *hostile(), dark=True) as shown:
        shown.press("?")
        for width in (1280, 400):
            shown.resize(width, 800)
            assert shown.value("document.documentElement.scrollWidth <= innerWidth")
            assert shown.value("document.querySelector('#report').scrollWidth <= innerWidth")
            assert shown.value("document.querySelector('#help').scrollWidth <= innerWidth")
            assert shown.value(
                "[...document.querySelectorAll('.tiles b')].every(e => e.scrollWidth <= e.clientWidth)"
            )
        shown.press("?")
        back = "getComputedStyle(document.body).backgroundColor"
        dark = shown.value(back)
        shown.press("t")
        assert (dark, shown.value(back)) == ("rgb(20, 23, 28)", "rgb(255, 255, 255)")


@pytest.mark.full
@needs_browser
def test_a_large_run_is_read_from_page_to_page(opened: Any) -> None:
    with opened(*RUN, room=Room(episodes=2)) as shown:
        shown.press("j")
        shown.press("Enter")
        at = shown.awaited(
            "location.pathname.includes('_trajectories/') && document.querySelector('#turns') && location.href"
        )
        assert at.endswith("/r_trajectories/001-L1_1_Add.html#a0/2/kernel")
        assert shown.value(words("#rows .name span:first-child")) == ["L1_1_Add", "L1_1_Add"]
        shown.press("r")
        shown.awaited(
            "location.pathname.endsWith('/r.html') && !!document.querySelector('#report h2')"
        )
        assert all(each.startswith("file:") for each in shown.requests)
        assert shown.errors == []


@pytest.mark.full
@needs_browser
def test_odd_runs_are_shown(opened: Any, tmp_path: Path) -> None:
    compiled = played("L1_1", "a", timed(1, 1.5), config={"baseline": "compile"})
    unknown = [compiled, played("L1_1", "b", timed(1, 1.5))]
    odd = {"unknown": unknown, "one": [played("none", "a", NOISY)], "wrong": [RUN[2]]}
    with opened(*hostile(), fragment="#%E0%A4%A/x") as shown:
        assert shown.value("document.querySelectorAll('img, main script').length") == 0
        shown.press("r")
        problems = shown.value("document.querySelector('#problems').innerText")
        assert "<script>alert(1)</script>" in problems
        for name, episodes in odd.items():
            file = tmp_path / f"{name}.jsonl"
            run = read_run(write(file, *episodes), never)
            shown.visit(write_report(run, default_file(file), lambda *_: None).as_uri())
            assert shown.value("document.querySelectorAll('#problems tbody tr').length") == 1
            text = shown.value("document.querySelector('#report').outerHTML")
            assert "NaN" not in text and "undefined" not in text
        assert shown.errors == []
