"""Splits a C++ or CUDA source into its declarations at global scope.

Nothing is preprocessed, and reading stops where it could be wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|//[^\n]*|/\*.*?\*/)|(?P<newline>\n)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)|(?P<word>[A-Za-z_]\w*)
    |(?P<mark>::|->|[-+*/%=<>!&|^~?:;,.(){}\[\]])
    |(?P<directive>\#(?:[^\n\\]|\\\n|\\.)*)""",
    re.DOTALL | re.VERBOSE,
)
_ODD = re.compile(r"<%|%>|<:|:>|%:|\?\?|<=>")
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_DIRECTIVE = re.compile(r"#[ \t]*(include|define|pragma)\b[ \t]*(.*)", re.DOTALL)
_UNROLL = re.compile(r"#[ \t]*pragma[ \t]+unroll\b[ \t]*(\w*)\s*")
_CLOSES = {")": "(", "]": "[", "}": "{"}
_BEFORE_BODY = {")", "const", "noexcept"}
_NOT_BEFORE_BODY = {"=", "struct", "class", "union", "enum", "namespace"}


@dataclass(frozen=True)
class Token:
    """A word, a number, a string or a mark.

    Attributes:
        braces: How many braces are open before it, within its declaration.
        parentheses: How many parentheses and brackets, likewise; since the last brace.
    """

    text: str
    kind: str
    line: int
    braces: int = 0
    parentheses: int = 0


@dataclass(frozen=True)
class Piece:
    """A declaration, a definition or a directive.

    Attributes:
        kind: `declaration`, `include`, `define` or `pragma`.
        tokens: All of it; of a directive, what follows the word it begins with.
        body: Of a function that is defined, the place of the brace that opens its body; otherwise
            None.
    """

    kind: str
    tokens: tuple[Token, ...]
    body: int | None = None


@dataclass
class _Reader:
    """State of the declaration being read."""

    tokens: list[Token] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    body: int | None = None
    broken: bool = False

    def add(self, token: Token) -> bool:
        """Adds a token and returns whether it ends the declaration; a surplus brace breaks it."""
        if token.text == "{" and not self.open and self._begins_body():
            self.body = len(self.tokens)
        if token.text in _CLOSES:
            self._close(token.text)
        inner = (
            self.open[len(self.open) - self.open[::-1].index("{") :]
            if "{" in self.open
            else self.open
        )
        at = Token(token.text, token.kind, token.line, self.open.count("{"), len(inner))
        self.tokens.append(at)
        if token.text in _CLOSES.values():
            self.open.append(token.text)
        return not self.open and (
            token.text == ";" or (token.text == "}" and self.body is not None)
        )

    def _begins_body(self) -> bool:
        if not self.tokens or self.tokens[-1].text not in _BEFORE_BODY:
            return False
        return not any(
            t.text == "{" or (t.text in _NOT_BEFORE_BODY and not t.parentheses) for t in self.tokens
        )

    def _close(self, mark: str) -> None:
        while self.open and self.open[-1] != _CLOSES[mark]:
            self.broken = True
            if mark != "}" or "{" not in self.open:
                return  # a surplus bracket; only a brace closes brackets left open inside it
            self.open.pop()
        if self.open:
            self.open.pop()
        else:
            self.broken = True


def cut(text: str) -> Iterator[Piece]:
    """The declarations of a source, in order, up to what cannot be read with certainty.

    A declaration with unbalanced brackets is the last one.
    """
    reader = _Reader()
    for token in _tokens(text):
        if token.kind == "directive":
            unroll = _UNROLL.fullmatch(token.text)
            if unroll and reader.tokens:
                if unroll[1]:
                    reader.add(
                        Token(
                            unroll[1], "word" if unroll[1].isidentifier() else "number", token.line
                        )
                    )
                continue
            piece = _directive(token)
            if piece is None or reader.tokens:
                return
            yield piece
        elif reader.add(token):
            yield Piece("declaration", tuple(reader.tokens), reader.body)
            if reader.broken:
                return
            reader = _Reader()


def _tokens(text: str) -> Iterator[Token]:
    """Tokens up to what would be misread: other characters, strings with a prefix or suffix."""
    at, line, before, fresh = 0, 1, "", True
    odd = _ODD.search(text)
    end = odd.start() if odd else len(text)
    while at < end:
        match = _TOKEN.match(text, at)
        kind = match.lastgroup if match else None
        if (
            match is None
            or kind is None
            or match.end() > end
            or (kind == "directive" and not fresh)
        ):
            return
        if {kind, before} == {"string", "word"} or (
            kind == "space" and match[0].rstrip().endswith("\\")
        ):
            return
        if kind not in ("space", "newline"):
            yield Token(match[0], kind, line)
        fresh = kind == "newline" or (fresh and kind == "space")
        at, line, before = match.end(), line + match[0].count("\n"), kind


def _directive(token: Token) -> Piece | None:
    match = _DIRECTIVE.fullmatch(_COMMENT.sub(" ", token.text.replace("\\\n", " ")))
    if not match or "/*" in match[0]:
        return None
    if match[1] == "pragma":
        return Piece("pragma", (token,)) if match[2].strip() == "once" else None
    if match[1] == "include":
        return Piece("include", (Token(match[2].strip(), "name", token.line),))
    tokens = tuple(Token(t.text, t.kind, token.line) for t in _tokens(match[2]))
    text = "".join(t.text for t in tokens)
    whole = re.sub(r"\s", "", text) == re.sub(r"\s", "", match[2])
    return Piece(match[1], tokens) if tokens and whole else None
