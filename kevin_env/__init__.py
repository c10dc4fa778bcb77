"""kevin-env: refine GPU kernels over several turns, judged outside their own process.

Importing the package registers `Kevin-v0` with Gymnasium, and does nothing else:

    import gymnasium as gym, kevin_env
    env = gym.make("Kevin-v0", problem="L1_23_Softmax")
"""

import gymnasium

if "Kevin-v0" not in gymnasium.registry:
    gymnasium.register(
        id="Kevin-v0",
        entry_point="kevin_env.env:KevinEnv",
        vector_entry_point="kevin_env.vector:make_vec",
        nondeterministic=True,  # info carries times
        disable_env_checker=True,  # it raises a TypeError for a `step` after a failed `reset`
    )
