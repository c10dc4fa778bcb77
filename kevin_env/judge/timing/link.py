"""One timed call in the judge's queue (a link), and the check that its output was finished."""

import ctypes
import secrets

import torch

from kevin_env.candidate import cuda
from kevin_env.judge.handshake.claims import CallClaim, Output
from kevin_env.judge.handshake.handshake import Answer, Drawn, Handshake, LaunchFlags, Player


class Link:
    """One call, as the judge queues it; `chain` defines the protocol.

    Args:
        handshake: With the inbox.
        player: The process that is called.
        drawn: The inputs.
        number: Of the call.
    """

    def __init__(self, handshake: Handshake, player: Player, drawn: Drawn, number: int) -> None:
        self._handshake, self._drawn, self._number = handshake, drawn, number
        self._trusted = player.trusted
        self._words = flags_of(player)
        self._written, self._began, self.ended = (
            torch.cuda.Event(enable_timing=True) for _ in range(3)
        )
        self._snapshot: Snapshot | None = None
        self._placed: list[Output] = []
        self._rooms: list[torch.Tensor | None] = []
        self._taken: list[Output] = []
        self._differs: torch.Tensor | None = None
        self.opened = False
        """Whether the call may begin."""

    def expect(self, placed: list[Output]) -> None:
        """Sets where the outputs will be, allocates copies, and draws the snapshot's places."""
        there = [output for output in placed if output.has_bytes]
        self._placed = placed
        if not self._trusted:  # outputs of trusted code are not taken
            self._rooms = [output.room() for output in self._handshake.takeable(placed)]
        if there:
            self._snapshot = Snapshot(there[self._handshake.random.randrange(len(there))].bytes)

    def show(self) -> None:
        """Queues the writing of the input, as a part of the link."""
        self._written.record()
        self._began.record()
        self._drawn.image.write_to(self._handshake.inbox)
        self._handshake.flush()

    def open(self) -> None:
        """Queues everything that precedes the call."""
        self._written.record()
        self._drawn.image.write_to(self._handshake.inbox)
        self._handshake.flush()
        self._began.record()
        self._words.open(self._number)
        self.opened = True

    def wait(self) -> None:
        """Makes the judge's queue wait until the call is through."""
        self._words.wait(self._number)

    def look(self) -> None:
        """Queues the end of the link: the snapshot, by the copy engine."""
        self.ended.record()
        if self._snapshot is not None:
            self._snapshot.take()

    def take(self) -> None:
        """Queues the checks and copies after the call; none for trusted code."""
        if self._trusted:
            return
        if self._snapshot is not None:
            self._snapshot.take_again()
        takeable = self._handshake.takeable(self._placed)
        self._taken = [
            output.taken(room) for output, room in zip(takeable, self._rooms, strict=True)
        ]
        self._differs = self._drawn.image.differs_from(self._handshake.inbox)
        self._handshake.poison()

    def answer(self, claim: CallClaim) -> Answer:
        """The result, once the queue is through."""
        early = (
            self._snapshot is not None and self._differs is not None and not self._snapshot.agrees()
        )
        unchanged = self._differs is None or not bool(self._differs)
        taken = self._placed if self._differs is None else self._taken
        seconds, writing = (
            self._began.elapsed_time(self.ended) / 1e3,
            self._written.elapsed_time(self._began) / 1e3,
        )
        return Answer(claim, taken, self._placed, seconds, unchanged, early, writing)


def flags_of(player: Player) -> LaunchFlags:
    """The launch flags of a player on a GPU."""
    assert player.flags is not None
    return player.flags


ROWS = 64
ROW_BYTES = 1024
_HOST, _DEVICE = 1, 2
_SIDE = (
    *(("x", ctypes.c_size_t), ("y", ctypes.c_size_t)),
    *(("type", ctypes.c_uint), ("host", ctypes.c_void_p)),
    *(("device", ctypes.c_uint64), ("array", ctypes.c_void_p), ("pitch", ctypes.c_size_t)),
)


class _Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D of the driver API."""

    _fields_ = (
        *((f"{side}_{name}", kind) for side in ("source", "target") for name, kind in _SIDE),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class Snapshot:
    """At most 64 KiB of an output at the moment the clock stops, from places drawn on construction.

    The copy engine takes it. A device-to-host copy does not wait for kernels that another process
    has queued, whereas a kernel of the judge would: the device would finish that queue first, and
    an output that was reported too early would look finished.

    Args:
        flat: Device memory, not empty.
    """

    def __init__(self, flat: torch.Tensor) -> None:
        size = flat.numel()
        rows = min(ROWS, max(1, size // ROW_BYTES))
        width, pitch = min(ROW_BYTES, size // rows), size // rows
        first = secrets.randbelow(pitch - width + 1)
        self._there = flat[first:].as_strided((rows, width), (pitch, 1))
        self._host = torch.empty((rows, width), dtype=torch.uint8, pin_memory=True)
        self._later = torch.empty((rows, width), dtype=torch.uint8, device=flat.device)

    def take(self) -> None:
        """Queues the copy."""
        rows, width = self._there.shape
        copy = _Copy2D()
        copy.source_type, copy.source_device = _DEVICE, self._there.data_ptr()
        copy.source_pitch = self._there.stride(0)
        copy.target_type, copy.target_host, copy.target_pitch = _HOST, self._host.data_ptr(), width
        copy.width, copy.height = width, rows
        cuda.copy_2d(ctypes.byref(copy))

    def take_again(self) -> None:
        """Queues a copy of the same places by a kernel, after the candidate's queued work."""
        self._later.copy_(self._there)

    def agrees(self) -> bool:
        """Whether both copies are equal, once they are done."""
        # torch.equal takes milliseconds to start its threads while other processes spin
        return self._later.cpu().numpy().tobytes() == self._host.numpy().tobytes()
