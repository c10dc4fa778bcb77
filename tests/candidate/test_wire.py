import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from kevin_env.candidate.wire import LIMIT, Channel, Closed, Late, WireError, decode, encode

Ends = tuple[Channel, Channel]


@pytest.fixture
def ends() -> Iterator[Ends]:
    a, b = socket.socketpair()
    ours, theirs = Channel(a), Channel(b, takes_fds=True)
    yield ours, theirs
    ours.close()
    theirs.close()


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_have_are_not_sent(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"x": [number]})
    assert decode(encode({"x": [1.5]})[4:]) == {"x": [1.5]}


def test_frames_arrive_whole_and_in_order(ends: Ends) -> None:
    ours, theirs = ends
    for i in range(3):
        ours.send({"number": i, "text": "ü" * 10})
    assert [theirs.receive(1)["number"] for _ in range(3)] == [0, 1, 2]


def test_a_frame_larger_than_the_sockets_buffer_arrives(ends: Ends) -> None:
    ours, theirs = ends
    message = {"text": "x" * 3_000_000}
    thread = threading.Thread(target=ours.send, args=(message,))
    thread.start()
    assert theirs.receive(10) == message
    thread.join()


@pytest.mark.parametrize("length", [LIMIT, 100 << 20, 0xFFFFFFFF])
def test_a_frame_that_is_too_long_is_refused_before_it_is_read(ends: Ends, length: int) -> None:
    ours, theirs = ends
    ours.sock.send(length.to_bytes(4, "big"))
    with pytest.raises(WireError, match="longer"):
        theirs.receive(1)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"[1]", b"[" * 200_000, b"9" * 10_000],
    ids=range(5),
)
def test_what_is_no_json_object_is_refused(ends: Ends, body: bytes) -> None:
    ours, theirs = ends
    ours.sock.sendall(frame(body))
    with pytest.raises(WireError, match="not"):
        theirs.receive(1)


@pytest.mark.parametrize(
    "sent", [b"", b"\0\0", frame(b'{"a":')[:-2]], ids=["nothing", "half a header", "half a body"]
)
def test_an_end_that_closes_half_way_is_gone(ends: Ends, sent: bytes) -> None:
    ours, theirs = ends
    ours.sock.sendall(sent)
    ours.close()
    with pytest.raises(Closed):
        theirs.receive(1)
    with pytest.raises(Closed):
        for _ in range(100):  # the first may still find room in a buffer
            theirs.send({"x": "y" * 10_000})


def test_descriptors_that_others_left_unread_are_no_end_of_this_channel(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = ends

    def refused(*_: object) -> None:
        raise OSError(errno.ETOOMANYREFS, "Too many references: cannot splice")

    with (
        monkeypatch.context() as patch,
        pytest.raises(OSError, match="Too many references") as raised,
    ):
        patch.setattr(ours, "sock", SimpleNamespace(settimeout=lambda _: None, sendmsg=refused))
        ours.send({}, (0,))
    assert not isinstance(raised.value, WireError)


@pytest.mark.parametrize("takes", [False, True])
def test_descriptors_that_nobody_asked_for_fill_no_table(takes: bool) -> None:
    """An untrusted end may send some with every byte."""
    theirs, sock = socket.socketpair()
    ours, files = Channel(sock, takes_fds=takes), Path("/proc/self/fd")
    with theirs, Path(os.devnull).open() as file:
        before = len(list(files.iterdir()))
        for byte in frame(b'{"a": 1}'):
            socket.send_fds(theirs, [bytes([byte])], [file.fileno()] * 3)
        assert ours.receive(1) == {"a": 1}
        assert (len(list(files.iterdir())) > before) is takes
    for fd in ours.take_fds():
        os.close(fd)
    ours.close()


def test_whoever_sends_nothing_is_late(ends: Ends) -> None:
    start = time.monotonic()
    with pytest.raises(Late):
        ends[1].receive(0.1)
    assert time.monotonic() - start > 0.09


class Dripping(socket.socket):
    """Gives one byte per read, as a sender would that drips as fast as it is read."""

    def recv(self, size: int, flags: int = 0) -> bytes:
        return super().recv(1, flags)


def test_a_frame_that_comes_in_pieces_is_put_together() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(frame(b'{"a":1}') + frame(b'{"b":2}'))
    reader = Channel(Dripping(fileno=theirs.detach()))
    assert [reader.receive(5), reader.receive(5)] == [{"a": 1}, {"b": 2}]
    ours.close()
    reader.close()


def test_a_frame_that_arrives_in_drips_is_late_though_there_is_always_another_byte() -> None:
    ours, theirs = socket.socketpair()
    sent = 100_000
    ours.sendall((1 << 20).to_bytes(4, "big") + b" " * sent)
    reader = Channel(Dripping(fileno=theirs.detach()))
    with pytest.raises(Late, match="no complete answer"):
        reader.receive(0.001)
    reader.sock.setblocking(False)
    assert len(socket.socket.recv(reader.sock, sent)) > sent // 2, "it read on after its deadline"
    ours.close()
    reader.close()


@pytest.mark.timeout(60)
def test_whoever_reads_nothing_does_not_hold_up_the_sender(ends: Ends) -> None:
    with pytest.raises(Late):
        ends[0].send({"text": "x" * 3_000_000}, timeout=0.1)


def test_descriptors_ride_along(ends: Ends) -> None:
    ours, theirs = ends
    reader, writer = os.pipe()
    ours.send({"order": "take"}, (writer,))
    os.close(writer)
    assert theirs.receive(1) == {"order": "take"}
    (fd,) = theirs.take_fds()
    assert theirs.take_fds() == []
    os.write(fd, b"hello")
    os.close(fd)
    assert os.read(reader, 10) == b"hello"
    os.close(reader)


def test_what_nobody_asked_for_is_noticed(ends: Ends) -> None:
    ours, theirs = ends
    assert not theirs.pending()
    ours.send({"a": 1})
    assert theirs.pending()
    theirs.receive(1)
    assert not theirs.pending() and not theirs.pending(0.01)
    threading.Timer(0.1, ours.send, [{"a": 2}]).start()
    assert theirs.pending(5) and theirs.receive(1) == {"a": 2}
    ours.sock.sendall(frame(json.dumps({"a": 1}).encode()) + b"\0")
    theirs.receive(1)
    assert theirs.pending()


def test_a_process_with_many_open_files_can_still_wait() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("not enough descriptors allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1050)]
    try:
        a, b = socket.socketpair()
        ours, theirs = Channel(a), Channel(b)
        ours.send({"a": 1})
        assert theirs.pending() and theirs.receive(1) == {"a": 1}
        ours.close()
        theirs.close()
    finally:
        for fd in files:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
