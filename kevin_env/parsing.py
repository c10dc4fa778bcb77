"""Reading Python code as a syntax tree, from any thread, and a problem's source as a submission."""

import ast

_ATTEMPTS = 10


def parse(code: str, filename: str = "<unknown>") -> ast.Module:
    """As `ast.parse`, and again where it fails for no reason of the code's.

    Before Python 3.13 all threads share the counter of the tree's depth, and one that is interrupted while it builds a
    tree finds it changed (python/cpython#106905): a SystemError once in some ten thousand calls. Each call sets the
    counter anew. A lock instead could be held for ever in a process that was forked meanwhile.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    for _ in range(_ATTEMPTS):
        try:
            return ast.parse(code, filename)
        except SystemError:
            continue
    return ast.parse(code, filename)


def as_submission(source: str) -> str:
    """A problem's source as a submission: `Model` is called `ModelNew`, also where the class names itself."""
    return ast.unparse(_Renamed().visit(parse(source)))


class _Renamed(ast.NodeTransformer):
    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if node.name == "Model":
            node.name = "ModelNew"
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "Model":
            node.id = "ModelNew"
        return node
