"""What a kernel's machine code shows: SASS as cuobjdump prints it, or Triton's PTX where there is
no cuobjdump.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field

from kevin_env.judge.probe.names import is_library, shorten
from kevin_env.profile import CodeFacts

KERNELS = 8
_LONGEST_LINE = 2000
_FUNCTION = re.compile(r"^\s*Function\s*:?\s*(?P<name>[^\s:]{1,1000})(?::\s*$|\s*$)")
_RESOURCES = re.compile(r"^\s*REG:(?P<registers>\d{1,9}) STACK:(?P<stack>\d{1,9}) SHARED:(?P<shared>\d{1,9}) LOCAL:"
                        r"(?P<local>\d{1,9})\b")  # fmt: skip
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{1,8}\*/\s+(?:@!?U?P[T\d]\w{0,3}\s+)?(?P<name>[A-Z][A-Z0-9_.]{1,80})\b"
)
_PTX_ENTRY = re.compile(r"^\s*(?:\.visible\s+)?\.entry\s+(?P<name>[\w$]{1,1000})")
_PTX = re.compile(r"^\s*(?:@!?%p\d{1,9}\s+)?(?P<name>[a-z][a-z0-9_.:]{1,120})\b")

_GLOBAL_LOADS = ("LDG", "LDGSTS", "LD")
_GLOBAL_STORES = ("STG", "ST")
_LOCAL = ("LDL", "STL")
_TENSOR = re.compile(r"(?:H|I|B|D|Q|O)(?:MMA|GMMA)|UTC\w{0,4}MMA|UTC[A-Z]MMA")
_BULK = ("UTMALDG", "UTMASTG", "UBLKCP")
_PTX_TENSOR = re.compile(r"w?mma(?:\.|_)|wgmma|tcgen05\.mma")


@dataclass
class _Seen:
    """What was found of one kernel so far."""

    loads: set[int] = field(default_factory=set)
    stores: set[int] = field(default_factory=set)
    tensor: set[str] = field(default_factory=set)
    local: int = 0
    bulk: bool = False
    resources: dict[str, int] = field(default_factory=dict)

    def facts(self, name: str) -> CodeFacts:
        known = self.resources
        return CodeFacts(
            kernel=shorten(name),
            registers=known.get("registers"),
            local_memory=known["stack"] + known["local"] if known else None,
            shared_memory=known.get("shared"),
            load_bytes=tuple(sorted(self.loads)),
            store_bytes=tuple(sorted(self.stores)),
            tensor_cores=tuple(sorted(self.tensor))[:4],
            local_accesses=self.local,
            bulk_copies=self.bulk,
        )


def read_sass(text: str) -> tuple[CodeFacts, ...]:
    """Facts of each kernel in what `cuobjdump -sass -res-usage` prints, in order; library kernels
    left out.
    """
    seen = defaultdict[str, _Seen](_Seen)
    at: _Seen | None = None
    for line in text.splitlines():
        line = line[:_LONGEST_LINE]
        if (function := _FUNCTION.match(line)) is not None:
            at = seen[function["name"]]
        elif at is not None and (resources := _RESOURCES.match(line)) is not None:
            at.resources = {name: int(value) for name, value in resources.groupdict().items()}
        elif at is not None and (instruction := _INSTRUCTION.match(line)) is not None:
            _see(at, instruction["name"])
    return _told(seen)


def read_ptx(text: str) -> tuple[CodeFacts, ...]:
    """Facts of each kernel in a PTX file. Registers and spills are not known before it is
    assembled.
    """
    seen = defaultdict[str, _Seen](_Seen)
    at: _Seen | None = None
    for line in text.splitlines():
        line = line[:_LONGEST_LINE]
        if (entry := _PTX_ENTRY.match(line)) is not None:
            at = seen[entry["name"]]
        elif at is not None and (instruction := _PTX.match(line)) is not None:
            _see_ptx(at, instruction["name"])
    return _told(seen)


def _told(seen: dict[str, _Seen]) -> tuple[CodeFacts, ...]:
    return tuple(
        found.facts(name) for name, found in seen.items() if not is_library(shorten(name))
    )[:KERNELS]


def _see(at: _Seen, instruction: str) -> None:
    name, *modifiers = instruction.split(".")
    if name in _GLOBAL_LOADS:
        at.loads.add(_bytes(modifiers))
    elif name in _GLOBAL_STORES:
        at.stores.add(_bytes(modifiers))
    elif name in _LOCAL:
        at.local += 1
    elif _TENSOR.fullmatch(name):
        at.tensor.add(name)
    elif name in _BULK:
        at.bulk = True


def _bytes(modifiers: list[str]) -> int:
    """How many bytes an instruction moves for a thread: four unless it says otherwise."""
    for modifier in modifiers:
        if modifier in ("64", "128", "256"):
            return int(modifier) // 8
        if modifier in ("U8", "S8"):
            return 1
        if modifier in ("U16", "S16"):
            return 2
    return 4


def _see_ptx(at: _Seen, instruction: str) -> None:
    parts = instruction.split(".")
    if parts[:2] in (["ld", "global"], ["st", "global"]):
        wide = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
        bits = int(re.sub(r"\D", "", parts[-1])[:4] or 32)
        (at.loads if parts[0] == "ld" else at.stores).add(wide * bits // 8)
    elif parts[:2] == ["cp", "async"]:
        at.bulk = at.bulk or "bulk" in parts
    elif parts[:2] in (["ld", "local"], ["st", "local"]):
        at.local += 1
    elif _PTX_TENSOR.match(instruction):
        at.tensor.add(parts[0])
