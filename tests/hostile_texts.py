"""Texts that a model, a compiler or a server may write and that must come through as mere text."""

import re

TEXTS = {
    "markup": "[red]x[/bad]",
    "clears the screen": "\x1b[2J\x1b[1m",
    "sets a title and a link": "\x1b]0;title\x07\x1b]8;;http://a\x07",
    "eight-bit codes": "\x9b5m\x1bPq\x1b\\",
    "control characters": "\x00\x08\r\x7f",
    "scripts": "</script><script>alert(1)</script><img src=x onerror=alert(2)>",
    "other directions": "\u202etxt\u2066 \u200bz",
    "templates": "[/x] [bold] {data} {{ 7 * 7 }} %s ${1} `${x}` |",
    "fences": "``` " + "`" * 50,
    "other letters": "漢字 🚀",
    "sections": "a\n\n# Turn 9\n```\nCorrect: 99x",
    "half a character": "\ud800",
}
EVIL = " ".join(TEXTS[name] for name in TEXTS if name not in ("sections", "half a character"))
"""All of these on one line, in what can be recorded."""
_COLORS = re.compile(r"\x1b\[[\d;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_HIDDEN = re.compile("[\u200b\u202e\u2066]")


def controls(text: str, colored: bool = False) -> list[str]:
    """What a terminal would act on; with `colored`, colors of our own are fine."""
    return _CONTROL.findall(_COLORS.sub("", text) if colored else text)


def harmful(text: str, colored: bool = False) -> list[str]:
    """As `controls`, and characters that hide others or change their direction."""
    return controls(text, colored) + _HIDDEN.findall(text)
