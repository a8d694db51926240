"""From the effects of a migration machine to a PostgreSQL server.

A step is safe to do again, so a server that does not answer is left to the outbox, which tries
again; what no second try would mend is told to the machine.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from fairlead import errors
from fairlead.areas.deployments.domain import migration
from fairlead.areas.deployments.domain.spec import Work
from fairlead.areas.deployments.migrations import runner
from fairlead.areas.deployments.migrations.files import Migration
from fairlead.clients.postgres import administration, connection
from fairlead.engine import outbox


class Place(Protocol):
    """What a worker knows beyond the names that are stored."""

    def url(self, work: Work) -> str:
        """Of its server, with the administrator's credentials."""

    def migrations(self, work: Work) -> Sequence[Migration]: ...

    def hand_over(self, work: Work, token: str) -> None:
        """See to it that the application has credentials for the database."""

    def run_command(self, work: Work, user: administration.NewUser) -> None:
        """Let the application's own program migrate, signed in as this user."""

    def run_task(self, work: Work, token: str) -> str:
        """Begin the task that migrates, once for each token; its name."""

    def task_ended(self, work: Work, task: str) -> str | None:
        """None while it runs; empty where it ended well, else why it did not."""


# A thread cannot be ended from outside: the runner's advisory lock keeps a second try away while a
# first one still runs, and locks are waited for within these.
_STEP, _RUN = timedelta(minutes=10), timedelta(hours=12)
_ATTEMPTS = 50
"""Over about four hours: longer than a server that fails over, or a role that is mended, takes."""

Answer = migration.StepDone | migration.StepFailed | migration.StepUnderway


def handlers(place: Place) -> dict[type, outbox.Handler]:
    async def upsert(effect: migration.UpsertDatabase, about: outbox.EffectContext) -> Answer:
        work, token = effect.work, about.idempotency_key
        return await _tried(migration.UPSERT, lambda: upsert_database(place, work, token))

    async def clean_up(effect: migration.CleanUpPermissions, _: outbox.EffectContext) -> Answer:
        step = migration.CLEAN_AFTER if effect.after_run else migration.CLEAN_BEFORE
        return await _tried(step, lambda: server(place, effect.work).clean_up(effect.work.database))

    async def run(effect: migration.RunMigrations, about: outbox.EffectContext) -> Answer:
        token = about.idempotency_key
        return await _tried(migration.RUN, lambda: _run(place, effect.work, token))

    async def observe(effect: migration.ObserveTask, _: outbox.EffectContext) -> Answer:
        return await _tried(migration.RUN, lambda: _observed(place, effect))

    return {
        migration.UpsertDatabase: outbox.Handler(upsert, _STEP, _ATTEMPTS),
        migration.CleanUpPermissions: outbox.Handler(clean_up, _STEP, _ATTEMPTS),
        migration.RunMigrations: outbox.Handler(run, _RUN, _ATTEMPTS),
        migration.ObserveTask: outbox.Handler(observe, _STEP, _ATTEMPTS),
    }


def upsert_database(place: Place, work: Work, token: str) -> None:
    wanted = administration.Database(work.database, work.extensions, work.adopt)
    server(place, work).upsert(wanted)
    place.hand_over(work, token)


def server(place: Place, work: Work) -> administration.Administration:
    return administration.Administration(administration.connector(place.url(work)), work.stack)


async def _tried(step: str, work: Callable[[], Answer | object]) -> Answer:
    try:
        told = await asyncio.to_thread(work)
    except errors.Unavailable:
        raise
    except errors.FairleadError as error:
        return migration.StepFailed(step, error.message)
    return told if isinstance(told, Answer) else migration.StepDone(step)


def _run(place: Place, work: Work, token: str) -> Answer:
    if work.task is not None:
        return migration.StepUnderway(migration.RUN, place.run_task(work, token))
    if work.command or work.migrations:
        # No lock of ours keeps two programs apart: one may outlive the worker that began it.
        with server(place, work).login(work.database, alone=bool(work.command)) as user:
            if work.command:
                place.run_command(work, user)
            else:
                url = connection.of_database(place.url(work), work.database)
                signed_in = connection.as_user(url, user.name, user.password)
                runner.run(signed_in, place.migrations(work))
    return migration.StepDone(migration.RUN)


def _observed(place: Place, effect: migration.ObserveTask) -> Answer:
    error = place.task_ended(effect.work, effect.task)
    if error is None:
        return migration.StepUnderway(migration.RUN, effect.task)
    return (
        migration.StepFailed(migration.RUN, error) if error else migration.StepDone(migration.RUN)
    )
