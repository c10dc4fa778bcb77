"""A lack of something on the machine is one line that names the file, if any, and the remedy."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from episodes import problem_file

from kevin_env.app.errors import WRONG_ARGUMENTS, error_code, one_line
from kevin_env.judge.protocol import answer_of

EXAMPLE = Path(__file__).parent.parent / "examples" / "demo.cpu.jsonl"
MEBI = 1 << 20
EXPORT = f"export {EXAMPLE} --to turns --out {{folder}}/turns.jsonl"


def in_need(limit: int, size: int, words: str) -> subprocess.CompletedProcess[str]:
    """The command line with a limit of the kernel.

    Bytecode would be cut to a limit of files; OpenBLAS interrupts a process that starts no threads.
    """
    return subprocess.run(
        [sys.executable, "-m", "kevin_env", *words.split()],
        preexec_fn=lambda: resource.setrlimit(limit, (size, size)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "size", "words", "said"),
    [
        (resource.RLIMIT_FSIZE, 1024, EXPORT,
         "{folder}/turns.jsonl: File too large; raise the limit (ulimit -f)"),
        (resource.RLIMIT_CORE, 0, f"export {EXAMPLE} --to turns --out /dev/full",
         "/dev/full: No space left on device; free some there"),
        (resource.RLIMIT_AS, 1024 * MEBI, "judge {folder}/huge.py --problem {problem}",
         "out of memory; end other programs, or raise the limit (ulimit -v"),
    ],
)  # fmt: skip
def test_a_limit_of_the_client_is_one_line(tmp_path, limit, size, words, said) -> None:
    names = {"folder": tmp_path, "problem": problem_file(tmp_path).path}
    with (tmp_path / "huge.py").open("wb") as huge:
        huge.truncate(4096 * MEBI)
    done = in_need(limit, size, words.format(**names))
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"kevin-env: {said.format(**names)}")


@pytest.mark.parametrize(
    ("limit", "size", "said"),
    [
        (resource.RLIMIT_NOFILE, 12, "Too many open files; raise the limit (ulimit -n)"),
        # of each thread's stack, which then does not fit
        (resource.RLIMIT_STACK, 1 << 46, "no thread or process can be started; end others"),
    ],
)
def test_a_limit_of_the_judge_is_one_line(tmp_path, limit, size, said) -> None:
    problem = problem_file(tmp_path).path
    submission = tmp_path / "kernel.py"
    submission.write_text("class ModelNew: ...")
    words = f"judge {submission} --problem {problem} --device cpu --rules open"
    done = in_need(limit, size, words)
    assert done.returncode == 3
    line = next(each for each in done.stdout.splitlines() if "the judge failed" in each)
    assert said in line


@pytest.mark.parametrize("error", [OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)), MemoryError()])
def test_no_process_and_no_memory_have_a_remedy(error: Exception) -> None:
    assert error_code(error) == WRONG_ARGUMENTS
    assert "ulimit" in one_line(error)


def test_memory_that_torch_lacks_has_a_remedy() -> None:
    def judge() -> None:
        raise RuntimeError("MemoryError: ") from MemoryError()

    assert "ulimit -v" in answer_of(judge)["judge_error"]  # pyright: ignore[reportArgumentType]


def test_a_busy_terminal_is_no_lack_of_processes() -> None:
    blocked = BlockingIOError(errno.EAGAIN, "write could not complete without blocking", 0)
    assert error_code(blocked) is None
