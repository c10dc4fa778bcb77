"""Chooses which earlier turns the next prompt shows, and builds the prompt.

As in Kevin (arXiv 2507.11948), a prompt is one user message: the task, then the kernel, summary and
feedback of earlier turns, never their reasoning. A `ContextPolicy` selects the turns.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kevin_env.feedback import (
    PastTurn,
    example_language,
    render_history,
    render_system,
    render_task,
)
from kevin_env.history import ContextPolicy, resolve_context
from kevin_env.judge.api import Facts
from kevin_env.languages import Name
from kevin_env.problem import Problem, data_folder
from kevin_env.record import Message, Turn
from kevin_env.retrieval.operations import Pair, near_copies, operations
from kevin_env.settings import Settings
from kevin_env.wording import inline

TokenCounter = Callable[[str], int]
"""Number of tokens of a text."""

_HEADINGS = 64
"""Upper bound of the tokens of the history's headings: once in total, and once per turn."""
BUILT = frozenset({"runtime", "correctness", "correct"})
"""Categories of turns whose code was built, which shows that the form of the answer is known."""
_VERDICT_LIMIT = 200
"""Characters of a turn's feedback to keep if it does not fit."""


def count_characters(text: str) -> int:
    """Tokens by the rule of thumb of four characters each."""
    return -(-len(text) // 4)


@functools.cache
def load_counter(tokenizer: str) -> TokenCounter:
    """Token counter of a `tokenizer.json`, a folder with one, or a name on the Hugging Face Hub.

    Without a name, four characters count as one token.

    Raises:
        ValueError: if the tokenizer cannot be loaded.
    """
    if not tokenizer:
        return count_characters
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ValueError(
            f"tokenizer={tokenizer!r} needs another package: pip install tokenizers"
        ) from error
    path = Path(tokenizer)
    is_path = path.suffix == ".json" or tokenizer.startswith((".", "/", "~"))
    if is_path and not path.exists():
        raise ValueError(f"there is no tokenizer file {tokenizer}")
    try:
        file = path / "tokenizer.json" if path.is_dir() else path
        loaded = (
            Tokenizer.from_file(str(file))
            if file.is_file()
            else Tokenizer.from_pretrained(tokenizer)
        )
    except Exception as error:  # the library raises nothing more specific
        raise ValueError(f"tokenizer {tokenizer!r} cannot be loaded: {error}") from error
    return lambda text: len(loaded.encode(text, add_special_tokens=False).ids)


def build_messages(
    problem: Problem,
    facts: Facts,
    turns: Sequence[Turn],
    settings: Settings,
    *,
    policy: ContextPolicy | None = None,
    count: TokenCounter | None = None,
) -> tuple[Message, ...]:
    """The chat to send for the next turn: a user message, after a system message if there is one.

    Args:
        problem: the problem.
        facts: the judge's description of it.
        turns: the turns so far, in order, after the start kernel as turn 0 if there is one, which
            is shown until a turn is correct. The worked example is shown until a turn has built,
            further examples before the first.
        settings: the settings of the episode. The task, the last turn's feedback, and the verdict
            and summary of each shown turn stay even if they exceed `context_tokens`.
        policy: chooses the turns to show, instead of `settings.context`.
        count: counts tokens, instead of `settings.tokenizer`, one text at a time.

    Raises:
        RetrievalError: if examples cannot be retrieved.
        ValueError: if the settings name an unknown context or tokenizer.
    """
    count = count or load_counter(settings.tokenizer)
    start = start_of(turns)
    turns = turns[1:] if start else turns
    if any(turn.category == "correct" for turn in turns):
        start = None  # its place is taken by what the policy wrote
    system = render_system()
    building = settings.templates == "default" and not any(turn.category in BUILT for turn in turns)
    example = settings.examples != "zero" and (not turns or building)
    content = render_task(problem, facts, settings, example=example, start=start)
    left = settings.context_tokens - count(content) - count(system) - _HEADINGS
    if turns:
        chosen = policy or resolve_context(settings.context)
        wanted = chosen.order(turns)
        shown = (
            _fitted(wanted, turns[-1], left, count)
            if chosen.within_budget
            else [_whole(turn) for turn in wanted]
        )
        shown.sort(key=lambda turn: turn.number)
        content += "\n" + render_history(
            shown, len(turns) - len(shown), len(turns) + 1, settings.max_turns, settings.templates,
            over=settings.ends_with(turns[-1].outcome),
        )  # fmt: skip
    elif pairs := choose_pairs(
        problem,
        example_language(settings.language, facts.device),
        settings,
        left,
        lambda text: _HEADINGS + count(text),
    ):
        content = render_task(problem, facts, settings, example=example, pairs=pairs, start=start)
    user = Message(role="user", content=content.strip())
    return (Message(role="system", content=system), user) if system else (user,)


def start_of(turns: Sequence[Turn]) -> PastTurn | None:
    """The start kernel, which comes first as turn 0; None if there is none."""
    return _whole(turns[0]) if turns and turns[0].turn == 0 else None


def with_remark(messages: tuple[Message, ...], remark: str) -> tuple[Message, ...]:
    """The chat with a person's remark at the end of its last message."""
    *before, last = messages
    content = f"{last.content}\n\n# A remark before you answer\n\n{remark.strip()}"
    return (*before, Message(role=last.role, content=content))


def _whole(turn: Turn) -> PastTurn:
    code = turn.submission.code if turn.submission else ""
    return PastTurn(turn.turn, code, turn.summary, turn.feedback, had_code=bool(code))


def _fitted(wanted: Sequence[Turn], last: Turn, tokens: int, count: TokenCounter) -> list[PastTurn]:
    """Shortens turns so that all of them take at most `tokens`, if possible."""
    whole = [_whole(turn) for turn in wanted]
    shown = [
        _without_code(each, brief=turn is not last)
        for each, turn in zip(whole, wanted, strict=True)
    ]
    left = tokens - sum(_HEADINGS + count(each.summary + each.feedback) for each in shown)
    for i, each in enumerate(whole):
        left -= count(each.feedback) - count(shown[i].feedback)
        if left < 0:
            return shown
        shown[i] = shown[i]._replace(feedback=each.feedback)
    room = left
    for i, each in enumerate(whole):
        size = count(each.code)
        if size > room:
            continue  # it fits into no prompt; shorter ones may
        left -= size
        if left < 0:
            break
        shown[i] = each
    return shown


def _without_code(turn: PastTurn, brief: bool) -> PastTurn:
    first = inline(turn.feedback.partition("\n\n")[0], _VERDICT_LIMIT)
    return turn._replace(code="", feedback=first if brief else turn.feedback)


DEFAULT_RETRIEVED = 3
"""Retrieved examples, as in kernel-rl."""

_CANDIDATES_PER_PAIR = 10
"""Pairs to try for each one wanted, since some are too long for the prompt."""


def choose_pairs(
    problem: Problem, language: Name, settings: Settings, room: int, cost: Callable[[str], int]
) -> tuple[Pair, ...]:
    """The reference-kernel pairs that `settings.examples` asks for, as many as fit.

    There are none for `zero` and `one`.

    Args:
        problem: the problem of the prompt. Pairs that would reveal its answer are excluded.
        language: the language that the prompt asks for.
        settings: how many pairs, and from which index.
        room: the tokens available.
        cost: the tokens of a text, headings included.

    Raises:
        RetrievalError: if retrieval is requested and the index or the extra is missing.
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
    for pair in itertools.islice(candidates, most * _CANDIDATES_PER_PAIR):
        size = cost(pair.reference + pair.kernel)
        if size <= room:
            room -= size
            taken.append(pair)
        if len(taken) == most:
            break
    return tuple(taken)


def _fixed(problem: Problem, language: Name) -> Iterator[Pair]:
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


def _retrieved(problem: Problem, language: Name, index: str) -> Iterator[Pair]:
    from kevin_env.retrieval.index import open_retriever

    return (match.pair for match in open_retriever(index).find(problem, language))
