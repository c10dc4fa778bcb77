"""A judge server in this process."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from serving import Serve, served


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """See `serving.Serve`."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as stack:

        def start(*arguments: Any, **more: Any) -> Any:
            return stack.enter_context(served(*arguments, **more))

        yield start
