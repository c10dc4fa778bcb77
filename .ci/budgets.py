"""Fails if a package has more lines of Python than its budget in pyproject.toml.

A file counts for the innermost folder that the table names.
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Ends with a line for each package that is over its budget, or says nothing."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    budgets: dict[str, int] = settings["tool"]["kevin-env"]["budgets"]
    packages = {ROOT / folder: package for package in budgets for folder in package.split()}
    lines = Counter[str]()
    for file in (each for top in ("kevin_env", "tests") for each in (ROOT / top).rglob("*.py")):
        folder = next(each for each in file.parents if each in packages)
        lines[packages[folder]] += len(file.read_bytes().splitlines())
    over = [
        f"{package}: {lines[package]} lines, budget {budget} (pyproject.toml)"
        for package, budget in budgets.items()
        if lines[package] > budget
    ]
    sys.exit("\n".join(over) or None)


if __name__ == "__main__":
    main()
