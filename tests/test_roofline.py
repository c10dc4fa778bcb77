"""Work, ceilings and the roofline that they make: figures that were worked out by hand."""

import pytest
from episodes import correct

from kevin_env.outcome import OUTCOME, Correct
from kevin_env.roofline import ABOVE, Ceilings, Roofline, Work, roofline_of

CEILINGS = Ceilings(reading=4e12, copying=4e12, rates={"fp32": 50e12, "bf16": 800e12})
READING = Work(read=4 * 10**9, written=0, products={}, operations=10**9)
PRODUCT = Work(read=2 * 10**8, written=10**8, products={"fp32": 10**12}, operations=0)


def test_a_reduction_is_bound_by_reading() -> None:
    held = roofline_of(READING, CEILINGS, 2e-3)
    assert (held.bound, held.bytes, held.flops) == ("memory", 4 * 10**9, 10**9)
    assert held.seconds == pytest.approx(1e-3)
    assert held.fraction == pytest.approx(0.5)
    assert (held.bandwidth, held.rate) == pytest.approx((2e12, 5e11))
    assert (held.memory_ceiling, held.compute_ceiling) == pytest.approx((4e12, 50e12))
    assert held.intensity == pytest.approx(0.25)


def test_a_product_is_bound_by_arithmetic() -> None:
    held = roofline_of(PRODUCT, CEILINGS, 25e-3)
    assert (held.bound, held.seconds, held.fraction) == (
        "compute",
        pytest.approx(20e-3),
        pytest.approx(0.8),
    )


def test_writing_takes_what_is_left_of_a_copy() -> None:
    slow = Ceilings(reading=4.0, copying=2.0, rates={"fp32": 1.0})
    assert slow.writing == pytest.approx(
        4 / 3
    )  # of 1 s for 2 bytes, reading one took 1/4 s: 3/4 s for the other
    assert slow.memory_seconds(Work(read=1, written=1, products={}, operations=0)) == pytest.approx(
        1.0
    )


def test_a_copy_that_seems_faster_than_reading_does_not_make_writing_free() -> None:
    assert Ceilings(reading=1.0, copying=50.0, rates={}).writing == pytest.approx(2.0)


def test_tensor_cores_and_the_other_units_work_at_the_same_time() -> None:
    work = Work(read=1, written=1, products={"bf16": 8 * 10**14, "fp32": 25 * 10**12}, operations=0)
    assert CEILINGS.compute_seconds(work) == pytest.approx(1.0)
    busy = work.model_copy(update={"operations": 75 * 10**12})
    assert CEILINGS.compute_seconds(busy) == pytest.approx(2.0)


def test_nothing_to_move_and_nothing_to_compute() -> None:
    held = roofline_of(Work(read=0, written=0, products={}, operations=0), CEILINGS, 1e-3)
    assert (held.fraction, held.intensity, held.memory_ceiling, held.compute_ceiling) == (
        0.0,
        None,
        4e12,
        50e12,
    )


def test_above_begins_beyond_what_ceilings_err_by() -> None:
    assert not roofline_of(READING, CEILINGS, 1e-3 / (0.999 * ABOVE)).above
    assert roofline_of(READING, CEILINGS, 1e-3 / (1.001 * ABOVE)).above


def test_an_outcome_keeps_it_and_does_without() -> None:
    held = roofline_of(READING, CEILINGS, 2e-3)
    whole = correct(2.0).model_copy(update={"roofline": held})
    read = OUTCOME.validate_json(whole.model_dump_json())
    assert isinstance(read, Correct)
    assert isinstance(read.roofline, Roofline)
    assert read == whole
    fields = {
        "category", "kind", "message", "speedup", "speedup_interval", "reference_seconds",
        "submission_seconds",
    }  # fmt: skip
    written = correct(2.0).model_dump(include=fields | {"line"}) | {"max_unseen_gain": 0.0}
    assert OUTCOME.validate_python(written) == correct(
        2.0
    )  # as it was recorded before there were rooflines
