"""Ways in which a value goes in at one place of Python and comes out at another, one trick each.

In each, `PAYLOAD` goes in, and is bound to R afterwards: what stands before the class, and the lines that do it.
"""

WAYS: dict[str, tuple[str, str]] = {
    "direct": ("", "R = PAYLOAD"),
    "slice stop": ("", "R = slice(PAYLOAD).stop"),
    "slice sub": ("", "class G:\n    def __getitem__(self, i): return i\nR = G()[PAYLOAD]"),
    "slice sub2": ("", "class G:\n    def __getitem__(self, i): return i.start\nR = G()[PAYLOAD:]"),
    "annotated": ("", "R = typing.get_args(typing.Annotated[int, PAYLOAD])[1]"),
    "annot meta": ("", "R = typing.Annotated[int, PAYLOAD].__metadata__[0]"),
    "type hints": ("", 'class H:\n    f: PAYLOAD\nR = typing.get_type_hints(H)["f"]'),
    "annotations": ("", 'def h(a: PAYLOAD): pass\nR = h.__annotations__["a"]'),
    "sig default": ("", 'def h(a=PAYLOAD): pass\nR = inspect.signature(h).parameters["a"].default'),
    "sig annot": ("", 'def h(a:PAYLOAD): pass\nR = inspect.signature(h).parameters["a"].annotation'),
    "defaults": ("", "def h(a=PAYLOAD): pass\nR = h.__defaults__[0]"),
    "dc tuple": ("@dataclass\nclass D:\n    f: object\n", "R = dataclasses.astuple(D(PAYLOAD))[0]"),
    "dc dict": ("@dataclass\nclass D:\n    f: object\n", 'R = dataclasses.asdict(D(PAYLOAD))["f"]'),
    "dc fields": (
        "@dataclass\nclass D:\n    f: object\n",
        "d = D(PAYLOAD)\nR = [getattr(d, k.name) for k in dataclasses.fields(d)][0]",
    ),
    "dc replace": ("@dataclass\nclass D:\n    f: object\n", "R = dataclasses.replace(D(PAYLOAD)).f"),
    "dc attr": ("@dataclass\nclass D:\n    f: object\n", "R = D(PAYLOAD).f"),
    "dc own dict": ("@dataclass\nclass D:\n    f: object\n", "R = list(D(PAYLOAD).__dict__.values())[0]"),
    "dc vars": ("@dataclass\nclass D:\n    f: object\n", "R = list(vars(D(PAYLOAD)).values())[0]"),
    "dc match": ("@dataclass\nclass D:\n    f: object\n", "match D(PAYLOAD):\n    case D(g): R = g"),
    "dc post": (
        "@dataclass\nclass D:\n    f: object\n    def __post_init__(self): self.g = self.f\n",
        "R = D(PAYLOAD).g",
    ),
    "dc initvar": (
        "@dataclass\nclass D:\n    f: dataclasses.InitVar[object]\n    def __post_init__(self, f): self.g = f\n",
        "R = D(PAYLOAD).g",
    ),
    "dc factory": (
        "",
        "@dataclass\nclass D:\n    f: object = dataclasses.field(default_factory=lambda: PAYLOAD)\nR = D().f",
    ),
    "dc default": ("", "@dataclass\nclass D:\n    f: object = PAYLOAD\nR = dataclasses.astuple(D())[0]"),
    "make dc": ('D = dataclasses.make_dataclass("D", ["f"])\n', "R = D(PAYLOAD).f"),
    "nt index": ("class T(typing.NamedTuple):\n    f: object\n", "R = T(PAYLOAD)[0]"),
    "nt unpack": ("class T(typing.NamedTuple):\n    f: object\n    n: int\n", "R, _ = T(PAYLOAD, 1)"),
    "nt iter": ("class T(typing.NamedTuple):\n    f: object\n", "R = next(iter(T(PAYLOAD)))"),
    "nt star": ("class T(typing.NamedTuple):\n    f: object\ndef first(a): return a\n", "R = first(*T(PAYLOAD))"),
    "nt default": ("", "class T(typing.NamedTuple):\n    f: object = PAYLOAD\nR = T()[0]"),
    "nt func": ('T = collections.namedtuple("T", "f n")\n', "R = T(PAYLOAD, 1).f"),
    "nt func i": ('T = collections.namedtuple("T", "f n")\n', "R = T(PAYLOAD, 1)[0]"),
    "nt base": ('class T(collections.namedtuple("T", "f n")):\n    pass\n', "R = T(PAYLOAD, 1).f"),
    "nt base i": ('class T(collections.namedtuple("T", "f n")):\n    pass\n', "R = T(PAYLOAD, 1)[0]"),
    "nt asdict": ('T = collections.namedtuple("T", "f n")\n', 'R = T(PAYLOAD, 1)._asdict()["f"]'),
    "simplens": ("", "R = types.SimpleNamespace(a=PAYLOAD).a"),
    "simplens d": ("", "R = next(iter(types.SimpleNamespace(a=PAYLOAD).__dict__.values()))"),
    "simplens v": ("", "R = list(vars(types.SimpleNamespace(a=PAYLOAD)).values())[0]"),
    "send": ("def g():\n    f = yield 0\n    yield f\n", "it = g(); next(it)\nR = it.send(PAYLOAD)"),
    "send2": ("", "def g():\n    f = yield 0\n    yield f\nit = g(); next(it)\nR = it.send(PAYLOAD)"),
    "gen ret": (
        "def g(a):\n    yield 1\n    return a\n",
        "it = g(PAYLOAD); next(it)\ntry:\n    next(it)\nexcept StopIteration as e:\n    R = e.value",
    ),
    "gen from": (
        "def g(a):\n    yield 1\n    return a\ndef h(a):\n    r = yield from g(a)\n    yield r\n",
        "R = list(h(PAYLOAD))[1]",
    ),
    "gen expr": ("", "R = next(PAYLOAD for _ in range(1))"),
    "gen yield": ("def g(a):\n    z = yield a\n", "R = next(g(PAYLOAD))"),
    "gen yield2": ("def g(a):\n    print((yield a))\n", "R = next(g(PAYLOAD))"),
    "gen throw": (
        "class E(Exception): pass\ndef g():\n    try:\n        yield 1\n    except E as e:\n        yield e.args[0]\n",
        "it = g(); next(it)\nR = it.throw(E(PAYLOAD))",
    ),
    "await": (
        "async def other(a): return a\nasync def go(a): return await other(a)\n",
        "try:\n    go(PAYLOAD).send(None)\nexcept StopIteration as e:\n    R = e.value",
    ),
    "asyncio run": (
        "async def other(a): return a\nasync def go(a): return await other(a)\n",
        "R = asyncio.run(go(PAYLOAD))",
    ),
    "await cls": (
        "class W:\n"
        "    def __init__(self, a): self.a = a\n"
        "    def __await__(self):\n"
        "        return self.a\n"
        "        yield\n"
        "async def go(a): return await W(a)\n",
        "R = asyncio.run(go(PAYLOAD))",
    ),
    "async for": (
        "class W:\n"
        "    def __init__(self, a): self.a = a\n"
        "    def __aiter__(self): return self\n"
        "    async def __anext__(self): return self.a\n"
        "async def go(a):\n"
        "    async for t in W(a): return t\n",
        "R = asyncio.run(go(PAYLOAD))",
    ),
    "async gen": (
        "async def ag(a):\n    yield a\nasync def go(a):\n    async for t in ag(a): return t\n",
        "R = asyncio.run(go(PAYLOAD))",
    ),
    "async with": (
        "class W:\n"
        "    def __init__(self, a): self.a = a\n"
        "    async def __aenter__(self): return self.a\n"
        "    async def __aexit__(self, *a): pass\n"
        "async def go(a):\n"
        "    async with W(a) as t: return t\n",
        "R = asyncio.run(go(PAYLOAD))",
    ),
    "exc args": ("class E(Exception): pass\n", "try:\n    raise E(PAYLOAD)\nexcept E as e:\n    R = e.args[0]"),
    "exc attr": (
        "class E(Exception):\n    def __init__(self, a): self.a = a\n",
        "try:\n    raise E(PAYLOAD)\nexcept E as e:\n    R = e.a",
    ),
    "exc obj": ("class E(Exception): pass\n", "e0 = E(PAYLOAD)\ntry:\n    raise e0\nexcept E as e:\n    R = e.args[0]"),
    "exc from": (
        "class E(Exception): pass\n",
        "try:\n    raise E() from E(PAYLOAD)\nexcept E as e:\n    R = e.__cause__.args[0]",
    ),
    "exc info": (
        "class E(Exception): pass\n",
        "try:\n    raise E(PAYLOAD)\nexcept E:\n    R = sys.exc_info()[1].args[0]",
    ),
    "exc called": (
        "class E(Exception): pass\ndef boom(a): raise E(a)\n",
        "try:\n    boom(PAYLOAD)\nexcept E as e:\n    R = e.args[0]",
    ),
    "getitem": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __getitem__(self, i): return self.a\n",
        "R = B(PAYLOAD)[0]",
    ),
    "iter": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __iter__(self): yield self.a\n",
        "for t in B(PAYLOAD):\n    R = t",
    ),
    "iter next": (
        "class B:\n"
        "    def __init__(self, a): self.a = a\n"
        "    def __iter__(self): return self\n"
        "    def __next__(self): return self.a\n",
        "R = next(B(PAYLOAD))",
    ),
    "iter unpack": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __iter__(self): yield self.a\n",
        "R, = B(PAYLOAD)",
    ),
    "iter list": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __iter__(self): yield self.a\n",
        "R = list(B(PAYLOAD))[0]",
    ),
    "iter getitem": (
        "class B:\n"
        "    def __init__(self, a): self.a = a\n"
        "    def __getitem__(self, i):\n"
        "        if i: raise IndexError\n"
        "        return self.a\n",
        "for t in B(PAYLOAD):\n    R = t",
    ),
    "enter": (
        "class B:\n"
        "    def __init__(self, a): self.a = a\n"
        "    def __enter__(self): return self.a\n"
        "    def __exit__(self, *a): pass\n",
        "with B(PAYLOAD) as R:\n    pass",
    ),
    "cm gen": ("@contextlib.contextmanager\ndef cm(a):\n    yield a\n", "with cm(PAYLOAD) as R:\n    pass"),
    "exitstack": (
        "@contextlib.contextmanager\ndef cm(a):\n    yield a\n",
        "with contextlib.ExitStack() as s:\n    R = s.enter_context(cm(PAYLOAD))",
    ),
    "nullctx": ("", "with contextlib.nullcontext(PAYLOAD) as R:\n    pass"),
    "closing": ("", "with contextlib.closing(PAYLOAD) as R:\n    pass"),
    "getattr": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __getattr__(self, n): return self.a\n",
        "R = B(PAYLOAD).zzz",
    ),
    "descr get": (
        "class Dd:\n"
        "    def __get__(self, o, t): return o._a\n"
        "class B:\n"
        "    d = Dd()\n"
        "    def __init__(self, a): self._a = a\n",
        "R = B(PAYLOAD).d",
    ),
    "property": (
        "class B:\n    def __init__(self, a): self._a = a\n    @property\n    def d(self): return self._a\n",
        "R = B(PAYLOAD).d",
    ),
    "prop setter": (
        "class B:\n    @property\n    def d(self): return self._a\n    @d.setter\n    def d(self, v): self._a = v\n",
        "b = B()\nb.d = PAYLOAD\nR = b._a",
    ),
    "setattr": (
        'class B:\n    def __setattr__(self, n, v): self.__dict__["q"] = v\n',
        "b = B()\nb.d = PAYLOAD\nR = b.q",
    ),
    "setitem": ("class B:\n    def __setitem__(self, n, v): self.q = v\n", "b = B()\nb[0] = PAYLOAD\nR = b.q"),
    "delattr": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __delattr__(self, n): self.q = self.a\n",
        "b = B(PAYLOAD)\ndel b.zz\nR = b.q",
    ),
    "add": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __add__(self, o): return self.a\n",
        "R = B(PAYLOAD) + 1",
    ),
    "radd": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __radd__(self, o): return self.a\n",
        "R = 1 + B(PAYLOAD)",
    ),
    "iadd": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __iadd__(self, o): return self.a\n",
        "b = B(PAYLOAD)\nb += 1\nR = b",
    ),
    "neg": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __neg__(self): return self.a\n",
        "R = -B(PAYLOAD)",
    ),
    "eq": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __eq__(self, o): return self.a\n",
        "R = B(PAYLOAD) == 1",
    ),
    "eq arg": (
        "class B:\n    def __eq__(self, o):\n        self.q = o\n        return True\n",
        "b = B()\nb == PAYLOAD\nR = b.q",
    ),
    "contains arg": (
        "class B:\n    def __contains__(self, o):\n        self.q = o\n        return True\n",
        "b = B()\nPAYLOAD in b\nR = b.q",
    ),
    "lshift arg": ("class B:\n    def __lshift__(self, o):\n        return o\n", "R = B() << PAYLOAD"),
    "and": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __and__(self, o): return self.a\n",
        "R = B(PAYLOAD) & 1",
    ),
    "call": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __call__(self): return self.a\n",
        "R = B(PAYLOAD)()",
    ),
    "new": ("class B:\n    def __new__(cls, a): return a\n", "R = B(PAYLOAD)"),
    "index": (
        "class B:\n"
        "    def __init__(self, a): self.a = a\n"
        "    def __index__(self): return 0\n"
        "    def get(self): return self.a\n",
        "R = B(PAYLOAD).get()",
    ),
    "missing": ("class B(dict):\n    def __missing__(self, k): return k\n", "R = B()[PAYLOAD]"),
    "dict keys": ("", "R = list({PAYLOAD: 1})[0]"),
    "dict keys2": ("", "d = {}\nd[PAYLOAD] = 1\nR = next(iter(d))"),
    "dict keys3": ("", "R = list(dict.fromkeys([PAYLOAD]).keys())[0]"),
    "dict items": ("", "R = list({PAYLOAD: 1}.items())[0][0]"),
    "dict comp": ("", "R = list({k: 1 for k in [PAYLOAD]})[0]"),
    "set pop": ("", "R = {PAYLOAD}.pop()"),
    "frozenset": ("", "R = next(iter(frozenset([PAYLOAD])))"),
    "dict star": ("", 'def f(a=1, b=2): return b\nR = f(**{**{"b":3}, **{"b":PAYLOAD}})'),
    "dict or": ("", 'def f(a=1, b=2): return b\nR = ({"b":3} | {"b":PAYLOAD})["b"]'),
    "dict alias": ("", 'd = {"b": 3}\ne = d\ne["b"] = PAYLOAD\nR = d["b"]'),
    "list alias": ("", "d = [3]\ne = d\ne[0] = PAYLOAD\nR = d[0]"),
    "list alias fn": ("def put(l, v): l[0] = v\n", "d = [3]\nput(d, PAYLOAD)\nR = d[0]"),
    "list append fn": ("def put(l, v): l.append(v)\n", "d = [3]\nput(d, PAYLOAD)\nR = d[1]"),
    "dict put fn": ('def put(l, v): l["k"] = v\n', 'd = {}\nput(d, PAYLOAD)\nR = d["k"]'),
    "dict setdefault": ("", 'd = {}\nR = d.setdefault("k", PAYLOAD)'),
    "dict update b": ("", 'd = {"b": 1}\nu = d.update\nu(b=PAYLOAD)\nR = d["b"]'),
    "list append b": ("", "d = [1]\nu = d.append\nu(PAYLOAD)\nR = d[1]"),
    "list slice set": ("", "d = [1, 2]\nd[:] = [PAYLOAD]\nR = d[0]"),
    "list mul": ("", "R = ([PAYLOAD] * 2)[1]"),
    "list nested": ("", "d = [[1]]\nd[0][0] = PAYLOAD\nR = d[0][0]"),
    "list nested a": ("", "d = [[1]]\nd[0].append(PAYLOAD)\nR = d[0][1]"),
    "swap": ("", "a, b = 1, PAYLOAD\na, b = b, a\nR = a"),
    "starred t": ("", "a, *b = 1, PAYLOAD\nR = b[0]"),
    "starred t2": ("", "*a, b = 1, PAYLOAD\nR = b"),
    "partial args": ("def go(a, b): return b\n", "R = functools.partial(go, 1, PAYLOAD)()"),
    "partial kw": ("def go(a, b=1): return b\n", "R = functools.partial(go, 1, b=PAYLOAD)()"),
    "partial self": ("", "R = functools.partial(self.go, PAYLOAD, 1)()"),
    "partial mix": ("def go(a, b, c): return a\n", "p = functools.partial(go, PAYLOAD)\nR = p(1, 2)"),
    "partial attr": ("def go(a, b): return b\n", "R = functools.partial(go, 1, PAYLOAD).args[1]"),
    "partial kwattr": ("def go(a, b): return b\n", 'R = functools.partial(go, b=PAYLOAD).keywords["b"]'),
    "starmap": ("def go(a, b): return b\n", "R = next(itertools.starmap(go, [(1, PAYLOAD)]))"),
    "map": ("def go(b): return b\n", "R = next(map(go, [PAYLOAD]))"),
    "map 2": ("def go(a, b): return b\n", "R = list(map(go, [1], [PAYLOAD]))[0]"),
    "filter": ("", "R = list(filter(None, [PAYLOAD]))[0]"),
    "reduce": ("", "R = functools.reduce(lambda a, b: b, [1, PAYLOAD])"),
    "reduce init": ("", "R = functools.reduce(lambda a, b: a, [1, 2], PAYLOAD)"),
    "chain": ("", "R = next(itertools.chain([PAYLOAD]))"),
    "cycle": ("", "R = next(itertools.cycle([PAYLOAD]))"),
    "repeat": ("", "R = next(itertools.repeat(PAYLOAD))"),
    "tee": ("", "R = next(itertools.tee([PAYLOAD])[1])"),
    "zip longest": ("", "R = list(itertools.zip_longest([1], [PAYLOAD]))[0][1]"),
    "product": ("", "R = list(itertools.product([1], [PAYLOAD]))[0][1]"),
    "groupby": ("", "R = list(next(itertools.groupby([PAYLOAD]))[1])[0]"),
    "islice": ("", "R = next(itertools.islice([PAYLOAD], 1))"),
    "pairwise": ("", "R = next(itertools.pairwise([1, PAYLOAD]))[1]"),
    "enumerate": ("", "R = next(enumerate([PAYLOAD]))[1]"),
    "sorted key": ("", "R = sorted([PAYLOAD], key=id)[0]"),
    "reversed": ("", "R = next(reversed([PAYLOAD]))"),
    "max key": ("", "R = max([PAYLOAD], key=id)"),
    "deque": ("", "R = collections.deque([PAYLOAD]).pop()"),
    "deque app": ("", "d = collections.deque()\nd.append(PAYLOAD)\nR = d[0]"),
    "defaultdict": ("", 'R = collections.defaultdict(lambda: PAYLOAD)["a"]'),
    "defaultdict2": ("", 'd = collections.defaultdict(list)\nd["a"].append(PAYLOAD)\nR = d["a"][0]'),
    "chainmap": ("", 'R = collections.ChainMap({"a": PAYLOAD})["a"]'),
    "ordereddict": ("", "R = collections.OrderedDict(a=PAYLOAD).popitem()[1]"),
    "counter": ("", "R = list(collections.Counter([PAYLOAD]))[0]"),
    "userdict": ("", 'R = collections.UserDict(a=PAYLOAD)["a"]'),
    "userlist": ("", "R = collections.UserList([PAYLOAD])[0]"),
    "userlist data": ("", "R = collections.UserList([PAYLOAD]).data[0]"),
    "queue": ("", "q = queue.Queue()\nq.put(PAYLOAD)\nR = q.get()"),
    "ctxvar": ('cv = contextvars.ContextVar("a")\n', "cv.set(PAYLOAD)\nR = cv.get()"),
    "weakref": ("", "p = PAYLOAD\nR = weakref.ref(p)()"),
    "weakvd": ("", 'p = PAYLOAD\nd = weakref.WeakValueDictionary(a=p)\nR = d["a"]'),
    "tlocal": ("tl = threading.local()\n", "tl.a = PAYLOAD\nR = tl.a"),
    "copy": ("", "R = copy.copy([PAYLOAD])[0]"),
    "deepcopy": ("", "R = copy.deepcopy(PAYLOAD)"),
    "itemgetter": ("", "R = operator.itemgetter(0)([PAYLOAD])"),
    "itemgetter2": ("", "g = operator.itemgetter(1, 0)\nR = g([PAYLOAD, 1])[1]"),
    "attrgetter": ("class B:\n    def __init__(self, a): self.a = a\n", 'R = operator.attrgetter("a")(B(PAYLOAD))'),
    "methodcaller": (
        "class B:\n    def __init__(self, a): self.a = a\n    def m(self): return self.a\n",
        'R = operator.methodcaller("m")(B(PAYLOAD))',
    ),
    "op getitem": ("", "R = operator.getitem([PAYLOAD], 0)"),
    "op concat": ("", "R = operator.concat([1], [PAYLOAD])[1]"),
    "op call": ("def ident(a): return a\n", "R = operator.call(ident, PAYLOAD)"),
    "getattr name": ("class B:\n    def __init__(self, a): self.a = a\n", "n = chr(97)\nR = getattr(B(PAYLOAD), n)"),
    "getattr name2": (
        "class B:\n    def __init__(self, a): self.a = a\n",
        'b = B(PAYLOAD)\nR = [getattr(b, n) for n in dir(b) if n == "a"][0]',
    ),
    "setattr name": ("class B: pass\n", 'b = B()\nfor n in ["a"]:\n    setattr(b, n, PAYLOAD)\nR = b.a'),
    "setattr self": ("", 'for n in ["a"]:\n    setattr(self, n, PAYLOAD)\nR = self.a'),
    "dict self": ("", 'self.__dict__["zz"] = PAYLOAD\nR = self.zz'),
    "dict self u": ("", "self.__dict__.update(zz=PAYLOAD)\nR = self.zz"),
    "dict self n": ("", 'for n in ["zz"]:\n    self.__dict__[n] = PAYLOAD\nR = self.zz'),
    "vars obj": ("class B: pass\n", 'b = B()\nvars(b)["a"] = PAYLOAD\nR = b.a'),
    "obj setattr": ("class B: pass\n", 'b = B()\nobject.__setattr__(b, "a", PAYLOAD)\nR = b.a'),
    "class attr": ("class B: pass\n", "B.a = PAYLOAD\nR = B().a"),
    "class dict": ("class B: pass\n", 'B.a = PAYLOAD\nR = B.__dict__["a"]'),
    "func attr": ("def ff(): pass\n", "ff.a = PAYLOAD\nR = ff.a"),
    "func dict": ("def ff(): pass\n", 'ff.__dict__["a"] = PAYLOAD\nR = ff.a'),
    "lambda attr": ("", "g = lambda: 0\ng.a = PAYLOAD\nR = g.a"),
    "module attr": ("", 'math_ = types.ModuleType("m")\nmath_.a = PAYLOAD\nR = math_.a'),
    "sysmod attr": ("", "sys.zz = PAYLOAD\nR = sys.zz"),
    "globals": ("", 'globals()["zz"] = PAYLOAD\nR = zz'),
    "globals n": ("", 'for n in ["zz"]:\n    globals()[n] = PAYLOAD\nR = zz'),
    "global kw": ("zz = 1\n", "global zz\nzz = PAYLOAD\nR = zz"),
    "sysmodules": ("", "sys.modules[__name__].zz = PAYLOAD\nR = zz"),
    "builtins attr": ("", "import builtins\nbuiltins.zz = PAYLOAD\nR = zz"),
    "nonlocal": ("", "a = 1\ndef put(v):\n    nonlocal a\n    a = v\nput(PAYLOAD)\nR = a"),
    "closure": ("def mk(a):\n    def g(): return a\n    return g\n", "R = mk(PAYLOAD)()"),
    "closure cell": (
        "def mk(a):\n    def g(): return a\n    return g\n",
        "R = mk(PAYLOAD).__closure__[0].cell_contents",
    ),
    "celltype": ("", "R = types.CellType(PAYLOAD).cell_contents"),
    "mappingproxy": ("", 'R = types.MappingProxyType({"a": PAYLOAD})["a"]'),
    "methodtype": ("def me(s): return s\n", "R = types.MethodType(me, PAYLOAD)()"),
    "bound self": ("class B:\n    def m(self): return 0\n", "b = B()\nb.p = PAYLOAD\nR = b.m.__self__.p"),
    "dynclassattr": ("", "R = types.DynamicClassAttribute(PAYLOAD).fget"),
    "property fget": ("", "R = property(PAYLOAD).fget"),
    "staticmethod f": ("", "R = staticmethod(PAYLOAD).__func__"),
    "wrapped": ("", "def g(): pass\ng.__wrapped__ = PAYLOAD\nR = inspect.unwrap(g)"),
    "wraps": ("", "@functools.wraps(PAYLOAD)\ndef g(*a): pass\nR = g.__wrapped__"),
    "lru wrapped": ("", "R = functools.lru_cache(PAYLOAD).__wrapped__"),
    "cache fn": ("@functools.lru_cache\ndef ca(a): return a\n", "R = ca(PAYLOAD)"),
    "singledisp": ("@functools.singledispatch\ndef sd(a): return a\n", "R = sd(PAYLOAD)"),
    "singledisp r": (
        "",
        "@functools.singledispatch\ndef sd(a): return a\nsd.register(int, PAYLOAD)\nR = sd.dispatch(int)",
    ),
    "cached prop": (
        "class B:\n"
        "    def __init__(self, a): self._a = a\n"
        "    @functools.cached_property\n"
        "    def d(self): return self._a\n",
        "R = B(PAYLOAD).d",
    ),
    "enum v": (
        "",
        'class E(enum.Enum):\n    A = enum.member(PAYLOAD) if hasattr(enum, "member") else (PAYLOAD,)\nR = E.A.value',
    ),
    "enum t": ("", "class E(enum.Enum):\n    A = (PAYLOAD,)\nR = E.A.value[0]"),
    "walrus": ("", "if (a := PAYLOAD) is not None:\n    R = a"),
    "walrus comp": ("", "[a := PAYLOAD for _ in range(1)]\nR = a"),
    "ifexp": ("", "R = PAYLOAD if self.training else 1"),
    "boolop": ("", "R = 0 or PAYLOAD"),
    "tern idx": ("", "R = (1, PAYLOAD)[self.training]"),
    "assert": ("", "assert (a := PAYLOAD) is not None\nR = a"),
    "for else": ("", "for i in range(2):\n    a = PAYLOAD\nelse:\n    R = a"),
    "while": ("", "while True:\n    R = PAYLOAD\n    break"),
    "try fin": ("", "try:\n    pass\nfinally:\n    R = PAYLOAD"),
    "with as t": (
        "@contextlib.contextmanager\ndef cm(a):\n    yield (1, a)\n",
        "with cm(PAYLOAD) as (q, R):\n    pass",
    ),
    "match cap": ("", "match PAYLOAD:\n    case a:\n        R = a"),
    "match seq": ("", "match [1, PAYLOAD]:\n    case [_, a]:\n        R = a"),
    "match star": ("", "match [1, PAYLOAD]:\n    case [_, *a]:\n        R = a[0]"),
    "match map": ("", 'match {"k": PAYLOAD}:\n    case {"k": a}:\n        R = a'),
    "match rest": ("", 'match {"k": PAYLOAD}:\n    case {**a}:\n        R = a["k"]'),
    "match as": ("", "match PAYLOAD:\n    case object() as a:\n        R = a"),
    "match cls kw": (
        "class B:\n    def __init__(self, a): self.a = a\n",
        "match B(PAYLOAD):\n    case B(a=q):\n        R = q",
    ),
    "match cls args": (
        'class B:\n    __match_args__ = ("a",)\n    def __init__(self, a): self.a = a\n',
        "match B(PAYLOAD):\n    case B(q):\n        R = q",
    ),
    "match nested": (
        "class B:\n    def __init__(self, a): self.a = a\n",
        "match [B(PAYLOAD)]:\n    case [B(a=q)]:\n        R = q",
    ),
    "match or": ("", "match [1, PAYLOAD]:\n    case [_, a] | [_, _, a]:\n        R = a"),
    "match prop": (
        "class B:\n    def __init__(self, a): self._a = a\n    @property\n    def d(self): return self._a\n",
        "match B(PAYLOAD):\n    case B(d=q):\n        R = q",
    ),
    "lambda def": ("", "R = (lambda a=PAYLOAD: a)()"),
    "kwonly def": ("", "def h(*, a=PAYLOAD): return a\nR = h()"),
    "args": ("def h(*a): return a[0]\n", "R = h(PAYLOAD)"),
    "kwargs": ('def h(**a): return a["q"]\n', "R = h(q=PAYLOAD)"),
    "kwargs v": ("def h(**a): return list(a.values())[0]\n", "R = h(q=PAYLOAD)"),
    "kwargs pop": ("def h(**a): return a.popitem()[1]\n", "R = h(q=PAYLOAD)"),
    "super attr": (
        "class A0:\n"
        "    def get(self): return self.a\n"
        "class B(A0):\n"
        "    def __init__(self, a): self.a = a\n"
        "    def get(self): return super().get()\n",
        "R = B(PAYLOAD).get()",
    ),
    "classmethod": (
        "class B:\n    @classmethod\n    def mk(cls, a):\n        cls.a = a\n        return cls\n",
        "R = B.mk(PAYLOAD).a",
    ),
    "init sub": (
        "class A0:\n    def __init_subclass__(cls, a=None): cls.a = a\n",
        "class B(A0, a=PAYLOAD): pass\nR = B.a",
    ),
    "metaclass getitem": (
        "class M(type):\n    def __getitem__(c, n): return n\n",
        "class B(metaclass=M): pass\nR = B[PAYLOAD]",
    ),
    "class getitem": ("class B:\n    def __class_getitem__(cls, i): return i\n", "R = B[PAYLOAD]"),
    "set name": (
        "class Dd:\n"
        "    def __init__(self, a): self.a = a\n"
        '    def __set_name__(self, o, n): setattr(o, "zz", self.a)\n',
        "class B:\n    d = Dd(PAYLOAD)\nR = B.zz",
    ),
    "type call": ("", 'B = type("B", (), {"a": PAYLOAD})\nR = B.a'),
    "type call i": ("", 'R = type("B", (), {"a": PAYLOAD})().a'),
    "new class": ("", 'R = types.new_class("B", (), {}, lambda ns: ns.update(a=PAYLOAD)).a'),
    "class body": ("", "class B:\n    a = PAYLOAD\nR = B.a"),
    "class body l": ("", 'class B:\n    locals()["a"] = PAYLOAD\nR = B.a'),
    "generic alias": ("", "R = types.GenericAlias(list, (PAYLOAD,)).__args__[0]"),
    "list generic": ("", "R = list[PAYLOAD].__args__[0]"),
    "tuple generic": ("", "R = tuple[int, PAYLOAD].__args__[1]"),
    "literal": ("", "R = typing.Literal[PAYLOAD].__args__[0]"),
    "newtype": ("", 'R = typing.NewType("N", PAYLOAD).__supertype__'),
    "typevar b": ("", 'R = typing.TypeVar("N", bound=PAYLOAD).__bound__'),
    "typing cast": ("", "R = typing.cast(int, PAYLOAD)"),
    "fstring": ("", 'h = []\nclass B:\n    def __format__(self, s): return ""\nR = PAYLOAD\nf"{R}"'),
    "bytes id": ("", "R = ctypes.cast(id(PAYLOAD), ctypes.py_object).value"),
    "py object": ("", "R = ctypes.py_object(PAYLOAD).value"),
    "gc ref": ("", "p = [PAYLOAD]\nR = gc.get_referents(p)[0]"),
    "frame": ("", 'p = PAYLOAD\nR = sys._getframe().f_locals["p"]'),
    "inspect frame": ("", 'p = PAYLOAD\nR = inspect.currentframe().f_locals["p"]'),
    "locals": ("", 'p = PAYLOAD\nR = locals()["p"]'),
    "locals n": ("", 'p = PAYLOAD\nR = [v for k, v in locals().items() if k == "p"][0]'),
    "vars n": ("", "p = PAYLOAD\nR = list(vars().values())[-1]"),
    "eval": ("", 'p = PAYLOAD\nR = eval("p")'),
    "getmembers": (
        "class B:\n    def __init__(self, a): self.a = a\n",
        'R = dict(inspect.getmembers(B(PAYLOAD)))["a"]',
    ),
    "getattr static": (
        "class B:\n    def __init__(self, a): self.a = a\n",
        'R = inspect.getattr_static(B(PAYLOAD), "a")',
    ),
    "reduce ex": ("class B:\n    def __init__(self, a): self.a = a\n", 'R = B(PAYLOAD).__reduce_ex__(2)[2]["a"]'),
    "getstate": ("class B:\n    def __init__(self, a): self.a = a\n", 'R = B(PAYLOAD).__getstate__()["a"]'),
    "iter callable": ("", "R = next(iter(lambda: PAYLOAD, None))"),
    "thread": ("", "h = []\nt = threading.Thread(target=lambda: h.append(PAYLOAD))\nt.start(); t.join()\nR = h[0]"),
    "thread args": (
        "def put(h, v): h.append(v)\n",
        "h = []\nt = threading.Thread(target=put, args=(h, PAYLOAD))\nt.start(); t.join()\nR = h[0]",
    ),
    "random choice": ("", "R = random.choice([PAYLOAD])"),
    "random sample": ("", "R = random.sample([PAYLOAD], 1)[0]"),
    "heap": ("", "h = [(0, PAYLOAD)]\nR = heapq.heappop(h)[1]"),
    "nlargest": ("", "R = heapq.nlargest(1, [PAYLOAD], key=id)[0]"),
    "module list": ("", "R = nn.Module()\nR.a = PAYLOAD\nR = R.a"),
    "buf dict": ("", 'm = nn.Module()\nm.register_buffer("q", PAYLOAD)\nR = m._buffers["q"]'),
    "param": ("", 'R = nn.ParameterDict({"a": PAYLOAD})["a"]'),
    "fn ctx": (
        "class Fn(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, a):\n"
        "        ctx.a = a\n"
        "        return a\n",
        "R = Fn.apply(PAYLOAD)",
    ),
    "tree flat": ("", "R = torch.utils._pytree.tree_flatten([PAYLOAD])[0][0]"),
    "tree leaves": ("", "R = torch.utils._pytree.tree_leaves([PAYLOAD])[0]"),
    "tree map": ("", "R = torch.utils._pytree.tree_map(lambda a: a, [PAYLOAD])[0]"),
    "checkpoint": ("", "import torch.utils.checkpoint\nR = torch.utils.checkpoint.checkpoint(lambda a: a, PAYLOAD)"),
    "shuffled": ("", "l = [1, PAYLOAD]\nrandom.shuffle(l)\nR = l[0]"),
    "list sort": ("", "l = [1, PAYLOAD]\nl.sort(key=id)\nR = l[0]"),
    "list reverse": ("", "l = [1, PAYLOAD]\nl.reverse()\nR = l[0]"),
    "list insert": ("", "l = [1]\nl.insert(0, PAYLOAD)\nR = l[0]"),
    "list extend": ("", "l = [1]\nl.extend([PAYLOAD])\nR = l[1]"),
    "list iadd": ("", "l = [1]\nl += [PAYLOAD]\nR = l[1]"),
    "list copy": ("", "R = [PAYLOAD].copy()[0]"),
    "tuple add": ("", "R = ((1,) + (PAYLOAD,))[1]"),
    "dict get": ("", 'R = {"a": PAYLOAD}.get("a")'),
    "dict get d": ("", 'R = {}.get("a", PAYLOAD)'),
    "dict ior": ("", 'd = {}\nd |= {"a": PAYLOAD}\nR = d["a"]'),
    "dict upd": ("", 'd = {}\nd.update(a=PAYLOAD)\nR = d["a"]'),
    "dict upd2": ("", 'd = {}\nd.update([("a", PAYLOAD)])\nR = d["a"]'),
    "dict pairs": ("", 'R = dict([("a", PAYLOAD)])["a"]'),
    "dict zip": ("", 'R = dict(zip(["a"], [PAYLOAD]))["a"]'),
    "dict copy": ("", 'R = {"a": PAYLOAD}.copy()["a"]'),
    "dict values": ("", 'R, = {"a": PAYLOAD}.values()'),
    "dict intkey": ("", "R = {0: PAYLOAD}[0]"),
    "dict varkey": ("", "k = x.dim()\nR = {k: PAYLOAD}[k]"),
    "dict attr key": ("", 'd = {"a": 1}\nd[x.dtype] = PAYLOAD\nR = d[x.dtype]'),
    "set add": ("", "s = set()\ns.add(PAYLOAD)\nR = next(iter(s))"),
    "sum start": ("class B:\n    def __add__(self, o): return o\n", "R = sum([PAYLOAD], B())"),
    "divmod": ("class B:\n    def __divmod__(self, o): return o\n", "R = divmod(B(), PAYLOAD)"),
    "pow": ("class B:\n    def __pow__(self, o): return o\n", "R = pow(B(), PAYLOAD)"),
    "round": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __round__(self): return self.a\n",
        "R = round(B(PAYLOAD))",
    ),
    "abs": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __abs__(self): return self.a\n",
        "R = abs(B(PAYLOAD))",
    ),
    "format": ('class B:\n    def __format__(self, s): return ""\n', "R = PAYLOAD\nformat(B())"),
    "reversed c": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __reversed__(self): return self.a\n",
        "R = reversed(B(PAYLOAD))",
    ),
    "dir": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __dir__(self): return [self.a]\n",
        "R = B(PAYLOAD).__dir__()[0]",
    ),
    "copy c": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __copy__(self): return self.a\n",
        "R = copy.copy(B(PAYLOAD))",
    ),
    "deepcopy c": (
        "class B:\n    def __init__(self, a): self.a = a\n    def __deepcopy__(self, m): return self.a\n",
        "R = copy.deepcopy(B(PAYLOAD))",
    ),
    "list sub": ("class L(list): pass\n", "R = L([PAYLOAD])[0]"),
    "list sub app": ("class L(list): pass\n", "l = L()\nl.append(PAYLOAD)\nR = l[0]"),
    "tuple sub": ("class L(tuple): pass\n", "R = L([PAYLOAD])[0]"),
    "dict sub": ("class L(dict): pass\n", 'l = L()\nl["a"] = PAYLOAD\nR = l["a"]'),
    "dict sub init": ("class L(dict): pass\n", 'R = L(a=PAYLOAD)["a"]'),
    "attrdict": (
        "class L(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__\n",
        "l = L()\nl.a = PAYLOAD\nR = l.a",
    ),
    "slots2": ('class B:\n    __slots__ = ("a",)\n', "b = B()\nB.a.__set__(b, PAYLOAD)\nR = b.a"),
    "deco arg": (
        "def deco(a):\n    def w(f):\n        return lambda: a\n    return w\n",
        "@deco(PAYLOAD)\ndef g(): pass\nR = g()",
    ),
    "deco cls": (
        "def deco(a):\n    def w(c):\n        c.a = a\n        return c\n    return w\n",
        "@deco(PAYLOAD)\nclass G: pass\nR = G.a",
    ),
    "deco val": ("def deco(f):\n    return f(0)\n", "p = PAYLOAD\n@deco\ndef g(_): return p\nR = g"),
    "del": ("class B:\n    def __del__(self): H.append(self.a)\nH = []\n", "b = B(); b.a = PAYLOAD\ndel b\nR = H[0]"),
    "exit": (
        "H = []\n"
        "class B:\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, t, v, tb): H.append(v.args[0]); return True\n",
        "with B():\n    raise ValueError(PAYLOAD)\nR = H[0]",
    ),
    "suppress": (
        "class E(Exception): pass\n",
        "with contextlib.suppress(E) as s:\n    raise E(PAYLOAD)\nR = sys.last_value.args[0]",
    ),
    "excgroup": (
        "",
        "try:\n"
        '    raise ExceptionGroup("a", [ValueError(PAYLOAD)])\n'
        "except* ValueError as e:\n"
        "    R = e.exceptions[0].args[0]",
    ),
    "notes": ("", "e = ValueError()\ne.q = PAYLOAD\nR = e.q"),
    "args assign": ("", "e = ValueError()\ne.args = (PAYLOAD,)\nR = e.args[0]"),
    "sysexit": ("", "try:\n    sys.exit(PAYLOAD)\nexcept SystemExit as e:\n    R = e.code"),
    "str format": (
        "",
        "class B:\n"
        '    def __format__(self, s): return ""\n'
        "class F(string.Formatter):\n"
        "    def get_value(self, k, a, kw):\n"
        "        self.q = a[0]\n"
        '        return ""\n'
        "f = F()\n"
        'f.format("{}", PAYLOAD)\n'
        "R = f.q",
    ),
    "json default": ("H = []\n", "json.dumps([PAYLOAD], default=lambda o: H.append(o))\nR = H[0]"),
    "callback exit": ("H = []\n", "with contextlib.ExitStack() as s:\n    s.callback(H.append, PAYLOAD)\nR = H[0]"),
    "fut set": ("", "import concurrent.futures as cf\nf = cf.Future()\nf.set_result(PAYLOAD)\nR = f.result()"),
    "pool map": (
        "",
        "import concurrent.futures as cf\n"
        "with cf.ThreadPoolExecutor() as e:\n"
        "    R = list(e.map(lambda a: a, [PAYLOAD]))[0]",
    ),
    "pool submit": (
        "",
        "import concurrent.futures as cf\n"
        "with cf.ThreadPoolExecutor() as e:\n"
        "    R = e.submit(lambda a: a, PAYLOAD).result()",
    ),
}

MISSED: dict[str, set[str]] = {
    "slice sub2": {"fn at forward", "layer at forward", "tensor at forward"},
    "make dc": {"fn at module"},
    "exc from": {"layer at module"},
    "delattr": {"fn at forward", "fn at module", "layer at forward", "layer at module", "tensor at forward"},
    "groupby": {"fn at module", "layer at module"},
    "counter": {"layer at module"},
    "dict self n": {"fn at forward", "layer at forward", "tensor at forward"},
    "globals n": {"layer at forward", "layer at module", "tensor at forward"},
    "sysmodules": {"layer at forward", "layer at module", "tensor at forward"},
    "builtins attr": {"fn at forward", "layer at forward", "tensor at forward"},
    "celltype": {"fn at module"},
    "dynclassattr": {"fn at module"},
    "property fget": {"fn at forward", "fn at module", "layer at forward", "layer at module", "tensor at forward"},
    "staticmethod f": {"fn at forward", "fn at module", "layer at forward", "layer at module", "tensor at forward"},
    "wraps": {"fn at module", "layer at module"},
    "lru wrapped": {"layer at module"},
    "singledisp r": {"layer at module", "tensor at forward"},
    "enum t": {"fn at forward", "fn at module", "layer at forward", "layer at module"},
    "new class": {"tensor at forward"},
    "buf dict": {"fn at forward", "layer at forward", "tensor at forward"},
    "reversed c": {"tensor at forward"},
    "dict sub": {"tensor at forward"},
    "slots2": {"fn at module", "layer at forward", "layer at module", "tensor at forward"},
    "del": {"fn at forward", "fn at module", "layer at forward", "layer at module", "tensor at forward"},
    "exit": {"layer at module", "tensor at forward"},
    "suppress": {"layer at module", "tensor at forward"},
    "sysexit": {"fn at module", "layer at module", "tensor at forward"},
    "str format": {"layer at forward", "tensor at forward"},
    "json default": {"fn at module", "layer at module"},
    "callback exit": {"fn at module", "layer at module", "tensor at forward"},
    "fut set": {"fn at forward", "fn at module", "layer at forward", "layer at module", "tensor at forward"},
}
"""Of them, what goes in and where, that come out unseen."""

REFLECTED = {
    *("annotated", "type hints", "annotations", "sig default", "sig annot", "defaults", "send", "send2", "exc info"),
    *("closure cell", "wrapped", "bytes id", "py object", "gc ref", "locals n", "vars n", "getmembers", "reduce ex"),
    "getstate",
}
"""Of them, those by which a number comes out as what may be anything: no honest kernel takes its numbers from there."""
