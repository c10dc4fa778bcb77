"""Reads the keys of endpoints from a `.env` file in the working folder.

Only the command line does so, and only for the variables in `TAKEN`: the file may hold settings of
other programs, and must not change how processes start.
"""

import io
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from kevin_env.app.errors import BadInput

ENV_FILE = Path(".env")

TAKEN = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HF_TOKEN")
"""The variables that are read."""

_BEGINS_TAKEN = re.compile(rf"\s*(export\s+)?['\"]?({'|'.join(TAKEN)})\b")
_AMEND = "correct it, or run this in another folder"


def load_env_file(
    file: Path = ENV_FILE, environment: MutableMapping[str, str] = os.environ
) -> None:
    """Adds variables from the file to the environment, unless they are set, even if empty.

    A missing file is ignored, and so is a folder. A line on stderr warns if a key from the
    environment will be sent to an endpoint from the file.

    Args:
        file: `NAME=value` lines in python-dotenv's syntax, where `${NAME}` is expanded.
        environment: of this process.

    Raises:
        BadInput: if the file, or a line with one of the names, cannot be read. The message does
            not quote the file.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return
    except UnicodeDecodeError:
        raise BadInput(f"cannot read {file}, which is not UTF-8 text: {_AMEND}") from None
    except OSError as error:
        raise BadInput(f"cannot read {file} ({error.strerror}): {_AMEND}") from error
    found = _values(file, text)
    added = {
        name: value
        for name in TAKEN
        if (value := found.get(name)) is not None and name not in environment
    }
    if "OPENAI_BASE_URL" in added and environment.get("OPENAI_API_KEY"):
        sys.stderr.write(f"kevin-env: using OPENAI_BASE_URL from {file}\n")
    environment.update(added)


def _values(file: Path, text: str) -> Mapping[str, str | None]:
    """The values in the file, None for a name without one. Skips other programs' bad lines."""
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    good: list[str] = []
    for each in parse_stream(io.StringIO(text)):
        line = each.original.string
        if not each.error and "\0" not in line:
            good.append(line)
        elif _BEGINS_TAKEN.match(line):
            where = f"line {each.original.line} of {file}"
            raise BadInput(f"cannot read {where}, which is not NAME=value: {_AMEND}")
    return dotenv_values(stream=io.StringIO("".join(good)))
