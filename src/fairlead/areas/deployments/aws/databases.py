"""Steps on databases of AWS: their servers, credentials, migrations and tasks."""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

import msgspec

from fairlead import errors
from fairlead.areas.deployments import findings, migration_handlers
from fairlead.areas.deployments.aws.stacks import report
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.messages import PerformStep, ReportStep, StepStatus
from fairlead.areas.deployments.domain.plan.graph import Kind
from fairlead.areas.deployments.domain.spec import Work
from fairlead.areas.deployments.migrations import evaluation, files, runner
from fairlead.areas.deployments.migrations.files import Migration
from fairlead.clients.aws import stores
from fairlead.clients.aws.session import Account, Aws
from fairlead.clients.aws.tasks import Container, Tasks
from fairlead.clients.postgres import administration, connection

_OPAQUE = "the migrations are a program, and its SQL cannot be evaluated: DOWNTIME"


class Databases:
    """The databases of deployments; `migration_handlers.Place` for AWS."""

    def __init__(self, aws: Aws, scratch_url: str = "", pg_dump: str = "") -> None:
        self._aws = aws
        self._pg_dump = pg_dump
        self._scratch_url = scratch_url

    def kinds(self) -> Mapping[str, Callable[[PerformStep], ReportStep]]:
        """Who performs a step of a kind; all of these can be done twice."""
        return {
            Kind.PG_UPSERT.value: self.upsert,
            Kind.PG_EVALUATE.value: self.evaluate,
            Kind.PG_CLEANUP.value: self.clean_up,
            Kind.PG_DESTROY.value: self.destroy,
        }

    def upsert(self, step: PerformStep) -> ReportStep:
        migration_handlers.upsert_database(self, _work(step), step.token)
        return report(step)

    def clean_up(self, step: PerformStep) -> ReportStep:
        work = _work(step)
        migration_handlers.server(self, work).clean_up(work.database)
        return report(step)

    def destroy(self, step: PerformStep) -> ReportStep:
        """The flag of the request is the confirmation; nothing else leads here."""
        work = _work(step)
        migration_handlers.server(self, work).destroy(work.database, confirmed=work.database)
        if work.secret and self._secrets(work).get(work.secret) is not None:
            # Its user is gone: whoever makes the database anew makes a new one.
            self._secrets(work).put(work.secret, {})
        return report(step)

    def evaluate(self, step: PerformStep) -> ReportStep:
        """What cannot be evaluated needs downtime, with that reason."""
        work = _work(step)
        if work.task is not None:
            return _found(step, Impact.DOWNTIME, (_OPAQUE,))
        if not work.migrations:
            return _found(step, Impact.NOP, ())
        try:
            url, wanted = self._database(work), self.migrations(work)
            asked = evaluation.Request(url, wanted, self._scratch_url, self._pg_dump)
            found = evaluation.evaluate(asked)
        except errors.Unavailable:
            raise
        except errors.FairleadError as error:
            reason = f"{work.database} could not be evaluated: {error.message}: DOWNTIME"
            return _found(step, Impact.DOWNTIME, (reason,))
        return findings.report(step, found)

    def pending(self, work: Work) -> int | None:
        """How many migrations it waits for; None where that cannot be told yet."""
        if not work.migrations:
            return None
        try:
            told = runner.status(self._database(work), self.migrations(work))
        except errors.FairleadError:
            # No such database or no such files yet: the plan takes them for pending.
            return None
        return sum(state != "applied" for _, state in told)

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

    def migrations(self, work: Work) -> Sequence[Migration]:
        kept = stores.ObjectStore(self._aws.client("s3", _account(work)))
        return files.parse(json.loads(kept.get(work.bucket, work.migrations)))

    def hand_over(self, work: Work, token: str) -> None:
        """New credentials are stored before the old ones end, so a crash leaves one that works.

        The user's name is made of the token: a second delivery goes on with the same user.
        """
        if not work.secret:
            return
        kept, admin = self._secrets(work), migration_handlers.server(self, work)
        known = kept.get(work.secret)
        name = f"{work.database}_{hashlib.sha256(token.encode()).hexdigest()[:8]}"
        if known and not work.rotate:
            return
        if not known or known.get("username") != name:
            user = administration.NewUser(name, secrets.token_urlsafe(32))
            admin.rotate(work.database, user, retire=False)
            kept.put(work.secret, _credentials(work, user))
            known = {"username": name, "password": user.password}
        user = administration.NewUser(name, known["password"])
        admin.rotate(work.database, user)

    def run_task(self, work: Work, token: str) -> str:
        assert work.task is not None
        task = work.task
        container = Container(task.family, task.definition, task.execution_role)
        return self._tasks(work).run(container, token)

    def task_ended(self, work: Work, task: str) -> str | None:
        ended = self._tasks(work).ended(task)
        return None if ended is None else ended.error

    def _database(self, work: Work) -> str:
        return connection.of_database(self.url(work), work.database)

    def _secrets(self, work: Work) -> stores.SecretStore:
        return stores.SecretStore(self._aws.client("secretsmanager", _account(work)))

    def _tasks(self, work: Work) -> Tasks:
        assert work.task is not None
        return Tasks(self._aws.client("ecs", _account(work)), work.task.cluster)


def _work(step: PerformStep) -> Work:
    return msgspec.convert(step.words["work"], Work)


def _account(work: Work) -> Account:
    return Account(work.region, work.assume_role)


def _found(step: PerformStep, impact: Impact, reasons: tuple[str, ...]) -> ReportStep:
    done = StepStatus.DONE
    return ReportStep(step.step, step.attempt, done, impact=impact, reasons=reasons)


def _credentials(work: Work, user: administration.NewUser) -> dict[str, str]:
    where = f"{work.server.endpoint}:{work.server.port}/{work.database}"
    return {
        "username": user.name,
        "password": user.password,
        "dbname": work.database,
        "host": work.server.endpoint,
        "port": str(work.server.port),
        "dburl": f"postgresql://{quote(user.name)}:{quote(user.password)}@{where}",
    }
