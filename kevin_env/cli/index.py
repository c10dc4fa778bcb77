"""`kevin-env index`: builds and queries the index that prompts retrieve examples from."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kevin_env.cli.options import Command, Group, Json, example, print_json

index = typer.Typer(cls=Group, help="Build or query an index of example kernels.")


@index.command("build", cls=Command, epilog=example("index build solutions --out index"))
def build_index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="solutions; kernelbook or archive (from the Hub); or kernelbook:PARQUET.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write; an existing index is replaced.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="Model of sentence-transformers, by name or folder; token-hash needs none."
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(metavar="cpu|cuda", help="Device that embeds; queries always use the CPU."),
    ] = "cpu",
    as_json: Json = False,
) -> None:
    """Build an index of references and their kernels.

    Needs the extra retrieval.
    """
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.indexing import build_index as build
    from kevin_env.app.indexing import counted, show_built
    from kevin_env.app.screen import make_console
    from kevin_env.retrieval.embedders import DEFAULT_MODEL

    load_env_file()
    kept = build(sources, out, model or DEFAULT_MODEL, device, make_console(stream="stderr"))
    if as_json:
        print_json(
            {"index": str(out), "pairs": counted(kept.pairs), "left_out": dict(kept.left_out)}
        )
    else:
        show_built(make_console(), kept, out)


@index.command("query", cls=Command, epilog=example("index query index L1_36_RMSNorm_ -k 5"))
def query_index(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the index.")],
    problem: Annotated[str, typer.Argument(metavar="ID", help="Problem ID or file.")],
    language: Annotated[
        Literal["triton", "cuda", "cpp"], typer.Option(help="Language of the kernels.")
    ] = "triton",
    number: Annotated[int, typer.Option("-k", help="Number of results.", min=1)] = 3,
    as_json: Json = False,
) -> None:
    """Show the examples that a prompt would retrieve.

    Solutions of the problem itself and near copies are left out. Kernels of held-out problems are
    shown for held-out problems only.
    """
    from kevin_env.app.env_file import load_env_file
    from kevin_env.app.indexing import found_row, show_found
    from kevin_env.app.indexing import query_index as query
    from kevin_env.app.screen import make_console
    from kevin_env.problem import load_problem

    load_env_file()
    results = query(folder, load_problem(problem), language, number)
    if as_json:
        print_json([found_row(each) for each in results])
    else:
        show_found(make_console(), results)
