"""The configuration of an evaluation: read from a TOML file and overrides, written back to a file.

    problem = ["L1", "held_out", "kernelbench:level1/23"]
    samples = 4
    settings = {max_turns = 4, device = "cuda"}
    policy = {model = "gpt-5", temperature = 0.9}
    search = {kind = "beam", keep = 2, rounds = 2}

Unknown keys are errors, and so are API keys, which are read from the environment only.
"""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_args
from urllib.parse import urlsplit

import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.figures import Prices
from kevin_env.app.evaluate.search import Search, Serial
from kevin_env.context import load_counter
from kevin_env.outcome import Frozen
from kevin_env.policies.endpoint import RETRIES
from kevin_env.settings import Settings, nearest_name, wrong_value

Place = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
"""An absolute path."""


class OpenAI(Frozen):
    """A model at an OpenAI-compatible endpoint. Parameters that are None are not sent."""

    kind: Literal["openai"] = "openai"
    model: str = Field(min_length=1)
    base_url: str | None = None
    """Default: $OPENAI_BASE_URL, then OpenAI."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds without data after which a request fails."""
    retries: int = Field(default=RETRIES, ge=0)
    """Most repetitions of a request that fails for now, such as for a rate limit."""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    """Of sample 0; sample i uses seed + i."""
    extra_body: dict[str, Any] | None = None
    """Further fields of the request."""


class Transformers(Frozen):
    """A model in this process, which generates one reply at a time."""

    kind: Literal["transformers"]
    model: str = Field(min_length=1)
    """A folder, or a name at the Hugging Face Hub."""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    seed: int | None = None
    """Of sample 0; sample i uses seed + i."""


class Scripted(Frozen):
    """Prepared replies: `REPLIES/<problem id>/<turn>.md`, with turns from 1.

    Files may also end in `.py`. Those in `REPLIES/<problem id>/<sample>/`, with samples from 0,
    take precedence.
    """

    kind: Literal["scripted"]
    replies: Place


class Solutions(Frozen):
    """The bundled solutions in the device's languages: one per turn, then the last one again."""

    kind: Literal["solutions"]


class Agent(Frozen):
    """A coding agent, which plays whole episodes in workspaces, as `kevin-env agent` has it."""

    kind: Literal["agent"]
    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments; the shell is not used."""
    minutes: float = Field(default=60.0, gt=0)
    """Time for an episode, judging included."""
    sandbox: bool = True
    """Whether to confine it."""


PolicyConfig = Annotated[
    OpenAI | Transformers | Scripted | Solutions | Agent, Field(discriminator="kind")
]


class EvalConfig(Frozen):
    """One evaluation: problems x samples x turns, a policy, a search and prices."""

    problem: tuple[str, ...] = Field(min_length=1)
    """Ids, levels such as `L1`, `train` or `held_out`, `kernelbench:` names, files or folders."""
    samples: int = Field(default=1, ge=1)
    """Per problem; the width of a beam search."""
    settings: Settings = Settings(baseline="eager")
    policy: PolicyConfig
    search: Search = Serial()
    concurrency: int = Field(default=8, ge=1, le=1024)
    """Episodes played at the same time."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """To the model, not counting retries of a request."""
    prices: Prices | None = None
    baselines: tuple[Literal["eager", "compile"], ...] = ("eager",)
    """What speedups are reported against; `compile` takes one more judgement per problem."""
    tensorboard: bool = False
    """Whether to log episodes and figures to the folder `tensorboard` of the run."""
    wandb: str = ""
    """The project of Weights & Biases to log them to."""
    out: Place | None = None
    """The run folder. Not written to `config.toml`, so that the file starts a new run."""

    @field_validator("problem", "baselines", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        """Accepts `L1,L2`, as on the command line."""
        return [word for word in value.split(",") if word] if isinstance(value, str) else value

    @field_validator("settings", mode="before")
    @classmethod
    def _over_eager(cls, value: Any) -> Any:
        """What is reported is over eager and compiled references, unless another is set."""
        return {"baseline": "eager"} | value if isinstance(value, dict) else value

    @field_validator("policy", mode="before")
    @classmethod
    def _kind_of_policy(cls, value: Any) -> Any:
        """Derives a missing kind from the model, as `play --model` does."""
        if not isinstance(value, dict) or "kind" in value:
            return value
        policy = cast("dict[str, Any]", value)
        where, _, name = str(policy.get("model", "")).partition(":")
        if where in ("local", "transformers"):
            return policy | {"kind": "transformers", "model": name}
        return policy | {"kind": "openai"}

    @field_validator("search", mode="before")
    @classmethod
    def _kind_of_search(cls, value: Any) -> Any:
        search = cast("dict[str, Any]", value)
        return {"kind": "serial"} | search if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.search.shape(self.samples, self.settings.max_turns)
        load_counter(self.settings.tokenizer)
        if isinstance(self.policy, Agent) and not isinstance(self.search, Serial):
            raise ValueError("search: not supported for agents; leave it out")
        if isinstance(self.policy, Agent) and self.requests_per_minute:
            raise ValueError("requests_per_minute: not supported for agents; leave it out")
        if isinstance(self.policy, Agent) and self.settings.templates != "default":
            raise ValueError("settings.templates: only for chats; leave it out")
        if "eager" not in self.baselines:
            raise ValueError('baselines: eager is required; write ["eager", "compile"]')
        _require_no_secret(self.model_dump(mode="json"))
        return self

    def toml(self) -> str:
        """A file with this configuration, without `out`."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude={"out"}, exclude_none=True))


def read_config(
    file: Path | None, overrides: Sequence[str] = (), flags: Mapping[str, Any] | None = None
) -> EvalConfig:
    """The configuration in a file, changed by flags, then by overrides; see `read_values`.

    Raises:
        BadInput: in one line that names the key and its valid values.
    """
    return parse_config(read_values(file, overrides, flags))


def parse_config(values: Mapping[str, Any]) -> EvalConfig:
    """The configuration from nested values.

    Raises:
        BadInput: in one line that names the key and its valid values.
    """
    try:
        return EvalConfig.model_validate(values)
    except ValidationError as error:
        raise BadInput(explain(error, EvalConfig)) from None  # its cause holds the values


def read_prices(file: Path | None, overrides: Sequence[str] = ()) -> Prices | None:
    """The prices in a file, where nothing else of a configuration is needed.

    Raises:
        BadInput: if they cannot be read, or an override sets something else.
    """
    for override in overrides:
        if not override.startswith("prices."):
            said = "only prices can be set when nothing is played, such as prices.prompt=1.25"
            raise BadInput(f"-o {override}: {said}")
    prices = read_values(file, overrides).get("prices")
    try:
        return None if prices is None else Prices.model_validate(prices)
    except ValidationError as error:
        raise BadInput(f"prices: {explain(error, Prices)}") from None


def read_values(
    file: Path | None, overrides: Sequence[str] = (), flags: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The nested values of a file, changed by flags, then by overrides; not validated.

    Args:
        file: TOML.
        overrides: such as `settings.max_turns=8`. A value that is not TOML is a string.
        flags: values by dotted key; None leaves a key unchanged.

    Raises:
        BadInput: in one line, if a file or override cannot be read.
    """
    values = _read_toml(file) if file else {}
    for key, value in (flags or {}).items():
        if value is not None:
            _put(values, key, value)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"-o {override}: write -o key=value, such as -o settings.max_turns=8")
        _put(values, key.strip(), _value(text))
    return values


_OPTIONS = {"policy": "--model", "policy.model": "--model", "problem": "--problem"}
"""The options of `kevin-env eval` for required keys."""


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem in one line: the dotted key, and known keys or valid values."""
    errors = error.errors(include_url=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    keys, parent = _walk(first["loc"], model)
    name = ".".join(keys)
    if first["type"] == "extra_forbidden":
        return f"unknown key {name}; {_known_keys(keys, parent)}"
    if first["type"] == "missing":
        option = _OPTIONS.get(name)
        return f"{name} is missing; set it in the file or with {option or f'-o {name}=...'}"
    wrong = wrong_value(each for each in errors if _walk(each["loc"], model)[0] == keys)
    return f"{name}{_shown(name, first['input'])}: {wrong}" if name else wrong


def _require_no_secret(value: Any, name: str = "") -> None:
    """Refuses API keys: the configuration is written to a file that people share.

    Raises:
        ValueError: names the key's place, not its value.
    """
    key = os.environ.get("OPENAI_API_KEY", "")
    names = r"(?i)(api[_-]?key|passw(or)?d|secret|authorization|bearer|(access|auth)[_-]?token)$"
    if isinstance(value, Mapping):
        for inner, each in cast("Mapping[str, Any]", value).items():
            _require_no_secret(each, f"{name}.{inner}" if name else inner)
    elif isinstance(value, list | tuple):
        for each in cast("Sequence[Any]", value):
            _require_no_secret(each, name)
    elif isinstance(value, str) and (
        re.search(names, name)
        or (name == "policy.base_url" and "@" in urlsplit(value).netloc)
        or (len(key) >= 8 and key in value)
    ):
        said = "would be written to config.toml; use OPENAI_API_KEY instead"
        raise ValueError(f"{name} holds a key, which {said}")


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{file}: {error}") from error


def _value(text: str) -> Any:
    """A TOML value; any other text is a string."""
    if "\n" not in text:
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    return text


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    *tables, name = key.split(".")
    for number, table in enumerate(tables, start=1):
        inner = values.setdefault(table, {})
        if not isinstance(inner, dict):
            raise BadInput(f"{key}: {'.'.join(tables[:number])} is not a table")
        values = cast("dict[str, Any]", inner)
    values[name] = value


def _walk(loc: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """The keys of an error's location without the tags of unions, and the model with the last."""
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


def _known_keys(keys: Sequence[str], parent: type[BaseModel]) -> str:
    known = sorted(parent.model_fields)
    near = nearest_name(keys[-1], known)
    guess = f"did you mean {near}? Known keys" if near else "known keys"
    where = f" of {'.'.join(keys[:-1])}" if keys[1:] else ""
    secret = "; API keys are read from OPENAI_API_KEY only" if "key" in keys[-1].lower() else ""
    return f"{guess}{where}: {', '.join(known)}{secret}"


def _shown(name: str, value: Any) -> str:
    """The value, unless it is long or may be an API key."""
    text = repr(value)
    return f" = {text}" if len(text) <= 60 and not name.startswith("policy") else ""
