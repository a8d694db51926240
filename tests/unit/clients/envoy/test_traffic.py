"""From two of Envoy's pages to what a version did between them."""

import math

import pytest

from fairlead.clients.envoy import Counts, Reading, between
from fairlead.clients.envoy.traffic import names, quantile, read

PAGE = """
# TYPE envoy_cluster_upstream_rq_xx counter
envoy_cluster_upstream_rq_xx{envoy_response_code_class="2",envoy_cluster_name="shop_1_2"} 95
envoy_cluster_upstream_rq_xx{envoy_response_code_class="5",envoy_cluster_name="shop_1_2"} 5
envoy_cluster_external_upstream_rq_xx{envoy_response_code_class="5",envoy_cluster_name="shop_1_2"} 9
# TYPE envoy_cluster_upstream_rq_time histogram
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="shop_1_2",le="10"} 50
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="shop_1_2",le="20"} 100
envoy_cluster_upstream_rq_time_bucket{envoy_cluster_name="shop_1_2",le="+Inf"} 100
envoy_cluster_upstream_rq_time_sum{envoy_cluster_name="shop_1_2"} 1234.5
"""
NAMES = names([{"name": "shop-1.2", "alt_stat_name": "shop_1_2"}])


def test_a_page_is_read_by_version() -> None:
    reading = read(PAGE.replace("shop_1_2", "shop-1_2"), {"shop-1_2": "shop-1.2"})

    assert reading.of("shop-1.2").classes == {"2": 95, "5": 5}
    assert reading.of("shop-1.2").within_ms == {10.0: 50, 20.0: 100, math.inf: 100}


def test_numbers_of_the_time_between_two_readings() -> None:
    before = Reading({"shop-1.2": Counts({"2": 45}, {10.0: 40, 20.0: 45, math.inf: 45})})

    numbers = between(before, read(PAGE, NAMES))["shop-1.2"]

    assert (numbers.requests, numbers.failures) == (55, 5)
    assert numbers.success_rate == pytest.approx(100 * 50 / 55)
    assert numbers.p50_ms == pytest.approx(10 + 10 * (27.5 - 10) / 45)


def test_counts_that_were_started_over_are_all_new() -> None:
    before = Reading({"shop-1.2": Counts({"2": 1000}, {10.0: 1000, math.inf: 1000})})

    numbers = between(before, read(PAGE, NAMES))["shop-1.2"]

    assert numbers.requests == 100


def test_the_counts_of_an_earlier_envoy_are_not_subtracted() -> None:
    earlier = Reading({"shop-1.2": Counts({"2": 45})}, run="1")

    assert between(earlier, read(PAGE, NAMES, run="2"))["shop-1.2"].requests == 100


def test_a_version_without_requests_has_no_rate_and_no_times() -> None:
    same = read(PAGE, NAMES)

    numbers = between(same, same)["shop-1.2"]

    assert (numbers.requests, numbers.success_rate, numbers.p99_ms) == (0, None, None)


def test_times_that_come_after_their_requests_were_counted_are_of_no_other_ones() -> None:
    late = Reading({"shop-1.2": Counts({"2": 95, "5": 5}, {10.0: 40, 20.0: 90, math.inf: 90})})

    numbers = between(late, read(PAGE, NAMES))["shop-1.2"]

    assert (numbers.requests, numbers.p50_ms, numbers.p99_ms) == (0, None, None)


def test_beyond_the_last_bound_only_the_bound_is_known() -> None:
    assert quantile({10.0: 1, 20.0: 2, math.inf: 100}, 0.99) == 20.0
    assert quantile({}, 0.5) is None
