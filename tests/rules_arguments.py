"""Calls that hand over tensors and numbers together, in containers, by `*` and `**`, through wrappers.

In each, `forward` calls `go(a, b=2, c=3, *more, **kw)`: first its own lines, then what `go` does.
"""

# ruff: noqa: E501

GIVEN = {
    "a wrapper that forwards": ("return traced(self.go)(x, x.numel(), c=4)", "return ext.f(a, b * c)"),
    "a tuple of all": ("args = (x, x.numel())\nreturn self.go(*args)", "return ext.f(a, (b + 1) // 2)"),
    "a tuple that grows": ("args = (x, 3) + (4, x)\nreturn self.go(*args)", "return ext.f(more[0], b * c)"),
    "two tuples": ("one, two = (x,), (3, 4)\nreturn self.go(*one, *two)", "return ext.f(a, b * c)"),
    "what is left over": ("return self.go(x, 3, 4, 5, x)", "return ext.f(more[1], more[0] * 2)"),
    "names that are left over": ("return self.go(x, n=3, y=x)", "return ext.f(kw['y'], kw.pop('n') * 2)"),
    "rows turned to columns": (
        "sets, sizes = zip(*((x, 1), (x, 2)))\nreturn self.go(x, sizes[0])",
        "return ext.f(a, b * 2)",
    ),
}
"""All of it is honest."""

MIXED = {
    "loop grows tuple": ("args = (x,)\nfor i in range(5): args = args + (x,)\nreturn self.go(*args)", "return c * 2"),
    "loop grows with +=": ("args = (x, 1)\nfor i in range(2): args += (x,)\nreturn self.go(*args)", "return c * 2"),
    "while grows": ("args = (x,)\nwhile len(args) < 3: args += (x,)\nreturn self.go(*args)", "return c * 2"),
    "insert front": ("args = [3, x]\nargs.insert(0, x)\nreturn self.go(x, *args)", "return b * 2"),
    "reverse": ("args = [x, 3, x, x]\nargs.reverse()\nreturn self.go(*args)", "return b * 2"),
    "reverse in dict": ("d = {'a': [x, 3, x, x]}\nd['a'].reverse()\nreturn self.go(*d['a'])", "return b * 2"),
    "reversed": ("args = [x, 3, x, x]\nreturn self.go(*reversed(args))", "return b * 2"),
    "slice": ("args = [x, 3, x, x]\nreturn self.go(*args[::-1])", "return b * 2"),
    "slice2": ("args = [x, 3, x, x]\nreturn self.go(*args[1:])", "return b * 2"),
    "del": ("args = [x, 3, x]\ndel args[1]\nreturn self.go(*args)", "return b * 2"),
    "del attr": ("self.q = [x, 3, x]\ndel self.q[1]\nreturn self.go(*self.q)", "return b * 2"),
    "pop": ("args = [x, 3, x]\nargs.pop(1)\nreturn self.go(*args)", "return b * 2"),
    "remove": ("args = [x, 3, x]\nargs.remove(3)\nreturn self.go(*args)", "return b * 2"),
    "swap": ("args = [x, 3, x]\nargs[1], args[2] = args[2], args[1]\nreturn self.go(*args)", "return b * 2"),
    "setitem": ("args = [x, 3]\nargs[1] = x\nreturn self.go(*args)", "return b * 2"),
    "slice assign": ("args = [x, 3]\nargs[1:] = [x]\nreturn self.go(*args)", "return b * 2"),
    "mul": ("args = (3, x) * 2\nreturn self.go(x, 1, *args[1:])", "return c * 2"),
    "mul star": ("args = (x,) * 3\nreturn self.go(*args)", "return c * 2"),
    "mul mixed": ("args = (x, 3) * 2\nreturn self.go(*args)", "return c * 2"),
    "branch": ("args = (x, 3)\nif x.numel() > 2: args = (x, x)\nreturn self.go(*args)", "return b * 2"),
    "ifexp": ("args = (x, 3) if x.numel() else (x, x)\nreturn self.go(*args)", "return b * 2"),
    "branch lengths": ("args = (x, 3, x) if x.numel() else (x, x)\nreturn self.go(*args)", "return b * 2"),
    "kw dict": ("d = {'b': x}\nreturn self.go(x, **d)", "return b * 2"),
    "kw dict set later": ("d = {'b': 3}\nd['b'] = x\nreturn self.go(x, **d)", "return b * 2"),
    "kw computed key": ("d = {'b': 3}\nd['B'.lower()] = x\nreturn self.go(x, **d)", "return b * 2"),
    "kw update": ("d = {'b': 3}\nd.update(b=x)\nreturn self.go(x, **d)", "return b * 2"),
    "kw update2": ("d = {'b': 3}\nd.update({'b': x})\nreturn self.go(x, **d)", "return b * 2"),
    "kw or": ("d = {'b': 3} | {'b': x}\nreturn self.go(x, **d)", "return b * 2"),
    "kw ior": ("d = {'b': 3}\nd |= {'b': x}\nreturn self.go(x, **d)", "return b * 2"),
    "kw dict()": ("d = dict(b=x)\nreturn self.go(x, **d)", "return b * 2"),
    "kw dict zip": ("d = dict(zip(('b',), (x,)))\nreturn self.go(x, **d)", "return b * 2"),
    "kw comp": ("d = {k: v for k, v in (('b', x),)}\nreturn self.go(x, **d)", "return b * 2"),
    "more": ("return self.go(x, 1, 2, 3, x)", "return more[1] * 2"),
    "more neg": ("return self.go(x, 1, 2, 3, x)", "return more[-1] * 2"),
    "more unpack": ("return self.go(x, 1, 2, 3, x)", "p, q = more\n        return q * 2"),
    "more loop": ("return self.go(x, 1, 2, 3, x)", "for m in more: m = m * 2"),
    "more sum": ("return self.go(x, 1, 2, 3, x)", "return sum(more)"),
    "kw in kw": ("return self.go(x, q=x)", "return kw['q'] * 2"),
    "kw pop": ("return self.go(x, p=3, q=x)", "return kw.pop('q') * 2"),
    "kw values": ("return self.go(x, p=3, q=x)", "return list(kw.values())[1] * 2"),
    "kw items": ("return self.go(x, p=3, q=x)", "for k, v in kw.items(): v = v * 2"),
    "kw popitem": ("return self.go(x, p=3, q=x)", "return kw.popitem()[1] * 2"),
    "kw posonly": ("return self.go(x, 1, 2, **{'q': x})", "return kw['q'] * 2"),
    "zip": ("z = list(zip((x, 3), (3, x)))\nreturn self.go(x, z[1][1])", "return b * 2"),
    "zip2": ("for p, q in zip((x, 3), (3, x)):\n    self.go(x, q)\nreturn x", "return b * 2"),
    "zip star": ("a, b = zip(*[(x, 1), (x, 2)])\nreturn self.go(x, a[0])", "return b * 2"),
    "zip shuffled": (
        "r = [[1, x], [2, x]]\nr[0].reverse()\nz = list(zip(*r))\nreturn self.go(x, z[0][0])",
        "return b * 2",
    ),
    "decorator": (
        "def w(f):\n            def g(*a, **k): return f(*a, **k)\n            return g\nreturn w(self.go)(x, x)",
        "return b * 2",
    ),
    "decorator kw": (
        "def w(f):\n            def g(*a, **k): return f(*a, **k)\n            return g\nreturn w(self.go)(x, b=x)",
        "return b * 2",
    ),
    "decorator moved": (
        "def w(f):\n            def g(*a, **k): return f(*a[1:], **k)\n            return g\nreturn w(self.go)(1, x, x)",
        "return b * 2",
    ),
    "deque": ("d = collections.deque([x, 3, x])\nd.rotate(1)\nreturn self.go(*d)", "return b * 2"),
    "deque left": ("d = collections.deque([3, x])\nd.appendleft(x)\nreturn self.go(*d)", "return c * 2"),
    "map": ("return list(map(self.go, (x,), (x,)))[0]", "return b * 2"),
    "sorted": ("a = sorted([x, 3], key=lambda v: 0)\nreturn self.go(*a)", "return b * 2"),
    "two stars": ("a = (x,)\nreturn self.go(*a, *a)", "return b * 2"),
    "gen": ("return self.go(*(v for v in (x, x)))", "return b * 2"),
    "alias": ("a = [x, 3, x]\nb = a\nb.reverse()\nb.pop(0)\nreturn self.go(x, *a)", "return b * 2"),
    "alias2": ("a = [x, 3]\nb = a\nb[1] = x\nreturn self.go(*a)", "return b * 2"),
    "alias3": ("a = [x, 3]\nb = a\nb.insert(0, x)\nreturn self.go(*a)", "return b * 2"),
    "helper moves": (
        "a = [x, 3]\nself.mv(a, x)\nreturn self.go(*a)",
        "return b * 2\n    def mv(self, a, x):\n        a[1] = x",
    ),
    "iadd star": ("a = [x]\na += [x]\nreturn self.go(*a)", "return b * 2"),
    "iadd alias": ("a = [x]\nb = a\nb += [x]\nreturn self.go(*a)", "return b * 2"),
    "extend": ("a = [x]\na.extend([x])\nreturn self.go(*a)", "return b * 2"),
    "append": ("a = [x]\na.append(x)\nreturn self.go(*a)", "return b * 2"),
    "names under another name": (
        "return self.by(x, b=2, y=x)",
        "return b * c\n    def fill(self, held, y):\n        held['b'] = y\n    def by(self, x, y, **kw):\n        other = kw\n        other['b'] = y\n        return self.go(x, **kw)",
    ),
    "names changed elsewhere": (
        "return self.by(x, b=2, y=x)",
        "return b * c\n    def fill(self, held, y):\n        held['b'] = y\n    def by(self, x, y, **kw):\n        self.fill(kw, y)\n        return self.go(x, **kw)",
    ),
    "names changed by a bound method": (
        "return self.by(x, b=2, y=x)",
        "return b * c\n    def fill(self, held, y):\n        held['b'] = y\n    def by(self, x, y, **kw):\n        put = kw.__setitem__\n        put('b', y)\n        return self.go(x, **kw)",
    ),
    "names given by a bound method": (
        "return self.by(x, b=2, y=x)",
        "return b * c\n    def fill(self, held, y):\n        held['b'] = y\n    def by(self, x, y, **kw):\n        put = kw.setdefault\n        put('c', y)\n        return self.go(x, **kw)",
    ),
    "names changed directly": (
        "return self.by(x, b=2, y=x)",
        "return b * c\n    def fill(self, held, y):\n        held['b'] = y\n    def by(self, x, y, **kw):\n        kw['b'] = y\n        return self.go(x, **kw)",
    ),
}
"""In each, a tensor comes to where another number stood or was seen, and torch computes with it."""
