"""From the words of the command line to the values that the rest works with."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kevin_env.app.errors import BadInput
from kevin_env.judge.api import JudgeError
from kevin_env.judge.pool import LocalPool
from kevin_env.policies.base import Policy, PolicyError
from kevin_env.policies.human import HumanPolicy
from kevin_env.policies.openai import OpenAIPolicy
from kevin_env.policies.transformers import TransformersPolicy
from kevin_env.settings import Settings


@contextmanager
def open_pool(device: str) -> Iterator[LocalPool]:
    """The judges of this machine, for as long as the block runs.

    Args:
        device: what is going to be asked for. A GPU that is named has to be there.

    Raises:
        BadInput: if it is not.
    """
    with LocalPool() as pool:
        if device.startswith("cuda"):
            try:
                pool.device(device)
            except JudgeError as error:
                raise BadInput(str(error)) from error
        yield pool


def read_settings(**values: Any) -> Settings:
    """The settings of an episode.

    Raises:
        BadInput: if one is out of its range.
    """
    try:
        return Settings.of(values)
    except ValueError as error:
        raise BadInput(str(error)) from error


def read_policy(
    model: str, base_url: str | None = None, extra_body: str | Mapping[str, Any] | None = None, **parameters: Any
) -> Policy:
    """Who plays: a model at an endpoint, one in this process, or a person.

    Args:
        model: its name at the endpoint; `local:` (or `transformers:`) and a folder or a name at the Hugging Face Hub;
            or `human`.
        base_url: the endpoint, by default as the environment has it.
        extra_body: a JSON object, or what it holds.
        parameters: of `OpenAIPolicy`. A model in this process takes those that it has, and `device` and `dtype`; a
            person takes none.

    Raises:
        BadInput: if there is no name, no key where one is needed, no JSON object, or no model that can be loaded.
    """
    if not model:
        raise BadInput("give --model: its name at the endpoint, `local:FOLDER`, or `human` to play yourself")
    if model == "human":
        return HumanPolicy()
    where, _, name = model.partition(":")
    body = _read_object(extra_body) if isinstance(extra_body, str) else extra_body
    try:
        if where in ("local", "transformers"):
            return _local_policy(name, base_url, body, parameters)
        return OpenAIPolicy(model, base_url, extra_body=body, **parameters)
    except PolicyError as error:
        raise BadInput(str(error)) from error


def _local_policy(
    name: str, base_url: str | None, extra_body: Mapping[str, Any] | None, parameters: Mapping[str, Any]
) -> Policy:
    if not name:
        raise BadInput("give a folder, or a name at the Hugging Face Hub, after `local:`")
    if base_url or extra_body:
        raise BadInput(f"--base-url and --extra-body are for models at an endpoint; local:{name} runs in this process")
    taken = ("temperature", "top_p", "seed", "device", "dtype")
    given = {key: parameters[key] for key in taken if parameters.get(key) is not None}
    if parameters.get("max_tokens") is not None:
        given["max_new_tokens"] = parameters["max_tokens"]
    return TransformersPolicy(name, **given)


def _read_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text else None
    except ValueError as error:
        raise BadInput(f"--extra-body is not JSON: {error}") from error
    if value is not None and not isinstance(value, dict):
        raise BadInput('--extra-body must be a JSON object, such as {"top_k": 20}')
    return value
