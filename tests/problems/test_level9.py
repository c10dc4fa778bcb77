"""Level 9: each reference against plain Python, written from its statement."""

import bisect
import itertools
import math

import torch
from test_problem_files import call, small


def exact(result: torch.Tensor, expected: list) -> None:
    assert result.tolist() == expected


def test_sum_of_all_elements_is_exact() -> None:
    model, (values,) = small("L9_2_Reduction_Sum", array_size=100_003)
    assert call(model, [values])[0].item() == math.fsum(values.tolist())
    assert values.min() < 0 < values.max()


def test_max_of_negative_elements_is_negative() -> None:
    model, (values,) = small("L9_3_Reduction_Max", array_size=1001)
    assert call(model, [values])[0].item() == max(values.tolist()) < 0
    for place in (0, 500, 1000):
        assert (
            call(model, [torch.arange(1001) - 1001.0 + 5000.0 * (torch.arange(1001) == place)])[0]
            == place + 3999
        )


def test_sort_orders_keys_of_either_sign() -> None:
    model, (keys,) = small("L9_4_RadixSort", array_size=5000)
    exact(call(model, [keys])[0], sorted(keys.tolist()))
    assert keys.min() < -(2**30) < 2**30 < keys.max()
    extremes = torch.tensor([2**31 - 1, 0, -(2**31), -1, 0])
    exact(call(model, [extremes])[0], [-(2**31), -1, 0, 0, 2**31 - 1])


def test_compaction_keeps_what_reaches_the_threshold() -> None:
    model, (values,) = small("L9_5_Compact_StreamCompaction", array_size=5000)
    kept = [value for value in values.tolist() if value >= 0.5]
    output, count = call(model, [values])
    exact(output, kept + [0.0] * (5000 - len(kept)))
    assert count.item() == len(kept)
    assert 0.5 in kept
    all_kept, everything = call(model, [torch.ones(3)])
    exact(all_kept, [1.0, 1.0, 1.0])
    assert everything.item() == 3


def test_the_last_of_several_values_stays_scattered() -> None:
    model, (values, indices) = small("L9_6_Scatter", num_values=300, output_size=200)
    expected = [0.0] * 200
    for value, index in zip(values.tolist(), indices.tolist(), strict=True):
        expected[index] = value
    exact(call(model, [values, indices])[0], expected)
    assert 0.0 in expected
    assert len(set(indices.tolist())) < 200


def test_gather_reads_at_indices() -> None:
    model, (source, indices) = small("L9_7_Gather", source_size=50, num_gathers=300)
    elements = source.tolist()
    exact(call(model, [source, indices])[0], [elements[index] for index in indices.tolist()])


def test_segmented_scan_begins_anew_at_heads() -> None:
    model, (values, heads) = small("L9_8_SegmentedScan", array_size=1000, segment_length=40)
    expected, total = [], 0.0
    for value, head in zip(values.tolist(), heads.tolist(), strict=True):
        total = 0.0 if head else total
        expected.append(total)
        total += value
    exact(call(model, [values, heads])[0], expected)
    exact(call(model, [torch.ones(3), torch.tensor([False, False, True])])[0], [0.0, 1.0, 0.0])


def test_top_k_prefers_the_left_of_equal_elements() -> None:
    model, (x,) = small("L9_9_TopK", batch_size=9, row_length=2000, k=40)
    values, indices = call(model, [x])
    ties = 0
    for row, best, places in zip(x.tolist(), values.tolist(), indices.tolist(), strict=True):
        order = sorted(range(2000), key=lambda place: (-row[place], place))[:40]
        assert places == order
        assert best == [row[place] for place in order]
        ties += 40 - len(set(best))
    assert ties > 9


def test_embedding_bags_are_sums_of_rows() -> None:
    sizes = {"num_rows": 30, "row_size": 4, "num_bags": 50, "num_indices": 120}
    model, (indices, offsets) = small("L9_10_EmbeddingBag_Sum", **sizes)
    table = model.get_parameter("table.weight").tolist()
    bags = [indices.tolist()[begin:end] for begin, end in itertools.pairwise(offsets.tolist())]
    expected = [[math.fsum(table[i][column] for i in bag) for column in range(4)] for bag in bags]
    assert torch.allclose(
        call(model, [indices, offsets])[0], torch.tensor(expected), rtol=1e-5, atol=1e-5
    )
    assert [] in bags
    assert sum(map(len, bags)) == 120


def test_segments_reduce_to_sum_and_maximum() -> None:
    model, (values, offsets) = small("L9_11_SegmentReduce_CSR", num_values=2000, num_segments=100)
    segments = [values.tolist()[begin:end] for begin, end in itertools.pairwise(offsets.tolist())]
    total, largest = call(model, [values, offsets])
    exact(total, [math.fsum(segment) for segment in segments])
    exact(largest, [max(segment, default=0.0) for segment in segments])
    assert [] in segments
    assert sum(map(len, segments)) == 2000
    assert min(largest) < 0


def test_run_lengths() -> None:
    model, (elements,) = small("L9_12_RunLengthEncode", array_size=1000)
    runs = [(value, len(list(group))) for value, group in itertools.groupby(elements.tolist())]
    values, lengths, count = call(model, [elements])
    padding = [0] * (1000 - len(runs))
    exact(values, [value for value, _ in runs] + padding)
    exact(lengths, [length for _, length in runs] + padding)
    assert count.item() == len(runs)


def test_search_counts_the_smaller_boundaries() -> None:
    model, (boundaries, queries) = small(
        "L9_13_SearchSorted_Batched", batch_size=3, row_length=500, num_queries=400
    )
    queries[:, :100] = boundaries[:, 200:300]
    expected = [
        [bisect.bisect_left(row, query) for query in asked]
        for row, asked in zip(boundaries.tolist(), queries.tolist(), strict=True)
    ]
    exact(call(model, [boundaries, queries])[0], expected)
