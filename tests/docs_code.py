"""The Python of the pages in docs, to be run as it stands there."""

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def code_block(page: str, word: str) -> str:
    """The one block of a page that has this word in it."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$",
        (DOCS / page).read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    [found] = [block for block in blocks if word in block]
    return found
