"""Calls a submission once between profiler marks, as at a shell: no judge, no sandbox.

Writes and compiles in the working folder. Without a GPU it runs on the CPU, without marks.

    ncu --profile-from-start off --clock-control none \\
        python benchmarks/one_call.py SUBMISSION PROBLEM
"""

import importlib.util
import sys
from typing import Any

import torch


def load(name: str, path: str) -> Any:
    """Imports a file as a module, since Triton reads the source of its kernels."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def models(submission_path: str, problem_path: str) -> tuple[Any, Any, list[Any]]:
    """The reference, the submission with its weights, and inputs, on a GPU where there is one. Each
    was called once.

    Raises:
        SystemExit: if the submission's output is not the reference's.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.zeros(1, device=device)  # a file may load kernels when it is imported
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    submission, problem = load("submission", submission_path), load("problem", problem_path)
    torch.manual_seed(0)
    with torch.no_grad(), torch.device(device):
        arguments, inputs = problem.get_init_inputs(), problem.get_inputs()
        model, reference = (
            made(*arguments).to(device) for made in (submission.ModelNew, problem.Model)
        )
        for own, source in zip(model.parameters(), reference.parameters(), strict=True):
            own.copy_(source)
        expected, output = reference(*inputs), model(*inputs)
        if not torch.allclose(
            output.float(), expected.float(), rtol=0.02, atol=0.02 * expected.std().item()
        ):
            sys.exit("its output is not that of the reference")
    return reference, model, inputs


def main() -> None:
    _, model, inputs = models(sys.argv[1], sys.argv[2])
    on_gpu = torch.cuda.is_available()
    with torch.no_grad():
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        model(*inputs)
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
