"""Recognizes code that says the same as code that was submitted before.

Python is compared by its syntax tree without docstrings, and strings with C++ or CUDA by their
tokens, in which local names count by their order. In doubt, code is new: a fixed kernel must be
judged, while renamed Python or a dead line only escapes the rule that repeated code is paid once.
"""

import ast
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import dropwhile, islice, pairwise

from kevin_env.parsing import UNREADABLE, last_name, parse, walk

_TEXT = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|R"(?P<mark>[^(\s"]*)\(.*?(?:\)(?P=mark)"|\Z)'
_COMMENT = re.compile(rf"(?P<text>{_TEXT})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TOKEN = re.compile(
    rf"^[ \t]*#[^\n]*|{_TEXT}|\w+|<<<|>>>|(?:<<|>>|[-+*/%&|^<>=!])=|<<|->|::|\+\+|--|&&|\|\||##|\S",
    re.DOTALL | re.MULTILINE,
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_NO_TYPES = re.compile(
    r"return|else|case|goto|new|delete|throw|sizeof|typename|using|namespace|operator|not|and|or|do|"
    r"const(?:expr)?|volatile|static|inline|extern|mutable|register|unsigned|signed|long|short|"
    r"struct|class|enum|union|public|private|template|__\w+__|__restrict|asm"
)
"""Words after which a word is not the name of a variable."""
_QUALIFIERS = re.compile(r"const(?:expr)?|static|volatile|register|(?:un)?signed|__\w+__")
_TYPES = re.compile(
    r"void|bool|char|short|int|long|unsigned|auto|size_t|u?int\d+_t|half|__half|(?:float|double)\d?"
)
"""Types of which a pointer or reference is surely one, and no product."""
_POINTER = frozenset({"*", "&", "__restrict__"})
_ENDS = frozenset("=;,)[{:")
"""What follows the name in a declaration."""


@functools.lru_cache(maxsize=256)  # called for new code, and again for the turn that it becomes
def meaning_of(code: str) -> bytes:
    """A hash that is the same for code that differs at most in what computes nothing.

    That is comments, layout and docstrings, in strings of C++ and CUDA also the names of variables
    and of functions that nothing else names, and the name of an extension.
    """
    try:
        tree = parse(code)  # a tree of its own, which is changed below
        nodes = walk(tree)
        _drop_docstrings(nodes)
        _normalize_sources(nodes)
        text = ast.dump(tree)
    except UNREADABLE:
        text = code
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _drop_docstrings(nodes: list[ast.AST]) -> None:
    """Removes all statements that are nothing but a string."""
    for node in nodes:
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]


def _is_text(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _normalize_sources(nodes: list[ast.AST]) -> None:
    """Replaces strings of C++ and CUDA by their tokens, and the names of extensions by nothing."""
    _drop_names_of_extensions(nodes)
    sources = list[tuple[ast.Constant, list[str]]]()
    named = {getattr(node, "id", getattr(node, "attr", "")) for node in nodes}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if ";" in node.value:
                sources.append((node, list(_tokens(node.value))))
            else:  # such as the name of a function that is bound
                named.update(_WORD.findall(node.value))
    seen = Counter(word for _, tokens in sources for word in set(tokens))
    quoted = {word for _, tokens in sources for word in _quoted(tokens)}
    for node, tokens in sources:
        closing = _closing(tokens)
        local = _local_names(tokens, closing) | (_own_functions(tokens, closing) - named)
        own = {word for word in local - quoted if seen[word] == 1}
        numbers: dict[str, str] = {}
        for at, token in enumerate(tokens):
            if token in own:
                tokens[at] = numbers.setdefault(token, f"${len(numbers)}")
        node.value = "\n".join(tokens)


def _drop_names_of_extensions(nodes: list[ast.AST]) -> None:
    variables, nothing = set[str](), ast.Constant("")
    for node in nodes:
        if isinstance(node, ast.Call) and last_name(node) in ("load", "load_inline"):
            first = 1 if last_name(node) == "load_inline" else 0  # what `tl.load` reads is no name
            names = [each.value for each in node.keywords if each.arg == "name"] + node.args[:first]
            variables |= {each.id for each in names if isinstance(each, ast.Name)}
            node.args[:first] = [nothing] * len(node.args[:first])
            for each in node.keywords:
                each.value = nothing if each.arg == "name" else each.value
    loaded = Counter(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            targets = {getattr(each, "id", "") for each in node.targets}
            if targets <= variables and all(loaded[each] == 1 for each in targets):
                node.value.value = ""


def _tokens(source: str) -> Iterator[str]:
    """The tokens of C++; a directive, whose blanks can matter, is one."""
    joined = source.replace("\\\n", " ")
    plain = _COMMENT.sub(lambda match: match["text"] or " ", joined)
    for match in _TOKEN.finditer(plain):
        token = match[0]
        yield " ".join(token.split()) if token.lstrip().startswith("#") else token


def _local_names(tokens: list[str], closing: dict[int, int]) -> set[str]:
    """Variables that are declared and that nothing outside of these tokens can name."""
    found = set[str]()
    for at in range(1, len(tokens) - 1):
        name, before = tokens[at], at - 1
        while before > max(0, at - 5) and tokens[before] in _POINTER:
            before -= 1
        kind = tokens[before]
        pointer = before < at - 1
        is_type = bool(_TYPES.fullmatch(kind) if pointer else not _NO_TYPES.fullmatch(kind))
        if is_type and tokens[at + 1] in _ENDS and _WORD.fullmatch(name) and _WORD.fullmatch(kind):
            found.add(name)
            while before > 0 and _QUALIFIERS.fullmatch(tokens[before - 1]):
                before -= 1
            if tokens[before - 1] in ";{}" or tokens[before - 2 : before] == ["for", "("]:
                found |= _further_names(tokens, at + 1, closing)
    pairs = list(pairwise(tokens))
    others = {one for one, after in pairs if after in ("(", "<<<")}  # functions
    others |= {one for before, one in pairs if before in (".", "->", "::")}  # members
    return found - others


def _further_names(tokens: list[str], at: int, closing: dict[int, int]) -> set[str]:
    """The variables of a declaration such as `float a = f(1), *b` after the first, at `at - 1`."""
    found = set[str]()
    while at < len(tokens) and tokens[at] not in ";<)]}":  # commas in `<>` may separate types
        if tokens[at] == ",":
            names = dropwhile(_POINTER.__contains__, tokens[at + 1 : at + 5])
            found |= {each for each in islice(names, 1) if _WORD.fullmatch(each)}
        at = closing.get(at, at) + 1
    return found


def _own_functions(tokens: list[str], closing: dict[int, int]) -> set[str]:
    """Functions that are defined here."""
    found = set[str]()
    for at, (kind, name, after) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if after == "(" and _WORD.fullmatch(name) and _TYPES.fullmatch(kind):
            end = closing[at + 2] + 1
            if tokens[end : end + 1] == ["{"]:
                found.add(name)
    return found


def _closing(tokens: list[str]) -> dict[int, int]:
    """Where each opened bracket is closed; after the last token if it never is."""
    found, open_ = dict[int, int](), list[int]()
    for at, token in enumerate(tokens):
        if token in "([{":
            open_.append(at)
        elif token in ")]}" and open_:
            found[open_.pop()] = at
    return found | dict.fromkeys(open_, len(tokens))


def _quoted(tokens: list[str]) -> set[str]:
    """Words in strings and directives."""
    texts = [token for token in tokens if not _WORD.fullmatch(token)]
    return {word for text in texts for word in _WORD.findall(text)}
