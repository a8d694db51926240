"""What an answer means: who has to do something, and how far an operation is."""

import datetime as dt

import pytest

from fairlead import errors
from fairlead.areas.resources import responses
from fairlead.areas.resources.domain.reconcile.messages import ErrorClass, Polled, Progress
from fairlead.clients.arm.client import Answer

MINUTE = dt.timedelta(minutes=1)


def said(status: int, code: str = "", message: str = "no", **more: str) -> Answer:
    return Answer(status, {"error": {"code": code, "message": message}} if code else None, **more)  # type: ignore[arg-type]  # text fields of it


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "BadRequest", ErrorClass.REFUSED),
        (401, "", ErrorClass.CREDENTIALS),
        (403, "AuthorizationFailed", ErrorClass.CREDENTIALS),
        (403, "RequestDisallowedByPolicy", ErrorClass.REFUSED),
        (404, "ResourceGroupNotFound", ErrorClass.DEPENDENCY),
        (409, "AnotherOperationInProgress", ErrorClass.BUSY),
        (409, "", ErrorClass.BUSY),
        (409, "ScopeLocked", ErrorClass.REFUSED),
        (400, "RetryableError", ErrorClass.TRANSIENT),
        (408, "", ErrorClass.TRANSIENT),
        (418, "", ErrorClass.REFUSED),
        (499, "", ErrorClass.REFUSED),
        (307, "", ErrorClass.REFUSED),
        (429, "", ErrorClass.THROTTLED),
        (500, "InternalServerError", ErrorClass.TRANSIENT),
        (599, "", ErrorClass.TRANSIENT),
    ],
)
def test_each_error_has_its_class(status: int, code: str, kind: ErrorClass) -> None:
    assert responses.failure(said(status, code)).kind is kind


def test_what_is_told_is_bounded_and_names_the_request() -> None:
    told = responses.failure(said(400, "Bad", "x" * 10_000, request_id="abc"))
    short = responses.failure(said(400, "Bad", "no such size", request_id="abc"))

    assert len(told.message) == 500
    assert short.message == "Bad: no such size (request abc)"
    asked = Answer(503, None, retry_after=MINUTE)
    assert responses.failure(asked).retry_after == MINUTE


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.Unavailable("no", hint=""), ErrorClass.TRANSIENT),
        (errors.Forbidden("no", hint=""), ErrorClass.CREDENTIALS),
        (errors.NotFound("no", hint=""), ErrorClass.DEPENDENCY),
        (errors.Rejected("no", hint=""), ErrorClass.REFUSED),
    ],
)
def test_what_never_became_an_answer_has_a_class_too(
    error: errors.FairleadError, kind: ErrorClass
) -> None:
    assert responses.unperformed(error).kind is kind


@pytest.mark.parametrize(
    ("style", "status", "body", "progress"),
    [
        ("azure-async-operation", 200, {"status": "InProgress"}, Progress.RUNNING),
        ("azure-async-operation", 202, {"status": "Succeeded"}, Progress.SUCCEEDED),
        ("azure-async-operation", 200, {"status": "Canceled"}, Progress.FAILED),
        ("azure-async-operation", 200, None, Progress.RUNNING),
        ("azure-async-operation", 404, None, Progress.UNKNOWN),
        ("azure-async-operation", 400, None, Progress.FAILED),
        ("azure-async-operation", 503, None, None),
        ("location", 202, {"status": "Succeeded"}, Progress.RUNNING),
        ("location", 200, None, Progress.SUCCEEDED),
        ("location", 204, None, Progress.SUCCEEDED),
        ("location", 400, None, Progress.FAILED),
        ("location", 410, None, Progress.UNKNOWN),
        ("location", 429, None, None),
        ("location", 401, None, None),
    ],
)
def test_how_far_an_operation_is(
    style: str, status: int, body: object, progress: Progress | None
) -> None:
    told = responses.polled(7, style, Answer(status, body, retry_after=MINUTE))

    assert (told.progress if told else None) is progress
    assert told is None or told.order == 7
    assert progress is not Progress.RUNNING or (told and told.retry_after == MINUTE)


def test_an_operation_that_failed_says_why_in_its_own_words() -> None:
    body = {"status": "Failed", "error": {"code": "RetryableError", "message": "no host"}}

    told = responses.polled(1, "azure-async-operation", Answer(200, body))

    assert isinstance(told, Polled)
    assert told.failure is not None
    assert (told.failure.kind, told.failure.message) == (
        ErrorClass.TRANSIENT,
        "RetryableError: no host",
    )
    bare = responses.polled(1, "azure-async-operation", Answer(200, {"status": "Failed"}))
    assert bare is not None
    assert bare.failure is not None
    assert bare.failure.message == "Failed: the operation failed"
