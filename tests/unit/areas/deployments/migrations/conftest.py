"""A database with a table of every kind of trouble, and the pg_dump that knows its version."""

import secrets
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from fairlead.areas.deployments.migrations import evaluation, files
from fairlead.clients.postgres.server.wheel import installed_wheel

ROLE = "fairlead_test_reader"
SCHEMA = """
CREATE DOMAIN dom AS int CHECK (value > 0);
CREATE TYPE en AS ENUM ('a', 'b');
CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE t (
  id int PRIMARY KEY, a int, b varchar(10), c text, d int NOT NULL DEFAULT 1, n numeric(6,2),
  ts timestamp, ck int, pid int, CONSTRAINT a_filled CHECK (a IS NOT NULL)
);
ALTER TABLE t ADD CONSTRAINT ck_nv CHECK (ck > 0) NOT VALID;
CREATE INDEX t_a ON t (a);
CREATE UNIQUE INDEX t_uq ON t (a);
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER tg BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
CREATE VIEW v AS SELECT id FROM t;
CREATE TABLE pt (id int) PARTITION BY RANGE (id);
CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (10);
CREATE TABLE pt2 (id int);
CREATE TABLE empty (id int PRIMARY KEY, a int, b varchar(10));
INSERT INTO p SELECT generate_series(1, 2000);
INSERT INTO t SELECT i, i, 'b', 'c', 1, 1, now(), 1, i FROM generate_series(1, 2000) i;
INSERT INTO pt VALUES (1);
INSERT INTO pt2 VALUES (11);
ANALYZE;
"""
ROLE_ONCE = f"""
DO $$ BEGIN CREATE ROLE {ROLE}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""

Evaluate = Callable[..., evaluation.Evaluation]


@pytest.fixture(scope="session")
def pg_dump() -> str:
    return str(installed_wheel().programs / "pg_dump")


@pytest.fixture
def target(postgres_url: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(ROLE_ONCE)
        connection.execute(SCHEMA)
    return postgres_url


@pytest.fixture
def counting(target: str) -> Iterator[str]:
    """An URL of the target for an administrator who also has an extension of our own."""
    name = f"fairlead_test_counting_{secrets.token_hex(4)}"
    path = sql.SQL("ALTER ROLE {} SET extension_control_path = {}")
    with tempfile.TemporaryDirectory() as place, psycopg.connect(target, autocommit=True) as admin:
        folder = Path(place) / "extension"
        folder.mkdir()
        (folder / "counting.control").write_text("default_version = '1'\n")
        body = "CREATE FUNCTION counted() RETURNS int LANGUAGE sql AS 'SELECT 1';"
        (folder / "counting--1.sql").write_text(body)
        folder.parent.chmod(0o755)  # the server may run as another user than the tests
        admin.execute(f"CREATE ROLE {name} LOGIN SUPERUSER PASSWORD 'x'".encode())
        admin.execute(path.format(sql.Identifier(name), sql.Literal(f"{place}:$system")))
        parts = psycopg.conninfo.conninfo_to_dict(target)
        try:
            yield psycopg.conninfo.make_conninfo("", **{**parts, "user": name, "password": "x"})
        finally:
            admin.execute(f"DROP OWNED BY {name}".encode())
            admin.execute(f"DROP ROLE {name}".encode())


@pytest.fixture
def evaluate(target: str, pg_dump: str) -> Evaluate:
    """Evaluates texts as migrations, one after the other; whatever they are, the target stays."""

    def run(*texts: str, **more: object) -> evaluation.Evaluation:
        found = [files.Migration(f"{at}", f"{at}_test.sql", text) for at, text in enumerate(texts)]
        request = evaluation.Request(target, found, pg_dump=pg_dump, **more)  # type: ignore[arg-type]  # by name
        before = dumped(pg_dump, target)
        try:
            return evaluation.evaluate(request)
        finally:
            assert dumped(pg_dump, target) == before

    return run


def dumped(pg_dump: str, url: str) -> str:
    """All of a database, without what is another in each dump of it."""
    done = subprocess.run([pg_dump, url], capture_output=True, check=True, text=True)
    return "\n".join(each for each in done.stdout.splitlines() if not each.startswith("\\"))
