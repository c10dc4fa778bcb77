"""Named scores."""

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
    WeightedSum,
    capped,
)

CORRECT_SHARE = 0.3
"""What Kevin's score pays for correctness."""

kevin = WeightedSum(((CORRECT_SHARE, CORRECTNESS), (1.0, SPEED)))
"""Kevin's score (arXiv 2507.11948, 3.2): 0.3 plus the speedup for a correct kernel, else 0.

It is not clipped: 0 to infinity.
"""

_DOUBLINGS = capped(DOUBLINGS, 2.0)

_KERNEL_RL_COMPONENTS = (
    *(FORMAT, COMPILE, CORRECTNESS, LENGTH, THINKING),
    *(capped(GAIN, 10.0), _DOUBLINGS),
)
_KERNEL_RL_WEIGHTS = {
    "kernel_rl_default": (0.1, 0.2, 1.0, 0.05, 0.1, 0, 0),
    "kernel_rl_stage1": (0.3, 0.5, 0.2, 0, 0, 0, 0),
    "kernel_rl_stage2": (0.1, 0.2, 0.7, 0, 0, 0, 0),
    "kernel_rl_stage3": (0.05, 0.1, 0.5, 0, 0, 0.35, 0),
    "kernel_rl_stage3_2025": (0.05, 0.1, 0.5, 0, 0, 0, 0.35 / 2),
    "kernel_rl_sparse": (0, 0, 1.0, 0, 0, 0.5, 0),
    "kernel_rl_sparse_2025": (0, 0, 1.0, 0, 0, 0, 0.5 / 2),
}
"""Weights of these components. kernel-rl clamps 0.5 log2(speedup) to 1: half of `_DOUBLINGS`."""


def _kernel_rl(weights: tuple[float, ...]) -> WeightedSum:
    terms = zip(weights, _KERNEL_RL_COMPONENTS, strict=True)
    return WeightedSum(tuple((weight, component) for weight, component in terms if weight))


SCORES: dict[str, WeightedSum] = {
    "kevin": kevin,
    "kernrl": WeightedSum(((1.0, KERNRL),)),
    # The blog does not state the slope of the last part: here it reaches 1 at 4x.
    "kernrl_blog": WeightedSum(
        ((0.1, COMPILE), (0.3, CORRECTNESS), (0.3, FASTER), (0.3, _DOUBLINGS))
    ),
    **{name: _kernel_rl(weights) for name, weights in _KERNEL_RL_WEIGHTS.items()},
    "dr_kernel": WeightedSum(((1.0, CORRECTNESS), (1.0, capped(SPEED, 3.0)), (1.0, COVERAGE))),
    "milestones": WeightedSum(((1.0, MILESTONES),)),
    "log_speed": WeightedSum(((CORRECT_SHARE, CORRECTNESS), (1.0, LOG_SPEED))),
    "roofline": WeightedSum(((CORRECT_SHARE, CORRECTNESS), (1.0, ROOFLINE))),
}
"""Scores by name; `.range` has the smallest and the largest value.

- `kevin`; `log_speed` and `roofline` replace its speedup by another measure.
- `kernrl`: the reward in kernrl's code, see `KERNRL`; `kernrl_blog`: the one in its blog.
- `kernel_rl_stage1` to `3` and `kernel_rl_sparse`: the weights of kernel-rl, which pays
  min(speedup - 1, 10) for a kernel faster than 1x. `_2025`: clamp(0.5 log2(speedup), 0, 1) instead,
  as kernel-rl did until its rewrite of December 2025. `kernel_rl_default`: the weights of its
  README. Length and thinking are paid for correct kernels only. There is no partial credit for some
  of the tests, since a judgement ends at the first wrong output, and no penalties: a format
  error or a hack pays the least, 0.
- `dr_kernel` (arXiv 2602.05885): the weights of the paper. Needs `profile="ncu"` and a GPU to
  measure coverage.
- `milestones` (CUDA Agent, arXiv 2602.24286): see `MILESTONES`. Needs `baseline="compile"`.
"""
