"""Commit statuses at GitLab and Gitea: what a commit shows of its deployments."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from fairlead import errors
from fairlead.clients import credentials
from fairlead.clients.host_api import CheckReport, HostApi, Request

_DESCRIPTION = 140


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of host wants to be told."""

    name: str
    at: Callable[[CheckReport], str]
    context: str
    """Its word for what tells one status from another."""

    failure: str = "failure"
    shown: bytes = b""
    """What it says of a status that is shown already, where it takes that for a mistake."""


DIALECTS: Mapping[str, Dialect] = {
    "gitlab": Dialect(
        "GitLab",
        lambda it: f"/api/v4/projects/{quote(it.repository, safe='')}/statuses/{it.commit}",
        "name",
        "failed",
        b"Cannot transition status via :enqueue",
    ),
    "gitea": Dialect(
        "Gitea", lambda it: f"/api/v1/repos/{it.repository}/statuses/{it.commit}", "context"
    ),
}


class CommitStatuses:
    """One host; used inside `open`."""

    def __init__(self, dialect: Dialect, api: HostApi, token_file: Path | None) -> None:
        self._dialect = dialect
        self._api = api
        self._token_file = token_file

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self._api.open():
            yield

    async def publish(self, report: CheckReport) -> None:
        """Show it beside the commit, in place of what was shown under its name."""
        told = self._dialect
        if self._token_file is None:
            raise errors.Rejected(
                f"no token for {told.name} is set",
                hint=f"set FAIRLEAD_DEPLOYMENTS_{told.name.upper()}_TOKEN_FILE",
            )
        words = {
            "state": told.failure if report.state == "failure" else report.state,
            told.context: report.name,
            "description": report.summary[:_DESCRIPTION],
        }
        asked = Request("POST", told.at(report), report.repository, words)
        status, body = await self._api.ask(asked, credentials.secret(self._token_file))
        if told.shown and report.state == "pending" and told.shown in body:
            # A try whose answer was lost had shown it.
            return
        if status >= HTTPStatus.BAD_REQUEST:
            raise errors.Rejected(
                f"{told.name} refused a status in {report.repository}, status: {status.value}",
                hint="check the rights of the token, and that the commit is there",
            )


def commit_statuses(provider: str, url: str, token_file: Path | None) -> CommitStatuses:
    dialect = DIALECTS[provider]
    setting = f"FAIRLEAD_DEPLOYMENTS_{provider.upper()}_URL"
    return CommitStatuses(dialect, HostApi(dialect.name, url, setting), token_file)
