import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browser import Page, find_browser, needs_browser
from trajectories import STORY, evil, timed, trajectory, turn, write
from typer.testing import CliRunner

from kevin_env.app.replay.markdown import fence, inline
from kevin_env.app.replay.page import page
from kevin_env.cli import app
from kevin_env.record import ProblemRef

OTHER = trajectory(timed(1, 1.5), id="other", model="qwen")


def export(folder: Path, name: str, *episodes: Any, more: tuple[str, ...] = ()) -> str:
    file = folder / "t.jsonl"
    if not file.exists():
        write(file, *episodes)
    done = CliRunner().invoke(app, ["replay", str(file), "--export", str(folder / name), *more])
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    return (folder / name).read_text()


def test_a_screen_is_exported(tmp_path: Path) -> None:
    text = export(tmp_path, "t.txt", STORY, more=("--turn", "3", "--size", "90x20"))
    assert len(text.splitlines()) == 20
    assert "▌ x     3  compile/compiler" in text
    svg = export(tmp_path, "t.svg", STORY)
    assert "compile/compiler" in svg.replace("&#160;", " ")
    assert not re.search(r"https?://(?!www\.w3\.org)", svg)


def test_a_screen_is_exported_without_a_terminal(tmp_path: Path) -> None:
    """Its standard input is a pipe that is closed, which is no terminal that hangs up."""
    out = tmp_path / "t.svg"
    words = ["replay", str(write(tmp_path / "t.jsonl", STORY)), "--export", str(out)]
    subprocess.run([sys.executable, "-m", "kevin_env", *words], input=b"", check=True)
    assert "compile/compiler" in out.read_text().replace("&#160;", " ")


def test_the_list_is_exported_when_there_are_several(tmp_path: Path) -> None:
    assert "2 trajectories" in export(tmp_path, "t.txt", STORY, OTHER)


def test_markdown(tmp_path: Path) -> None:
    text = export(tmp_path, "t.md", STORY)
    assert "| 2 | correct/timed | 2.00x \\[1.80, 2.20\\] | 2.30 | 3.00 | 1.5 |" in text
    assert "`s_4 = 0.3 correct + 4.000 speedup = 4.300`, `R_4 = 4.300`" in text
    assert "-# version 1" in text
    assert inline("a|b <b> [x](y) `c`\n# d") == "a\\|b &lt;b\\> \\[x\\]\\(y\\) \\`c\\` \\# d"
    assert fence("```\nx")[0].startswith("````\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--export", "x.pdf"), ".html, .md, .svg or .txt"),
        (("--export", "no/x.md"), "no/x.md: No such file"),
        (("--export", "x.svg", "--size", "9"), "140x42"),
    ],
)
def test_bad_exports_are_one_clear_line(
    tmp_path: Path, words: tuple[str, ...], said: str, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["replay", str(write(tmp_path / "t.jsonl", STORY)), *words])
    assert (done.exit_code, len(done.stderr.splitlines()), said in done.stderr) == (2, 1, True)


def test_a_page_holds_everything_it_needs() -> None:
    text = page("t", [STORY])
    head = text.split("<script type")[0]
    assert re.findall(r"(?:src|href)=(\S+)", head) == ['"data:,">']
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert "default-src 'none'" in text
    assert "innerHTML" not in text


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    browser = find_browser() or ""

    def open_page(*episodes: Any, fragment: str = "", dark: bool = False) -> Page:
        export(tmp_path, "t.html", *episodes)
        return Page(browser, tmp_path / "profile", (tmp_path / "t.html").as_uri() + fragment, dark)

    return open_page


VIEW = "document.getElementById('view').innerText"


@needs_browser
def test_a_page_works_with_keys_and_asks_for_nothing(opened: Any) -> None:
    with opened(STORY, OTHER, trajectory(turn(1))) as shown:
        assert "best 4.00x (turn 4)" in shown.value(VIEW)
        assert shown.value("location.hash") == "#story/4/kernel"
        assert "00:00:00" not in shown.value(VIEW)
        shown.press("0")
        shown.press("ArrowRight")
        shown.press("l")
        assert shown.value("document.querySelector('#turns tr.chosen').innerText").split()[:2] == [
            "x",
            "3",
        ]
        assert "foo" in shown.value("document.querySelector('.code .wrong').innerText")
        shown.press("d")
        assert "int x = foo" in shown.value("document.querySelector('.code').innerText")
        shown.press("$")
        assert shown.value("document.querySelectorAll('.code .add').length") == 1
        shown.value(
            "(base => { base.value = '1'; base.dispatchEvent(new Event('change')); })(document.getElementById('base'))"
        )
        assert "version 1" in shown.value("document.querySelector('.code .del').innerText")
        assert shown.value("document.querySelector('.code .add .word').innerText") == "4"
        shown.press("6")
        assert "s_4 = 0.3 correct + 4.000 speedup = 4.300" in shown.value(VIEW)
        shown.press("j")
        assert shown.value("location.hash") == "#other/1/numbers"
        assert shown.value("document.querySelectorAll('.charts svg[role]').length") == 2
        assert (shown.requests[1:], shown.errors) == ([], [])


@needs_browser
def test_a_page_is_used_without_a_mouse(opened: Any) -> None:
    with opened(timed_slowly(), STORY) as shown:
        assert "0.50x (turn 1), slower than the reference" in shown.value(VIEW)
        assert shown.value("document.querySelector('#turns .slow').innerText") == "0.50x"
        shown.value("document.querySelector('#rows li + li a').focus()")
        shown.press("Enter")
        shown.awaited("location.hash === '#story/4/kernel'")
        assert shown.value("document.activeElement.id") == "episode1"
        shown.value("document.querySelector('#turns tbody tr').focus()")
        shown.press("Enter")
        shown.press("l")
        chosen = (
            "document.activeElement.className + document.activeElement.getAttribute('aria-current')"
        )
        assert shown.value(chosen) == "chosentrue"
        assert shown.value("location.hash") == "#story/2/kernel"
        label = shown.value(
            "document.querySelector('.charts svg[role]').getAttribute('aria-label')"
        )
        assert "turn 4: correct/timed 4.00x [3.60x, 4.40x]" in label
        shown.press("y")
        shown.awaited("document.getElementById('copy').innerText === 'copied'")


@needs_browser
def test_a_narrow_page_does_not_scroll_sideways(opened: Any) -> None:
    problem = ProblemRef(id="L1_" + "long" * 40, sha256="")
    with opened(STORY.model_copy(update={"problem": problem})) as shown:
        shown.resize(400, 800)
        for pane in "123456":
            shown.press(pane)
            wide, room = shown.value(
                "(view => [view.scrollWidth, view.clientWidth])(document.getElementById('view'))"
            )
            assert (pane, wide) == (pane, room)


def timed_slowly() -> Any:
    return trajectory(timed(1, 0.5), id="slow")


def test_texts_stand_out_from_their_backgrounds() -> None:
    """At least 4.5 to 1, as WCAG asks."""
    texts = "text dim accent good bad wrong odd noisy"
    code = "text keyword string number comment function decorator"
    pairs = [
        *itertools.product(texts.split(), ("back", "soft", "mark")),
        *itertools.product(code.split(), ("soft", "add", "del", "added", "deleted", "found")),
    ]
    for theme in re.findall(r":root(?:\.dark)? \{(.*?)\}", page("t", []), re.DOTALL):
        colors = dict(re.findall(r"--(\w+): #(\w{6})", theme))
        for one, other in pairs:
            dark, light = sorted(luminance(colors[name]) for name in (one, other))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (one, other)


def luminance(color: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [part / 255 for part in bytes.fromhex(color)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.full
@needs_browser
def test_a_page_is_searched(opened: Any) -> None:
    with opened(STORY, OTHER, trajectory(turn(1))) as shown:
        count = "document.querySelectorAll('#rows li[data-at]').length"
        search = "document.getElementById('search')"
        for words, many in (
            ("", 3),
            ("qwen", 1),
            ("identifier", 1),
            ("speedup>2", 1),
            ("-qwen", 2),
            ("category:format", 1),
            ("zzz", 0),
        ):
            shown.value(f"{search}.value = '{words}'; {search}.dispatchEvent(new Event('input'))")
            assert (words, shown.value(count)) == (words, many)
        shown.press("/")
        assert shown.value("document.activeElement.id") == "search"
        shown.press("Escape")
        assert shown.value("document.activeElement.id") != "search"


@pytest.mark.full
@needs_browser
def test_a_page_opens_where_its_address_says_in_dark_or_light(opened: Any) -> None:
    with opened(STORY, OTHER, fragment="#story/3/reply", dark=True) as shown:
        assert "I think it should be foo." in shown.value(VIEW)
        assert shown.value("document.documentElement.className") == "dark"
        shown.press("t")
        assert shown.value("document.documentElement.className") == ""


@pytest.mark.full
@needs_browser
def test_a_hostile_page_runs_nothing(opened: Any) -> None:
    with opened(evil()) as shown:
        for key in "123456":
            for at in ("0", "l", "l"):
                shown.press(key)
                shown.press(at)
        assert "<script>alert(1)</script>" in shown.value("document.querySelector('h2').innerText")
        assert shown.value("document.querySelectorAll('img, #view script').length") == 0
        assert (shown.requests[1:], shown.errors) == ([], [])
