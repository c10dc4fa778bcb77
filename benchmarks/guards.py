"""Which tests notice that a protection is gone: the guards of `guards.toml`, removed one at a time.

Each guard is a small change to one file. It is made in a copy of the checkout, where the guard's
tests are then run and should fail. If they fail without the change, too, it is `unusable`. A run
that takes much longer than without the change is `hung`, which counts as killed. `by` is the first
test that failed. Read it: on a busy machine, tests may fail for other reasons.

Tests are those of `make test`; with --full also those of `make test-all`. A guard that survives its
own tests is tried on the files of tests/submissions that attack it. With --corpus-only it is tried
on these alone, whether `make test` has them or not. Rows of other guards in the file are kept, so
that a run can be done in parts.

    python benchmarks/guards.py [--area sandbox] [--name deadline] [--full] [--jobs 8] \\
        [--json benchmarks/results/guards.cpu.json]
    python benchmarks/guards.py --corpus-only [--jobs 8] [--json FILE]
    python benchmarks/guards.py --list
"""

import argparse
import ast
import os
import platform
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from resultfile import Row, known_rows, write_result

ROOT = Path(__file__).resolve().parent.parent
GUARDS = Path(__file__).with_suffix(".toml")
FACTOR, SLACK = 4, 60.0
"""A run hangs if it takes this multiple of its time without the change, and these seconds more."""
NOTHING = (4, 5)
"""Exit codes of pytest where nothing ran: a path or conftest is unusable, or no test is left."""


@dataclass(frozen=True)
class Selection:
    """Tests: patterns of files below `tests`, an expression for names, and one for marks."""

    patterns: tuple[str, ...]
    names: str
    marks: str

    def arguments(self, tree: Path) -> list[str]:
        """Those of pytest. If no file matches any more: the first pattern's folder."""
        tests = tree / "tests"
        files = [file for each in self.patterns for file in sorted(tests.glob(each))]
        places = dict.fromkeys(files or [(tests / self.patterns[0]).parent])
        names = [str(place.relative_to(tree)) for place in places]
        return [*names, "-k", self.names, "-m", self.marks]  # an empty expression selects all


@dataclass(frozen=True)
class Guard:
    """One protection, and the change that removes it; the fields are explained in `guards.toml`."""

    area: str
    file: str
    tests: str
    name: str
    old: str
    new: str
    corpus: str = ""
    note: str = ""
    survived: bool = False

    @property
    def title(self) -> str:
        return f"{self.area}: {self.name}"

    def selections(self, full: bool, corpus_only: bool) -> list[Selection]:
        """The tests that may notice it, in the order in which they are tried."""
        marks = "" if full or corpus_only else "not full"
        attacks = " or ".join(f"/{name}]" for name in self.corpus.split())
        own = [] if corpus_only else [Selection(tuple(self.tests.split()), "", marks)]
        return [*own, *([Selection(("test_corpus.py",), attacks, marks)] if attacks else [])]

    def removed(self) -> tuple[str, str, str]:
        """The file that it is in, its text, and its text without the guard.

        Raises:
            ValueError, SyntaxError: if it is not there exactly once, or the result is no Python.
        """
        texts = {file: file.read_text() for file in ROOT.glob(self.file)}
        found = [file for file, text in texts.items() for _ in range(text.count(self.old))]
        if len(found) != 1:
            raise ValueError(f"`old` is there {len(found)} times")
        text = texts[found[0]]
        after = text.replace(self.old, self.new)
        ast.parse(after)
        return str(found[0].relative_to(ROOT)), text, after


def read_guards() -> list[Guard]:
    """All guards.

    Raises:
        SystemExit: if some do not fit this checkout, or several have one name.
    """
    groups = tomllib.loads(GUARDS.read_text())["group"]
    guards = [
        Guard(**{key: group[key] for key in ("area", "file", "tests")} | each)
        for group in groups
        for each in group["guard"]
    ]
    titles = Counter(each.title for each in guards)
    wrong = [
        f"{title}: {count} guards have this name" for title, count in titles.items() if count > 1
    ]
    for each in guards:
        try:
            each.removed()
        except (ValueError, SyntaxError) as error:
            wrong.append(f"{each.title}, {each.file}: {error}")
    if wrong:
        raise SystemExit("\n".join([f"{GUARDS.name} does not fit this checkout:", *wrong]))
    return guards


@dataclass(frozen=True)
class Run:
    """How tests ended: `passed`, `failed`, `hung` or `none`; `by` is the first that failed."""

    status: str
    seconds: float
    by: str = ""


class Copy:
    """A copy of the checkout, in which one job changes files and runs tests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree = folder, folder / "tree"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for name in listed.split("\0"):
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        found = subprocess.run(
            [sys.executable, "-P", "-c", "import kevin_env; print(kevin_env.__file__)"],
            env=self._environment(folder), capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        if not Path(found).is_relative_to(self.tree):
            raise SystemExit(f"processes of a copy would import {found}")

    def write(self, file: str, text: str) -> None:
        """Writes a file and forgets its bytecode, which knows times of files by seconds only."""
        path = self.tree / file
        path.write_text(text)
        for each in path.parent.glob(f"__pycache__/{path.stem}.*"):
            each.unlink()

    def run(self, selection: Selection, limit: float) -> Run:
        """Runs tests until one fails, for at most `limit` seconds."""
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        log, start, code = scratch / "log", time.monotonic(), None
        options = ["-x", "-q", "-p", "no:cacheprovider", *selection.arguments(self.tree)]
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options], cwd=self.tree,
                env=self._environment(scratch), stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # its judges and candidates end with it
                process.wait()
        text, seconds = log.read_text(errors="replace"), time.monotonic() - start
        shutil.rmtree(scratch, ignore_errors=True)
        failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", text, re.MULTILINE)
        if code is None:
            return Run("hung", seconds)
        if code in NOTHING or (code == 0 and not re.search(r"\b\d+ passed", text)):
            return Run("none", seconds, "nothing ran")
        by = failed[1] if failed else f"exit code {code}"
        return Run("failed", seconds, by) if code else Run("passed", seconds)

    def _environment(self, scratch: Path) -> dict[str, str]:
        """PYTHONPATH comes before an installed kevin_env, also in judges and candidates."""
        others = {"PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE"}
        kept = {name: value for name, value in os.environ.items() if name not in others}
        ours = {"PYTHONPATH": str(self.tree), "TMPDIR": str(scratch), "CUDA_VISIBLE_DEVICES": ""}
        return kept | ours


class Jobs:
    """Runs of tests, each in a free copy."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(count):
            self._free.put(Copy(folder / str(number)))

    def unchanged(self, selection: Selection) -> Run:
        """Tests of the checkout as it is."""
        copy = self._free.get()
        try:
            return copy.run(selection, 1800)
        finally:
            self._free.put(copy)

    def without(self, guard: Guard, tests: Sequence[tuple[Selection, Run]]) -> Run:
        """The first tests that notice, or the last; each with its run of the unchanged checkout."""
        copy, run = self._free.get(), Run("none", 0.0)
        file, text, changed = guard.removed()
        try:
            copy.write(file, changed)
            for selection, before in tests:
                run = copy.run(selection, FACTOR * before.seconds + SLACK)
                if run.status != "passed":
                    break
            return run
        finally:
            copy.write(file, text)
            self._free.put(copy)


Report = Callable[[Guard, str, Run], None]
"""Is told of a guard: `killed`, `hung`, `survived` or `unusable`, and the run that shows it."""


def examine(guards: Sequence[Guard], options: argparse.Namespace, report: Report) -> None:
    """Runs every selection without a change, then those of each guard, the quick ones first."""
    wanted = {each: each.selections(options.full, options.corpus_only) for each in guards}
    with tempfile.TemporaryDirectory(prefix="guards-") as folder, ExitStack() as stack:
        threads = ThreadPoolExecutor(options.jobs)
        stack.callback(threads.shutdown, cancel_futures=True)
        jobs, before = Jobs(Path(folder), options.jobs), dict[Selection, Run]()
        selections = dict.fromkeys(one for each in wanted.values() for one in each)
        begun = {threads.submit(jobs.unchanged, each): each for each in selections}
        for future in as_completed(begun):
            before[begun[future]] = run = future.result()
            words = shlex.join(begun[future].arguments(ROOT))
            print(f"unchanged {run.seconds:5.0f} s  {run.status}: {words}  {run.by}", flush=True)
        tests = {guard: [(each, before[each]) for each in wanted[guard]] for guard in guards}
        order = sorted(guards, key=lambda guard: sum(run.seconds for _, run in tests[guard]))
        futures = dict[Future[Run], Guard]()
        for guard in order:
            known = [(each, run) for each, run in tests[guard] if run.status != "none"]
            broken = [run for _, run in known if run.status != "passed"]
            if broken or not known:
                report(guard, "unusable", (broken or [tests[guard][0][1]])[0])
            else:
                futures[threads.submit(jobs.without, guard, known)] = guard
        for future in as_completed(futures):
            run = future.result()
            status = {"passed": "survived", "hung": "hung"}.get(run.status, "killed")
            report(futures[future], status, run)


def totals(rows: Iterable[Row], prefix: str) -> list[Row]:
    """For each area, how many guards were killed, of those whose tests are usable."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        for area in (row["area"], "all"):
            counts.setdefault(area, Counter())[row["status"]] += 1
    return [
        {"name": f"{prefix}total: {area}", "value": each["killed"] + each["hung"],
         "unit": "guards killed", "n": each.total() - each["unusable"], "spread": None, **each}
        for area, each in sorted(counts.items())
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--area", action="append", help="part of an area's name; may be repeated")
    parser.add_argument("--name", action="append", help="part of a guard's name; may be repeated")
    parser.add_argument("--corpus-only", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="only check and print the guards")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    every = read_guards()
    guards = [
        each
        for each in every
        if any(part in each.area for part in options.area or [""])
        and any(part in each.name for part in options.name or [""])
        and (each.corpus or not options.corpus_only)
    ]
    if options.list:
        print("\n".join(f"{each.title}  ({each.file})" for each in guards))
        return
    prefix = "corpus: " if options.corpus_only else ""
    versions = {"python": platform.python_version(), "pytest": version("pytest")}
    titles = {each.title for each in every}
    known = known_rows(options.json, versions)
    kept = {name: row for name, row in known.items() if name.removeprefix("corpus: ") in titles}
    found = dict[str, Row]()

    def report(guard: Guard, status: str, run: Run) -> None:
        name, value = f"{prefix}{guard.title}", {"survived": 0, "unusable": None}.get(status, 1)
        found[name] = {"name": name, "value": value, "unit": "killed", "n": 1, "spread": None,
                       "area": guard.area, "status": status, "by": run.by,
                       "seconds": round(run.seconds, 1), "file": guard.file, "note": guard.note,
                       "survived_before": guard.survived}  # fmt: skip
        print(f"{status:9} {run.seconds:5.0f} s  {guard.title}  {run.by}", flush=True)
        rows = kept | found
        sums = list[Row]()
        for corpus in ("", "corpus: "):
            alike = [rows[n] for n in rows if n.startswith("corpus: ") == bool(corpus)]
            sums += totals(alike, corpus)
        write_result(options.json, "cpu", versions, [*sums, *rows.values()])

    examine(guards, options, report)
    for row in found.values():
        if row["status"] == "survived":
            print(f"survived: {row['name']}  ({row['file']})  {row['note']}")
    for row in totals(found.values(), prefix):
        counts = ", ".join(
            f"{row.get(each, 0)} {each}" for each in ("hung", "survived", "unusable")
        )
        print(f"{row['name']:60} {row['value']:4} of {row['n']:3} killed; {counts}")


if __name__ == "__main__":
    main()
