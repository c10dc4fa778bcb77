"""Trajectories as a self-contained HTML page.

Recorded text is embedded as JSON and shown through text nodes, so it never becomes markup. The
Content-Security-Policy allows only the page's own script and no requests.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import jinja2

from kevin_env.advantage import returns_of
from kevin_env.app.replay.code import clean, code_lines, unfenced
from kevin_env.app.replay.describe import (
    PANES,
    STAGES,
    Bars,
    Block,
    Code,
    Diff,
    Facts,
    Log,
    Prose,
    Section,
    pane_blocks,
)
from kevin_env.app.replay.rows import mark_of
from kevin_env.app.screen import best_at
from kevin_env.record import Trajectory

_HERE = "kevin_env.app.replay"
_SCRIPTS = ("page.js", "diff.js", "charts.js")


def page(title: str, episodes: Iterable[Trajectory], home: str = "") -> str:
    """A page of trajectories; `home` is the address of the report that links to it, if any."""
    data = episodes_data(title, episodes) | {"home": home}
    return document(f"{title} - kevin-env replay", data, "begin();\n")


def following_page(title: str) -> str:
    """A page that loads its episodes from the server in `kevin_env.app.replay.serve`."""
    data = episodes_data(title, ()) | {"version": 0}
    return document(
        f"{title} - kevin-env replay", data, asset(_HERE, "follow.js"), connect="'self'"
    )


def document(
    title: str, data: Mapping[str, Any], script: str, style: str = "", connect: str = "'none'"
) -> str:
    """A page with the scripts that show episodes.

    Args:
        title: of the window.
        data: `DATA` in the scripts: `episodes_data`, and whatever `script` needs.
        script: runs after the scripts that show episodes.
        style: additional CSS.
        connect: `connect-src` of the Content-Security-Policy.
    """
    script = "".join(asset(_HERE, name) for name in _SCRIPTS) + script
    style = asset(_HERE, "page.css") + style
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        f"connect-src {connect}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = jinja2.Environment(autoescape=True).from_string(asset(_HERE, "page.html.j2"))
    return template.render(
        policy=policy, title=clean(title), style=style, script=script, data=_embedded(data)
    )


def episodes_data(title: str, episodes: Iterable[Trajectory]) -> dict[str, Any]:
    """The episodes as the scripts of a page need them."""
    return {"title": clean(title), "episodes": list(map(episode_data, episodes))}


def asset(package: str, name: str) -> str:
    """The text of a file in the folder `assets` of a package."""
    return (files(package) / "assets" / name).read_text(encoding="utf-8")


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def episode_data(episode: Trajectory) -> dict[str, Any]:
    """An episode as the scripts of a page need it."""
    return {
        "id": clean(episode.episode_id),
        "problem": clean(episode.problem.id),
        "level": episode.problem.level,
        "model": clean(episode.model),
        "endpoint": clean(episode.base_url or ""),
        "sample": episode.sample,
        "device": clean(episode.hardware.name) if episode.hardware else "",
        "created": clean(episode.created),
        "ended": episode.stop_reason or "running",
        "best": best_at(episode.turns),
        "returns": returns_of(episode),
        "turns": [_turn(episode, at) for at in range(len(episode.turns))],
    }


def _turn(episode: Trajectory, at: int) -> dict[str, Any]:
    turn = episode.turns[at]
    panes = {pane: pane_blocks(episode, at, pane) for pane in PANES if pane != "diff"}
    return {
        "turn": turn.turn,
        "mark": mark_of(turn),
        "category": turn.category,
        "kind": turn.kind,
        "interpreted": turn.interpreted,
        "speedup": turn.speedup,
        "interval": turn.speedup_interval,
        "score": turn.score,
        "seconds": [getattr(turn.seconds, stage) for stage in STAGES],
        "total": turn.seconds.total,
        "summary": clean(turn.summary),
        "lines": code_lines(turn.submission.code) if turn.submission else None,
        "panes": {name: list(map(_block, blocks)) for name, blocks in panes.items()},
    }


def _block(block: Block) -> list[Any]:
    """The kind of a block and its parts, with clean text. Code is in the turn's `lines`."""
    match block:
        case Section(title):
            return ["section", clean(title)]
        case Prose(words, style):
            return ["prose", unfenced(words) if not style else clean(words), style]
        case Facts(pairs):
            return ["facts", [[name, clean(value)] for name, value in pairs]]
        case Code(_, wrong, note):
            return ["code", list(wrong), clean(note)]
        case Diff():
            raise ValueError("a page compares kernels itself")
        case Log(name, words):
            return ["log", name, clean(words)]
        case Bars(seconds, total):
            return ["facts", [[name, f"{n:.3f} s"] for name, n in (*seconds, ("total", total))]]


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
