"""The colors of a reply that is still coming in."""

import pytest

from kevin_env.app.replay.code import Line, fenced, last_lines, unfenced

REPLY = """\
Prose with `code`.
```python
import torch
SOURCE = r\"\"\"
#include <cmath>
__global__ void f() { int x = 1; }
\"\"\"
def g():
    '''A word
    on it.'''
    return SOURCE
```
More prose.
~~~cuda
int y;
~~~
"""


def by_letter(line: Line) -> list[tuple[str, str]]:
    return [(kind, letter) for kind, piece in line for letter in piece]


@pytest.mark.parametrize("cut", range(1, len(REPLY.splitlines())))
def test_the_end_of_a_reply_has_the_colors_of_the_whole(cut: int) -> None:
    """Wherever the window begins, its lines look as they would in the whole reply."""
    whole = fenced(REPLY)
    assert list(map(by_letter, last_lines(REPLY, cut))) == list(
        map(by_letter, whole[len(whole) - cut :])
    )


def test_a_reply_is_colored_before_it_is_whole() -> None:
    unfinished = REPLY[: REPLY.index("int x")]
    *_, last = last_lines(unfinished, 3)
    assert ("builtin", "void") in last
    [word] = last_lines('```python\nx = """\nnothing but words', 1)
    assert word == (("string", "nothing but words"),)


def test_feedback_is_shown_without_its_fences() -> None:
    text = "It failed:\n\n````python\nx = 1\n```\nnot the end\n````\n\nTry again."
    assert unfenced(text) == "It failed:\n\n    x = 1\n    ```\n    not the end\n\nTry again."
    assert unfenced("plain ``` text") == "plain ``` text"
