"""Databases of this machine's deployments: one server, and credentials in files for their owner."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead import errors
from fairlead.areas.deployments import databases, migration_handlers
from fairlead.areas.deployments.domain.spec import Work
from fairlead.areas.deployments.local import programs
from fairlead.areas.deployments.migrations.files import Migration
from fairlead.areas.rollouts.local.plan_steps import PlanFiles
from fairlead.clients.postgres import administration

_PLAN, _RUN = 300.0, 6 * 3600.0
_LAST = "9" * 20


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

    def run_command(self, work: Work, user: administration.NewUser) -> None:
        program = self._program(work)
        programs.output(program, program.run, self.made(work, user), _RUN)

    def asked(self, work: Work) -> Sequence[Migration] | None:
        """Its plan is made by a user who may only read, as long as the program leaves it at that.

        Its SQL is one migration, later than any whose tool keeps its version beside ours.
        """
        if not work.command:
            return ()
        if not (program := self._program(work)).plan:
            return None
        admin = migration_handlers.server(self, work)
        with admin.login(work.database, reads=True) as user:
            text = programs.output(program, program.plan, self.made(work, user), _PLAN)
        return [Migration(_LAST, program.plan[0], text)] if text.strip() else ()

    def _program(self, work: Work) -> programs.Program:
        return msgspec.json.decode(self._plans.get(work.command), type=programs.Program)

    def credentials(self, work: Work) -> Mapping[str, str] | None:
        if not self._credentials.has(work.secret):
            return None
        return msgspec.json.decode(self._credentials.get(work.secret), type=dict[str, str])

    def keep(self, work: Work, credentials: Mapping[str, str]) -> None:
        self._credentials.put(work.secret, msgspec.json.encode(credentials).decode())
