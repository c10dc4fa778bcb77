"""The site of the docs: all of it is there, its links lead somewhere, and it can be read and searched."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import pytest
from browser import Page, find_browser, needs_browser

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs" / "site"
needs_zensical = pytest.mark.skipif(
    not importlib.util.find_spec("zensical"), reason="there is no zensical; pip install '.[docs]'"
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class Read(HTMLParser):
    """What a page refers to, and the places in it that others may refer to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.references: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.references.append(value)
            elif name == "id" and value:
                self.ids.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, str(SITE / "build.py"), "--out", str(out)]
    done = subprocess.run(build, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_page_is_in_the_navigation() -> None:
    nav = str(tomllib.loads((SITE / "zensical.toml").read_text())["project"]["nav"])
    pages = {file.name for file in (ROOT / "docs").glob("*.md")}
    assert pages - set(re.findall(r"[\w-]+\.md", nav)) == set()


@pytest.mark.full
@pytest.mark.xdist_group("site")
@needs_zensical
def test_references_lead_somewhere(site: Path) -> None:
    pages = {page: Read(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 100
    dead = []
    for page, read in pages.items():
        for reference in read.references:
            path, _, place = unquote(reference).partition("#")
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            if re.match(r"[a-z]+:", path):
                continue
            if not target.exists() or (place and place not in pages[target].ids):
                dead.append((page.name, reference))
    assert dead == []


@pytest.mark.full
@pytest.mark.xdist_group("site")
@needs_zensical
def test_the_docstrings_of_all_that_is_named_are_there(site: Path) -> None:
    names = re.findall(r"^<!-- site: ::: (\S+) -->$", (ROOT / "docs" / "api.md").read_text(), re.M)
    assert "kevin_env.episode.Episode" in names
    assert set(names) <= Read(site / "api.html").ids
    assert "Discount of the returns from one turn to the next" in (site / "api.html").read_text()


@pytest.mark.full
@pytest.mark.xdist_group("site")
@needs_zensical
def test_every_title_of_the_notebook_is_there(site: Path) -> None:
    cells = json.loads((ROOT / "examples" / "three_turns.ipynb").read_text())["cells"]
    told = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    page = (site / "notebook.html").read_text()
    assert len(re.findall(r"^#+ ", told, re.MULTILINE)) == len(re.findall(r"<h[1-6]", page))
    assert "data:image/png" in page


@pytest.mark.full
@pytest.mark.xdist_group("site")
@needs_zensical
@needs_browser
def test_pages_fit_and_ask_nobody_else(site: Path, url: str, tmp_path: Path) -> None:
    with Page(find_browser() or "", tmp_path / "profile", f"{url}/index.html") as shown:
        for width in (400, 1400):
            shown.resize(width, 900)
            for page in sorted(each.name for each in site.glob("*.html")):
                shown.visit(f"{url}/{page}")
                wide = shown.value("document.documentElement.scrollWidth")
                assert wide <= width, f"{page} is {wide} wide in {width}"
        assert [each for each in shown.requests if not each.startswith((url, "data:"))] == []
        assert shown.errors == []


@pytest.mark.full
@pytest.mark.xdist_group("site")
@needs_zensical
@needs_browser
def test_a_word_is_found_and_examples_are_shown(url: str, tmp_path: Path) -> None:
    with Page(find_browser() or "", tmp_path / "profile", f"{url}/usage.html") as shown:
        shown.resize(1400, 900)
        for title in ("A report", "A replay"):
            frame = f"document.querySelector('iframe[title=\"{title}\"]')"
            shown.value(f"{frame}.scrollIntoView()")
            shown.awaited(f"{frame}.contentDocument.body.innerText.includes('L1_36_RMSNorm_')")
        shown.value("document.querySelector('.md-search__button').click()")
        dialog = "document.activeElement.shadowRoot"
        shown.awaited(f"{dialog}?.activeElement.tagName === 'INPUT'")
        for letter in "tracing":
            shown.press(letter)
        shown.awaited(f"{dialog}.textContent.includes('Threat model')")
