"""Keys of endpoints out of a `.env` file in the working folder.

Only the command line reads one, and of it only what tells how to reach a model: other programs'
settings in the same file stay where they are, and nothing in it changes how a process starts.
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
"""The names that are taken, and no others."""

_BEGINS_TAKEN = re.compile(rf"\s*(export\s+)?['\"]?({'|'.join(TAKEN)})\b")
_AMEND = "put it right, or run this in another folder"


def load_env_file(
    file: Path = ENV_FILE, environment: MutableMapping[str, str] = os.environ
) -> None:
    """Adds what the file has to the environment, and leaves what is set there, though it be to
    nothing, as it is.

    Without the file, or where it is a folder, nothing happens. When a key that was set already is
    going to be sent to an endpoint that the file names, a line on stderr says so.

    Args:
        file: `NAME=value` lines, as python-dotenv reads them; `${NAME}` stands for what is set.
        environment: of this process.

    Raises:
        BadInput: if it cannot be read, or a line with one of the names cannot. No text of the file
            is in the message.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return
    except UnicodeDecodeError:
        raise BadInput(f"cannot read {file}, which is no UTF-8 text: {_AMEND}") from None
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
    """What stands in the file, by name; None for a name without a value. Other programs' lines may
    be anything.
    """
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    good: list[str] = []
    for each in parse_stream(io.StringIO(text)):
        line = each.original.string
        if not each.error and "\0" not in line:
            good.append(line)
        elif _BEGINS_TAKEN.match(line):
            raise BadInput(
                f"cannot read line {each.original.line} of {file}, which is no NAME=value: {_AMEND}"
            )
    return dotenv_values(stream=io.StringIO("".join(good)))
