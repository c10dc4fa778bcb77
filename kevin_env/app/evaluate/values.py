"""Nested values out of a TOML file, flags and overrides, before anything is made of them."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from kevin_env.app.errors import BadInput


def read_values(
    file: Path | None, overrides: Sequence[str] = (), flags: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The values of a file, changed by flags and then by overrides.

    Args:
        file: TOML.
        overrides: such as `settings.max_turns=8`. What is no TOML value is text.
        flags: values by dotted key; None leaves a key as it is.

    Raises:
        BadInput: in one line, if one cannot be read.
    """
    values = _read_toml(file) if file else {}
    for key, value in (flags or {}).items():
        if value is not None:
            _put(values, key, value)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"-o {override}: write -o key=value, such as -o settings.max_turns=8")
        _put(values, key.strip(), _value(text))
    return values


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {file}: {error}") from error


def _value(text: str) -> Any:
    """A TOML value; any other text is itself."""
    if "\n" not in text:
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    return text


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    *tables, name = key.split(".")
    for number, table in enumerate(tables, start=1):
        inner = values.setdefault(table, {})
        if not isinstance(inner, dict):
            raise BadInput(f"{key}: {'.'.join(tables[:number])} is no table")
        values = cast("dict[str, Any]", inner)
    values[name] = value
