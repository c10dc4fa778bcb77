"""`kevin-env index`: makes the index that prompts retrieve examples from, and looks into it."""

from pathlib import Path
from typing import Annotated

import typer

from kevin_env.cli.options import Json, print_json

index = typer.Typer(
    help="Build an index of kernels to retrieve examples from, or query it.", rich_markup_mode=None
)


@index.command("build")
def build_index(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="solutions; kernelbook or archive, from the Hub; or with a parquet file or folder, kernelbook:FILE.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The folder to write. An index that is there is replaced.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="Of sentence-transformers, by name or folder; token-hash takes no model."
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(help="Where the model embeds: cpu or cuda. Queries are embedded on the CPU."),
    ] = "cpu",
    as_json: Json = False,
) -> None:
    """Build an index of references and kernels. Needs the extra retrieval."""
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


@index.command("query")
def query_index(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The index.")],
    problem: Annotated[str, typer.Argument(metavar="ID", help="A problem: an id, or a path.")],
    language: Annotated[str, typer.Option(help="triton, cuda or cpp.")] = "triton",
    number: Annotated[int, typer.Option("-k", help="How many.", min=1)] = 3,
    as_json: Json = False,
) -> None:
    """Show what a prompt for a problem would be offered: the likest, without its own solutions and
    their copies.

    Kernels of held-out problems are shown for held-out problems alone.
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
