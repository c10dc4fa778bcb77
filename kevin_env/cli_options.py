"""Options that several commands have, and how they print JSON."""

import json
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, or auto: a GPU when there is one.")]
Rules = Annotated[str, typer.Option(help="kernel: own kernels do the computing. open: any code.")]
Inputs = Annotated[str, typer.Option(help="varied: further distributions too. shipped: the problem's own alone.")]
Baseline = Annotated[str, typer.Option(help="What the speedup is relative to: eager or compile.")]
Plain = Annotated[bool, typer.Option("--plain", help="No colours and no live display, also on a terminal.")]


def print_json(value: Any) -> None:
    """One line of JSON on stdout, without NaN and Infinity."""
    typer.echo(json.dumps(value, allow_nan=False))
