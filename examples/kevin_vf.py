"""What verifiers loads by the name kevin-vf.

PYTHONPATH=examples vf-eval kevin-vf -m MODEL --client.base-url URL --env.taskset.problems
L1_26_GELU_ --no-push
"""

from kevin_env.integrations.verifiers import KernelEnv, KernelTaskset

__all__ = ["KernelEnv", "KernelTaskset"]
