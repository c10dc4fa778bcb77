"""Which references with their kernels the first prompt shows, besides the worked example of the
form.
"""

import itertools
from collections.abc import Callable, Iterator

from kevin_env.problem import Problem, data_folder
from kevin_env.retrieval.operations import near_copies, operations
from kevin_env.retrieval.pair import Language, Pair
from kevin_env.settings import Settings

DEFAULT_RETRIEVED = 3
"""Retrieved examples, as in kernel-rl."""

_TRIED = 10
"""Pairs that are tried for each one wanted: those too long for the prompt give way to the next."""


def choose_pairs(
    problem: Problem, language: Language, settings: Settings, room: int, cost: Callable[[str], int]
) -> tuple[Pair, ...]:
    """The pairs that `settings.examples` asks for, as far as they fit; none for `zero` and `one`.

    Args:
        problem: what the prompt is about; nothing that gives its answer away is among them.
        language: what the prompt asks for.
        settings: says which, how many, and from which index.
        room: tokens that there are for them.
        cost: tokens that a text takes, with what stands round it.

    Raises:
        RetrievalError: if they are to be retrieved, and there is no index, or the extra is not
            installed.
    """
    kind, _, number = str(settings.examples).partition(":")
    if kind not in ("few", "retrieved"):
        return ()
    most = int(number or DEFAULT_RETRIEVED)
    candidates = (
        _fixed(problem, language)
        if kind == "few"
        else _retrieved(problem, language, settings.index)
    )
    taken: list[Pair] = []
    for pair in itertools.islice(candidates, most * _TRIED):
        price = cost(pair.reference + pair.kernel)
        if price <= room:
            room -= price
            taken.append(pair)
        if len(taken) == most:
            break
    return tuple(taken)


def _fixed(problem: Problem, language: Language) -> Iterator[Pair]:
    """Those in `prompts/examples/few`, in order."""
    for path in sorted((data_folder("prompts") / "examples" / "few").glob("*/reference.py")):
        reference = path.read_text(encoding="utf-8")
        if not near_copies(operations(reference), operations(problem.source)):
            kernel = path.with_name(f"{language}.py").read_text(encoding="utf-8")
            yield Pair(
                id=path.parent.name,
                origin="examples",
                language=language,
                reference=reference,
                kernel=kernel,
            )


def _retrieved(problem: Problem, language: Language, index: str) -> Iterator[Pair]:
    from kevin_env.retrieval.retriever import open_retriever

    return (found.pair for found in open_retriever(index).find(problem, language))
