"""What verifiers loads by the name `kevin-vf`."""

from kevin_env.agents.verifiers import KernelEnv
from kevin_env.integrations.verifiers import KernelTaskset

__all__ = ["KernelEnv", "KernelTaskset"]
