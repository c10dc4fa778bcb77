"""README and docs: figures and the picture are current, links lead somewhere, and code runs."""

import html
import importlib
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kevin_env.cli import app
from kevin_env.judge.api import Options
from kevin_env.pools.local import LocalPool
from kevin_env.problem import load_problem

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def svg_text(file: Path) -> str:
    """The words of an SVG, without their layout."""
    body = re.sub(r"<style.*?</style>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def replay(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["replay", *arguments])
    assert not result.exit_code, result.output
    return result.output


def test_figures_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    for file, text in importlib.import_module("figures").documents().items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name}: run `make docs`"


def test_the_picture_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [line] = re.findall(r"kevin-env replay (.* --export) docs/replay.svg", makefile())
    monkeypatch.chdir(ROOT)
    replay(*line.split(), str(tmp_path / "new.svg"))
    assert svg_text(ROOT / "docs" / "replay.svg") == svg_text(tmp_path / "new.svg"), (
        "run `make docs`"
    )


def test_links_and_named_files_lead_somewhere() -> None:
    dead = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, title = link.partition("#")
            target = page.parent / path if path else page
            if "://" not in path and (
                not target.exists() or (title and title not in anchors(target))
            ):
                dead.append((page.name, link))
        roots = "kevin_env|benchmarks|tests|prompts|problems|examples|docs"
        names = re.findall(rf"`((?:{roots})/[\w/.]+)`", text)
        dead += [(page.name, name) for name in names if not (ROOT / name).exists()]
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The names of a page's titles, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_commands_and_options_exist() -> None:
    unknown = []
    for page in [*PAGES, *(ROOT / "docs").glob("judge-server.*")]:
        text = page.read_text(encoding="utf-8")
        for line in re.findall(r"^(?:    |.*exec |.*/bin/)kevin-env (.*?)(?:  +#.*)?$", text, re.M):
            command: Any = get_command(app)
            for word in line.split():
                command = getattr(command, "commands", {}).get(word, command)
            known = {option for parameter in command.params for option in parameter.opts}
            own = re.sub(r"\"[^\"]*\"|'[^']*'", "", line.partition(" -- ")[0])
            options = re.findall(r"(?<=\s)--?[a-z][a-z-]*", own)
            unknown += [(page.name, line, option) for option in options if option not in known]
    assert unknown == []


def test_code_of_frameworks_is_quoted_from_examples() -> None:
    files = [each for each in (ROOT / "examples").iterdir() if each.suffix in (".py", ".toml")]
    texts = [re.sub(r"^ +", "", file.read_text(encoding="utf-8"), flags=re.M) for file in files]
    training, openenv = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("training.md", "openenv.md")
    )
    pages = training[training.index("## TRL") :] + openenv
    blocks = re.findall(r"```\w+\n(.*?)```", pages, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        assert any(re.sub(r"^ +", "", block, flags=re.M) in text for text in texts), block


def test_the_loop_in_readme_runs(pool: LocalPool, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = re.findall(r"```python\n(.*?)```", readme(), re.DOTALL)
    here = code.replace("max_turns=4", 'max_turns=4, device="cpu", pool=pool')
    exec(here, {"my_model": lambda messages: "no code", "pool": pool})
    assert capsys.readouterr().out == "(0.0, 0.0, 0.0, 0.0)\n"


def test_the_problem_in_readme_is_one(tmp_path: Path, pool: LocalPool) -> None:
    [code] = re.findall(r"^(    import torch\n(?:    .*\n)+)", readme(), re.MULTILINE)
    file = tmp_path / "problem.py"
    file.write_text(textwrap.dedent(code).replace("4096", "64"))
    assert pool.describe(load_problem(str(file)), Options(device="cpu")).result().cases


def test_no_page_repeats_another() -> None:
    """Twelve words in a row are on one page only; tables and code are another matter."""
    pages: dict[str, set[str]] = {}
    for page in PAGES:
        text = re.sub(r"```.*?```|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.S)
        text = re.sub(r"^(    |\|).*", "", text, flags=re.M)
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).lower().split()
        for start in range(len(words) - 11):
            pages.setdefault(" ".join(words[start : start + 12]), set()).add(page.name)
    assert {words: found for words, found in pages.items() if len(found) > 1} == {}


def test_readme_is_read_in_a_minute() -> None:
    assert len(readme().splitlines()) <= 90


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")
