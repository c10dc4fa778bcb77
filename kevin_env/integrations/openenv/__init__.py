"""OpenEnv: the environment behind a server, and the client for it. Needs the extra `openenv`.

    from kevin_env.integrations.openenv import KevinAction, KevinEnv
    with KevinEnv(base_url="http://localhost:8000") as env:
        result = env.reset(problem_id="L1_23_Softmax")

What the OpenEnv environment `kernrl` exports has its names here too, so that its users change one
import. `kevin-env serve` starts a server; `kevin_env.integrations.openenv.server` makes one of any
pool.
"""

try:
    import openenv  # noqa: F401  (says what is missing before anything else fails)
except ImportError as error:
    raise ImportError("this needs the extra openenv: pip install 'kevin-env[openenv]'") from error

from kevin_env.integrations.openenv.client import (
    KevinAction,
    KevinEnv,
    KevinObservation,
    KevinState,
)

kernrl_env = KevinEnv
KernelAction = KevinAction
KernelObservation = KevinObservation
KernelState = KevinState

__all__ = [
    "KernelAction",
    "KernelObservation",
    "KernelState",
    "KevinAction",
    "KevinEnv",
    "KevinObservation",
    "KevinState",
    "kernrl_env",
]
