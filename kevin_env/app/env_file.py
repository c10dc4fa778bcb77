"""Keys of endpoints out of a `.env` file in the working folder.

Only the command line reads one, and of it only what tells how to reach a model: other programs' settings in the same
file stay where they are, and nothing in it changes how a process starts.
"""

import io
import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from kevin_env.app.errors import BadInput

ENV_FILE = Path(".env")

TAKEN = ("OPENAI_", "HF_")
"""How the names begin that are taken."""

_AMEND = "put it right, or run this in another folder"


def load_env_file(file: Path = ENV_FILE, environment: MutableMapping[str, str] = os.environ) -> None:
    """Adds what the file has to the environment, and leaves what is set there, though it be to nothing, as it is.

    Without the file, or where it is a folder, nothing happens.

    Args:
        file: `NAME=value` lines, as python-dotenv reads them; `${NAME}` stands for what is set.
        environment: of this process.

    Raises:
        BadInput: if it cannot be read. No text of the file is in the message.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return
    except UnicodeDecodeError:
        raise BadInput(f"cannot read {file}, which is no UTF-8 text: {_AMEND}") from None
    except OSError as error:
        raise BadInput(f"cannot read {file} ({error.strerror}): {_AMEND}") from error
    for name, value in _values(file, text).items():
        if value is not None and name.startswith(TAKEN):
            environment.setdefault(name, value)


def _values(file: Path, text: str) -> Mapping[str, str | None]:
    """What stands in the file, by name; None for a name without a value."""
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    for each in parse_stream(io.StringIO(text)):
        if each.error or "\0" in each.original.string:
            raise BadInput(f"cannot read line {each.original.line} of {file}, which is no NAME=value: {_AMEND}")
    return dotenv_values(stream=io.StringIO(text))
