"""What is known of a submission while it is read. First of the layers of one reader."""

import ast

from kevin_env.parsing import nodes_of
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import UNKNOWN, Arguments, Atom, Function, Scope, Value
from kevin_env.rules.cpp_sources import registers_operators, returned_types
from kevin_env.rules.findings import Findings

CONTENTS = "(contents)"
"""The attribute that stands for what a list or a dictionary of a class of the submission's holds ..."""
SOME_NAME = "(some name)"
"""... and for those that are set by a name that is not written out."""


class Notes(Findings):
    """Facts and findings, and what a layer further up knows how to do."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__()
        self.globals = Scope()
        self.bases: dict[ast.ClassDef, tuple[Value, ...]] = {}
        self.patches: dict[tuple[str, str], Value] = {}
        """What attributes of something imported were set to."""
        self.loose: dict[str, Value] = {}
        """What attributes of functions and of tensors were set to."""
        stored = {node.attr for node in nodes_of(tree, ast.Attribute) if isinstance(node.ctx, ast.Store)}
        self.stored = stored - words.TENSOR_NAMES - words.TENSOR_VIEWS_AS_ATTRIBUTES
        """Attributes that are set somewhere, and that no tensor has of itself."""
        self.class_names: dict[ast.ClassDef, dict[str, Value]] = {}
        self.instance_names: dict[ast.ClassDef, dict[str, Value]] = {}
        owners = nodes_of(tree, ast.ClassDef)
        self.home = {node: owner for owner in owners for node in owner.body if isinstance(node, ast.FunctionDef)}
        self.own_operators = registers_operators(tree)
        self.returned = returned_types(tree)
        self.written: dict[str, Value] = {}
        """What code in strings defines: a module that is written to a file and imported has it."""
        self.setters: dict[tuple[ast.ClassDef, str], Function] = {}
        """What runs when an attribute of an object is set."""
        self.registered: list[Function] = []
        self.hooks: list[Atom] = []
        self.watchers: list[Atom] = []
        """Hooks of modules: each may be given a module, its inputs and its outputs."""
        self.escaped: list[Atom] = []
        self.carried: Value = UNKNOWN
        """What exceptions carry, and generators that end."""
        self.kernels: list[Function] = []
        self.foreign: list[Function] = []
        """What packages that are not known here were given: they compile it, or only wrap it."""
        self.star_imports: list[str] = []
        self.imports: list[ast.Import | ast.ImportFrom] = []
        """Those that run."""
        self.runs_text = False
        """Whether it runs code in a string that could not be read: names may come from there."""

    def run(self, function: Function, arguments: Arguments) -> Value:
        """Reads a function's body and says what it returns."""
        raise NotImplementedError

    def call(self, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
        """What calling any of `callee` gives."""
        raise NotImplementedError

    def evaluate(self, node: ast.AST | None, scope: Scope) -> Value:
        """What an expression stands for."""
        raise NotImplementedError

    def resolve(self, node: ast.AST | None, scope: Scope) -> Value:
        """As `evaluate`, where nobody gets the value."""
        raise NotImplementedError

    def assign(self, target: ast.AST, value: Value, scope: Scope) -> Value:
        """Binds a target to a value, and gives the value."""
        raise NotImplementedError

    def special(self, value: Value, names: frozenset[str], arguments: Arguments) -> Value:
        """What special methods of those names give."""
        raise NotImplementedError
