"""What a candidate's failures are called follows from the class of the exception and the codes that
it has.
"""

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from kevin_env.candidate import cuda
from kevin_env.candidate.failure import clear_errno, describe
from kevin_env.languages import LANGUAGES


def of_cuda(code: int) -> torch.AcceleratorError:
    """As torch raises it: the text is the driver's, and the code an attribute."""
    error = torch.AcceleratorError("CUDA error: out of memory")
    error.error_code = code  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "out_of_memory"),
        (MemoryError(), "out_of_memory"),
        (of_cuda(cuda.OUT_OF_MEMORY), "out_of_memory"),
        (cuda.CudaError("cuMemAlloc_v2", cuda.OUT_OF_MEMORY), "out_of_memory"),
        (of_cuda(1), "exception"),
        (cuda.CudaError("cuMemAlloc_v2", 1), "exception"),
        (torch.AcceleratorError("CUDA error: out of memory"), "exception"),
        (RuntimeError("CUDA out of memory"), "exception"),
    ],
)
def test_lacking_memory_is_told_by_what_is_raised_and_never_by_its_text(
    error: BaseException, kind: str
) -> None:
    clear_errno()
    assert describe(error, "submission.py", None)["kind"] == kind


def test_what_malloc_refuses_torch_is_a_lack_of_memory() -> None:
    clear_errno()
    with pytest.raises(RuntimeError) as found:
        torch.empty(1 << 50)
    assert describe(found.value, "submission.py", None)["kind"] == "out_of_memory"
    clear_errno()
    assert describe(found.value, "submission.py", None)["kind"] == "exception"


def raised(tmp_path: Path, code: str) -> tuple[Exception, str]:
    """What a file raises when it is run, and its path."""
    path = str(tmp_path / "submission.py")
    Path(path).write_text(code)
    with pytest.raises(Exception) as found:
        exec(compile(code, path, "exec"), {"__name__": "submission"})
    return found.value, path


def lines(told: dict) -> list[int]:
    return [line for line, _, _ in told["frames"]]


def test_each_line_of_a_recursion_is_told_once_and_the_last_one_last(tmp_path: Path) -> None:
    code = (
        "def f(n):\n    return g(n)\ndef g(n):\n    return f(n) if n else 1 / 0\n"
        "f(sum(range(9)) and 0 or 9999)\n"
    )
    first, *others = lines(describe(*raised(tmp_path, code), None))
    assert first == 5 and sorted(others) == [2, 4]  # which is last depends on the stack's depth
    short = code.replace("9999", "5").replace(
        "if n else", "if f.__dict__.setdefault('n', []).append(n) or len(f.n) < 9 else"
    )
    assert lines(describe(*raised(tmp_path, short), None))[-1] == 4


def test_a_kernel_that_fails_in_the_interpreter_tells_its_own_line(tmp_path: Path) -> None:
    code = (
        "class InterpreterError(Exception): pass\ndef kernel():\n    1 / 0\ndef run():\n    "
        "try:\n        kernel()\n"
    )
    code += "    except Exception as e:\n        raise InterpreterError(repr(e)) from e\nrun()\n"
    told = describe(*raised(tmp_path, code), None)
    assert (told["type"], told["message"]) == ("ZeroDivisionError", "division by zero") and lines(
        told
    )[-1] == 3


def test_an_error_of_tritons_compiler_tells_the_kernels_line(tmp_path: Path) -> None:
    errors = pytest.importorskip("triton.compiler.errors")
    kernel = "def kernel(x):\n    y = x\n    z = y @ y\n"
    error, path = raised(tmp_path, f"import triton\n\n{kernel}\nkernel.launch()\n")
    node = ast.parse(kernel).body[0].body[1]  # type: ignore[attr-defined]
    error.__cause__ = errors.CompilationError(kernel, node, "no")
    assert describe(error, path, None)["frames"][-1] == (5, "kernel", "    z = y @ y")


def test_an_error_in_a_function_that_a_kernel_calls_is_the_one_that_is_told(tmp_path: Path) -> None:
    errors = pytest.importorskip("triton.compiler.errors")
    kernel = "def inner(x):\n    return x @ y\ndef kernel(x):\n    inner(x)\n"
    _, path = raised(tmp_path, f"import triton\n{kernel}kernel(1)\n")
    inner, outer = ast.parse(kernel).body
    error = errors.CompilationError("def kernel(x):\n    inner(x)\n", outer, None)
    error.__cause__ = errors.CompilationError(kernel, inner.body[0], "y is not defined")  # type: ignore[attr-defined]
    told = describe(error, path, None)
    assert told["message"].endswith("\ny is not defined")


def test_no_tensors_are_dumped() -> None:
    text = f"run(): incompatible function arguments.\n\nInvoked with: {torch.zeros(9, 9)}, 3, "
    told = describe(TypeError(f"{text}{torch.nn.Parameter(torch.ones(2))}"), "submission.py", None)[
        "message"
    ]
    assert told.endswith("Invoked with: tensor(...), 3, Parameter containing:\ntensor(...)")
    cut = describe(TypeError("Invoked with: tensor([[1., 2."), "submission.py", None)["message"]
    assert cut == "Invoked with: tensor(...)"
    assert (
        describe(ValueError("got tensor(3.)"), "submission.py", None)["message"] == "got tensor(3.)"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import torch\ntorch.zeros(1, device='cuda')",
        "import torch\ntorch.cuda.synchronize()",
        "import triton\ntriton.runtime.driver.active.get_active_torch_device()",
    ],
)
def test_cuda_on_a_cpu_is_answered_by_what_to_write_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    told = describe(*raised(tmp_path, code), None)
    assert told["message"].startswith(
        "CUDA is not available: this task runs on the CPU."
    ) and lines(told) == [2]


@pytest.mark.parametrize(
    "place", sorted({place for each in LANGUAGES.values() for place in each.compilers})
)
def test_what_a_compiler_raises_is_an_error_of_the_jit_at_the_line_that_it_names(
    tmp_path: Path, place: str
) -> None:
    """Whatever its class. The same error at the launch of a kernel is an exception."""
    file, _, begins = place.partition(":")
    compiler = tmp_path / file.lstrip("/")
    compiler.parent.mkdir(parents=True)
    compiler.write_text(
        f"def {begins}(path):\n"
        "    raise ValueError(f'\\x1b[91mno such tile\\n --> {path}:2:5')\n"
        "def launch(path):\n    raise ValueError(f'no such tile\\n --> {path}:2:5')\n"
    )
    spec = importlib.util.spec_from_file_location("compiler", compiler)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path / "submission.py"
    path.write_text("import tilelang\nT.tile()\n")
    found = {}
    for function in (getattr(module, begins), module.launch):
        with pytest.raises(ValueError) as raised:
            function(path)
        found[function.__name__] = describe(raised.value, str(path), None)
    assert found[begins]["kind"] == "jit" and found["launch"]["kind"] == "exception"
    assert found[begins]["message"].startswith("no such tile")
    assert found[begins]["frames"] == [(2, "", "T.tile()")] and not found["launch"]["frames"]


def test_code_that_a_language_generates_without_lines_is_not_quoted(tmp_path: Path) -> None:
    code, path = "import torch\n\ndef forward(made): made()\n", str(tmp_path / "submission.py")
    Path(path).write_text(code)
    generated = compile("def kernel(): raise TypeError('no end')", path, "exec")
    space: dict[str, Any] = {}
    exec(generated, space)
    exec(compile(code, path, "exec"), space)
    with pytest.raises(TypeError) as caught:
        space["forward"](space["kernel"])
    assert lines(describe(caught.value, path, None)) == [3]
