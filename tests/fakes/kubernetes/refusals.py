"""What the fake says no with: a Status, as the real server words it."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class RefusalError(Exception):
    code: int
    reason: str
    message: str
    causes: tuple[dict[str, str], ...] = ()
    retry_after: int | None = None

    def status(self) -> dict[str, Any]:
        details: dict[str, Any] = {}
        if self.causes:
            details["causes"] = list(self.causes)
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        }


def not_found(what: str, name: str) -> RefusalError:
    return RefusalError(404, "NotFound", f'{what} "{name}" not found')


def conflict(what: str, name: str, why: str) -> RefusalError:
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return RefusalError(409, "Conflict", message)


def bad_request(message: str) -> RefusalError:
    return RefusalError(400, "BadRequest", message)


def invalid(kind: str, name: str, *causes: tuple[str, str, str]) -> RefusalError:
    """`causes` are (reason, field, message)."""
    told = tuple({"reason": r, "field": f, "message": m} for r, f, m in causes)
    text = ", ".join(f"{f}: {m}" for _, f, m in causes)
    return RefusalError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', told)
