"""What a call does, by what is called. Third layer of the reader."""

import ast
import sys

from kevin_env.rules import library
from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    LOST,
    TENSOR,
    UNKNOWN,
    Arguments,
    Atom,
    Class,
    Filling,
    Function,
    Future,
    Holder,
    Imported,
    Instance,
    Items,
    Kernel,
    Partial,
    TensorMethod,
    Thread,
    TorchModule,
    Value,
    join,
)
from kevin_env.rules.members import made_of
from kevin_env.rules.operations import OPAQUE, is_operation
from kevin_env.rules.python_calls import PythonCalls
from kevin_env.rules.values import has_tensor, items, mapping

KERNEL: Value = frozenset({Kernel()})
EXTENSION: Value = frozenset({Kernel(gives_tensors=True)})


class Calls(PythonCalls):
    """Follows calls into the submission's functions, and judges calls of everything else."""

    def call(self, callee: Value, arguments: Arguments, node: ast.AST) -> Value:
        """What calling any of `callee` gives: what is not known, the layers that it is handed."""
        if not callee:
            return self._call_unknown(arguments)
        return join(self._call(atom, arguments, node) for atom in callee)

    def _call_unknown(self, arguments: Arguments) -> Value:
        """What is not known launches the kernel that it is handed, and may give back a layer."""
        handed = arguments.all()
        if any(isinstance(atom, Kernel) for atom in handed):
            self.launch()
        return frozenset(atom for atom in handed if isinstance(atom, TorchModule))

    def _call(self, atom: Atom, arguments: Arguments, node: ast.AST) -> Value:
        match atom:
            case Kernel(gives_tensors, numbers):
                self.launch()
                tensors = gives_tensors and has_tensor(arguments.all())
                given = TENSOR if tensors else KERNEL  # an object with methods that launch
                return items(*(UNKNOWN if each else given for each in numbers), exact=True) if numbers else given
            case Function():
                return self.run(atom, arguments)
            case Imported(path):
                return self._call_imported(path, arguments, node)
            case TensorMethod(name):
                return self._call_tensor_method(name, node)
            case TorchModule(path):
                return self._call_torch_module(path, node)
            case Class():
                return self.construct(atom, arguments, node)
            case Instance():
                return self.call(self.entries(atom), arguments, node)
            case Items():
                return self.call(atom.inner, arguments, node)
            case Filling(cell):
                cell.add(None, arguments.all())
                return UNKNOWN
            case Partial(callee, given):
                return self.call(callee, given.with_more(arguments), node)
            case Thread(callee, given):
                return self.call(callee, given, node)
            case Future(result):
                return result
            case Holder():
                self.unread(arguments.all())
                return LOST
            case _:
                return UNKNOWN

    def construct(self, atom: Class, arguments: Arguments, node: ast.AST) -> Value:
        """An instance of the submission's class, its `__init__` read."""
        instance: Value = frozenset({Instance(atom.node)})
        self.call(self.attribute(instance, "__init__"), arguments, node)
        return instance

    def _call_imported(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        callables = frozenset(atom for atom in arguments.first() if isinstance(atom, Function | Kernel | Class))
        if path in words.WRAPPERS:
            return arguments.first() or frozenset({Imported(path)})
        if path in library.APPLIERS:
            return self._apply(path.rsplit(".", 1)[-1], arguments, node)
        if path in library.MAPPINGS:
            return mapping(arguments) | (arguments.first() & (OPAQUE | LOST))
        if path == "builtins.dict.fromkeys":
            return items(*arguments.positional[1:2], self.elements(arguments.first()))
        if path in words.EXTENSION_MAKERS:
            return EXTENSION
        if path in words.LIBRARY_MAKERS:
            return KERNEL
        match path.split(".")[0]:
            case _ if ".np." in path or ".numpy." in path:  # as a module has it that is not NumPy
                return self._call_numpy(path[max(path.rfind(".np."), path.rfind(".numpy.")) + 1 :], arguments, node)
            case "torch":
                return self._call_torch(path, arguments, node)
            case "numpy" | "scipy" | "cupy":
                return self._call_numpy(path, arguments, node)
            case "builtins":
                return self._call_builtin(path.removeprefix("builtins."), arguments, node)
            case "operator" | "_operator":
                return self._call_operator(path, arguments, node)
            case "triton":
                return KERNEL if callables else frozenset({Imported(path)})
            case "cuda" if path.rsplit(".", 1)[-1] in words.LAUNCHERS:
                return self._call(Kernel(), arguments, node)
            case root if root in sys.stdlib_module_names:
                return self._call_stdlib(path, arguments, arguments.first() if root == "functools" else callables, node)
            case _:
                self.foreign += [atom for atom in arguments.all() if isinstance(atom, Function)]
                given = self._call_unknown(arguments)
                return KERNEL if callables else given

    def _call_torch(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        path = path[path.rfind(".torch.") + 1 :]  # torch again, as a module of its own has it
        last = (parts := path.split("."))[-1]
        if path.startswith("torch.Tensor."):
            return self._call_tensor_method(last, node)
        if len(parts) == 1 or path.startswith(words.TORCH_COMPUTING_NAMESPACES):
            return self._computes(path, node)
        if parts[1] == "classes" and self.own_operators:
            return EXTENSION
        if parts[1] == "ops" and len(parts) > 3:
            return self._call_operator_of_library(parts[2], path, arguments, node)
        if f"{path}.".startswith(words.TORCH_NAMESPACES):
            return self._call_allowed_namespace(path, arguments)
        if parts[1:2] == ["nn"] and len(parts) > 2 and parts[2] not in ("functional", "init") and last[0].isupper():
            return made_of(path, arguments)
        if len(parts) == 2 and last in words.TORCH_TENSOR:
            return TENSOR
        if len(parts) == 2 and last in words.TORCH_TENSORS:
            return items(TENSOR)
        if parts[1] in words.TORCH_OTHER or last.startswith(("is_", "get_", "set_")):
            return frozenset({Imported(path)})
        return self._computes(path, node)

    def _call_allowed_namespace(self, path: str, arguments: Arguments) -> Value:
        if path.endswith((".CUDAGraph.capture_begin", ".CUDAGraph.capture_end")):
            self.capture(path.endswith("begin"))
        handed = arguments.all()
        if path.startswith("torch.utils._pytree."):
            return self.unread(handed)
        functions = [atom for atom in self.runnable(handed) if isinstance(atom, Function)]
        last = path.rsplit(".", 1)[-1]
        if path.startswith("torch.library.") and last not in words.FAKES:
            self.registered += functions
        if path.startswith("torch.nn.Module.") and "forward" in path:
            self.watchers += self.to_be_called(handed)
        return frozenset(atom for atom in handed if isinstance(atom, Function | Kernel)) or frozenset({Imported(path)})

    def _call_operator_of_library(self, library: str, path: str, arguments: Arguments, node: ast.AST) -> Value:
        if path in words.VIEWING_OPERATORS:
            return TENSOR
        if library in words.BUILT_IN_OPERATORS or not (self.own_operators or self.registered):
            return self._computes(path, node)
        if self.own_operators:
            self.launch()
        given = TENSOR if self.own_operators else UNKNOWN
        return given | join(self.run(function, arguments) for function in self.registered)

    def _call_tensor_method(self, name: str, node: ast.AST) -> Value:
        if name in words.TENSOR_OTHER:
            return UNKNOWN
        if name in words.TENSOR_TENSORS:
            return items(TENSOR)
        if name not in words.TENSOR_TENSOR:
            self.report("torch_compute", node, f"the tensor method .{name}()")
        return TENSOR

    def _call_torch_module(self, path: str, node: ast.AST) -> Value:
        if path.rsplit(".", 1)[-1] in words.FREE_MODULES:
            return TENSOR
        return self._computes(path, node)

    def _call_numpy(self, path: str, arguments: Arguments, node: ast.AST) -> Value:
        name = path.split(".", 1)[-1]
        if name in words.NUMPY_HARMLESS | words.NUMPY_VIEWS:
            return TENSOR if name in words.NUMPY_VIEWS and self.reached else arguments.all() & TENSOR
        handed = arguments.all()
        computes = name.startswith(words.NUMPY_PRODUCTS) or has_tensor(handed) or any(map(is_operation, handed))
        return self._computes(path, node) if computes else UNKNOWN
