"""The picture of a report in the README, from a run of prepared replies on this machine.

The run is that of `resume.py`, uninterrupted: replies of five kinds (no code, a syntax error, a
compiler error, wrong and correct answers) to eight problems, judged for real. It takes minutes;
with --run, the report of a recorded run is drawn. Needs chromium.

    python benchmarks/report_picture.py [--run FOLDER] [--device cpu|cuda] [--out docs/report.png]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from resume import eval_command, finish, write_config

from kevin_env.app.report.write import read_run, write_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = "1280,840"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("docs/report.png"))
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit("there is no chromium; apt install chromium")
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or play(Path(folder), options.device)
        page = write_report(read_run(run, print), Path(folder) / "report.html", lambda *_: None)
        draw(browser, page, options.out)
    return 0


def play(folder: Path, device: str) -> Path:
    """The folder of a new run."""
    options = argparse.Namespace(problems=8, samples=4, turns=4, device=device)
    run = folder / "run"
    finish(eval_command(str(write_config(folder, options)), "--out", str(run)), run)
    return run


def draw(browser: str, page: Path, out: Path) -> None:
    """A picture of the top of a page."""
    subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--window-size={SIZE}", f"--screenshot={out.resolve()}", page.resolve().as_uri(),
        ],
        check=True, capture_output=True,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
