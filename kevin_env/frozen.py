"""The base class of values that are sent to other processes or written to disk."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
)

# Characters that change the text direction (CVE-2021-42574), have no width, or break lines.
_HIDDEN = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\U000e0000-\U000e0fff]"
)


def printable(text: str) -> str:
    """`text` without escapes, lone surrogates and control characters but newline and tab."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def visible(text: str) -> str:
    """`printable` text, with hidden and direction-changing characters spelled out as `<U+202E>`."""
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", printable(text))


Printable = Annotated[str, AfterValidator(printable)]


class Frozen(BaseModel):
    """A frozen value without unknown fields, NaN or Infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
