"""Makes a database what a specification says: owner role, database, extensions, ownership, users.

server = Administration(connect, "prod/shop")
server.upsert(Database("prod_shop", extensions=("citext",)))
server.rotate("prod_shop", NewUser("prod_shop_0a1b2c3d", password))
"""

import contextlib
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from fairlead import errors
from fairlead.clients.postgres import connection
from fairlead.clients.postgres.connection import Connection, Patience

Connect = Callable[[str], Connection]
"""Opens a connection of the administrator to a database of the server, or to its own for ''."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_KINDS = {
    "r": "TABLE",
    "p": "TABLE",
    "v": "VIEW",
    "m": "MATERIALIZED VIEW",
    "f": "FOREIGN TABLE",
    "S": "SEQUENCE",
}
_ROLE = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)"
_DATABASE = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = %s)"
# On the role, not on the database: a comment there is its owner's to change.
_MARK = "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = %s"
_MARKED = "fairlead stack "
_MEMBER = "SELECT pg_has_role(current_user, %s, 'USAGE')"
_IN = "SELECT pg_has_role(%s::name, %s::name, 'MEMBER')"
# A sequence of a serial or identity column follows its table, and may not be given away alone.
_WRONG_OWNERS = """
SELECT c.relkind, n.nspname, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND r.rolname <> %s
  AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (
    SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass
      AND (d.deptype = 'e' OR (c.relkind = 'S' AND d.deptype IN ('a', 'i'))))
ORDER BY n.nspname, c.relname
"""
_SCHEMAS = """
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
  AND NOT EXISTS (
    SELECT FROM pg_depend d WHERE d.objid = pg_namespace.oid AND d.deptype = 'e')
ORDER BY nspname
"""
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
_LOGINS = "SELECT rolname FROM pg_roles WHERE rolname ~ %s"
# A run that was killed left its login; one that has a session is somebody's who works.
_LEFT_LOGINS = f"""
{_LOGINS}
  AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = rolname)
"""
# A worker that lost its lease may still be at it: who looked a moment ago finds another world.
_AT_ONCE = (
    psycopg.errors.DuplicateObject,
    psycopg.errors.DuplicateDatabase,
    psycopg.errors.UniqueViolation,
    psycopg.errors.UndefinedObject,
    psycopg.errors.InternalError_,  # "tuple concurrently updated"
)
# Roles that people made keep their names and rights: theirs may begin with the database's too.
_APPLICATION, _LOGIN = "[0-9a-f]{8}", "m[0-9a-f]{6}"
_USERS = """
SELECT u.rolname FROM pg_auth_members m JOIN pg_roles u ON u.oid = m.member
JOIN pg_roles o ON o.oid = m.roleid
WHERE o.rolname = %s AND u.rolname ~ %s
ORDER BY u.rolname
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A database and the role of the same name that owns all that is in it."""

    name: str
    extensions: tuple[str, ...] = ()
    adopt: bool = False
    """Whether one that was made by hand becomes the stack's."""

    def __post_init__(self) -> None:
        _checked(self.name)


@dataclass(frozen=True, slots=True)
class NewUser:
    """Who the application signs in as from now on."""

    name: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        _checked(self.name)


class Administration:
    """One server, through its administrator; safe to be cut after any statement.

    Names of databases are made of what files say, and two stacks may come to the same one. So each
    role is marked with its stack, and nobody else's is touched.
    """

    def __init__(self, connect: Connect, stack: str, patience: Patience | None = None) -> None:
        self._connect = connect
        self._stack = stack
        self._patience = patience or Patience()

    def upsert(self, wanted: Database) -> None:
        """Role, database and extensions as wanted, then the owners put right."""
        owner = sql.Identifier(wanted.name)
        with self._connect("") as server:
            if not self._is_ours(server, wanted.name, adopt=wanted.adopt):
                role = "" if _yes(server, _ROLE, wanted.name) else "CREATE ROLE {owner} NOLOGIN;"
                # Together: a role without its mark would be nobody's.
                marked = sql.SQL(role + "COMMENT ON ROLE {owner} IS {mark}")
                mark = sql.Literal(_MARKED + self._stack)
                self._do(server, marked.format(owner=owner, mark=mark))
            self._join(server, wanted.name)
            if not _yes(server, _DATABASE, wanted.name):
                self._do(server, sql.SQL("CREATE DATABASE {} OWNER {}").format(owner, owner))
        with self._connect(wanted.name) as inside:
            for each in wanted.extensions:
                statement = sql.SQL("CREATE EXTENSION IF NOT EXISTS {}")
                self._do(inside, statement.format(sql.Identifier(each)))
        self.clean_up(wanted.name)

    def clean_up(self, name: str) -> list[str]:
        """Give the owner all schemas' rights and every relation that somebody else owns."""
        owner = sql.Identifier(_checked(name))
        changed = []
        with self._connect(name) as inside:
            self._is_ours(inside, name)
            self._join(inside, name)
            for (schema,) in _rows(inside, _SCHEMAS):
                statement = sql.SQL("GRANT USAGE, CREATE ON SCHEMA {} TO {}")
                self._do(inside, statement.format(sql.Identifier(schema), owner))
            for kind, schema, relation in _rows(inside, _WRONG_OWNERS, name):
                statement = sql.SQL("ALTER {} {} OWNER TO {}")
                what, which = sql.SQL(_KINDS[kind]), sql.Identifier(schema, relation)
                self._do(inside, statement.format(what, which, owner))
                changed.append(f"{schema}.{relation}")
        return changed

    def rotate(self, name: str, new: NewUser, *, retire: bool = True) -> list[str]:
        """Make a new user of the application; those before may no longer sign in, and go.

        Whoever keeps the credentials stores the new ones between `retire=False` and `retire=True`.
        """
        owner, user = sql.Identifier(_checked(name)), sql.Identifier(new.name)
        if not re.fullmatch(_named_after(name, _APPLICATION, _LOGIN), new.name):
            raise errors.Rejected(
                f"a user of {name} must be named after it: {new.name}", hint=f"use {name}_0a1b2c3d"
            )
        with self._connect("") as server:
            self._is_ours(server, name)
            if not _yes(server, _ROLE, new.name):
                # Together: a role of the name that is no member is somebody else's.
                made = sql.SQL("CREATE ROLE {} NOLOGIN; GRANT {} TO {}")
                self._do(server, made.format(user, owner, user))
            elif not _yes(server, _IN, new.name, name):
                raise errors.Rejected(
                    f"a role of this name is somebody else's: {new.name}", hint="rename that role"
                )
            # What the application makes belongs to the owner, so that a user can go.
            self._do(server, sql.SQL("ALTER ROLE {} SET role = {}").format(user, sql.Literal(name)))
            login = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}")
            self._do(server, login.format(user, sql.Literal(_verifier(server, new))))
            return self._retire(server, name, keep=new.name) if retire else []

    def _retire(self, server: Connection, name: str, keep: str) -> list[str]:
        found = _rows(server, _USERS, name, _named_after(name, _APPLICATION))
        old = [user for (user,) in found if user != keep]
        for each in old:
            self._remove(server, name, each)
        return old

    def _remove(self, server: Connection, name: str, old: str) -> None:
        user = sql.Identifier(old)
        self._do(server, sql.SQL("ALTER ROLE {} NOLOGIN PASSWORD NULL").format(user))
        self._join(server, old)
        _rows(server, _TERMINATE, old)
        with self._connect(name) as inside:
            statement = sql.SQL("REASSIGN OWNED BY {} TO {}")
            self._do(inside, statement.format(user, sql.Identifier(name)))
            self._do(inside, sql.SQL("DROP OWNED BY {}").format(user))
        self._do(server, sql.SQL("DROP ROLE IF EXISTS {}").format(user))

    @contextlib.contextmanager
    def login(self, name: str, *, reads: bool = False, alone: bool = False) -> Iterator[NewUser]:
        """A user for SQL that is not trusted, as long as the block runs: the owner and no more.

        One that `reads` begins with transactions that write nothing; it may ask for others. One
        that is `alone` ends the sessions of those before, which a dead worker may have left.

        The session is its own from the start, so no `RESET ROLE` leads back to the administrator.
        """
        with self._connect("") as server:
            self._is_ours(server, name)
            before = _LOGINS if alone else _LEFT_LOGINS
            for (left,) in _rows(server, before, _named_after(_checked(name), _LOGIN)):
                # Another run may be removing the same one, or be about to sign in as it.
                with contextlib.suppress(errors.FairleadError):
                    self._remove(server, name, left)
        user = NewUser(f"{name}_m{secrets.token_hex(3)}", secrets.token_urlsafe(32))
        self.rotate(name, user, retire=False)
        if reads:
            with self._connect("") as server:
                calm = sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on")
                self._do(server, calm.format(sql.Identifier(user.name)))
        try:
            yield user
        finally:
            # What a dead server keeps from going now is found by the next run.
            with contextlib.suppress(errors.FairleadError), self._connect("") as server:
                self._remove(server, name, user.name)

    def destroy(self, name: str, *, confirmed: str) -> None:
        """Drop the database, its users and its role; the name must be said twice."""
        if confirmed != _checked(name):
            raise errors.Rejected(
                f"not confirmed that a database is destroyed: {name}",
                hint="say its name once more, as the confirmation",
            )
        database = sql.Identifier(name)
        with self._connect("") as server:
            self._is_ours(server, name)
            if server.info.dbname == name:
                raise errors.Rejected(
                    f"the administrator's own database is not destroyed: {name}",
                    hint="sign in to another database of the server",
                )
            if _yes(server, _ROLE, name):
                self._join(server, name)
            self._do(server, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(database))
            ours = _named_after(name, _APPLICATION, _LOGIN)
            for (user,) in _rows(server, _USERS, name, ours):
                self._do(server, sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(user)))
            self._do(server, sql.SQL("DROP ROLE IF EXISTS {}").format(database))

    def _is_ours(self, server: Connection, name: str, *, adopt: bool = False) -> bool:
        """Rejected where role or database are somebody else's; False where they are nobody's."""
        marks = [mark or "" for (mark,) in _rows(server, _MARK, name)]
        if marks == [_MARKED + self._stack]:
            return True
        if marks and marks[0].startswith(_MARKED):
            other = marks[0].removeprefix(_MARKED)
            raise errors.Rejected(
                f"the database belongs to another stack, {other}: {name}",
                hint="give yours another db_name_suffix",
            )
        if not adopt and (marks or _yes(server, _DATABASE, name)):
            raise errors.Rejected(
                f"the database was made by hand: {name}",
                hint="its environment may list it in deployments.adopt_databases",
            )
        return False

    def _join(self, server: Connection, role: str) -> None:
        """Without superuser, only a member may give things to a role or take them from it."""
        if not _yes(server, _MEMBER, role):
            statement = sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role))
            self._do(server, statement)

    def _do(self, server: Connection, statement: sql.Composed) -> None:
        for attempt in self._attempts():
            try:
                _once(server, statement, self._patience.lock_seconds)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.ObjectInUse) as error:
                if attempt == self._patience.attempts:
                    raise errors.Unavailable(
                        f"no lock after {attempt} attempts: {error.diag.message_primary}",
                        hint="end the transaction that holds it (see pg_locks), and run again",
                    ) from error
                self._patience.tell(f"a lock is held by others, attempt {attempt + 1} follows")
            except psycopg.Error as error:
                raise _told(error) from error
            else:
                return

    def _attempts(self) -> Iterator[int]:
        for attempt in range(1, self._patience.attempts + 1):
            if attempt > 1:
                self._patience.sleep(self._patience.pause_seconds)
            yield attempt


def connector(url: str) -> Connect:
    """Connections to the databases of the URL's server."""
    return lambda database: connection.connect(url, database)


def _once(server: Connection, statement: sql.Composed, seconds: float) -> None:
    # In the statement's own message: a pooler may give the next one to another session.
    if statement.as_string(server).startswith(("CREATE DATABASE", "DROP DATABASE")):
        server.execute(statement)
        return
    with server.transaction():
        server.execute("SELECT set_config('lock_timeout', %s, true)", (f"{seconds * 1000:.0f}",))
        server.execute(statement)


def _verifier(server: Connection, user: NewUser) -> str:
    """What the server keeps instead of the password, made here: its log may hold statements."""
    password, name = user.password.encode(), user.name.encode()
    return server.pgconn.encrypt_password(password, name, b"scram-sha-256").decode()


def _told(error: psycopg.Error) -> errors.FairleadError:
    """Never with the statement, which may hold a password."""
    said = error.diag.message_primary or type(error).__name__
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return errors.Rejected(
            f"the administrator lacks rights: {said}",
            hint="it needs CREATEROLE and CREATEDB; an extension may need a superuser once",
        )
    if isinstance(error, _AT_ONCE):
        return errors.Unavailable(
            f"somebody else changes the same at the same time: {said}", hint="run again"
        )
    if isinstance(error, psycopg.OperationalError):
        return errors.Unavailable(f"the database server failed: {said}", hint="run again")
    return errors.Rejected(f"PostgreSQL refused: {said}", hint="see the server's log")


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise errors.Rejected(
            f"not a name of a role or database: {name[:80]}",
            hint="use up to 63 of a-z, 0-9 and _, a letter first",
        )
    return name


def _named_after(name: str, *ends: str) -> str:
    return f"^{name}_({'|'.join(ends)})$"


def _yes(server: Connection, question: str, *values: str) -> bool:
    return any(found for (found,) in _rows(server, question, *values))


def _rows(server: Connection, question: str, *values: str) -> list[tuple[Any, ...]]:
    """Under our own search path, for the transaction alone, as a pooler wants it.

    The owner of a database chooses its path, and with it operators that would run with the
    administrator's rights.
    """
    try:
        with server.transaction():
            server.execute("SET LOCAL search_path = pg_catalog")
            return server.execute(question.encode(), values or None).fetchall()
    except psycopg.Error as error:
        raise _told(error) from error
