"""Builds the site of the docs from the files that GitHub shows. `make site` runs it.

    python docs/site/build.py [--out build/site]

A page links to others, and to code, by paths in the repository. Here a link to code leads to a
page that shows the file. Comments `<!-- site: ... -->`, which GitHub hides, hold what only the site
has: the API from the docstrings, and a report and a replay as they look in a browser.
"""

import argparse
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).with_name("zensical.toml")
RUN = ROOT / "examples" / "demo.h200.jsonl"
NAMES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/three_turns.ipynb": "notebook.md",
}
"""Pages whose names differ from their files in `docs`."""
AS_THEY_ARE = (".json", ".jsonl", ".png", ".svg")
"""Files that a browser shows."""
UNLISTED = "---\nsearch:\n  exclude: true\n---\n\n"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)(?=[)#])")


def main() -> int:
    """Gathers the pages and builds the site; the exit code of the builder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    out = parser.parse_args().out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    pages = Pages(out / "pages")
    for file in (*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").glob("*.md"))):
        pages.add(file)
    for command, option in (("report", "--out"), ("replay", "--export")):
        page = pages.folder / f"{command}.html"
        program = [sys.executable, "-m", "kevin_env", command, str(RUN), option, str(page)]
        subprocess.run(program, check=True, capture_output=True)
    shutil.copy(CONFIG.with_name("site.css"), pages.folder)
    shutil.copy(CONFIG, out)
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run([*build, "--config-file", str(out / CONFIG.name)], check=False).returncode


class Pages:
    """The folder of pages: each is written once, with what it links to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._added: set[Path] = set()

    def add(self, file: Path) -> str:
        """Adds the page of a file or folder of the repository, and returns its name."""
        name = page_name(file)
        if file in self._added:
            return name
        self._added.add(file)
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file() and file.suffix in AS_THEY_ARE:
            shutil.copy(file, target)
        else:
            target.write_text(self._linked(page_text(file), file, name), encoding="utf-8")
        return name

    def _linked(self, text: str, file: Path, name: str) -> str:
        """The text with links between pages in place of those between files."""
        base = file if file.is_dir() else file.parent

        def link(found: re.Match[str]) -> str:
            linked = Path(os.path.normpath(base / found[1]))
            if not linked.exists():
                raise SystemExit(f"{file.relative_to(ROOT)}: there is no {found[1]}")
            return posixpath.relpath(self.add(linked), posixpath.dirname(name) or ".")

        prose = file.is_dir() or file.suffix in (".md", ".ipynb")
        return LINK.sub(link, text) if prose else text


def page_name(file: Path) -> str:
    """The name of a file's page, relative to the folder of pages."""
    path = file.relative_to(ROOT).as_posix()
    if path in NAMES:
        return NAMES[path]
    if file.parent == ROOT / "docs" and file.suffix in (".md", *AS_THEY_ARE):
        return file.name
    kept = file.is_file() and file.suffix in (".md", *AS_THEY_ARE)
    return f"source/{path}" + ("" if kept else ".md")


def page_text(file: Path) -> str:
    """A page in Markdown."""
    title = file.relative_to(ROOT).as_posix()
    if file.is_dir():
        rows = "\n".join(
            f"| [`{each.name}`]({each.name}) | {summary(each)} |" for each in listed(file)
        )
        return f"{UNLISTED}# {title}\n\n| file | |\n|---|---|\n{rows}\n"
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        return notebook(json.loads(text))
    if file.suffix == ".md":
        return re.sub(r"<!-- site: (.*?) -->", r"\1", text, flags=re.DOTALL)
    return f"{UNLISTED}# {title}\n\n{fenced(text, file.suffix.removeprefix('.'))}\n"


def listed(folder: Path) -> list[Path]:
    """What is in a folder, without what git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."]
    known = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return sorted({folder / line.split("/")[0] for line in known.splitlines()})


def summary(file: Path) -> str:
    """The first paragraph of a Python file's docstring."""
    text = file.read_text(encoding="utf-8") if file.suffix == ".py" else ""  # not all of it parses
    said = re.match(r'r?"""(.*?)(\n\n|""")', text, re.DOTALL)
    return " ".join(said[1].split()).replace("|", "\\|") if said else ""


def fenced(text: str, language: str) -> str:
    """A block of code, which may have fences of its own."""
    return f"~~~~ {language}\n{text}\n~~~~"


def notebook(cells: dict) -> str:
    """An executed notebook with its outputs."""
    parts = []
    for cell in cells["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else fenced(source, "python"))
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if picture := data.get("image/png"):
                parts.append(f"![](data:image/png;base64,{''.join(picture).strip()})")
            elif words := "".join(output.get("text") or data.get("text/plain") or ()):
                parts.append(fenced(words, "text"))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
