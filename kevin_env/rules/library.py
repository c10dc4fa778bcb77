"""What Python's own library does with what it is given: names, no logic."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MAPPINGS = _words("builtins.dict collections.OrderedDict types.MappingProxyType types.SimpleNamespace")
"""Calls that make a dictionary, or what is one with its entries as attributes."""

APPLIERS = _words(
    "builtins.map builtins.filter functools.reduce itertools.starmap torch.utils.checkpoint.checkpoint "
    "torch.utils._pytree.tree_map torch.utils._pytree.tree_map_ torch.utils._pytree.tree_map_only "
    "torch.utils._pytree.tree_map_with_path torch.utils._pytree.tree_any torch.utils._pytree.tree_all"
)
"""Calls that call their first argument on the others."""
THREADS = _words("Thread Timer Process")
"""Classes of `threading` and `multiprocessing` that take a function, to be called when they are started."""
EXECUTORS = _words("concurrent multiprocessing asyncio _thread")
"""Packages whose pools and executors call the functions that they are given."""
RUNS = _words("start run result get __call__")
"""Methods of a thread that call what it was given, and of a future that give what its call returned."""
BUILTINS_COMPUTE = _words("abs sum min max pow round divmod sorted any all")
BUILTINS_SELECT = _words("min max sorted")
"""Those of them that may compare what a function gives for each element instead."""
BUILTINS_PASS = _words("list tuple set frozenset reversed iter")
ITERATORS = _words("__iter__ __aiter__ __reversed__ __await__")
STEPS = _words("__next__ __anext__ __getitem__")
"""Special methods that give what is iterated over, and its elements."""
ENTERING = _words("__enter__ __aenter__")
LOOKING_UP = _words("__getattr__ __getattribute__")
_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
OPERATORS = frozenset(f"__{prefix}{name}__" for name in _ARITHMETIC.split() for prefix in ("", "r", "i")) | _words(
    "__neg__ __pos__ __abs__ __invert__ __round__ __trunc__ __floor__ __ceil__ __lt__ __le__ __eq__ __ne__ __gt__ "
    "__ge__ __contains__ __bool__ __len__ __copy__ __deepcopy__ __format__ __getstate__ __reduce__ __dir__ __index__"
)
"""Special methods that operators, and functions of Python's, call on what they are given."""
METHODS = {
    **{"Add": "__add__", "Sub": "__sub__", "Mult": "__mul__", "MatMult": "__matmul__", "Div": "__truediv__"},
    **{"FloorDiv": "__floordiv__", "Mod": "__mod__", "Pow": "__pow__", "LShift": "__lshift__"},
    **{"RShift": "__rshift__", "BitAnd": "__and__", "BitOr": "__or__", "BitXor": "__xor__"},
}
"""By the names of operators in a syntax tree, the special methods that they call on what is on their left."""
QUESTIONS = _words(
    "hasattr getattr isinstance issubclass callable id dir type print repr str len hash format setattr delattr vars"
)
"""Builtins that ask something of what they are given, or look something up in it."""
NUMBERS = _words(
    "int float bool complex ord chr hex range input open compile globals locals memoryview bytes bytearray"
)
"""Others that give nothing of it back."""
SILENT = (
    *("ctypes.c_", "ctypes.byref", "ctypes.POINTER", "ctypes.pointer", "ctypes.addressof", "ctypes.sizeof", "struct."),
    *("logging.", "time.", "warnings.", "os.", "subprocess.", "pathlib.", "hashlib.", "atexit.", "math.", "tempfile."),
    *("threading.", "concurrent.", "multiprocessing.", "sys.getsizeof", "sys.getrefcount", "sys.std", "traceback."),
)
"""Calls of Python's library that give nothing of what they are given."""
REFLECTING = (
    "inspect.",
    "gc.",
    "typing.get_",
    "dataclasses.fields",
    "sys._getframe",
    "sys._current_frames",
    "sys.exc_info",
    "sys.last_",
    "sys.exception",
    "ctypes.py_object",
)
"""Those that give what names elsewhere would have to be followed for."""
REDUCING = _words("__reduce__ __reduce_ex__ __getstate__")
LOOKUPS = _words("KeyError IndexError AttributeError StopIteration")
"""Exceptions that a missing entry raises, not a failing kernel."""
LOGGING = _words("print warnings logging logger log traceback sys")
OPERATOR_HARMLESS = _words("is_ is_not getitem setitem contains itemgetter length_hint")
OPERATOR_GETTERS = _words("attrgetter methodcaller")
PASSING = ("contextlib.nullcontext", "contextlib.closing", "copy.", "random.choice")
"""Calls of Python's library that give what they are given, or a copy ..."""
COLLECTING = ("itertools.", "collections.deque")
"""... and those that give a container of it."""
REFLECTION = _words(
    "__defaults__ __kwdefaults__ __closure__ __annotations__ __globals__ __code__ __base__ __bases__ __mro__ mro "
    "__subclasses__"
)
"""Attributes of functions and classes that hold what names elsewhere would have to be followed for."""
UNREADABLE = (
    *("pydoc.locate", "pkgutil.resolve_name", "pickle.load", "marshal.load", "runpy.", "code.", "codeop."),
    *("cProfile.run", "profile.run", "trace.Trace", "doctest.run", "importlib.metadata.EntryPoint"),
    *("timeit.timeit", "timeit.repeat", "timeit.Timer", "types.FunctionType", "types.CodeType", "ctypes.pythonapi."),
)
"""Calls of Python's library that run code, or give what can be called, without a name that could be followed."""
STDLIB_COMPUTES = tuple(_words("math. cmath. statistics. heapq. bisect. fractions. decimal. itertools.accumulate"))
"""Those that compare, add or multiply what they are given."""
KEEPING = ("queue.", "contextvars.", "weakref.", "collections.", "threading.local")
"""Those that keep what they are given, and give it back."""
CALLING_LATER = (
    "signal.",
    "sys.set",
    "gc.",
    "threading.set",
    "dataclasses.field",
    "functools.singledispatch.register",
    *KEEPING,
)
"""Those that call functions when something happens."""
