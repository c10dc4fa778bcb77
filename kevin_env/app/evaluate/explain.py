"""One line for a person out of what pydantic found wrong in nested values."""

import difflib
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_LONGEST = 60


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """What is wrong, by its dotted key: the known keys for an unknown one, else what the first
    wrong value may be.
    """
    errors = error.errors(include_url=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    keys, parent = _walk(first["loc"], model)
    name = ".".join(keys)
    if first["type"] == "extra_forbidden":
        known = sorted(parent.model_fields)
        near = difflib.get_close_matches(keys[-1], known, n=1)
        guess = f"did you mean {near[0]}? There are" if near else "there are"
        where = f" under {'.'.join(keys[:-1])}" if keys[1:] else ""
        return f"unknown key {name}; {guess} {', '.join(known)}{where}{_where_keys_go(name)}"
    if first["type"] == "missing":
        return f"{name} is missing; set it in the file or with -o {name}=..."
    said = [
        each["msg"].removeprefix("Value error, ")
        for each in errors
        if _walk(each["loc"], model)[0] == keys
    ]
    wrong = " or ".join(dict.fromkeys(said))
    return f"{name}{_shown(name, first['input'])}: {wrong}" if name else wrong


def _walk(loc: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """The keys of a place without the tags of unions, and the model that holds the last one."""
    keys: list[str] = []
    holder, inside = model, [model]
    for part in loc:
        tagged = [each for each in inside if str(part) in get_args(_kind(each))]
        if tagged:
            inside = tagged
        elif inside and isinstance(part, str):
            keys.append(part)
            holder = next((each for each in inside if part in each.model_fields), inside[0])
            field = holder.model_fields.get(part)
            inside = _models(field.annotation) if field else []
    return keys, holder


def _kind(model: type[BaseModel]) -> Any:
    field = model.model_fields.get("kind")
    return field.annotation if field else None


def _models(annotation: Any) -> list[type[BaseModel]]:
    every = [annotation, *get_args(annotation)]
    return [each for each in every if isinstance(each, type) and issubclass(each, BaseModel)]


def _shown(name: str, value: Any) -> str:
    """The value, unless somebody may have put a key there."""
    text = repr(value)
    return f" = {text}" if len(text) <= _LONGEST and not name.startswith("policy") else ""


def _where_keys_go(name: str) -> str:
    return (
        "; a key is read from OPENAI_API_KEY alone" if "key" in name.split(".")[-1].lower() else ""
    )
