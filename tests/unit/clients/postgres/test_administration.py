"""Administration on a real PostgreSQL without superuser, as on managed services; cut anywhere."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from fairlead import errors
from fairlead.clients.postgres import administration
from fairlead.clients.postgres.administration import Administration, Database, NewUser
from fairlead.clients.postgres.connection import Connection, Patience
from fairlead.clients.postgres.server.running import Databases

# Roles are the server's: two workers would take each other's away.
pytestmark = pytest.mark.xdist_group("administration")
NAME, STACK = "fairlead_test_shop", "fairlead-test/shop"
ADMIN = "fairlead_test_admin"
FIRST, SECOND = NewUser(f"{NAME}_00000001", "first"), NewUser(f"{NAME}_00000002", "second")
STATE = """
SELECT (SELECT array_agg(rolname || rolcanlogin ORDER BY rolname) FROM pg_roles
  WHERE starts_with(rolname, 'fairlead_test_shop')),
  (SELECT array_agg(datname ORDER BY datname) FROM pg_database WHERE datname = 'fairlead_test_shop')
"""


class Cut(Exception):
    """The process is gone."""


@pytest.fixture
def managed(postgres_server: Databases) -> Iterator[str]:
    """An administrator without superuser."""
    _sweep(postgres_server)
    with psycopg.connect(postgres_server.admin_url, autocommit=True) as server:
        server.execute(f"CREATE ROLE {ADMIN} LOGIN CREATEROLE CREATEDB PASSWORD 'x'".encode())
    parts = psycopg.conninfo.conninfo_to_dict(postgres_server.admin_url)
    try:
        yield psycopg.conninfo.make_conninfo("", **{**parts, "user": ADMIN, "password": "x"})
    finally:
        _sweep(postgres_server)


def _sweep(server: Databases) -> None:
    server.drop_database(NAME)
    with psycopg.connect(server.admin_url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s) OR rolname = %s"
            " ORDER BY rolname DESC",
            (NAME, ADMIN),
        ).fetchall()
        for (role,) in rows:
            connection.execute(f"DROP OWNED BY {role} CASCADE".encode())
            connection.execute(f"DROP ROLE {role}".encode())


def state(url: str) -> Any:
    with administration.connector(url)("") as server:
        return server.execute(STATE.encode()).fetchone()


def signed_in(url: str, user: NewUser) -> Connection:
    parts = psycopg.conninfo.conninfo_to_dict(url)
    mine = {**parts, "dbname": NAME, "user": user.name, "password": user.password}
    return psycopg.connect(psycopg.conninfo.make_conninfo("", **mine), autocommit=True)


def owners(url: str) -> set[str]:
    with administration.connector(url)(NAME) as inside:
        rows = inside.execute(
            "SELECT DISTINCT r.rolname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner"
            " WHERE c.relnamespace = 'public'::regnamespace"
        ).fetchall()
    return {role for (role,) in rows}


@pytest.mark.requirement("deployer Q21")
def test_upsert_makes_role_database_and_extensions_and_again_changes_nothing(managed: str) -> None:
    server = Administration(administration.connector(managed), STACK)

    server.upsert(Database(NAME, ("plpgsql",)))
    made = state(managed)
    server.upsert(Database(NAME, ("plpgsql",)))

    assert made == ([f"{NAME}false"], [NAME])
    assert state(managed) == made


@pytest.mark.requirement("deployer Q22", "deployer Q24")
def test_clean_up_gives_everything_to_the_owner(managed: str) -> None:
    server = Administration(administration.connector(managed), STACK)
    server.upsert(Database(NAME))
    with administration.connector(managed)(NAME) as inside:
        inside.execute(f"GRANT CREATE ON SCHEMA public TO {ADMIN}".encode())
        inside.execute("CREATE TABLE public.a (id serial PRIMARY KEY)")
        inside.execute("CREATE TABLE public.p (id int) PARTITION BY RANGE (id)")
        inside.execute("CREATE VIEW public.v AS SELECT 1")
        inside.execute("CREATE MATERIALIZED VIEW public.m AS SELECT 1")
        inside.execute("CREATE SEQUENCE public.s")

    changed = server.clean_up(NAME)
    again = server.clean_up(NAME)

    assert changed == ["public.a", "public.m", "public.p", "public.s", "public.v"]
    assert again == []
    assert owners(managed) == {NAME}


def test_rotation_lets_the_new_user_in_and_retires_the_old(managed: str) -> None:
    server = Administration(administration.connector(managed), STACK)
    server.upsert(Database(NAME))
    server.rotate(NAME, FIRST)
    with signed_in(managed, FIRST) as application:
        application.execute("CREATE TABLE public.mine (id int)")

    gone = server.rotate(NAME, SECOND)

    assert gone == [FIRST.name]
    with signed_in(managed, SECOND) as application:
        application.execute("INSERT INTO public.mine VALUES (1)")
    with pytest.raises(psycopg.OperationalError):
        signed_in(managed, FIRST)


def test_both_users_live_until_the_new_credentials_are_kept(managed: str) -> None:
    server = Administration(administration.connector(managed), STACK)
    server.upsert(Database(NAME))
    server.rotate(NAME, FIRST)

    server.rotate(NAME, SECOND, retire=False)

    signed_in(managed, FIRST).close()
    signed_in(managed, SECOND).close()


def test_destroy_wants_the_name_twice_and_leaves_nothing(managed: str) -> None:
    server = Administration(administration.connector(managed), STACK)
    server.upsert(Database(NAME))
    server.rotate(NAME, FIRST)

    with pytest.raises(errors.Rejected, match="not confirmed"):
        server.destroy(NAME, confirmed="other")
    assert state(managed)[1] == [NAME]
    server.destroy(NAME, confirmed=NAME)
    server.destroy(NAME, confirmed=NAME)

    assert state(managed) == (None, None)


@pytest.mark.parametrize(
    "attack",
    [
        lambda server: server.upsert(Database(NAME, adopt=True)),
        lambda server: server.clean_up(NAME),
        lambda server: server.rotate(NAME, SECOND),
        lambda server: server.login(NAME).__enter__(),
        lambda server: server.destroy(NAME, confirmed=NAME),
    ],
    ids=["upsert", "clean up", "rotate", "login", "destroy"],
)
def test_a_stack_whose_database_comes_to_anothers_name_gets_nothing(
    managed: str, attack: Callable[[Administration], object]
) -> None:
    Administration(administration.connector(managed), "fairlead/test").upsert(Database(NAME))
    Administration(administration.connector(managed), "fairlead/test").rotate(NAME, FIRST)
    before = state(managed)

    with pytest.raises(errors.Rejected, match="belongs to another stack, fairlead/test: "):
        attack(Administration(administration.connector(managed), STACK))

    assert state(managed) == before
    signed_in(managed, FIRST).close()


@pytest.mark.parametrize("made", [["ROLE"], ["DATABASE"], ["ROLE", "DATABASE"]])
def test_what_was_made_by_hand_is_adopted_only_where_that_is_said(
    managed: str, made: list[str]
) -> None:
    server = Administration(administration.connector(managed), STACK)
    with administration.connector(managed)("") as by_hand:
        for what in made:
            by_hand.execute(f"CREATE {what} {NAME}".encode())

    with pytest.raises(errors.Rejected, match="was made by hand") as refused:
        server.upsert(Database(NAME))
    with pytest.raises(errors.Rejected, match="was made by hand"):
        server.destroy(NAME, confirmed=NAME)
    server.upsert(Database(NAME, adopt=True))

    assert "deployments.adopt_databases" in refused.value.hint
    server.upsert(Database(NAME))


def test_roles_that_people_made_keep_their_name_their_password_and_their_rights(
    managed: str, postgres_server: Databases
) -> None:
    server = Administration(administration.connector(managed), STACK)
    server.upsert(Database(NAME))
    by_hand = [NewUser(f"{NAME}_{end}", "theirs") for end in ("readonly", "m", "00000001_old")]
    with administration.connector(managed)("") as people:
        for each in by_hand:
            people.execute(
                f"CREATE ROLE {each.name} LOGIN PASSWORD 'theirs' IN ROLE {NAME}".encode()
            )
    with administration.connector(postgres_server.admin_url)(NAME) as inside:
        inside.execute("CREATE EXTENSION vector")
    server.rotate(NAME, FIRST)

    gone = server.rotate(NAME, SECOND)
    server.upsert(Database(NAME))

    assert gone == [FIRST.name]
    for each in by_hand:
        with signed_in(managed, each) as person:
            rows = person.execute("SELECT extname FROM pg_extension ORDER BY 1").fetchall()
        assert rows == [("plpgsql",), ("vector",)]
    server.destroy(NAME, confirmed=NAME)
    left = [f"{each.name}true" for each in by_hand]
    assert state(managed) == (sorted(left), None)


def test_a_user_is_not_made_of_anothers_role(managed: str) -> None:
    """Tokens can be guessed, and so can the names of users that are made of them."""
    server = Administration(administration.connector(managed), STACK)
    server.upsert(Database(NAME))
    Administration(administration.connector(managed), "fairlead/attack").upsert(
        Database(FIRST.name)
    )

    try:
        with pytest.raises(errors.Rejected, match="somebody else's"):
            server.rotate(NAME, FIRST)
    finally:
        attacker = Administration(administration.connector(managed), "fairlead/attack")
        attacker.destroy(FIRST.name, confirmed=FIRST.name)

    with pytest.raises(errors.Rejected, match="named after it"):
        server.rotate(NAME, NewUser(f"{NAME}_readonly", "mine"))


class _Cutting(Administration):
    """Dies after so many statements."""

    left = 0

    def _do(self, server: Connection, statement: Any) -> None:
        super()._do(server, statement)
        self.left -= 1
        if self.left == 0:
            raise Cut


def story(server: Administration) -> None:
    server.upsert(Database(NAME, ("plpgsql",)))
    server.rotate(NAME, FIRST)
    server.rotate(NAME, SECOND)


def test_cut_after_any_statement_the_next_run_ends_the_same(
    managed: str, postgres_server: Databases
) -> None:
    whole = Administration(administration.connector(managed), STACK)
    story(whole)
    wanted, cuts = state(managed), 0

    while True:
        whole.destroy(NAME, confirmed=NAME)
        cutting = _Cutting(administration.connector(managed), STACK)
        cutting.left = cuts + 1
        with contextlib.suppress(Cut):
            story(cutting)
            break
        cuts += 1
        story(whole)
        assert state(managed) == wanted, cuts

    assert cuts > 10


def test_a_lock_is_waited_for_and_told(managed: str, postgres_server: Databases) -> None:
    told: list[str] = []
    with contextlib.ExitStack() as stack:
        patience = Patience(0.05, 3, sleep=lambda _: stack.close(), tell=told.append)
        server = Administration(administration.connector(managed), STACK, patience)
        server.upsert(Database(NAME))
        with administration.connector(managed)(NAME) as inside:
            inside.execute(f"GRANT CREATE ON SCHEMA public TO {ADMIN}".encode())
            inside.execute("CREATE TABLE public.a (id int)")
        holder = stack.enter_context(psycopg.connect(postgres_server.url(NAME)))
        holder.execute("LOCK TABLE public.a")

        changed = server.clean_up(NAME)

    assert changed == ["public.a"]
    assert told == ["a lock is held by others, attempt 2 follows"]


@pytest.mark.parametrize("name", ['a"; DROP ROLE x; --', "", "Shop", "1a", "a" * 64])
def test_a_name_that_could_be_sql_is_refused(name: str) -> None:
    with pytest.raises(errors.Rejected, match="not a name"):
        Database(name)


def test_passwords_are_in_no_error_and_no_repr(managed: str) -> None:
    server = Administration(administration.connector(managed), STACK)

    with pytest.raises(errors.Unavailable) as caught:
        server.rotate(
            "fairlead_test_shop_none", NewUser("fairlead_test_shop_none_0a1b2c3d", "s3cret")
        )

    assert "s3cret" not in f"{caught.value}{NewUser('a', 's3cret')!r}"


class _Listening(Administration):
    """Keeps what was sent, as a server's log does."""

    sent = ""

    def _do(self, server: Connection, statement: Any) -> None:
        self.sent += statement.as_string(server)
        super()._do(server, statement)


def test_the_server_is_never_sent_a_password_in_the_clear(managed: str) -> None:
    server = _Listening(administration.connector(managed), STACK)
    server.upsert(Database(NAME))

    server.rotate(NAME, FIRST)

    assert "PASSWORD" in server.sent
    assert FIRST.password not in server.sent
    signed_in(managed, FIRST).close()
