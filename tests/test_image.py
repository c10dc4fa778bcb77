"""`.ci/image.py` runs the lines of a Dockerfile where Docker is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCKERFILE = """
# A line with a continuation, and each instruction that the images have.
ARG BASE=base
FROM ${BASE}
ARG WORD=told
RUN mkdir -p /made \\
    && echo $WORD > /made/file
WORKDIR /app/env
COPY . .
COPY page.txt /other/
ENV PATH=/made:$PATH SAID="two words"
RUN test -f page.txt -a -f /other/page.txt && test "$SAID" = "two words" && test "$(cat /made/file)" = told
USER 1000
EXPOSE 8000
HEALTHCHECK --start-period=1s CMD python3 -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/page.txt')"
CMD ["python3", "-m", "http.server", "8000"]
"""


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts an overlay: only root may")
@pytest.mark.parametrize(
    ("line", "code"), [("", 0), ("RUN exit 7", 7), ('CMD ["false"]', 1), ("USER 1001", 0)]
)
def test_lines_run_on_a_copy_of_this_machine(line: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"{DOCKERFILE}{line}\n")
    (tmp_path / "page.txt").write_text("a page")
    command = [sys.executable, str(ROOT / ".ci" / "image.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.stderr and not done.stdout:
        pytest.skip(f"no overlay can be mounted here: {done.stderr}")
    assert done.returncode == code, done.stdout + done.stderr
    assert not Path("/made").exists() and not Path("/app/env").exists()
