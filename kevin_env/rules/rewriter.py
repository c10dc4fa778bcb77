"""A transformer of syntax trees that leaves the tree as it was, so that others may read it, too."""

import ast
import copy
from typing import Any, cast

from kevin_env.parsing import Node


class Rewriter(ast.NodeTransformer):
    """As the library's, with copies of the nodes that change and of those round them; all others are shared."""

    def generic_visit(self, node: Node) -> Node:
        """The node with what its children became."""
        fields = dict[str, Any]()
        for name, value in ast.iter_fields(node):
            made = self._rewritten(value)
            if made is not value:
                fields[name] = made
        return changed(node, **fields) if fields else node

    def _rewritten(self, value: Any) -> Any:
        if isinstance(value, ast.AST):
            return self.visit(value)
        if not isinstance(value, list):
            return value
        before, after = cast("list[Any]", value), list[Any]()
        for each in before:
            made = self._rewritten(each)
            after += made if isinstance(made, list) else [made]
        return after if after != before else before


def changed(node: Node, **fields: Any) -> Node:
    """A copy of the node with other values in those fields."""
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made
