"""The loop of a candidate process: load the submission's file, construct its model, call it when
told.

Orders come as frames from the judge. `stage` gives shapes and places of the next inputs, which hold
old bytes. `go` calls the model; what is answered is where the outputs lie. On a GPU all calls are
queued by then and wait for a word in device memory, which the judge writes once the inputs are
there; `finish` waits until they are through.
"""

import gc
import importlib.util
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kevin_env import extension
from kevin_env.candidate import (
    allocations,
    commands,
    cuda,
    failure,
    precompile,
    profiling,
    programs,
    tree,
    weights,
)
from kevin_env.candidate.creation import Creation
from kevin_env.candidate.recorder import Recorder
from kevin_env.candidate.region import DONE, Region, Spec, is_compact, map_file, map_handle, spec_of
from kevin_env.candidate.seeding import reseed
from kevin_env.candidate.wire import Channel, Closed, encode

Message = dict[str, Any]
MOST_PAIRED = 8
"""Weights that were paired with a buffer and are told."""


class Runtime(programs.Orders):
    """One submission's process. Every public method is an order of that name."""

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
        self.recorder: Recorder | None = None
        self.kernels: dict[str, None] = {}

    def serve(self) -> None:
        """Answers orders until the judge hangs up."""
        while True:
            try:
                order = self.channel.receive()
            except Closed:
                return
            name = order.pop("order")
            failure.clear_errno()
            try:
                answer = getattr(self, name)(**order)
            except BaseException as error:  # the boundary round the submission
                answer = {
                    "failure": failure.describe(
                        error, self.path, self.device if self.context else None
                    )
                }
            if isinstance(
                answer, bytes
            ):  # stops a clock; what was printed is flushed with the next order
                self.channel.send_frame(answer)
                continue
            commands.flush()
            self.channel.send(answer)

    def prepare(self, device: str, threads: int, readable: bool = False) -> Message:
        """Warms up: the CUDA context, or the number of threads on a CPU, where the judge may be
        able to read memory.
        """
        self.device, self.readable = torch.device(device), readable
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            torch.zeros(1, device=self.device)
            torch.cuda.synchronize()
            self.context = True
        else:
            torch.set_num_threads(threads)
        return {}

    def load(self, path: str, code: str, entry: str, headers: str = "short") -> Message:
        """Writes the submission to a file of its own and imports it. Compilers run here.

        With `short` headers, torch's extensions are first tried to be built without reading torch's
        own.
        """
        self.path = path
        if headers == "short":
            extension.install()
        Path(path).write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("submission", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["submission"] = module
        spec.loader.exec_module(module)
        self.entry = getattr(module, entry)
        return {}

    def region(self, name: str, size: int, handle: str | None = None) -> Message:
        """Maps memory that the judge shares, under a name; what had that name is unmapped."""
        if name in self.regions:
            self.arguments, self.held = [], []
            self.regions.pop(name).close()
        mapped = (
            map_handle(handle, size, self.device)
            if handle
            else map_file(self.channel.take_fds()[0], size)
        )
        self.regions[name] = mapped
        return {}

    def forget(self) -> Message:
        """Lets go of what was loaded, and undoes what it may have set: other trusted code is to be
        loaded.
        """
        self.entry = None
        sys.modules.pop("submission", None)
        torch.set_default_dtype(torch.float32)
        self.model, self.arguments, self.held = None, [], []
        gc.collect()
        return self.rest()

    def rest(self) -> Message:
        """Lets go of the model, of what the judge shared, and of device memory that is kept for
        reuse.
        """
        self.model, self.arguments, self.held = None, [], []
        while self.regions:
            self.regions.popitem()[1].close()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return {}

    def construct(
        self, init: tree.Skeleton, tensors: list[Spec], state: dict[str, Spec], parameters: list[str],
        seed: int, compiled: bool, precision: str, record: Message | None = None,
    ) -> Message:  # fmt: skip
        """Builds the model from the reference's arguments and loads the reference's weights into
        it.

        With `record`, arguments of a `Recorder`, the next call is recorded.
        """
        given = [self.regions["weights"].tensor(spec).clone() for spec in tensors]
        self.model, self.arguments, self.held = None, [], []
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = (
            precision == "tf32"
        )
        reseed(seed)
        self.recorder = Recorder(self.path, self.kernels, **record) if record else None
        recorded = self.recorder.watch() if self.recorder and self.context else nullcontext()
        with torch.no_grad(), Creation() as creation, recorded:
            model = self._model(*tree.put_together(init, given))
        order = creation.names(model) if isinstance(model, nn.Module) else []
        if isinstance(model, nn.Module):
            model.to(self.device)
        with torch.no_grad():
            theirs = {name: self.regions["weights"].tensor(spec) for name, spec in state.items()}
            paired = weights.hand_over(model, theirs, parameters, order)
        self.model = torch.compile(model) if compiled else model
        self.synchronize()
        return {"paired": paired[:MOST_PAIRED]}

    def _model(self, *arguments: Any) -> Any:
        """Tensors are made on the device, and where the constructor cannot do with that, as they
        are by default.
        """
        try:
            with torch.device(self.device):
                return self.entry(*arguments)
        except Exception as error:
            if self.device.type == "cpu":
                raise
            try:
                return self.entry(*arguments)
            except Exception:
                raise error from None

    def stage(self, inputs: tree.Skeleton, specs: list[Spec], seed: int | None = None) -> Message:
        """Gets ready for inputs whose bytes are not there yet.

        Seeding takes longer than many a kernel, so it is done here where the reference does not
        draw.
        """
        reseed(seed)
        inbox = self.regions["inbox"]
        self.arguments = tree.put_together(inputs, [inbox.tensor(spec) for spec in specs])
        return {}

    def go(self, seeds: list[int | None], behind: int | None = None) -> bytes:
        """Calls the model on the staged inputs once for each seed, and says where the outputs of
        each call are.

        On a GPU the calls are queued. Call i begins once the word that the judge writes is `behind
        + i` or more, and writes that number to the other word when it is through. An output is left
        alone until the next call: the judge has taken it by then.
        """
        words = self.regions["words"].start if behind is not None else 0
        claims = list[Message]()
        recorder, self.recorder = self.recorder, None
        recorded: AbstractContextManager[None] = (
            recorder.watch(self.model) if recorder else nullcontext()
        )
        with torch.no_grad(), recorded:
            for number, seed in enumerate(seeds, behind or 0):
                reseed(seed)
                if words:
                    cuda.wait_for(words, number)
                self.held = []
                output = self.model(*self.arguments)
                self.held = [output]
                claims.append(self._claim(output))
                if words:
                    cuda.write_word(words + DONE, number)
        if recorder:
            claims[0]["record"] = recorder.told()
        return encode({"claims": claims})

    def finish(self) -> Message:
        """Waits until all that was queued is done."""
        self.synchronize()
        return {}

    def poison(self) -> Message:
        """Fills memory that the next call may get, that of the last outputs included."""
        self.held = []
        allocations.poison(self.device)
        return {}

    def profile(self) -> Message:
        """What torch sees of calls on the first staged set, from inside."""
        with torch.no_grad():
            return profiling.look(
                lambda: self.model(*self.arguments), self.device, Path(self.path).parent
            )

    def save(self, name: str, path: str) -> Message:
        """Writes a region that lies in host memory to a file."""
        self.regions[name].bytes.numpy().tofile(path)
        return {}

    def rehearse(
        self, job: Message, folder: str, seconds: float, environment: dict[str, str]
    ) -> Message:
        """Runs the submission in a copy of this process, so that what it compiles lies in the
        caches afterwards.
        """
        from kevin_env.candidate.replay import replay  # which imports this module

        return {
            "code": commands.in_a_fork(
                lambda: replay(job, Path(folder), self.channel), seconds, environment
            )
        }

    def precompile(self, cases: list[Message], seconds: float) -> Message:
        """Compiles Triton's kernels for these cases in copies of this process. What fails is left
        to the calls.
        """
        precompile.precompile(self, cases, seconds)
        return {}

    def _claim(self, output: Any) -> Message:
        """Where one call's output lies. What the judge cannot read there is copied to the outbox."""
        try:
            skeleton, tensors = tree.take_apart(output)
        except tree.Unsupported as error:
            return {"unsupported": str(error)}
        places, free = list[Message](), 0
        for tensor in tensors:
            self.held.append(tensor.detach().resolve_conj().resolve_neg())
            place, used = self._place(self.held[-1], free)
            places.append(place)
            free += used
        return {"skeleton": skeleton, "tensors": places}

    def _place(self, tensor: torch.Tensor, free: int) -> tuple[Message, int]:
        """A tensor's description, and how many bytes of the outbox it took."""
        described = (
            {"device": tensor.device.type, **spec_of(tensor, 0)}
            if tensor.layout == torch.strided
            else {}
        )
        if not described or tensor.device != self.device:
            return {"device": tensor.device.type, "layout": str(tensor.layout)}, 0
        if not tensor.numel():
            return self._copy_out(tensor, free)
        for name in ("inbox", "outbox") if self.readable else ("inbox",):
            if (offset := self.regions[name].offset_of(tensor.data_ptr())) is not None:
                return {**described, "in": name, "offset": offset}, 0
        if self.readable and is_compact(tensor):
            return {**described, "in": "memory", "offset": tensor.data_ptr()}, 0
        if self.device.type == "cuda":
            try:
                base, size = cuda.allocation_of(tensor.data_ptr())
                if (
                    size % cuda.BLOCK
                ):  # shares its block with others, and a block can be mapped once only
                    return self._copy_out(tensor, free)
                place = {
                    "in": cuda.export_handle(base),
                    "size": size,
                    "offset": tensor.data_ptr() - base,
                }
                return {**described, **place}, 0
            except cuda.CudaError:  # memory of another allocator, which has no IPC handle
                pass
        return self._copy_out(tensor, free)

    def _copy_out(self, tensor: torch.Tensor, free: int) -> tuple[Message, int]:
        spec, used = self.regions["outbox"].pack(tensor, free)
        place = (
            None if used is None else "outbox"
        )  # larger than any right answer: its shape says enough
        return {**spec, "device": tensor.device.type, "in": place}, used or 0

    def synchronize(self) -> None:
        """Waits for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
