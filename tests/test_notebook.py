"""The notebook of `examples` runs, and what it shows is stored in it."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="pip install '.[notebook]'")
nbclient = pytest.importorskip("nbclient", reason="pip install '.[notebook]'")

ROOT = Path(__file__).parent.parent
FILE = ROOT / "examples" / "three_turns.ipynb"
VERDICTS = ["correctness/values", "correct/timed", "correct/timed"]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def verdicts(notebook: Any) -> list[str]:
    texts = [output.get("text", "") for output in outputs(notebook)]
    return [text.partition(", score")[0] for text in texts if ", score" in text]


def test_what_it_shows_is_stored() -> None:
    notebook = nbformat.read(FILE, as_version=4)
    assert verdicts(notebook) == VERDICTS
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    assert any("image/png" in output.get("data", ()) for output in outputs(notebook))
    here = (ROOT, Path.home(), sys.prefix, tempfile.gettempdir())
    assert not any(str(folder) in FILE.read_text() for folder in here)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(FILE, as_version=4)
    for cell in notebook.cells:
        cell.pop("outputs", None)
    nbformat.validator.normalize(notebook)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, resources=resources, timeout=200).execute()
    found = verdicts(notebook)
    assert [verdict.replace("too_noisy", "timed") for verdict in found] == VERDICTS
    assert any("image/png" in output.get("data", ()) for output in outputs(notebook))
