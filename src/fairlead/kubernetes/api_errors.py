"""From what the API server said to our errors, sorted by what happens next.

The server's own words stay as `__cause__` (a StatusError), so that a caller who needs the
reason or the field causes reads them there.

    401, 403  Unauthorised (NamespaceTerminating)
    409       Conflict (AlreadyExists)
    404       NotFound              410  Expired, a Conflict with history
    429, 5xx  Busy, an Unavailable  other 4xx  Rejected, with the field causes
"""

import dataclasses
from collections.abc import Mapping
from http import HTTPStatus
from http.client import responses
from typing import Any

import msgspec

from fairlead.errors import Conflict, FairleadError, NotFound, Rejected, Unauthorised, Unavailable

_LONGEST_MESSAGE = 2000


class Busy(Unavailable):
    """The API server did not take the request, or did not answer."""

    def __init__(self, message: str, *, hint: str, retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class AlreadyExists(Conflict):
    """An object of that name is there."""


class NamespaceTerminating(Unauthorised):
    """Nothing new may come into a namespace that is being deleted; no right would help."""


class Expired(Conflict):
    """The asked-for resourceVersion or page is no longer kept; list again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """One field the API server objected to."""

    field: str
    reason: str
    message: str


class StatusError(Exception):
    """The API server's own words: a Status object that is not a success."""

    def __init__(self, code: int, status: Mapping[str, Any]) -> None:
        self.code = code
        self.reason = str(status.get("reason") or "")
        self.text = str(status.get("message") or "")[:_LONGEST_MESSAGE]
        details = status.get("details") or {}
        self.causes = tuple(
            Cause(c.get("field") or "", c.get("reason") or "", c.get("message") or "")
            for c in details.get("causes") or ()
        )
        self.wait: float | None = details.get("retryAfterSeconds")
        super().__init__(f"{code} {self.reason}: {self.text}")

    def without_values(self) -> "StatusError":
        """The same without texts: the API server may quote what it refused, a secret too."""
        causes = [{"field": c.field, "reason": c.reason, "message": c.reason} for c in self.causes]
        return StatusError(self.code, {"reason": self.reason, "details": {"causes": causes}})


def status_error(code: int, body: bytes) -> StatusError:
    """Read a Status, or make one from an answer that is none (a proxy's page, say)."""
    try:
        status = msgspec.json.decode(body)
    except msgspec.DecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        phrase = responses.get(code, "")
        status = {"reason": phrase.replace(" ", ""), "message": phrase}
    return StatusError(code, status)


def error_for(said: StatusError, what: str, retry_after: float | None = None) -> FairleadError:
    """The error to raise from `said`; `what` names the call, as in "create pods default/a"."""
    match said.code:
        case HTTPStatus.UNAUTHORIZED:
            error: FairleadError = Unauthorised(
                f"the API server rejected our credentials: {what}", hint="renew the credentials"
            )
        case HTTPStatus.FORBIDDEN:
            error = _forbidden(said, what)
        case HTTPStatus.NOT_FOUND:
            error = NotFound(
                f"not found: {what}", hint="check the name, and that the kind is installed"
            )
        case HTTPStatus.CONFLICT:
            error = _conflict(said, what)
        case HTTPStatus.GONE:
            error = Expired(
                f"history no longer kept: {what}", hint="list again and watch from there"
            )
        case code if code == HTTPStatus.TOO_MANY_REQUESTS or code >= 500:  # noqa: PLR2004  where server errors begin
            wait = retry_after if retry_after is not None else said.wait
            message = f"the API server cannot handle this now, {code} {said.reason}: {what}"
            error = Busy(message, hint="the same call may pass later", retry_after=wait)
        case _:
            message = f"the API server refused to {what}: {_reasons(said)}"
            error = Rejected(message, hint="correct what it names")
    return error


def _conflict(said: StatusError, what: str) -> FairleadError:
    if said.reason == "AlreadyExists":
        return AlreadyExists(f"already there: {what}", hint="read it and check who owns it")
    return Conflict(
        f"changed by another writer, {_reasons(said)}: {what}", hint="read the object again"
    )


def _forbidden(said: StatusError, what: str) -> FairleadError:
    message = f"not allowed to {what}: {said.text}"
    if any(cause.reason == "NamespaceTerminating" for cause in said.causes):
        hint = "the namespace is being deleted; use another, or wait until it is gone"
        return NamespaceTerminating(message, hint=hint)
    return Unauthorised(message, hint="grant the verb to our account by RBAC")


def _reasons(said: StatusError) -> str:
    if not said.causes:
        return said.text or said.reason
    return "; ".join(f"{c.field}: {c.message}" if c.field else c.message for c in said.causes)
