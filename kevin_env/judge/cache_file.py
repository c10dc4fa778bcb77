"""What a judge keeps for later processes: small JSON files in the user's cache folder."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

Value = TypeVar("Value", bound=BaseModel)


class _Page(BaseModel, Generic[Value]):
    model_config = ConfigDict(extra="forbid")

    key: dict[str, str]
    value: Value


class CacheFile(Generic[Value]):
    """One value under a key. Several judges may read and write it at once.

    Args:
        kind: What the value is; the file's name begins with it.
        key: All that the value depends on.
        model: The value's type.
    """

    def __init__(self, kind: str, key: Mapping[str, str], model: type[Value]) -> None:
        self._key = dict(key)
        digest = hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:16]
        self._file = cache_folder() / f"{kind}-{digest}.json"
        self._page = _Page[model]

    def read(self) -> Value | None:
        """The value; None if there is no such file, or it is damaged or not the user's own."""
        with suppress(OSError, ValueError):
            if self._file.stat().st_uid == os.getuid():
                page = self._page.model_validate_json(self._file.read_bytes())
                return page.value if page.key == self._key else None
        return None

    def write(self, value: Value) -> None:
        """Replaces the file atomically; does nothing where it cannot be written."""
        page = self._page(key=self._key, value=value).model_dump(mode="json")
        text = json.dumps(page)  # unlike pydantic, it keeps infinities
        folder = self._file.parent
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=folder, prefix=self._file.name)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                Path(name).replace(self._file)
            except OSError:
                Path(name).unlink()


def cache_folder() -> Path:
    """The user's cache folder; only an absolute path counts (XDG Base Directory)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(named) if named.startswith("/") else Path.home() / ".cache") / "kevin-env"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"kevin-env-{os.getuid()}"
