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
from collections.abc import Callable, Iterable, Mapping
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
LONGEST = 1800.0
"""Seconds that tests may take without a change."""
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

    def own_tests(self, full: bool) -> Selection:
        """Tests of what it is in."""
        return Selection(tuple(self.tests.split()), "", "" if full else "not full")

    def attacks(self, full: bool) -> Selection:
        """The files of the corpus that attack it."""
        names = " or ".join(f"/{name}]" for name in self.corpus.split())
        return Selection(("test_corpus.py",), names, "" if full else "not full")

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
    counts = Counter(each.title for each in guards)
    wrong = [f"{title} is the name of {n} guards" for title, n in counts.items() if n > 1]
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
        if code == 0:
            return Run("passed", seconds)
        return Run("failed", seconds, failed[1] if failed else f"exit code {code}")

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

    def run(self, selection: Selection, limit: float, guard: Guard | None = None) -> Run:
        """Tests of the checkout, or of the checkout without a guard."""
        changes = [guard.removed()] if guard else []
        copy = self._free.get()
        try:
            for file, _, changed in changes:
                copy.write(file, changed)
            return copy.run(selection, limit)
        finally:
            for file, text, _ in changes:
                copy.write(file, text)
            self._free.put(copy)


Report = Callable[[Guard, str, Run], None]
"""Takes a guard, its status (`killed`, `hung`, `survived` or `unusable`), and the run behind it."""


def examine(
    tests: Mapping[Guard, Selection], jobs: Jobs, threads: ThreadPoolExecutor, report: Report
) -> list[Guard]:
    """Runs each selection without a change, then for each guard, the quick ones first.

    Returns:
        The guards that survived.
    """
    begun = {threads.submit(jobs.run, each, LONGEST): each for each in set(tests.values())}
    before = dict[Selection, Run]()
    for future in as_completed(begun):
        before[begun[future]] = run = future.result()
        words = shlex.join(begun[future].arguments(ROOT))
        print(f"unchanged {run.seconds:5.0f} s  {run.status}: {words}  {run.by}", flush=True)
    futures, survivors = dict[Future[Run], Guard](), list[Guard]()
    for guard in sorted(tests, key=lambda guard: before[tests[guard]].seconds):
        run = before[tests[guard]]
        if run.status == "passed":
            limit = FACTOR * run.seconds + SLACK
            futures[threads.submit(jobs.run, tests[guard], limit, guard)] = guard
        else:
            report(guard, "unusable", run)
    for future in as_completed(futures):
        run, guard = future.result(), futures[future]
        status = {"passed": "survived", "hung": "hung"}.get(run.status, "killed")
        survivors += [guard] * (status == "survived")
        report(guard, status, run)
    return survivors


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
    areas, names = options.area or [""], options.name or [""]
    guards = [each for each in every if any(part in each.area for part in areas)]
    guards = [each for each in guards if any(part in each.name for part in names)]
    guards = [each for each in guards if each.corpus or not options.corpus_only]
    if options.list:
        print("\n".join(f"{each.title}  ({each.file})" for each in guards))
        return
    prefix = "corpus: " if options.corpus_only else ""
    versions = {"python": platform.python_version(), "pytest": version("pytest")}
    titles, known = {each.title for each in every}, known_rows(options.json, versions)
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

    def report_again(guard: Guard, status: str, run: Run) -> None:
        if status in ("killed", "hung"):  # else it has still survived its own tests
            report(guard, status, run)

    with tempfile.TemporaryDirectory(prefix="guards-") as folder, ExitStack() as stack:
        threads, jobs = ThreadPoolExecutor(options.jobs), Jobs(Path(folder), options.jobs)
        stack.callback(threads.shutdown, cancel_futures=True)
        if options.corpus_only:
            examine({each: each.attacks(full=True) for each in guards}, jobs, threads, report)
        else:
            own = {each: each.own_tests(options.full) for each in guards}
            left = [each for each in examine(own, jobs, threads, report) if each.corpus]
            attacks = {each: each.attacks(options.full) for each in left}
            examine(attacks, jobs, threads, report_again)
    for row in found.values():
        if row["status"] == "survived":
            print(f"survived: {row['name']}  ({row['file']})  {row['note']}")
    for row in totals(found.values(), prefix):
        others = [f"{row.get(each, 0)} {each}" for each in ("hung", "survived", "unusable")]
        print(f"{row['name']:60} {row['value']:4} of {row['n']:3} killed; {', '.join(others)}")


if __name__ == "__main__":
    main()
