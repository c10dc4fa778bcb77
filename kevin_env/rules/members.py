"""What tensors and modules have: attributes that no submission defines."""

from kevin_env.rules import vocabulary as words
from kevin_env.rules.atoms import (
    TENSOR,
    UNKNOWN,
    Arguments,
    Atom,
    Class,
    Future,
    Imported,
    Instance,
    Items,
    Tensor,
    TensorMethod,
    TorchModule,
    Value,
    join,
)
from kevin_env.rules.values import items, leaves


def of_module(held: Value, name: str) -> Value:
    """What of a module's attributes another of them, or the method of that name, gives."""
    if name in words.MODULE_ENTRIES:
        return items(held)
    each = TENSOR if name in ("parameters", "buffers") else leaves(held) - TENSOR
    named = items(UNKNOWN, each, exact=True) if name.startswith("named_") else each
    return frozenset({Future(each if name == "get_submodule" else items(named))})


def itself(atom: Atom) -> Value:
    """What a method stands for that gives the module that it is called on."""
    return frozenset({Future(frozenset({atom}))})


def of_module_class(name: str) -> Value:
    """What the attribute of `torch.nn.Module` itself stands for."""
    return frozenset({Imported(f"torch.nn.Module.{name}")})


def of_tensor(name: str) -> Value:
    """What the attribute of a tensor stands for."""
    if name in words.TENSOR_VIEWS_AS_ATTRIBUTES:
        return TENSOR
    if name == "__class__":
        return frozenset({Imported("torch.Tensor")})
    return frozenset({TensorMethod(name)})


def of_torch_module(atom: TorchModule, name: str) -> Value:
    """What the attribute of a module of torch stands for."""
    if name in ("forward", "__call__", "_call_impl", "_wrapped_call_impl", "_slow_forward"):
        return frozenset({atom})
    if name in words.MODULE_ITSELF:
        return itself(atom)
    if name in words.LAYERS_WITHIN:
        return frozenset({TorchModule(f"{atom.path}.{name}")})
    if name in words.MODULE_LISTS:
        return of_module(TENSOR | {atom}, name)
    if name == "__class__":
        return type_of(atom)
    if name.endswith(("_hook", "_hooks")):
        return of_module_class(name)
    if name in ("_buffers", "_parameters"):
        return items(TENSOR)
    weights = ("weight", "bias", "running_", "in_proj")
    return TENSOR if name.startswith(weights) else UNKNOWN


def is_layer(path: str) -> bool:
    """Whether it is a class of `torch.nn` that computes."""
    return path.startswith("torch.nn.") and path.rsplit(".", 1)[-1] not in {"Module", *words.CONTAINERS}


def made_of(path: str, arguments: Arguments) -> Value:
    """What a class of `torch.nn` makes."""
    last = path.rsplit(".", 1)[-1]
    if last in words.PARAMETERS:
        return TENSOR
    if last in words.CONTAINERS:
        first, *others = (*arguments.positional, *(value for _, value in arguments.keywords), arguments.rest)
        named = frozenset(atom for atom in first if isinstance(atom, Items) and atom.names)
        unnamed = leaves(join((first - named, *others)))
        return named | items(unnamed) if unnamed or not named else named
    return frozenset({TorchModule(path)})


def type_of(atom: Atom) -> Value:
    """What `type` gives."""
    match atom:
        case Tensor():
            return frozenset({Imported("torch.Tensor")})
        case Instance(node):
            return frozenset({Class(node)})
        case TorchModule(path):
            return frozenset({Imported(path)})
        case _:
            return UNKNOWN
