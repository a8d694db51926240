from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.deployments.migrations import schema_dump

TEXT = r"""
\restrict abc
SET lock_timeout = 0;
CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;
CREATE TABLE public.a (id int);
CREATE USER MAPPING FOR me SERVER other OPTIONS (password 's3cret');
GRANT SELECT ON TABLE public.a TO reader;
REVOKE ALL ON FUNCTION pg_catalog.pg_sleep(double precision) FROM PUBLIC;
\unrestrict abc
"""


def program(folder: Path, version: str) -> str:
    """A stand-in that only knows its version."""
    file = folder / f"pg_dump_{version}"
    file.write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {version}'\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("version", ["16.3", "17beta1"])
def test_a_pg_dump_of_the_version_or_newer_is_taken(tmp_path: Path, version: str) -> None:
    given = program(tmp_path, version)

    assert schema_dump.find(16, given) == Path(given)


def test_an_older_pg_dump_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.Unavailable, match="no pg_dump for PostgreSQL 16") as caught:
        schema_dump.find(16, program(tmp_path, "15.4"))

    assert "client programs of PostgreSQL 16" in caught.value.hint


def test_a_pg_dump_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.Unavailable, match="cannot run pg_dump"):
        schema_dump.find(16, str(tmp_path / "none"))


def test_a_dump_is_parted_and_what_is_dangerous_left_out() -> None:
    found = schema_dump.read(TEXT)

    assert found.schema == ("SET lock_timeout = 0", "CREATE TABLE public.a (id int)")
    assert found.rights == ("GRANT SELECT ON TABLE public.a TO reader",)
