"""The SQL is not trusted: what it may not do, how long it may take, and what is left behind."""

import time

import psycopg
import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.migrations import scratch
from tests.unit.areas.deployments.migrations.conftest import ROLE, Evaluate

# They count copies on a server that workers share: one after the other.
pytestmark = pytest.mark.xdist_group("evaluation")

FORBIDDEN = {
    "a program": "COPY t FROM PROGRAM 'id'",
    "a program by another way": "DO $$ BEGIN EXECUTE 'COPY t TO PROGRAM ''id'''; END $$",
    "a file": "COPY t FROM '/etc/passwd'",
    "a file by function": "SELECT pg_read_file('/etc/passwd')",
    "a folder": "SELECT pg_ls_dir('/')",
    "a large object from a file": "SELECT lo_import('/etc/passwd')",
    "a superuser": "ALTER ROLE CURRENT_USER SUPERUSER",
    "another role": f"SET ROLE {ROLE}",
    "the administrator": "SET SESSION AUTHORIZATION postgres",
    "another role's password": f"ALTER ROLE {ROLE} PASSWORD 'mine'",
    "a new role": "CREATE ROLE thief",
    "passwords": "SELECT * FROM pg_authid",
    "a setting of the server": "SET temp_file_limit = -1",
    "an untrusted language": "CREATE FUNCTION x() RETURNS int LANGUAGE c AS 'libc', 'getpid'",
    "a subscription": "CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1' PUBLICATION p",
    "what observes it": "CREATE OR REPLACE FUNCTION fairlead_scratch.activity(bool) RETURNS text"
    " LANGUAGE sql AS $$ SELECT '{}' $$",
    "the end of its transaction": "PREPARE x AS SELECT 1; SELECT 1; DO $$ BEGIN COMMIT; END $$",
    "data from the client": "COPY t FROM STDIN",
    "another's session": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND usename = 'postgres'",
}


def copies(url: str) -> list[str]:
    with scratch.admin(url) as server:
        rows = server.execute(
            "SELECT datname FROM pg_database UNION ALL SELECT rolname FROM pg_roles"
        ).fetchall()
    return [name for (name,) in rows if name.startswith(scratch.PREFIX)]


@pytest.mark.parametrize("sql", FORBIDDEN.values(), ids=FORBIDDEN)
def test_forbidden_sql_is_not_run_and_takes_the_worst_class(evaluate: Evaluate, sql: str) -> None:
    found = evaluate(sql)

    assert found.impact is Impact.DOWNTIME
    assert found.statements[-1].reasons[0].startswith("cannot be evaluated: "), found


def test_one_statement_cannot_smuggle_a_second(evaluate: Evaluate) -> None:
    found = evaluate("SET standard_conforming_strings = off; SELECT 'a\\'; DROP TABLE t; --'")

    assert found.impact is Impact.DOWNTIME
    assert "cannot be evaluated" in found.statements[1].reasons[0]


def test_sql_cannot_hide_behind_operators_of_its_own(evaluate: Evaluate) -> None:
    found = evaluate(
        "CREATE SCHEMA evil; CREATE FUNCTION evil.never(oid, oid) RETURNS bool LANGUAGE sql AS"
        " 'SELECT false'; CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION ="
        " evil.never); CREATE VIEW evil.pg_locks AS SELECT 1 AS x; SET search_path = evil, public,"
        " pg_catalog; ALTER TABLE t DROP COLUMN c"
    )

    assert "column t.c is gone" in found.statements[-1].reasons[0]


def test_nobody_calls_what_an_unknown_extension_brought(evaluate: Evaluate, counting: str) -> None:
    with scratch.admin(counting) as connection:
        connection.execute("CREATE EXTENSION counting")

    found = evaluate("SELECT counted()", scratch_url=counting)

    assert found.reasons == (), "the copy has it"
    reason = "cannot be evaluated: permission denied for function counted"
    assert found.statements[0].reasons == (reason,)


THIEF = """
CREATE FUNCTION thief() RETURNS int LANGUAGE plpgsql AS $$
BEGIN EXECUTE 'SET ROLE postgres'; RETURN 1; END $$;
CREATE TABLE bait (id int); INSERT INTO bait VALUES (1);
"""


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE bait ADD COLUMN z int DEFAULT thief(), OWNER TO postgres",
        "ALTER TABLE bait " + "ALTER id SET STATISTICS 1, " * 60 + "OWNER TO postgres,"
        " ADD COLUMN z int DEFAULT thief()",
    ],
)
def test_a_change_of_owner_lends_its_rights_to_nothing_else(evaluate: Evaluate, sql: str) -> None:
    found = evaluate(THIEF + sql)

    assert found.impact is Impact.DOWNTIME
    reason = found.statements[-1].reasons[0]
    assert reason.startswith("cannot be evaluated: "), found
    assert "postgres" in reason


def test_the_copy_runs_nothing_as_whoever_administers_it(evaluate: Evaluate, target: str) -> None:
    trap = (
        "CREATE FUNCTION trap(name, name) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN IF"
        " pg_catalog.pg_has_role(session_user, 'pg_execute_server_program', 'member') THEN"
        " ALTER ROLE fairlead_test_reader CREATEROLE; END IF; RETURN true; END $$;"
        " CREATE OPERATOR public.<> (LEFTARG = name, RIGHTARG = name, FUNCTION = trap);"
        " DO $$ BEGIN EXECUTE pg_catalog.format('ALTER DATABASE %I SET search_path = public,"
        " pg_catalog', current_database()); END $$"
    )

    found = evaluate(trap, f"ALTER TABLE t OWNER TO {ROLE}")

    assert found.statements[-1].impact is Impact.BEFORE, found
    with scratch.admin(target) as server:
        ((raised,),) = server.execute(
            "SELECT rolcreaterole FROM pg_roles WHERE rolname = %s", (ROLE,)
        ).fetchall()
    assert raised is False


def test_endless_sql_is_ended_even_where_it_lifts_its_own_limit(
    evaluate: Evaluate, target: str
) -> None:
    limits = scratch.Limits(overall_seconds=1)

    found = evaluate("SET statement_timeout = 0; SELECT pg_sleep(3600)", "SELECT 1", limits=limits)

    assert found.statements[1].reasons == ("cannot be evaluated: it takes longer than 1 s",)
    assert found.statements[2].impact is Impact.DOWNTIME
    assert copies(target) == []


def test_sql_that_fills_the_disk_is_ended(evaluate: Evaluate, target: str) -> None:
    limits = scratch.Limits(most_bytes=24 * 2**20)

    found = evaluate(
        "CREATE TABLE fill (x text); DO $$ BEGIN LOOP INSERT INTO fill SELECT"
        " repeat(md5(random()::text), 30) FROM generate_series(1, 1000); END LOOP; END $$",
        limits=limits,
    )

    assert found.statements[1].reasons == ("cannot be evaluated: it takes more than 24 MiB",)
    assert copies(target) == []


def test_a_copy_that_a_kill_left_behind_goes_with_the_next_run(
    evaluate: Evaluate, target: str
) -> None:
    old = f"{scratch.PREFIX}{int(time.time()) - 7200}_0123abcd"
    young = f"{scratch.PREFIX}{int(time.time())}_0123abcd"
    with scratch.admin(target) as server:
        for name in (old, young):
            server.execute(f"CREATE ROLE {name}".encode())
            server.execute(f"CREATE DATABASE {name} OWNER {name}".encode())
    try:
        evaluate("SELECT 1")

        assert copies(target) == [young, young]
    finally:
        with scratch.admin(target) as server:
            scratch.remove_left_overs(server, -60)


def test_a_machine_whose_clock_is_wrong_takes_nobodys_copy_away(
    evaluate: Evaluate, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    young = f"{scratch.PREFIX}{int(time.time())}_0123abcd"
    with scratch.admin(target) as server:
        server.execute(f"CREATE ROLE {young}".encode())
        tomorrow = time.time() + 86_400
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda: tomorrow)
            evaluate("SELECT 1")

        assert copies(target) == [young]
        server.execute(f"DROP ROLE {young}".encode())


def test_an_evaluation_that_could_be_taken_for_a_left_over_is_refused(evaluate: Evaluate) -> None:
    with pytest.raises(errors.Rejected, match="may not take so long"):
        evaluate("SELECT 1", limits=scratch.Limits(overall_seconds=7200))


def test_a_user_without_superuser_can_evaluate(evaluate: Evaluate, target: str) -> None:
    name = "fairlead_test_managed"
    with scratch.admin(target) as server:
        server.execute(f"CREATE ROLE {name} LOGIN CREATEDB CREATEROLE PASSWORD 'x'".encode())
        database = server.info.dbname
        server.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}".encode())
    parts = psycopg.conninfo.conninfo_to_dict(target)
    mine = psycopg.conninfo.make_conninfo("", **{**parts, "user": name, "password": "x"})
    try:
        found = evaluate("CREATE INDEX i ON t (c)", scratch_url=mine)

        assert found.impact is Impact.DOWNTIME
        assert found.statements[0].scan
        assert copies(target) == []
    finally:
        with scratch.admin(target) as server:
            server.execute(f"DROP OWNED BY {name}".encode())
            server.execute(f"DROP ROLE {name}".encode())
        assert database


def test_a_left_over_that_cannot_be_removed_is_in_nobodys_way(
    evaluate: Evaluate, target: str
) -> None:
    """Another run may be removing it in this moment, or it owns what it should not."""
    old = f"{scratch.PREFIX}{int(time.time()) - 7200}_89abcdef"
    with scratch.admin(target) as server:
        server.execute(f"CREATE ROLE {old}".encode())
        server.execute(f"CREATE DATABASE fairlead_test_kept OWNER {old}".encode())
    try:
        assert evaluate("SELECT 1").impact is Impact.PARALLEL
    finally:
        with scratch.admin(target) as server:
            server.execute("DROP DATABASE fairlead_test_kept")
            server.execute(f"DROP ROLE {old}".encode())
