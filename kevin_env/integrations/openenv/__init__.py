"""OpenEnv: the environment behind a server, and the client for it. Needs the extra `openenv`.

    from kevin_env.integrations.openenv import KernelAction, KernelEnv
    with KernelEnv(base_url="http://localhost:8000") as env:
        result = env.reset(problem_id="L1_23_Softmax")

This folder is also an environment for OpenEnv's tools and a package of its own, `kernel_env`: the
client without kevin-env and torch. So `client` and `models` import only openenv. `kevin-env serve`
starts a server; `server.app` makes one of any pool.
"""

try:
    import openenv  # noqa: F401  (the first import to fail without the extra)
except ImportError as error:
    raise ImportError("this needs the extra openenv: pip install 'kevin-env[openenv]'") from error

from .client import KernelEnv
from .models import KernelAction, KernelObservation, KernelState

kernrl_env = KernelEnv
"""The name of kernrl's client."""

__all__ = ["KernelAction", "KernelEnv", "KernelObservation", "KernelState", "kernrl_env"]
