"""Converts command-line arguments to pools, settings and policies."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kevin_env.app.errors import BadInput
from kevin_env.app.evaluate.config import read_values
from kevin_env.context import load_counter
from kevin_env.judge.api import JudgeError, device_names
from kevin_env.languages import installed, obstacle
from kevin_env.policies.base import Policy, PolicyError
from kevin_env.policies.human import HumanPolicy
from kevin_env.policies.openai import OpenAIPolicy
from kevin_env.policies.transformers import TransformersPolicy
from kevin_env.pools.base import RequestPool
from kevin_env.pools.http import PATIENCE, POOL, named_pool
from kevin_env.retrieval.index import open_retriever
from kevin_env.settings import Settings


@contextmanager
def open_pool(
    device: str, pool: str | None = None, patience: float = PATIENCE
) -> Iterator[RequestPool]:
    """A pool by its name, see `named_pool`, closed at the end of the block.

    Raises:
        BadInput: if there is no such pool, or it does not have a GPU that `device` names.
    """
    try:
        opened = named_pool(pool, patience)
    except ValueError as error:
        named = "--pool: " if pool else f"{POOL}: " if os.environ.get(POOL) else ""
        raise BadInput(f"{named}{error}") from error
    with opened as judges:
        if device.startswith("cuda"):
            try:
                judges.devices(device)
            except JudgeError as error:
                raise BadInput(str(error)) from error
        yield judges


def read_settings(overrides: Sequence[str] | None = None, /, **values: Any) -> Settings:
    """The settings of an episode.

    Args:
        overrides: such as `settings.gamma=0.8`, as `kevin-env eval` takes them; they go before
            `values`.
        values: by the names of `Settings`.

    Raises:
        BadInput: if one is unknown or out of its range.
    """
    for override in overrides or ():
        if not override.startswith("settings."):
            raise BadInput(
                f"-o {override}: only settings can be set here, such as -o settings.gamma=0.8"
            )
    try:
        settings = Settings.of(values | read_values(None, overrides or ()).get("settings", {}))
        load_counter(settings.tokenizer)
    except ValueError as error:
        raise BadInput(str(error)) from error
    return settings


def require_available(settings: Settings, pool: str | None = None) -> None:
    """Checks that there is what an episode needs, so that errors are reported at once.

    Raises:
        BadInput: if kernels in the language cannot be judged on this machine.
        RetrievalError: as `require_examples`.
    """
    elsewhere = bool(pool or os.environ.get(POOL))
    devices = (settings.device,) if elsewhere else device_names(settings.device)
    versions = None if elsewhere else installed()
    if why := obstacle(settings.language, devices != ("cpu",), versions):
        raise BadInput(why)
    require_examples(settings)


def require_examples(settings: Settings) -> None:
    """Opens the retrieval index if examples need it.

    Raises:
        RetrievalError: if it is missing, or the extra is not installed.
    """
    if str(settings.examples).startswith("retrieved"):
        open_retriever(settings.index)


def read_policy(
    model: str,
    base_url: str | None = None,
    extra_body: str | Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Policy:
    """The policy: a model at an endpoint, a model in this process, or a person.

    Args:
        model: its name at the endpoint; `local:` (or `transformers:`) and a folder or a name at the
            Hugging Face Hub; or `human`.
        base_url: the endpoint, by default from the environment.
        extra_body: a JSON object as text or as a mapping.
        parameters: of `OpenAIPolicy`. A model in this process uses those that apply, and `device`
            and `dtype`; a person uses none.

    Raises:
        BadInput: if the name or a required API key is missing, `extra_body` is not a JSON object,
            or the model cannot be loaded.
    """
    if not model:
        raise BadInput(
            "give --model: its name at the endpoint, `local:FOLDER`, or `human` to play yourself"
        )
    if model == "human":
        return HumanPolicy()
    body = _read_object(extra_body) if isinstance(extra_body, str) else extra_body
    try:
        if not is_remote(model):
            return _local_policy(model.partition(":")[2], base_url, body, parameters)
        return OpenAIPolicy(model, base_url, extra_body=body, **parameters)
    except PolicyError as error:
        raise BadInput(str(error)) from error


def require_endpoint(policy: Policy) -> None:
    """Tries the endpoint of a policy that has one, before a judge starts.

    Raises:
        PolicyError: if it cannot be reached or rejects the key.
    """
    if isinstance(policy, OpenAIPolicy):
        policy.require_endpoint()


def is_remote(model: str) -> bool:
    """Whether a model is at an endpoint."""
    return model != "human" and model.partition(":")[0] not in ("local", "transformers")


def _local_policy(
    name: str,
    base_url: str | None,
    extra_body: Mapping[str, Any] | None,
    parameters: Mapping[str, Any],
) -> Policy:
    if not name:
        raise BadInput("give a folder, or a name at the Hugging Face Hub, after `local:`")
    if base_url or extra_body:
        said = "--base-url and --extra-body are for models at an endpoint"
        raise BadInput(f"{said}; local:{name} runs in this process")
    taken = ("temperature", "top_p", "seed", "device", "dtype")
    chosen = {key: parameters[key] for key in taken if parameters.get(key) is not None}
    if parameters.get("max_tokens") is not None:
        chosen["max_new_tokens"] = parameters["max_tokens"]
    return TransformersPolicy(name, **chosen)


def _read_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text else None
    except ValueError as error:
        raise BadInput(f"--extra-body is not JSON: {error}") from error
    if value is not None and not isinstance(value, dict):
        raise BadInput('--extra-body must be a JSON object, such as {"top_k": 20}')
    return value
