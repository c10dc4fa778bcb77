"""Looks names up, sends datagrams and connects: outwards, to the machine itself, and to sockets that have a path.

problem: softmax.py
device: any
rules: open
expect: correctness/values
"""

import glob
import socket

import torch
import torch.nn as nn


def attempt(what: str, act) -> None:
    try:
        act()
    except OSError:
        return
    print("BREACH:", what)


def to(family: int, kind: int, address) -> None:
    with socket.socket(family, kind) as sock:
        sock.settimeout(1)
        sock.connect(address)


attempt("looks up a name", lambda: socket.getaddrinfo("example.org", 443))
attempt("sends a datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)))
attempt("opens a raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
for address in (("192.0.2.1", 80), ("127.0.0.1", 8000), ("169.254.169.254", 80)):
    attempt(f"connects to {address}", lambda: to(socket.AF_INET, socket.SOCK_STREAM, address))
for path in ("/run/docker.sock", "/run/dbus/system_bus_socket", "/run/nscd/socket", "/run/containerd/containerd.sock"):
    attempt(f"connects to {path}", lambda: to(socket.AF_UNIX, socket.SOCK_STREAM, path))
for path in glob.glob("/tmp/**", recursive=True):
    attempt(f"connects to {path}", lambda: to(socket.AF_UNIX, socket.SOCK_STREAM, path))


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
