"""Steps on databases, on whichever platform: made, evaluated, cleaned up, destroyed.

A platform says where its servers are, and keeps secrets and migrations in its own way.
"""

import abc
import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from fairlead import errors
from fairlead.areas.deployments import findings, migration_handlers
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.messages import PerformStep, ReportStep, StepStatus
from fairlead.areas.deployments.domain.plan.graph import Kind
from fairlead.areas.deployments.domain.spec import Work
from fairlead.areas.deployments.migrations import evaluation, files, runner
from fairlead.areas.deployments.migrations.files import Migration
from fairlead.clients.postgres import administration, connection

T = TypeVar("T")
_OPAQUE = "the migrations are a program that does not say its SQL: DOWNTIME"


def report(step: PerformStep, status: StepStatus = StepStatus.DONE, error: str = "") -> ReportStep:
    return ReportStep(step.step, step.attempt, status, error)


async def tried(work: Callable[[], T], refused: Callable[[str], T]) -> T:
    """In a thread; what no later try would mend is told as refused."""
    try:
        return await asyncio.to_thread(work)
    except errors.Unavailable:
        raise
    except errors.FairleadError as error:
        return refused(error.message)


class Databases(abc.ABC):
    """The databases of deployments; `migration_handlers.Place` for its platform."""

    def __init__(self, scratch_url: str = "", pg_dump: str = "") -> None:
        self._pg_dump = pg_dump
        self._scratch_url = scratch_url

    @abc.abstractmethod
    def url(self, work: Work) -> str:
        """Of its server, with the administrator's credentials."""

    @abc.abstractmethod
    def brought(self, work: Work) -> str:
        """The stored text of its migrations."""

    @abc.abstractmethod
    def credentials(self, work: Work) -> Mapping[str, str] | None:
        """Those of the application as they are kept; empty where its database was destroyed."""

    @abc.abstractmethod
    def keep(self, work: Work, credentials: Mapping[str, str]) -> None: ...

    def run_command(self, work: Work, user: administration.NewUser) -> None:
        raise errors.Rejected(
            f"no programs run here, so none migrates {work.database}: {user.name}",
            hint="bring migrations as a folder of SQL files",
        )

    def asked(self, work: Work) -> Sequence[Migration] | None:
        """What the program says is pending; None where it cannot be asked."""
        return None if work.command else ()

    def run_task(self, work: Work, token: str) -> str:
        """Begin the task that migrates, once for each token; its name."""
        raise errors.Rejected(
            f"no containers run here, so none migrates {work.database}: {token}",
            hint="bring migrations as a folder of SQL files",
        )

    def task_ended(self, work: Work, task: str) -> str | None:
        """None while it runs; empty where it ended well, else why it did not."""
        return f"no containers run here, so none migrates {work.database}: {task}"

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
        """The flag of the request is the confirmation, and the environment lets it be one."""
        work = _work(step)
        migration_handlers.server(self, work).destroy(work.database, confirmed=work.database)
        if work.secret and self.credentials(work) is not None:
            # Its user is gone: whoever makes the database anew makes a new one.
            self.keep(work, {})
        return report(step)

    def evaluate(self, step: PerformStep) -> ReportStep:
        """What cannot be evaluated needs downtime, with that reason."""
        work = _work(step)
        try:
            wanted = self._wanted(work)
            if wanted is None:
                return _found(step, Impact.DOWNTIME, (_OPAQUE,))
            if not wanted:
                return _found(step, Impact.NOP, ())
            url = self._database(work)
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
        try:
            if not (wanted := self._wanted(work)):
                return None if wanted is None else 0
            told = runner.status(self._database(work), wanted)
        except errors.FairleadError:
            # No such database or no such files yet: the plan takes them for pending.
            return None
        return sum(state != "applied" for _, state in told)

    def _wanted(self, work: Work) -> Sequence[Migration] | None:
        """All of its migrations, or those that its program says are pending."""
        if work.task is not None:
            return None
        return self.migrations(work) if work.migrations else self.asked(work)

    def migrations(self, work: Work) -> Sequence[Migration]:
        return files.parse(json.loads(self.brought(work)))

    def hand_over(self, work: Work, token: str) -> None:
        """New credentials are stored before the old ones end, so a crash leaves one that works.

        The user's name is made of the token: a second delivery goes on with the same user.
        """
        if not work.secret:
            return
        admin = migration_handlers.server(self, work)
        known = self.credentials(work)
        name = f"{work.database}_{hashlib.sha256(token.encode()).hexdigest()[:8]}"
        if known and not work.rotate:
            return
        if not known or known.get("username") != name:
            user = administration.NewUser(name, secrets.token_urlsafe(32))
            admin.rotate(work.database, user, retire=False)
            self.keep(work, self.made(work, user))
            known = {"username": name, "password": user.password}
        user = administration.NewUser(name, known["password"])
        admin.rotate(work.database, user)

    def _database(self, work: Work) -> str:
        return connection.of_database(self.url(work), work.database)

    def made(self, work: Work, user: administration.NewUser) -> dict[str, str]:
        """As applications read them; a socket's folder is a host that no URL has in front."""
        where = connection.address(self.url(work))
        mine = f"{quote(user.name)}:{quote(user.password, safe='')}"
        at = f"@{where['host']}:{where['port']}/{work.database}"
        if where["host"].startswith("/"):
            at = f"@/{work.database}?{urlencode(where)}"
        return {
            "username": user.name,
            "password": user.password,
            "dbname": work.database,
            **where,
            "dburl": f"postgresql://{mine}{at}",
        }


def _work(step: PerformStep) -> Work:
    return msgspec.convert(step.words["work"], Work)


def _found(step: PerformStep, impact: Impact, reasons: tuple[str, ...]) -> ReportStep:
    done = StepStatus.DONE
    return ReportStep(step.step, step.attempt, done, impact=impact, reasons=reasons)
