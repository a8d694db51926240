"""Databases of this machine's deployments: one server, and credentials in files for their owner."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead import errors
from fairlead.areas.deployments import databases
from fairlead.areas.deployments.domain.spec import Work
from fairlead.areas.rollouts.local.plan_steps import PlanFiles


class Databases(databases.Databases):
    """Migrations lie with the other files of plans; credentials where the program looks."""

    def __init__(self, server_url: str, folder: Path, pg_dump: str = "") -> None:
        super().__init__(pg_dump=pg_dump)
        self._server_url = server_url
        self._plans = PlanFiles(folder)
        self._credentials = PlanFiles(folder, "credentials")

    def url(self, work: Work) -> str:
        if not self._server_url:
            raise errors.Rejected(
                f"this machine has no PostgreSQL server for: {work.database}",
                hint="name one: FAIRLEAD_DEPLOYMENTS_POSTGRES_URL",
            )
        return self._server_url

    def brought(self, work: Work) -> str:
        return self._plans.get(work.migrations)

    def credentials(self, work: Work) -> Mapping[str, str] | None:
        if not self._credentials.has(work.secret):
            return None
        return msgspec.json.decode(self._credentials.get(work.secret), type=dict[str, str])

    def keep(self, work: Work, credentials: Mapping[str, str]) -> None:
        self._credentials.put(work.secret, msgspec.json.encode(credentials).decode())
