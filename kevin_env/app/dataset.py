"""Exports problems as a data set: parquet for verl and SkyRL, or a folder for Hugging Face."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kevin_env.app.errors import BadInput
from kevin_env.app.screen import counted
from kevin_env.app.writing import whole, write_text
from kevin_env.difficulty import tags_of
from kevin_env.problem import Problem, shown_source
from kevin_env.selection import SIDES, find_problems, is_held_out, name_of

_CARD = """---
license: mit
pretty_name: kevin-env problems
tags: [code, gpu, kernels, reinforcement-learning]
configs:
- config_name: default
  data_files:
{files}
---

# kevin-env problems

Tasks for reinforcement learning on GPU kernels: each `source` is a PyTorch module, to be replaced
by a faster one with kernels of its own. {counts}.

| column | |
|---|---|
| `prompt` | a chat with the problem's ID, which the adapter of a trainer replaces by the task |
| `problem` | what `kevin_env.problem.load_problem` takes |
| `level`, `name`, `tags`, `statement`, `source` | of the problem |
| `agent_name`, `data_source` | for verl |
| `env_class` | for SkyRL |

Do not train on `held_out`.
"""


def export_problems(names: Sequence[str], out: Path) -> str:
    """Writes the problems of these names.

    Args:
        names: as for `find_problems`; by default the training problems, or all for a folder.
        out: a `.parquet` file, for which levels and folders exclude held-out problems; or a folder,
            which gets a file for each side of the split, and a card.

    Returns:
        What was written, for people.

    Raises:
        ProblemError: if a problem is unknown.
        BadInput: if pyarrow is missing.
        OSError: if the file or folder cannot be written.
    """
    if out.suffix == ".parquet":
        rows = [_row(each) for each in find_problems(names or "train", held_out=False)]
        _write(out, rows)
        return f"{counted(len(rows), 'problem')} to {out}"
    sides: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for each in find_problems(names or SIDES):
        sides["held_out" if is_held_out(each) else "train"].append(_row(each))
    used = {side: rows for side, rows in sides.items() if rows}
    for side, rows in used.items():
        _write(out / "data" / f"{side}.parquet", rows)
    counts = ", ".join(
        f"{counted(len(rows), 'problem')} in `{side}`" for side, rows in used.items()
    )
    files = "\n".join(f"  - split: {side}\n    path: data/{side}.parquet" for side in used)
    write_text(out / "README.md", _CARD.format(files=files, counts=counts))
    return f"{counts.replace('`', '')} to {out}"


def _row(problem: Problem) -> dict[str, Any]:
    name = name_of(problem)
    return {
        "prompt": [{"role": "user", "content": name}],
        "problem": name,
        "level": problem.level,
        "name": problem.name,
        "tags": list(tags_of(problem)),
        "statement": problem.statement,
        "source": shown_source(problem),
        "agent_name": "kevin",
        "env_class": "kevin",
        "data_source": "kevin-env",
    }


def _write(out: Path, rows: list[dict[str, Any]]) -> None:
    try:
        from pyarrow import Table, parquet
    except ImportError as error:
        raise BadInput("parquet files are written by pyarrow: pip install pyarrow") from error
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole(out) as scratch:
        parquet.write_table(Table.from_pylist(rows), scratch)
