"""A tiny chat model with random weights, made by the example that uses one."""

import importlib.util
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parent.parent / "examples"


def load_example(name: str) -> ModuleType:
    """An example as a module; its `main` is not run."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_tiny_model(folder: Path) -> Path:
    """Saves one in that folder."""
    load_example("local_model").make_tiny_model(folder)
    return folder
