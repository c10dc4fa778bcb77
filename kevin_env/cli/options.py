"""Options that several commands share. Those of an episode are derived from `Settings`."""

import errno
import functools
import inspect
import json
import math
import socket
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
import typer.core
from pydantic.fields import FieldInfo

from kevin_env.settings import Settings

TRAJECTORIES = Path("trajectories.jsonl")
"""Default trajectory file."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Plain = Annotated[bool, typer.Option("--plain", help="Print without colors or live display.")]
Override = Annotated[
    list[str] | None,
    typer.Option(
        "--override",
        "-o",
        metavar="KEY=VALUE",
        help="Set any value of a TOML file, e.g. -o settings.gamma=0.8; eval --dry-run lists all.",
    ),
]

PANELS = {
    "Episode": ("max_turns", "stop_on", "gamma", "returns"),
    "Prompt": (
        *("language", "templates", "context", "context_tokens", "tokenizer"),
        *("hints", "examples", "index", "start"),
    ),
    "Score": ("score", "bound", "pay", "pay_repeats", "noisy"),
    "Judge": (
        *("device", "rules", "glue", "baseline", "inputs", "dtype", "backward"),
        *("call_timeout", "build_timeout", "timing_precision"),
        *("profile", "sanitize", "replay", "require_sandbox"),
    ),
}
"""All settings, by the group of options that shows them."""

EPISODE = tuple(name for names in PANELS.values() for name in names)
JUDGE = (*PANELS["Judge"], "noisy")

_WIDEST = 30
"""Characters of values that the help lists in a column of their own."""

Given = Mapping[str, Any]
"""Settings from the command line, by name, without those left at their defaults."""


class PlainFlags:
    """A command whose help shows flags as they are typed, without a type of a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters of the command, and `--help`."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class Command(PlainFlags, typer.core.TyperCommand):
    """A command of `kevin-env`."""


class Group(PlainFlags, typer.core.TyperGroup):
    """A group of commands."""


def example(words: str) -> str:
    """The last line of a command's help."""
    return f"Example: `kevin-env {words}`"


def settings_options(names: Iterable[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds an option for each of these settings to a command.

    The command gets the settings that were given as the keyword `settings`.
    """
    options = {name: _option(name) for name in names}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters = [each for each in signature.parameters.values() if each.name != "settings"]
        ctx = inspect.Parameter(
            "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )
        parameters = [ctx, *parameters, *options.values()]

        @functools.wraps(command)
        def run(ctx: typer.Context, **arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in options}
            settings = {name: value for name, value in values.items() if is_given(ctx, name)}
            command(**arguments, settings=settings)

        vars(run)["__signature__"] = signature.replace(parameters=parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def finite(value: float | None) -> float | None:
    """Rejects infinity and NaN."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


def positive(value: float | None) -> float | None:
    """Rejects everything but positive finite numbers."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not greater than 0")
    return finite(value)


def of_server(help: str, **more: Any) -> Any:
    """An option of a command that serves; arguments as of `typer.Option`."""
    return typer.Option(help=help, rich_help_panel="Server", **more)


def of_problems(default: str) -> Any:
    """An option that names problems, repeated or with commas; `default` is for the help."""
    return typer.Option(
        "--problem",
        "--problems",
        metavar="A,B,...",
        help=f"IDs, levels such as L1, held_out, kevin-bench-1, kernelbench:level1, "
        f"sol:PATH, flashinfer:PATH, kernelbot:PATH, files, folders{default}.",
        autocompletion=complete_problems,
        callback=lambda given: [each for word in given or () for each in word.split(",")] or None,
    )


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        BadInput: if the address cannot be used.
    """
    from kevin_env.app.errors import BadInput
    from kevin_env.integrations.judge_server import listen

    try:
        return listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadInput(
                f"port {port} of {host} is in use; choose another with --port"
            ) from error
        why = (error.strerror or str(error)).partition(" (while attempting")[0]
        raise BadInput(f"cannot listen on {host} port {port}: {why}") from error


@contextmanager
def extra() -> Iterator[None]:
    """Reports a missing extra as wrong input."""
    from kevin_env.app.errors import BadInput

    try:
        yield
    except ImportError as error:
        raise BadInput(str(error)) from error


def print_json(value: Any) -> None:
    """Prints one line of JSON to stdout, without NaN and Infinity."""
    typer.echo(json.dumps(value, allow_nan=False))


def _option(name: str) -> inspect.Parameter:
    field = Settings.model_fields[name]
    default, values = field.default, _values(field)
    text = (field.description or "").partition("\n\n")[0].replace("\n", " ")
    wide = len("|".join(values)) > _WIDEST
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        autocompletion=_completing(values),
        help=f"{text.removesuffix('.')}: {', '.join(values)}." if wide else text,
        metavar="NAME" if wide else "|".join(values) or None,
        show_default=default is not None and default is not False and default != "",
        rich_help_panel=next(panel for panel, names in PANELS.items() if name in names),
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[_type(field), option],
    )


def _completing(values: Sequence[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def complete_problems(incomplete: str) -> list[str]:
    """The IDs of problems that begin so, also after a comma."""
    from kevin_env.problem import problem_paths

    *before, last = incomplete.split(",")
    return [",".join((*before, each)) for each in problem_paths() if each.startswith(last)]


def _type(field: FieldInfo) -> Any:
    """The type that the command line reads; `Settings` validates the values themselves."""
    kinds = {*(get_args(field.annotation) or (field.annotation,))} - {types.NoneType}
    kind: Any = kinds.pop() if len(kinds) == 1 and kinds < {bool, int, float} else str
    return kind if field.default is not None else kind | None


def _values(field: FieldInfo) -> Sequence[str]:
    """The values to list in the help; none for free values."""
    literals = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return [str(value) for value in literals or field.examples or ()]


def is_given(ctx: typer.Context, name: str) -> bool:
    """Whether an argument was given, on the command line or by the environment."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
