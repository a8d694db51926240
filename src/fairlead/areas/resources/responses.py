"""What an answer means for a resource: the class of an error, and how far an operation is."""

from http import HTTPStatus
from typing import Any

from fairlead import errors
from fairlead.areas.resources.domain.reconcile.messages import (
    ErrorClass,
    Failure,
    Polled,
    Progress,
)
from fairlead.clients.arm.client import Answer
from fairlead.values import redacted

_MOST_TOLD = 500
_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_DONE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT)

# By the code that the API gives, in lower case; where it has none of these, by the status.
_BY_CODE = {
    "anotheroperationinprogress": ErrorClass.BUSY,
    "retryableerror": ErrorClass.TRANSIENT,
    "toomanyrequests": ErrorClass.THROTTLED,
    "operationnotallowed": ErrorClass.REFUSED,
    "propertychangenotallowed": ErrorClass.REFUSED,
    "quotaexceeded": ErrorClass.REFUSED,
    "requestdisallowedbypolicy": ErrorClass.REFUSED,
    "scopelocked": ErrorClass.REFUSED,
    "missingsubscriptionregistration": ErrorClass.REFUSED,
    "parentresourcenotfound": ErrorClass.DEPENDENCY,
    "resourcegroupnotfound": ErrorClass.DEPENDENCY,
}
_BY_STATUS: dict[int, ErrorClass] = {
    HTTPStatus.UNAUTHORIZED: ErrorClass.CREDENTIALS,
    HTTPStatus.FORBIDDEN: ErrorClass.CREDENTIALS,
    HTTPStatus.NOT_FOUND: ErrorClass.DEPENDENCY,
    HTTPStatus.REQUEST_TIMEOUT: ErrorClass.TRANSIENT,
    HTTPStatus.CONFLICT: ErrorClass.BUSY,
    HTTPStatus.TOO_MANY_REQUESTS: ErrorClass.THROTTLED,
}


def is_absent(answer: Answer) -> bool:
    return answer.status in _GONE


def failure(answer: Answer) -> Failure:
    code, message = said(answer.body)
    kind = _BY_CODE.get(code.lower()) or _by_status(answer.status)
    told = f"{code or answer.status}: {message}" if message else f"the API answers {answer.status}"
    if answer.request_id:
        told += f" (request {answer.request_id[:64]})"
    return Failure(kind, redacted(told)[:_MOST_TOLD], answer.retry_after)


def unperformed(error: errors.FairleadError) -> Failure:
    """Of what never became an answer."""
    match error:
        case errors.Unavailable():
            kind = ErrorClass.TRANSIENT
        case errors.Unauthorised():
            kind = ErrorClass.CREDENTIALS
        case errors.NotFound():
            kind = ErrorClass.DEPENDENCY
        case _:
            kind = ErrorClass.REFUSED
    return Failure(kind, redacted(error.message)[:_MOST_TOLD])


def polled(order: int, style: str, answer: Answer) -> Polled | None:
    """None where the answer tells nothing of the operation, and is a failure to ask for it."""
    done, accepted = answer.status in _DONE, answer.status == HTTPStatus.ACCEPTED
    if answer.status in _GONE:
        return Polled(order, Progress.UNKNOWN)
    if style != "location" and (done or accepted):
        return _told(order, answer)
    if done:
        return Polled(order, Progress.SUCCEEDED)
    if accepted:
        return Polled(order, Progress.RUNNING, None, answer.retry_after)
    if _by_status(answer.status) is ErrorClass.REFUSED:
        return Polled(order, Progress.FAILED, failure(answer))
    return None


def _told(order: int, answer: Answer) -> Polled:
    status = str(answer.body.get("status", "")) if isinstance(answer.body, dict) else ""
    match status.lower():
        case "succeeded":
            return Polled(order, Progress.SUCCEEDED)
        case "failed" | "canceled":
            return Polled(order, Progress.FAILED, failure(_as_error(answer, status)))
        case _:
            return Polled(order, Progress.RUNNING, None, answer.retry_after)


def _as_error(answer: Answer, status: str) -> Answer:
    """The operation's own error: the answer that told it was a good one."""
    code, message = said(answer.body)
    told = {"error": {"code": code or status, "message": message or "the operation failed"}}
    return Answer(HTTPStatus.BAD_REQUEST, told, request_id=answer.request_id)


def _by_status(status: int) -> ErrorClass:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ErrorClass.TRANSIENT
    return _BY_STATUS.get(status, ErrorClass.REFUSED)


def said(body: Any) -> tuple[str, str]:
    """Code and message of an error; both empty where the body has none."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return "", ""
    return str(error.get("code") or "")[:100], str(error.get("message") or "")
