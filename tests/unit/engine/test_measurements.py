"""What an engine counts and times."""

from fairlead.engine import measurements


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = measurements.Histogram()

    for seconds in (0.0005, 0.001, 0.3, 99.0):
        histogram.observe(seconds)

    buckets = dict(histogram.buckets())
    assert (buckets["0.001"], buckets["0.25"], buckets["0.5"]) == (2, 2, 3)
    assert (buckets["60.0"], buckets["+Inf"]) == (3, 4)
    assert histogram.total == 0.0005 + 0.001 + 0.3 + 99.0


def test_histograms_are_added_up() -> None:
    one, two = measurements.Histogram(), measurements.Histogram()
    one.observe(0.3)
    two.observe(0.3)

    one.add(two)

    assert dict(one.buckets())["0.5"] == 2
    assert one.total == 0.6
