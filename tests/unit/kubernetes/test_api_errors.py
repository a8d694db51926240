"""What the API server's answers become, and how long we wait before asking again."""

import json

import pytest

from fairlead.errors import (
    Conflict,
    FairleadError,
    NotFound,
    Rejected,
    Unauthorised,
    Unavailable,
)
from fairlead.kubernetes import api_errors
from fairlead.kubernetes.client import limits
from fairlead.kubernetes.client.limits import Bucket, Holds, Limits


def said(code: int, reason: str = "", **details: object) -> api_errors.StatusError:
    status = {"kind": "Status", "reason": reason, "message": "words", "details": details}
    return api_errors.status_error(code, json.dumps(status).encode())


@pytest.mark.parametrize(
    ("code", "reason", "becomes"),
    [
        (400, "BadRequest", Rejected),
        (401, "Unauthorized", Unauthorised),
        (403, "Forbidden", Unauthorised),
        (404, "NotFound", NotFound),
        (405, "MethodNotAllowed", Rejected),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", api_errors.AlreadyExists),
        (410, "Expired", api_errors.Expired),
        (413, "RequestEntityTooLarge", Rejected),
        (415, "UnsupportedMediaType", Rejected),
        (422, "Invalid", Rejected),
        (429, "TooManyRequests", api_errors.Busy),
        (500, "InternalError", api_errors.Busy),
        (503, "ServiceUnavailable", api_errors.Busy),
        (504, "Timeout", api_errors.Busy),
        (599, "", api_errors.Busy),
    ],
)
def test_every_code_has_its_fate(code: int, reason: str, becomes: type[FairleadError]) -> None:
    error = api_errors.error_for(said(code, reason), "get pods")

    assert type(error) is becomes
    assert error.hint
    assert error.message[0].islower()
    assert "get pods" in error.message


def test_only_busy_is_unavailable() -> None:
    assert issubclass(api_errors.Busy, Unavailable)
    assert not issubclass(api_errors.Expired, Unavailable)


def test_the_header_goes_before_the_body_for_the_wait() -> None:
    body = said(429, retryAfterSeconds=5)

    by_body = api_errors.error_for(body, "x")
    by_header = api_errors.error_for(body, "x", retry_after=2.0)

    assert isinstance(by_body, api_errors.Busy)
    assert isinstance(by_header, api_errors.Busy)
    assert (by_body.retry_after, by_header.retry_after) == (5, 2.0)


def test_field_causes_are_in_the_message() -> None:
    causes = [{"field": "spec.a", "message": "too big"}, {"message": "no field named"}]

    error = api_errors.error_for(said(422, "Invalid", causes=causes), "create widgets")

    assert error.message.endswith("spec.a: too big; no field named")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"kind": "Pod"}', b"\xff"])
def test_an_answer_that_is_no_status_is_still_understood(body: bytes) -> None:
    found = api_errors.status_error(503, body)

    assert (found.code, found.reason) == (503, "ServiceUnavailable")


def test_a_huge_message_is_cut() -> None:
    body = json.dumps({"kind": "Status", "message": "x" * 100_000}).encode()

    assert len(api_errors.error_for(api_errors.status_error(422, body), "x").message) < 3000


def test_a_bucket_lets_a_burst_through_and_then_keeps_the_rate() -> None:
    bucket = Bucket(rate=10, burst=3, now=0)

    waits = [bucket.reserve(0) for _ in range(6)]
    later = bucket.reserve(10)

    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])
    assert later == 0


def test_a_clock_that_goes_back_gives_no_tokens() -> None:
    bucket = Bucket(rate=10, burst=1, now=100)
    bucket.reserve(100)

    assert bucket.reserve(50) == pytest.approx(0.1)
    assert not bucket.try_take(50)


def test_a_hold_without_a_level_holds_everything() -> None:
    holds = Holds()
    holds.learn("get leases", "system")
    holds.hold("list pods", "", 5, now=0)

    assert holds.wait("get leases", 1) == 4
    assert holds.wait("list pods", 6) == 0


def test_a_wild_retry_after_is_bounded() -> None:
    holds = Holds()
    holds.hold("list pods", "low", 86_400, now=0)

    assert holds.wait("list pods", 0) == 60


def test_waits_double_to_a_bound_with_jitter() -> None:
    bounds = Limits(first_delay=1, longest_delay=5)

    assert [limits.delay(bounds, n, 1.0) for n in range(1, 5)] == [1, 2, 4, 5]
    assert limits.delay(bounds, 1, 0.0) == 0.5
