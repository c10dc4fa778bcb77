"""What judges get of their client's environment, and what is removed from their answers.

A judge runs code that others wrote, and needs no keys. Where one appears nevertheless, such as in
the message of an exception, its value is replaced before anybody reads it.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SECRET = re.compile(
    r"(?i)(^|_)(api_?key|(access|private|secret|signing|encryption)_?key(_id)?|token|secret"
    r"|passw(or)?d|credentials?|auth(orization)?)$"
)
_SHORTEST = 8
"""Characters of a value that is replaced; shorter ones, such as `EMPTY`, are words."""


def is_secret(name: str) -> bool:
    """Whether an environment variable of this name holds a key, a token or a password."""
    return _SECRET.search(name) is not None


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for a process of the judge: no keys, and no relative import paths.

    An empty or relative entry of PYTHONPATH means the folder in which a process happens to start.
    The folder that this package was imported from stays.
    """
    kept = {name: value for name, value in environment.items() if not is_secret(name)}
    package = Path(__file__).parents[2]
    given = kept.pop("PYTHONPATH", "")
    absolute = [
        each if Path(each).is_absolute() else str(package)
        for each in (given.split(os.pathsep) if given else ())
        if Path(each).is_absolute() or Path(each).resolve() == package
    ]
    return kept | ({"PYTHONPATH": os.pathsep.join(absolute)} if absolute else {})


def redacted(value: Any, environment: Mapping[str, str] = os.environ) -> Any:
    """JSON in which the values of secret variables are replaced by `[NAME]`."""
    secrets = {
        secret: f"[{name}]"
        for name, secret in environment.items()
        if len(secret) >= _SHORTEST and is_secret(name)
    }
    if not secrets:
        return value
    any_secret = re.compile("|".join(map(re.escape, sorted(secrets, key=len, reverse=True))))
    return _replaced(value, any_secret, secrets)


def _replaced(value: Any, pattern: re.Pattern[str], names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda found: names[found[0]], value)
    if isinstance(value, list):
        return [_replaced(each, pattern, names) for each in value]
    if isinstance(value, dict):
        return {key: _replaced(each, pattern, names) for key, each in value.items()}
    return value
