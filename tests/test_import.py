"""What `import kevin_env` takes, seen from a fresh process."""

import subprocess
import sys

LOOK = """
import sys, kevin_env
import kevin_env.{module}
print([name for name in ("torch", "triton", "openai", "typer") if name in sys.modules])
import gymnasium
print("Kevin-v0" in gymnasium.registry)
import importlib
importlib.reload(kevin_env)
"""


def look(module: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK.format(module=module)],
        capture_output=True,
        text=True,
    )


def test_importing_the_client_takes_no_torch() -> None:
    for module in ("outcome", "env", "vector", "recorder", "judge", "curriculum"):
        assert look(module).stdout == "[]\nTrue\n", module


def test_registering_twice_is_silent() -> None:
    result = look("outcome")
    assert (result.returncode, result.stderr) == (0, "")
