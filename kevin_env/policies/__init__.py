"""Policies: what answers a chat with a reply. Only this is called policy."""

from kevin_env.policies.base import (
    ContextOverflow,
    Policy,
    PolicyError,
    Quit,
    Refused,
    ScriptedPolicy,
    for_sample,
)
from kevin_env.policies.human import HumanPolicy
from kevin_env.policies.openai import OpenAIPolicy
from kevin_env.policies.transformers import TransformersPolicy

__all__ = [
    "ContextOverflow",
    "HumanPolicy",
    "OpenAIPolicy",
    "Policy",
    "PolicyError",
    "Quit",
    "Refused",
    "ScriptedPolicy",
    "TransformersPolicy",
    "for_sample",
]
