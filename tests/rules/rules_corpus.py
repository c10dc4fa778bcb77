"""Submissions for the rules, from the text files beside this module. None of them is run.

`honest.txt` and `cpp.txt` must pass; `violations.txt` must be rejected, for the reason in the
title, at the line marked HERE. Each begins with a line `=== title`; `head` precedes all of them.
"""

from pathlib import Path


def _read(name: str) -> dict[str, str]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    pieces = [piece.partition("\n") for piece in ("\n" + text).split("\n=== ")[1:]]
    return {title: f"\n{code.rstrip()}\n" for title, _, code in pieces}


HONEST, CPP = _read("honest.txt"), _read("cpp.txt")
HEAD = HONEST.pop("head")
VIOLATIONS = {
    title.partition(": ")[2]: (title.partition(": ")[0], code)
    for title, code in _read("violations.txt").items()
}
