"""What `import kevin_env` takes, seen from a fresh process."""

import subprocess
import sys

LOOK = """
import importlib, sys, kevin_env
for name in {modules}:
    importlib.import_module("kevin_env." + name)
    print(name, [each for each in ("torch", "triton", "openai", "typer") if each in sys.modules])
import gymnasium
print("Kevin-v0" in gymnasium.registry)
importlib.reload(kevin_env)
"""


def look(*modules: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK.format(modules=modules)],
        capture_output=True,
        text=True,
    )


def test_importing_the_client_takes_no_torch() -> None:
    modules = ("outcome", "env", "vector", "recorder", "judge", "curriculum")
    said = "".join(f"{module} []\n" for module in modules)
    assert look(*modules).stdout == f"{said}True\n"


def test_registering_twice_is_silent() -> None:
    result = look("outcome")
    assert (result.returncode, result.stderr) == (0, "")
