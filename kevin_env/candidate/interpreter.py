"""What kernels ask of Triton that its interpreter lacks, on a machine without a GPU."""

from collections.abc import Callable, Sequence


def tune_without_a_device() -> None:
    """Has `triton.autotune` take the first configuration: it times them on a device, and fails
    where there is none.
    """
    from triton.runtime.autotuner import Autotuner

    Autotuner.do_bench = property(lambda _: _untimed)  # type: ignore[assignment]


def _untimed(call: Callable[[], None], quantiles: Sequence[float]) -> list[float]:
    """The same time for every configuration, of which the first is taken then."""
    return [0.0 for _ in quantiles]
