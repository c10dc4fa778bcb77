"""The loop of a candidate process: orders arrive from the judge as frames, answers go back.

`stage` sends shapes and places of the next inputs, which still hold old bytes. `go` calls the model
and reports where the outputs lie. On a GPU the calls are only queued by then: they wait for a word
in device memory, which the judge writes once the inputs are written. `finish` waits for them.
"""

import gc
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from kevin_env.candidate import (
    cuda,
    failure,
    guard,
    precompile,
    profiling,
    programs,
    standalone,
    tree,
)
from kevin_env.candidate.model import LoadedModel, Message
from kevin_env.candidate.region import (
    DONE,
    POISON,
    Part,
    Spec,
    is_compact,
    map_file,
    map_handle,
    poison,
    spec_of,
)
from kevin_env.candidate.replay import Kernel, Recorded, Replay, Unplayable
from kevin_env.candidate.seeding import reseed
from kevin_env.candidate.wire import Channel, Closed, encode

MOST_KEPT = 4 << 30
"""Bytes that torch keeps between two submissions that are played."""


class Runtime(LoadedModel, programs.Orders):
    """One candidate process. Every public method is an order of that name.

    Attributes:
        cases, kernels_of: Of the submission that is played, if one is.
        played: Its case.
    """

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.cases, self.kernels_of = dict[str, Message](), dict[str, Kernel]()
        self.played: Message | None = None

    def serve(self) -> None:
        """Answers orders until the judge closes the connection."""
        while True:
            try:
                order = self.channel.receive()
            except Closed:
                return
            name = order.pop("order")
            failure.clear_errno()
            try:
                answer = getattr(self, name)(**order)
            except BaseException as error:  # the submission may raise anything
                answer = {
                    "failure": failure.describe(
                        error, self.path, self.device if self.context else None
                    )
                }
            if isinstance(answer, bytes):  # is timed; output is flushed with the next order
                self.channel.send_frame(answer)
                continue
            programs.flush()
            self.channel.send(answer)

    def create_context(self, queues: int = 0, cached: int = 0) -> Message:
        """Creates the CUDA context, and loads the kernels that are compiled already."""
        super().create_context(queues, cached)
        precompile.prepare_kernels()
        return {}

    def region(self, name: str, size: int, handle: str | None = None) -> Message:
        """Maps shared memory under a name; a region that had the name is unmapped."""
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

    def arena(self, size: int, handle: str, parts: dict[str, tuple[int, int]]) -> Message:
        """Maps the one allocation of a GPU's judge, and names its parts: offset and size in bytes.

        An arena that was mapped before is unmapped.
        """
        self.arguments, self.held = [], []
        for name in (*parts, "arena"):
            if name in self.regions:
                self.regions.pop(name).close()
        whole = self.regions["arena"] = map_handle(handle, size, self.device)
        self.regions |= {name: Part(whole, *place) for name, place in parts.items()}
        return {}

    def forget(self) -> Message:
        """Unloads the submission and resets global state; other trusted code follows."""
        self.entry = None
        sys.modules.pop("submission", None)
        torch.set_default_dtype(torch.float32)
        self.model, self.arguments, self.held = None, [], []
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return {}

    def rest(self) -> Message:
        """Releases the model, shared memory, and torch's cached device memory."""
        self.model, self.arguments, self.held = None, [], []
        while self.regions:
            self.regions.popitem()[1].close()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return {}

    def go(self, seeds: list[int | None], behind: int | None = None) -> bytes:
        """Calls the model on the staged inputs once per seed, and reports where the outputs are.

        On a GPU the calls are queued. Call i begins once the judge's word is at least `behind + i`,
        and writes that number to the other word when it is done. An output stays valid until the
        next call: the judge has read it by then.

        On a CPU, tensors of a model's first call, which is not timed, lie between guard pages.
        """
        words = self.regions["words"].start if behind is not None else 0
        claims = list[Message]()
        recorder, self.recorder = self.recorder, None
        recorded: AbstractContextManager[None] = (
            recorder.watch(self.model) if recorder else nullcontext()
        )
        guarded = guard.guarded() if self.first else nullcontext()
        self.first = False
        with torch.no_grad(), recorded, guarded:
            for number, seed in enumerate(seeds, behind or 0):
                reseed(seed)
                if words:
                    cuda.wait_for(words, number)
                self.held = []
                if self.device.type == "cuda":
                    cuda.take_error()  # of anything before this call
                output = self.model(*self.arguments)
                refused = cuda.take_error() if self.device.type == "cuda" else ""
                self.held = [output]
                claims.append(self._claim(output))
                if refused:
                    claims[-1]["cuda_error"] = refused
                if words:
                    cuda.write_word(words + DONE, number)
        if recorder:
            claims[0]["record"] = recorder.record()
        return encode({"claims": claims})

    def finish(self) -> Message:
        """Waits for queued calls."""
        self.synchronize()
        return {}

    def poison(self) -> Message:
        """Fills memory that the next call may get, including that of the last outputs."""
        self.held = []
        poison(self.device)
        return {}

    def profile(self) -> Message:
        """Profiles calls on the first staged set from inside, with torch."""
        with torch.no_grad():
            return profiling.profile_calls(
                lambda: self.model(*self.arguments), self.device, Path(self.path).parent
            )

    def save(self, name: str, path: str) -> Message:
        """Writes a region in host memory to a file."""
        self.regions[name].bytes.numpy().tofile(path)
        return {}

    def rehearse(
        self, job: Message, folder: str, seconds: float, environment: dict[str, str]
    ) -> Message:
        """Runs the submission in a fork, to fill the compilation caches."""

        def run() -> int:
            return standalone.run_job(job, Path(folder), self.channel)

        return {"code": programs.run_in_forks([run], seconds, environment)[0]}

    def precompile(self, cases: dict[str, Message], properties: Message, seconds: float) -> Message:
        """Compiles Triton kernels for these cases in forks, and records what they launch.

        Failures are left to the calls.
        """
        return precompile.precompile(self, cases, properties, seconds)

    def recording(self, cases: dict[str, Message], kernels: dict[str, Message]) -> Message:
        """Takes a recorded submission in place of one that is loaded."""
        self.kernels_of = {name: Kernel(about) for name, about in kernels.items()}
        self.cases = cases
        return {}

    def play(self, case: str) -> Message:
        """Chooses the case that `construct`, `stage` and `go` play."""
        self.played = self.cases[case]
        return {}

    def construct(self, **order: Any) -> Message:
        """See `LoadedModel.construct`. What is played is prepared with these weights."""
        if self.played is None:
            return super().construct(**order)
        _require_recorded(self.played["construct"], order)
        tf32 = order["precision"] == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        self.model, self.arguments, self.held = None, [], []
        self.model = Replay(self.played, self.kernels_of, self.regions, self.device)
        self.recorder = Recorded(self.played["record"]) if order["record"] else None
        self.synchronize()
        return {"paired": self.played["paired"]}

    def stage(self, inputs: tree.Skeleton, specs: list[Spec], seed: int | None = None) -> Message:
        """See `LoadedModel.stage`. What is played finds its inputs where they were recorded."""
        if self.played is None:
            return super().stage(inputs, specs, seed)
        _require_recorded(self.played["stage"], {"inputs": inputs, "specs": specs})
        return {}

    def clear(self) -> Message:
        """Removes what was played, overwrites the memory that it had, and says if it freed any."""
        self.model, self.arguments, self.held, self.played = None, [], [], None
        self.synchronize()
        for kernel in self.kernels_of.values():
            kernel.unload()
        self.cases, self.kernels_of = {}, {}
        poison(self.device, POISON)  # what is never written must not look as it does then
        trimmed = torch.cuda.memory_reserved(self.device) > MOST_KEPT
        if trimmed:
            torch.cuda.empty_cache()
        return {"trimmed": trimmed}

    def _claim(self, output: Any) -> Message:
        """The place of an output; tensors that the judge cannot read are copied to the outbox."""
        try:
            skeleton, tensors = tree.flatten(output)
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
        """A tensor's description, and the bytes that it takes in the outbox."""
        description = (
            {"device": tensor.device.type, **spec_of(tensor, 0)}
            if tensor.layout == torch.strided
            else {}
        )
        if not description or tensor.device != self.device:
            return {"device": tensor.device.type, "layout": str(tensor.layout)}, 0
        if not tensor.numel():
            return self._copy_out(tensor, free)
        for name in ("inbox", "outbox") if self.readable else ("inbox",):
            if (offset := self.regions[name].offset_of(tensor.data_ptr())) is not None:
                return {**description, "in": name, "offset": offset}, 0
        if self.readable and is_compact(tensor):
            return {**description, "in": "memory", "offset": tensor.data_ptr()}, 0
        if self.device.type == "cuda":
            try:
                base, size = cuda.allocation_of(tensor.data_ptr())
                if size % cuda.BLOCK:  # its block is shared, and can be mapped only once
                    return self._copy_out(tensor, free)
                place = {
                    "in": cuda.export_handle(base),
                    "size": size,
                    "offset": tensor.data_ptr() - base,
                }
                return {**description, **place}, 0
            except cuda.CudaError:  # of an allocator without IPC handles
                pass
        return self._copy_out(tensor, free)

    def _copy_out(self, tensor: torch.Tensor, free: int) -> tuple[Message, int]:
        spec, used = self.regions["outbox"].pack(tensor, free)
        place = None if used is None else "outbox"  # larger than any correct answer
        return {**spec, "device": tensor.device.type, "in": place}, used or 0


def _require_recorded(recorded: Message, order: Message) -> None:
    """Raises if an order is another one than was recorded, such as for inputs of other shapes."""
    if any(order[name] != value for name, value in recorded.items()):
        raise Unplayable("it was recorded for other inputs")
