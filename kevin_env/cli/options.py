"""Options that several commands have, and how they print JSON."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

TRAJECTORIES = Path("trajectories.jsonl")
"""Where trajectories go when no file is named."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Turns = Annotated[int, typer.Option(help="How many turns an episode has.")]
Device = Annotated[
    str,
    typer.Option(help="cpu, cuda, cuda:1, several as cuda:0,1, or auto: a GPU when there is one."),
]
Language = Annotated[str, typer.Option(help="What to write in: auto, cuda, triton or cpp.")]
Rules = Annotated[
    str,
    typer.Option(
        help="kernel: own kernels do the computing. partial: at least one runs. open: any code."
    ),
]
Glue = Annotated[
    float,
    typer.Option(
        help="With --rules kernel: share of the largest tensor's elements that torch may compute on."
    ),
]
Inputs = Annotated[
    str, typer.Option(help="varied: further distributions too. shipped: the problem's own alone.")
]
Baseline = Annotated[str, typer.Option(help="What the speedup is relative to: eager or compile.")]
Score = Annotated[str, typer.Option(help="What a turn is worth: kevin, kernrl, ...")]
Noisy = Annotated[
    str, typer.Option(help="Pay a noisy speedup by its lower end, after a retry, or not: floor.")
]
CallTimeout = Annotated[
    float | None,
    typer.Option(help="Seconds for one call; else the larger of 2 and 200 times the reference's."),
]
BuildTimeout = Annotated[
    float, typer.Option(help="Seconds for importing a submission, compilers included.")
]
Precision = Annotated[
    float | None,
    typer.Option(
        help="Half-width of the speedup's interval to reach, such as 0.005; else 0.02, or 0.05."
    ),
]
Templates = Annotated[
    str, typer.Option(help="Words of the prompts: default, or kevin-paper for the paper's own.")
]
Hints = Annotated[bool, typer.Option("--hints", help="Let feedback go beyond facts.")]
Examples = Annotated[
    str,
    typer.Option(
        help="In the first prompt: zero, one, few, retrieved, or retrieved:5 for other than three."
    ),
]
Index = Annotated[str, typer.Option(metavar="FOLDER", help="Where examples are retrieved from.")]
SettingOverride = Annotated[
    list[str] | None,
    typer.Option(
        "--override", "-o", metavar="KEY=VALUE", help="Any setting, such as -o settings.gamma=0.8."
    ),
]
Profile = Annotated[
    str,
    typer.Option(help="What to look into after timing: none, kernels, or ncu (Nsight Compute)."),
]
Sanitize = Annotated[
    bool,
    typer.Option(
        "--sanitize", help="Let compute-sanitizer look into illegal accesses and changing outputs."
    ),
]
Plain = Annotated[
    bool, typer.Option("--plain", help="No colours and no live display, also on a terminal.")
]


def finite(value: float | None) -> float | None:
    """Refuses infinity and NaN."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number")
    return value


def positive(value: float) -> float:
    """Refuses what is not above 0 as well."""
    if not value > 0:
        raise typer.BadParameter(f"{value:g} is not more than 0")
    return finite(value) or value


def print_json(value: Any) -> None:
    """One line of JSON on stdout, without NaN and Infinity."""
    typer.echo(json.dumps(value, allow_nan=False))
