"""Databases of AWS: their servers, credentials, migrations and tasks."""

import json
from collections.abc import Mapping

from fairlead import errors
from fairlead.areas.deployments import databases
from fairlead.areas.deployments.domain.spec import Work
from fairlead.clients.aws import stores
from fairlead.clients.aws.session import Account, Aws
from fairlead.clients.aws.tasks import Container, Tasks
from fairlead.clients.postgres import connection


class Databases(databases.Databases):
    """Secrets are in Secrets Manager, migrations in S3."""

    def __init__(self, aws: Aws, scratch_url: str = "", pg_dump: str = "") -> None:
        super().__init__(scratch_url, pg_dump)
        self._aws = aws

    def url(self, work: Work) -> str:
        parts: dict[str, str | int] = {"host": work.server.endpoint, "port": work.server.port}
        if not work.server.endpoint:
            raise errors.Rejected(
                f"no address of the database server: {work.server.group}",
                hint="give the cluster's aws.rds_hosts an endpoint",
            )
        if work.server.secret:
            found = self._secrets(work).get(work.server.secret)
            if found is None:
                raise errors.Rejected(
                    f"no credentials of the database server: {work.server.secret}",
                    hint="store username and password there",
                )
            parts |= {"user": found.get("username", ""), "password": found.get("password", "")}
        return connection.conninfo(dbname="postgres", **parts)

    def brought(self, work: Work) -> str:
        return self._stored(work, work.migrations)

    def credentials(self, work: Work) -> Mapping[str, str] | None:
        return self._secrets(work).get(work.secret)

    def keep(self, work: Work, credentials: Mapping[str, str]) -> None:
        self._secrets(work).put(work.secret, dict(credentials))

    def run_task(self, work: Work, token: str) -> str:
        assert work.task is not None
        task = work.task
        definition = json.loads(self._stored(work, task.definition))
        container = Container(task.family, definition, task.execution_role)
        return self._tasks(work).run(container, token)

    def task_ended(self, work: Work, task: str) -> str | None:
        ended = self._tasks(work).ended(task)
        return None if ended is None else ended.error

    def _stored(self, work: Work, key: str) -> str:
        kept = stores.ObjectStore(self._aws.client("s3", _account(work)))
        return kept.get(work.bucket, key)

    def _secrets(self, work: Work) -> stores.SecretStore:
        return stores.SecretStore(self._aws.client("secretsmanager", _account(work)))

    def _tasks(self, work: Work) -> Tasks:
        assert work.task is not None
        return Tasks(self._aws.client("ecs", _account(work)), work.task.cluster)


def _account(work: Work) -> Account:
    return Account(work.region, work.assume_role)
