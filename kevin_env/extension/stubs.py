"""Empty libraries under the names of torch's, to link against.

Linking reads every name that torch's libraries export, which takes longer than compiling a kernel.
All that comes of it is a list of the libraries that have to be there, and they are: torch is
loaded. A name that none of them has is noticed when the extension is loaded.
"""

from pathlib import Path

from torch.utils import cpp_extension

_RULE = "\nrule short_stub\n  command = ld -shared -soname $soname -o $out -b binary /dev/null\n\n"


def link_flags(flags: list[str], folder: Path) -> list[str]:
    """Flags of the linker, by which stubs in `folder` are found before the libraries that they
    stand for.
    """
    found = [f"-l{name}" for name in _libraries(flags)]
    # some compilers leave out libraries that seem to be of no use, as these do
    return [f"-L{folder}", "-Wl,--push-state,--no-as-needed", *found, "-Wl,--pop-state", *flags]


def add_stubs(ninja: Path, flags: list[str], folder: Path, library: str) -> None:
    """Has `ninja`, a file that torch wrote, make the stubs before it links `library`."""
    stubs = {folder / f"lib{name}.so": f"lib{name}.so" for name in _libraries(flags)}
    edges = "".join(
        f"build {stub}: short_stub\n  soname = {name}\n" for stub, name in stubs.items()
    )
    needed = " ".join(map(str, stubs))
    lines = ninja.read_text(encoding="utf-8").splitlines()
    linked = [
        f"{line} | {needed}" if line.startswith(f"build {library}: link ") else line
        for line in lines
    ]
    ninja.write_text("\n".join(linked) + _RULE + edges, encoding="utf-8")


def _libraries(flags: list[str]) -> list[str]:
    names = [flag[2:] for flag in flags if flag.startswith("-l")]
    return [
        name for name in names if (Path(cpp_extension.TORCH_LIB_PATH) / f"lib{name}.so").exists()
    ]
