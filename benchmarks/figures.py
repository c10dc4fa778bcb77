"""Writes docs/figures.md and the figures in README.md from the files in `results`.

The page is `figures.md.j2`; a figure in it is an expression over the results, such as
`R["peers.cpu"].of("kernrl: attacks: rewarded")`.

    python benchmarks/figures.py [--check]
"""

import argparse
import json
import re
import statistics
import textwrap
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from resultfile import Row

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
SCRIPTS = {
    "tests": "make test test-all",
    "kernelbench_agreement_further": "benchmarks/kernelbench_agreement.py",
    "kernelbench_agreement_leaderboard": "benchmarks/kernelbench_agreement.py",
    "kernelbench_agreement_level3": "benchmarks/kernelbench_agreement.py",
    "peers_sample": "benchmarks/peers.py",
}
"""How to repeat a measurement whose script has another name."""


class Result:
    """One file of results, by its name without `.json`."""

    def __init__(self, file: Path) -> None:
        read = json.loads(file.read_text())
        self.name, self.date = file.stem, read["date"]
        self.rows: dict[str, Row] = {row["name"]: row for row in read["rows"]}
        device, _, count = read["device"].upper().partition("X")
        self.device = f"{count} {device}" if count else device

    @property
    def source(self) -> str:
        """File, device and date, and the script to repeat it with."""
        stem = self.name.split(".")[0]
        script = SCRIPTS.get(stem, f"benchmarks/{stem}.py")
        file = f"[`{self.name}.json`](../benchmarks/results/{self.name}.json)"
        return f"{file}, {self.device}, {self.date}; `{script}`."

    def __getitem__(self, name: str) -> Any:
        return self.rows[name]["value"] if name in self.rows else 0

    def n(self, name: str) -> int:
        """What a row counts: its total."""
        return self.rows[name]["n"]

    def of(self, name: str) -> str:
        """A count and its total, such as `0 of 158`."""
        return f"{self[name]:g} of {self.n(name)}"

    def by_step(self, name: str) -> list[float]:
        """A figure of each step of a training that has it."""
        names = [f"step {number:03}: {name}" for number in range(1, len(self.rows))]
        return [self[each] for each in names if each in self.rows]

    def beginning(self, prefix: str) -> dict[str, Row]:
        """The rows whose names begin so, by the rest of their names."""
        return {
            name.removeprefix(prefix): row
            for name, row in self.rows.items()
            if name.startswith(prefix)
        }


def seconds(value: float) -> str:
    """Three digits, in s, ms or us; nothing for 0."""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            scaled = value / scale
            return f"{scaled:.0f} {unit}" if scaled >= 100 else f"{scaled:.3g} {unit}"
    return ""


def percent(value: float, digits: int = 0) -> str:
    return f"{value * 100:.{digits}f}%"


def megabytes(value: float) -> str:
    return f"{value / 1e6:.0f} MB"


def largest(result: Result) -> dict[str, str]:
    """The largest difference of each metric of `profiles`, with its unit."""
    differences: dict[str, tuple[float, str]] = {}
    for name, row in result.rows.items():
        if (unit := row.get("difference_in")) in ("relative", "points"):
            metric = name.split(": ", 1)[1]
            differences[metric] = max(
                (abs(row["difference"]), unit), differences.get(metric, (0, ""))
            )
    return {
        metric: percent(value, 1) if unit == "relative" else f"{value:.1f} points"
        for metric, (value, unit) in differences.items()
        if value
    }


def of_language(result: Result, name: str) -> dict[str, Any]:
    """The honest files of a language, the others, and the seconds of a turn and of the first."""
    rows = result.beginning(f"{name}/")
    honest = {file: row for file, row in rows.items() if row["expected"] == "correct"}
    later = [row for file, row in honest.items() if "first turn" not in file]
    return {
        "honest": f"{sum(row['value'] for row in later):g} of {len(later)}",
        "others": [row["value"] for file, row in rows.items() if file not in honest],
        "turn": statistics.median(row["turn"] for row in later),
        "first": sum(row["turn"] for file, row in honest.items() if "first turn" in file),
    }


def gains(result: Result) -> list[float]:
    """The speedups of attacks that were paid as faster by more than a half without being so."""
    return [
        row["paid"]
        for name, row in result.rows.items()
        if name.startswith("hostile/") and row["expect"] == "no gain" and (row["paid"] or 0) > 1.5
    ]


def only_memory(row: Row) -> bool:
    """Whether the lint's only finding on a problem is that it takes too much memory."""
    findings = row.get("findings") or []
    return bool(findings) and all(each.startswith("memory:") for each in findings)


def flow(text: str) -> str:
    """Paragraphs and list items in lines of 100 columns; tables and titles as they are."""
    parts = re.split(r"(\n\n|\n(?=- ))", re.sub(r"\n{3,}", "\n\n", text.strip()))
    for place in range(0, len(parts), 2):
        if parts[place][0] not in "|#<`":
            indent = "  " if parts[place].startswith("- ") else ""
            whole = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), parts[place])
            parts[place] = textwrap.fill(
                whole, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            ).replace("\0", " ")
    return "".join(parts) + "\n"


def render(template: str) -> str:
    """A template of this folder, filled in from all results."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"seconds": seconds, "percent": percent, "megabytes": megabytes}
    environment.tests["only_memory"] = only_memory
    results = {file.stem: Result(file) for file in sorted((FOLDER / "results").glob("*.json"))}
    helpers = {
        "gains": gains,
        "largest": largest,
        "of_language": of_language,
        "median": statistics.median,
        "mean": statistics.fmean,
    }
    return flow(environment.get_template(template).render(R=results, **helpers))


def readme(text: str) -> str:
    """README.md with its figures replaced by those of the results."""
    blocks = re.split(r"^## (\w+)\n", render("readme_figures.md.j2"), flags=re.MULTILINE)[1:]
    for name, block in zip(blocks[::2], blocks[1::2], strict=True):
        mark, end = f"<!-- figures: {name} -->\n", "<!-- end -->"
        before, marked, rest = text.partition(mark)
        if not marked:
            raise SystemExit(f"README.md has no {mark.strip()}")
        text = before + mark + block.strip() + "\n" + end + rest.partition(end)[2]
    return text


def documents() -> dict[Path, str]:
    """Each file with figures, and its current text."""
    page = ROOT / "README.md"
    return {ROOT / "docs" / "figures.md": render("figures.md.j2"), page: readme(page.read_text())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes docs/figures.md and README's figures.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    check = parser.parse_args().check
    for file, text in documents().items():
        if not file.exists() or file.read_text() != text:
            if check:
                raise SystemExit(f"{file.name} is not current: run `make docs`")
            file.write_text(text)
            print(f"wrote {file}")
