"""The Hugging Face Hub, where it cannot be reached."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


@contextmanager
def cache_if_offline() -> Iterator[None]:
    """Without a network, the block loads from the Hub's cache only.

    The Hub's client would try again for minutes.

    Raises:
        ImportError: without the package `huggingface_hub`.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or _offline(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _offline(endpoint: str) -> bool:
    """Whether the Hub has no address here. A proxy resolves it itself."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY")):
        return False
    try:
        socket.getaddrinfo(urlsplit(endpoint).hostname, None)
    except OSError:
        return True
    return False
