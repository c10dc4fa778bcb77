"""What verifiers loads by the name `kevin-vf`."""

from kevin_env.integrations.verifiers import KernelEnv, KernelTaskset

__all__ = ["KernelEnv", "KernelTaskset"]
