"""A scratch copy of a database's schema, for SQL that is not trusted; always removed.

The copy has the target's tables, none of its rows, and an owner that may do nothing else on the
server: no superuser, no file, program or network. What is left after a kill is found by its name
and removed by the next run.
"""

import contextlib
import importlib.resources
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from fairlead import errors
from fairlead.areas.deployments.migrations import schema_dump
from fairlead.clients.postgres import connection as postgres

PREFIX = "fairlead_eval_"
_NAME = re.compile(rf"{PREFIX}([0-9]{{10,12}})_[0-9a-f]{{8}}")
LEFT_OVER_SECONDS = 3600
"""A copy that is older than this belongs to nobody: no evaluation may take so long."""

# Extensions whose functions reach neither files nor the network; of others, nobody may call any.
_HARMLESS = frozenset(
    (
        *("plpgsql", "citext", "hstore", "pgcrypto", "uuid-ossp", "pg_trgm", "unaccent", "vector"),
        *("btree_gin", "btree_gist", "ltree", "intarray", "tablefunc", "cube", "earthdistance"),
        *("fuzzystrmatch", "isn", "seg", "bloom", "dict_int", "postgis"),
    )
)
Admin = postgres.Connection
admin = postgres.connect


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how large an evaluation may be."""

    statement_seconds: float = 30.0
    overall_seconds: float = 300.0
    most_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Extension:
    """One that the target has."""

    name: str
    version: str
    schema: str


@dataclass(frozen=True, slots=True)
class Scratch:
    """A copy that exists: where it is, and who may enter."""

    name: str
    parameters: Mapping[str, Any]
    left_out: tuple[str, ...]
    """What of the target's schema could not be copied, and why."""

    def connect(self) -> Admin:
        return psycopg.connect(**self.parameters, autocommit=True)


def major(connection: Admin) -> int:
    return connection.info.server_version // 10_000


def extensions(target: Admin) -> list[Extension]:
    rows = target.execute(
        "SELECT e.extname, e.extversion, n.nspname FROM pg_catalog.pg_extension e"
        " JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname <> 'plpgsql'"
    )
    return [Extension(*row) for row in rows.fetchall()]


@contextlib.contextmanager
def copy(
    url: str, dumped: schema_dump.Dump, needed: Sequence[Extension], limits: Limits
) -> Iterator[Scratch]:
    """A scratch database on the server of the URL, gone when the block ends."""
    if limits.overall_seconds >= LEFT_OVER_SECONDS:
        raise errors.Rejected(
            f"an evaluation may not take so long: {limits.overall_seconds:g} s",
            hint=f"allow less than {LEFT_OVER_SECONDS} s; older copies are taken for left-overs",
        )
    password = secrets.token_urlsafe(24)
    with admin(url) as server:
        name = f"{PREFIX}{_now(server)}_{secrets.token_hex(4)}"
        remove_left_overs(server, LEFT_OVER_SECONDS)
        try:
            _create(server, name, password, limits)
            left_out = _fill(url, name, password, (dumped, needed))
            given = psycopg.conninfo.conninfo_to_dict(url)
            mine = {"dbname": name, "user": name, "password": password}
            yield Scratch(name, {**given, **mine}, left_out)
        finally:
            _remove(server, name)


def remove_left_overs(server: Admin, older_than: float) -> list[str]:
    """Copies that a killed evaluation left: their names and ages say so."""
    rows = server.execute(
        "SELECT datname FROM pg_catalog.pg_database UNION SELECT rolname FROM pg_catalog.pg_roles"
    ).fetchall()
    found, now = [(name, _NAME.fullmatch(name)) for (name,) in rows], _now(server)
    old = [name for name, made in found if made and now - int(made[1]) > older_than]
    for name in old:
        # Another run may be removing the same one in this moment.
        with contextlib.suppress(psycopg.Error):
            _remove(server, name)
    return old


def _now(server: Admin) -> int:
    """By the server's clock: machines that evaluate there need not agree on the time."""
    asked = "SELECT pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())"
    ((seconds,),) = server.execute(asked).fetchall()
    return int(seconds)


def _create(server: Admin, name: str, password: str, limits: Limits) -> None:
    role = sql.Identifier(name)
    try:
        server.execute(
            sql.SQL(
                "CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"
                " NOBYPASSRLS CONNECTION LIMIT 2 PASSWORD {}"
            ).format(role, sql.Literal(password))
        )
        server.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))
        server.execute(sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0").format(role, role))
        server.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(role))
    except psycopg.errors.InsufficientPrivilege as error:
        raise errors.Rejected(
            f"may not make a scratch copy on this server: {error.diag.message_primary}",
            hint="give the user CREATEDB and CREATEROLE, or name another server by --scratch-url",
        ) from error
    _limit(server, name, limits)


def _limit(server: Admin, name: str, limits: Limits) -> None:
    settings = {
        "statement_timeout": f"{limits.statement_seconds * 1000:.0f}",
        "lock_timeout": "5000",
        "timezone": "UTC",
        "temp_file_limit": f"{limits.most_bytes // 1024}",
    }
    for setting, value in settings.items():
        # temp_file_limit is a superuser's; elsewhere the time limit has to do.
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            server.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(
                    sql.Identifier(name), sql.Identifier(setting), sql.Literal(value)
                )
            )


def _fill(
    url: str, name: str, password: str, what: tuple[schema_dump.Dump, Sequence[Extension]]
) -> tuple[str, ...]:
    dumped, needed = what
    with admin(url, name) as inside:
        left_out = [*_make_extensions(inside, needed)]
        inside.execute(_observer())
    given = psycopg.conninfo.conninfo_to_dict(url)
    # As the restricted role: what is copied must not run with the administrator's rights.
    mine: dict[str, Any] = {**given, "dbname": name, "user": name, "password": password}
    with psycopg.connect(**mine, autocommit=True) as owner:
        left_out += _restore(owner, dumped.schema)
        left_out += _restore(owner, dumped.rights)
    return tuple(left_out)


def _make_extensions(inside: Admin, needed: Sequence[Extension]) -> Iterator[str]:
    for each in needed:
        schema, name = sql.Identifier(each.schema), sql.Identifier(each.name)
        try:
            inside.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            inside.execute(
                sql.SQL("CREATE EXTENSION {} SCHEMA {} VERSION {}").format(
                    name, schema, sql.Literal(each.version)
                )
            )
        except psycopg.Error as error:
            yield f"extension {each.name} {each.version}: {error.diag.message_primary}"
            continue
        if each.name not in _HARMLESS:
            _silence(inside, each.name)


def _silence(inside: Admin, extension: str) -> None:
    """Nobody may call what an unknown extension brought: dblink, http and their like."""
    rows = inside.execute(
        "SELECT d.objid::regprocedure::text FROM pg_catalog.pg_depend d JOIN"
        " pg_catalog.pg_extension e ON e.oid = d.refobjid WHERE d.deptype = 'e' AND e.extname = %s"
        " AND d.classid = 'pg_catalog.pg_proc'::regclass",
        (extension,),
    ).fetchall()
    for (routine,) in rows:
        # Its text comes from regprocedure, which quotes what needs it.
        inside.execute(f"REVOKE ALL ON ROUTINE {routine} FROM PUBLIC".encode())


def _restore(owner: Admin, made_of: Sequence[str]) -> list[str]:
    """All at once, which is quick; where that fails, one by one, and what cannot be is told."""
    if not made_of:
        return []
    try:
        with owner.transaction():
            owner.execute(";\n".join(made_of).encode())
    except psycopg.Error:
        return [told for each in made_of if (told := _restored(owner, each))]
    return []


def _restored(owner: Admin, statement: str) -> str:
    try:
        owner.execute(statement.encode())
    except psycopg.Error as error:
        if statement.startswith(("SET ", "COMMENT ")):
            return ""  # a pg_dump that is newer sets more; neither decides what a statement does
        return f"{statement.partition(chr(10))[0][:80]}: {error.diag.message_primary}"
    return ""


def _observer() -> bytes:
    folder = importlib.resources.files("fairlead.areas.deployments.migrations") / "sql"
    return (folder / "observe.sql").read_bytes()


def _remove(server: Admin, name: str) -> None:
    role = sql.Identifier(name)
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(role))
    with contextlib.suppress(psycopg.errors.UndefinedObject):
        server.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(role))
