"""Policies: what answers a chat with a reply. Only this is called policy."""

from kevin_env.policies.base import ContextOverflow, Policy, PolicyError, Quit, Refused
from kevin_env.policies.scripted import ScriptedPolicy

__all__ = ["ContextOverflow", "Policy", "PolicyError", "Quit", "Refused", "ScriptedPolicy"]
