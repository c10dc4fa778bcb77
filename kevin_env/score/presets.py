"""The scores that have a name."""

from kevin_env.score.components import (
    COMPILE,
    CORRECTNESS,
    COVERAGE,
    DOUBLINGS,
    FASTER,
    FORMAT,
    GAIN,
    KERNRL,
    LENGTH,
    LOG_SPEED,
    MILESTONES,
    ROOFLINE,
    SPEED,
    THINKING,
)
from kevin_env.score.shape import WeightedSum, capped

kevin = WeightedSum(((0.3, CORRECTNESS), (1.0, SPEED)))
"""Kevin's score: 0.3 for a correct kernel plus its speedup, 0 for everything else (arXiv
2507.11948, 3.2).

Not clipped. A speedup with a wide interval is paid by its lower end. 0 to infinity.
"""

_KERNEL_RL_GAIN = capped(GAIN, 10.0)
_KERNEL_RL_DOUBLINGS = capped(DOUBLINGS, 2.0)
"""Half of it is kernel-rl's clamp(0.5 log2(speedup), 0, 1)."""

SCORES: dict[str, WeightedSum] = {
    "kevin": kevin,
    "kernrl": WeightedSum(((1.0, KERNRL),)),
    # kernrl's blog does not say how steep the last part is: here it is full at 4x.
    "kernrl_blog": WeightedSum(
        ((0.1, COMPILE), (0.3, CORRECTNESS), (0.3, FASTER), (0.3, capped(DOUBLINGS, 2.0)))
    ),
    "kernel_rl_default": WeightedSum(
        ((0.1, FORMAT), (0.2, COMPILE), (1.0, CORRECTNESS), (0.05, LENGTH), (0.1, THINKING))
    ),
    "kernel_rl_stage1": WeightedSum(((0.3, FORMAT), (0.5, COMPILE), (0.2, CORRECTNESS))),
    "kernel_rl_stage2": WeightedSum(((0.1, FORMAT), (0.2, COMPILE), (0.7, CORRECTNESS))),
    "kernel_rl_stage3": WeightedSum(
        ((0.05, FORMAT), (0.1, COMPILE), (0.5, CORRECTNESS), (0.35, _KERNEL_RL_GAIN))
    ),
    "kernel_rl_stage3_2025": WeightedSum(
        ((0.05, FORMAT), (0.1, COMPILE), (0.5, CORRECTNESS), (0.35 / 2, _KERNEL_RL_DOUBLINGS))
    ),
    "kernel_rl_sparse": WeightedSum(((1.0, CORRECTNESS), (0.5, _KERNEL_RL_GAIN))),
    "kernel_rl_sparse_2025": WeightedSum(((1.0, CORRECTNESS), (0.5 / 2, _KERNEL_RL_DOUBLINGS))),
    "dr_kernel": WeightedSum(((1.0, CORRECTNESS), (1.0, capped(SPEED, 3.0)), (1.0, COVERAGE))),
    "milestones": WeightedSum(((1.0, MILESTONES),)),
    "log_speed": WeightedSum(((0.3, CORRECTNESS), (1.0, LOG_SPEED))),
    "roofline": WeightedSum(((0.3, CORRECTNESS), (1.0, ROOFLINE))),
}
"""Scores by name; `.range` says what each pays at least and at most.

- `kevin`; `log_speed` and `roofline` are the same with another measure of speed.
- `kernrl`: what its code pays, see `KERNRL`; `kernrl_blog`: what its blog says instead.
- `kernel_rl_stage1` to `3` and `kernel_rl_sparse`: kernel-rl's weights, and min(speedup - 1, 10)
  above 1x for speed. With `_2025` it is clamp(0.5 log2(speedup), 0, 1), which kernel-rl paid until
  its rewrite of December 2025. `kernel_rl_default`: the weights of its README (the preset that its
  code calls the default is meant to be `kevin`). Length and thinking are paid to correct kernels
  only. Its partial credit for some of the tests is left out, since a judgement ends at the first
  wrong output, and so are its penalties: a format error or a hack pays the least, 0.
- `dr_kernel` (arXiv 2602.05885): the paper's weights. Needs `profile="ncu"` and a GPU, which
  measure coverage.
- `milestones` (CUDA Agent, arXiv 2602.24286): see `MILESTONES`. Needs `baseline="compile"`.
"""
