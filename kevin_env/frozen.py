"""What values that cross a process or a disk are made of. Imports nothing of ours."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"
)


def printable(text: str) -> str:
    """`text` without terminal escapes, control characters (other than newline and tab) and lone surrogates."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


Printable = Annotated[str, AfterValidator(printable)]


class Frozen(BaseModel):
    """A value that crosses a process or a disk: frozen, no unknown fields, never NaN or Infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
