"""Executes the notebook of `examples` on this machine, and stores in it what its cells show.

python benchmarks/notebook.py
"""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FILE = Path(__file__).resolve().parents[1] / "examples" / "three_turns.ipynb"


def main() -> None:
    notebook = nbformat.read(FILE, as_version=4)
    NotebookClient(notebook, record_timing=False).execute()
    notebook.metadata.language_info = {"name": "python"}  # the rest differs between machines
    nbformat.write(notebook, FILE)


if __name__ == "__main__":
    main()
