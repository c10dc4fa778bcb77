"""Loads and renders templates, from the folder `prompts` or the one in KEVIN_ENV_PROMPTS.

Templates get named fields only, and a missing field is an error.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

from kevin_env.languages import LANGUAGES
from kevin_env.problem import data_folder
from kevin_env.wording import (
    FILTERS,
    binary_size,
    block,
    decimal,
    describe_input,
    describe_input_set,
    describe_pattern,
    describe_software,
    duration,
    ratio,
    sentence,
    table,
)

NAMES = (
    *("system.j2", "task.j2", "history.j2", "hints.j2"),
    *(
        f"feedback/{category}.j2"
        for category in ("format", "rules", "compile", "runtime", "correctness", "correct")
    ),
    *("feedback/profile.j2", "feedback/sanitizer.j2"),
    *(f"languages/{name}.j2" for name in (*LANGUAGES, "any", "extension", "capability")),
)
"""All templates that have to exist."""
PAPER = tuple(f"kevin-paper/{name}.j2" for name in ("task", "history", "feedback"))
"""Those of `templates="kevin-paper"` in place of task, history and the feedback on an outcome."""
AGENTS = tuple(
    f"agents/{name}.j2"
    for name in (
        *("task", "guide", "standing", "harbor"),
        *("get_problem", "submit_kernel", "profile_kernel", "best_so_far"),
    )
)
"""What coding agents read: the task, the guides of workspaces and Harbor, each tool's answer."""
_RAISED = (jinja2.TemplateError, OSError, TypeError, ValueError, LookupError, ArithmeticError)
"""Errors of loading, compiling and rendering a template."""


class PromptError(ValueError):
    """A template that cannot be used. The message names it and the error, in one line."""


def render(name: str, **fields: Any) -> str:
    """A rendered template.

    Raises:
        PromptError: if it is missing, does not compile or fails with these fields, or another one
            is missing or does not compile.
    """
    folder = data_folder("prompts")
    group = next((group for group in (PAPER, AGENTS) if name in group), NAMES)
    environment = _environment(folder, group)
    try:
        return environment.get_template(name).render(fields)
    except _RAISED as error:
        raise _error(folder, name, error) from error


@functools.cache
def _environment(folder: Path, names: tuple[str, ...]) -> jinja2.Environment:
    """An environment with all templates compiled, so that bad ones fail before the first turn."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., str]] = {
        **FILTERS,
        "block": block,
        "decimal": decimal,
        "duration": duration,
        "input": describe_input,
        "input_set": describe_input_set,
        "pattern": describe_pattern,
        "python": repr,
        "ratio": ratio,
        "seconds": "{:g} s".format,
        "sentence": sentence,
        "size": binary_size,
        "software": describe_software,
        "table": table,
    }
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]
    for name in names:
        try:
            environment.get_template(name)
        except _RAISED as error:
            raise _error(folder, name, error) from error
    return environment


def _error(folder: Path, name: str, error: Exception) -> PromptError:
    if isinstance(error, jinja2.TemplateNotFound):
        return PromptError(
            f"no template {error.name} in {folder}; copy it from the prompts of kevin-env"
        )
    line = f" line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
    return PromptError(f"template {folder / name}{line}: {error}")
