"""A submission's model in the candidate process: loading, construction, inputs."""

import importlib.util
import os
import re
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kevin_env.candidate import tree, weights
from kevin_env.candidate.backward import WithGradients
from kevin_env.candidate.recorder import Recorder
from kevin_env.candidate.region import Region, Spec
from kevin_env.candidate.replay import Recorded
from kevin_env.candidate.seeding import reseed
from kevin_env.candidate.wire import Channel
from kevin_env.extension.build import install

Message = dict[str, Any]
MAX_PAIRED = 8
"""Limit of reported weights that were paired by shape and order."""
_CODING = re.compile(r"\A((?:[ \t\f]*(?:#[^\n]*)?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*)[-\w.]+")
"""The encoding that a comment in the first two lines names; the file is written in UTF-8."""


class LoadedModel:
    """One submission and its model.

    Args:
        channel: The connection to the judge.

    Attributes:
        context: Whether this process has a CUDA context.
        readable: Whether the judge can read this process's memory.
        entry: The submission's class.
        regions: Memory shared with the judge, by name.
        arguments: The staged inputs.
        held: What keeps the memory of the last outputs alive.
        recorder: Of the next call, if it is recorded.
        kernels: Kernels of earlier recorded calls.
    """

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self.channel = channel
        self.device = torch.device("cpu")
        self.context = self.readable = False
        self.path = ""
        self.entry: Any = None
        self.model: Any = None
        self.regions: dict[str, Region] = {}
        self.arguments, self.held = list[Any](), list[Any]()
        self.recorder: Recorder | Recorded | None = None
        self.kernels: dict[str, None] = {}
        self.first = False

    def prepare(self, device: str, threads: int, readable: bool = False) -> Message:
        """Sets the device, and the number of threads on a CPU."""
        self.device, self.readable = torch.device(device), readable
        if self.device.type == "cpu":
            torch.set_num_threads(threads)
        return {}

    def create_context(self, queues: int = 0, cached: int = 0) -> Message:
        """Creates the CUDA context.

        Args:
            queues: Hardware queues; 0: as many as the environment says.
            cached: Bytes that torch's allocator is to have, so that no call allocates.
        """
        if queues:
            os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(queues)
        torch.cuda.set_device(self.device)
        torch.zeros(1, device=self.device)
        if cached:
            with suppress(torch.OutOfMemoryError):
                torch.empty(cached, dtype=torch.uint8, device=self.device)
        torch.cuda.synchronize()
        self.context = True
        return {}

    def load(self, path: str, code: str, entry: str, headers: str = "short") -> Message:
        """Writes the submission to a file and imports it. Compilers run here.

        With `short` headers, extensions are first built without torch's headers.
        """
        self.path = path
        if headers == "short":
            install()
        Path(path).write_text(_CODING.sub(r"\1utf-8", code, count=1), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("submission", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["submission"] = module
        spec.loader.exec_module(module)
        self.entry = getattr(module, entry)
        return {}

    def construct(
        self, init: tree.Skeleton, tensors: list[Spec], state: dict[str, Spec],
        parameters: list[str], seed: int, compiled: bool, precision: str,
        dtype: str | None = None, gradients: Message | None = None, record: Message | None = None,
    ) -> Message:  # fmt: skip
        """Constructs the model, in `dtype` if it is set, and loads the reference's weights into it.

        With `gradients`, arguments of `WithGradients`, a call is a forward and a backward pass.
        With `record`, arguments of a `Recorder`, the next call is recorded.
        """
        init_tensors = [self.regions["weights"].tensor(spec).clone() for spec in tensors]
        self.model, self.arguments, self.held = None, [], []
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = (
            precision == "tf32"
        )
        reseed(seed)
        recorder = Recorder(self.path, self.kernels, **record) if record else None
        self.recorder = recorder
        recorded = recorder.watch() if recorder and self.context else nullcontext()
        with torch.no_grad(), weights.Creation() as creation, recorded:
            model = self._model(*tree.unflatten(init, init_tensors))
        order = creation.names(model) if isinstance(model, nn.Module) else []
        if isinstance(model, nn.Module):
            weights.converted(model.to(self.device), dtype)
        with torch.no_grad():
            values = {name: self.regions["weights"].tensor(spec) for name, spec in state.items()}
            paired = weights.load_weights(model, values, parameters, order)
        self.model, self.first = torch.compile(model) if compiled else model, True
        if gradients:
            holders = weights.holders(model, values, gradients["parameters"], order)
            outputs, inputs = gradients["outputs"], gradients["inputs"]
            self.model = WithGradients(self.model, outputs, inputs, holders)
        self.synchronize()
        return {"paired": paired[:MAX_PAIRED]}

    def _model(self, given: list[Any], named: dict[str, Any]) -> Any:
        """Constructs on the device, or on the default device if that fails."""
        try:
            with torch.device(self.device):
                return self.entry(*given, **named)
        except Exception as error:
            if self.device.type == "cpu":
                raise
            try:
                return self.entry(*given, **named)
            except Exception:
                raise error from None

    def stage(self, inputs: tree.Skeleton, specs: list[Spec], seed: int | None = None) -> Message:
        """Prepares inputs whose bytes have not arrived yet.

        Seeding takes longer than many kernels, so it is done here unless the reference draws
        numbers.
        """
        reseed(seed)
        inbox = self.regions["inbox"]
        self.arguments = tree.unflatten(inputs, [inbox.tensor(spec) for spec in specs])
        return {}

    def synchronize(self) -> None:
        """Waits for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
