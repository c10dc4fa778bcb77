"""The page that `?` shows."""

from rich.text import Text

from kevin_env.app.replay.pieces import DIM, join, paragraph, rule, text

_KEYS = (
    ("space", "pause before the next turn, or run on"),
    ("enter  n", "take one turn, when waiting"),
    ("r", "a remark that the model is sent with its next turn"),
    (
        "e",
        "edit the last kernel in $VISUAL or $EDITOR: what is saved is the next turn; unchanged, nothing happens",
    ),
    ("t", "take a turn again, from what was known before it; the episode so far is kept and ends"),
    ("p", "the prompt of the running turn or of the next one"),
    ("← →  h l", "look at an earlier or a later turn; esc and 0 go back to what goes on"),
    ("1 - 7  tab", "its kernel, diff, feedback, prompt, reply, timings, reward"),
    ("↑ ↓  j k", "scroll; pgup pgdn by ten lines, g G to the ends"),
    ("q", "stop and leave; every finished turn is kept, and --resume goes on"),
    ("ctrl-c", "the same at once"),
)


def help_lines(width: int) -> list[Text]:
    """The page."""
    room = max(len(key) for key, _ in _KEYS) + 2
    lines = [text(" kevin-env play: keys", "bold"), rule(width)]
    for key, words in _KEYS:
        for number, line in enumerate(paragraph(words, width - room - 2, DIM)):
            lines.append(join("  ", (f"{'' if number else key:<{room}}", "cyan"), line))
    return lines
