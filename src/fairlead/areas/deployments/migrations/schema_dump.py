"""The target's schema as SQL, by the pg_dump of its major version; nothing is written there.

The output is run by us, statement by statement or at once, so that no psql is needed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from psycopg import pq

from fairlead import errors
from fairlead.areas.deployments.migrations import statements

_PLACES = (
    "/usr/lib/postgresql/{major}/bin",
    "/usr/pgsql-{major}/bin",
    "/opt/homebrew/opt/postgresql@{major}/bin",
)
_OPTIONS = (
    "--schema-only",
    "--no-owner",
    "--no-tablespaces",
    "--no-security-labels",
    "--no-publications",
    "--no-subscriptions",
    "--lock-wait-timeout=5s",
)
# Made by the administrator beforehand, or beyond what a scratch copy may have: user mappings hold
# passwords, servers reach the network, event triggers run for everybody.
_LEFT_OUT = (
    ("CREATE", "EXTENSION"),
    ("COMMENT", "ON", "EXTENSION"),
    ("CREATE", "EVENT", "TRIGGER"),
    ("ALTER", "EVENT", "TRIGGER"),
    ("CREATE", "SERVER"),
    ("CREATE", "USER", "MAPPING"),
    ("CREATE", "FOREIGN", "DATA"),
    ("ALTER", "DEFAULT", "PRIVILEGES"),
)
_RIGHTS = (("GRANT",), ("REVOKE",))
_PSQL = re.compile(r"^\\(un)?restrict .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Dump:
    """A schema: what makes it, and who has which rights in it."""

    schema: tuple[str, ...]
    rights: tuple[str, ...]


def find(major: int, given: str = "") -> Path:
    """A pg_dump that can read a server of this major version: its own, or a newer one."""
    newer: list[Path] = []
    for program in _candidates(major, given):
        found = _major(program)
        if found == major:
            return program
        if found > major:
            newer.append(program)
    if newer:
        return newer[0]
    raise errors.Unavailable(
        f"no pg_dump for PostgreSQL {major} on this machine",
        hint=f"install the client programs of PostgreSQL {major}, or name one by --pg-dump",
    )


def dump(program: Path, url: str, seconds: float) -> Dump:
    command = [str(program), *_OPTIONS]
    try:
        done = subprocess.run(  # noqa: S603 - pg_dump; the URL goes by the environment, not seen by others
            command, env=_environment(url), capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise errors.Unavailable(
            f"pg_dump did not end in {seconds:g} s", hint="see what locks the tables, or allow more"
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise errors.Unavailable(
            f"pg_dump failed: {said[-1] if said else done.returncode}",
            hint="the user needs SELECT on all tables of the target",
        )
    return read(done.stdout.decode())


def read(text: str) -> Dump:
    """What pg_dump wrote, parted into what is needed."""
    schema: list[str] = []
    rights: list[str] = []
    for each in statements.split(_PSQL.sub("", text)):
        if any(each.starts(*head) for head in _LEFT_OUT):
            continue
        right = any(each.starts(*head) for head in _RIGHTS)
        if right and "PG_CATALOG" in each:
            continue  # the server's, which no owner of a database may change
        (rights if right else schema).append(each.sql)
    return Dump(tuple(schema), tuple(rights))


def _candidates(major: int, given: str) -> Iterator[Path]:
    if given:
        yield Path(given)
        return
    places: Sequence[str] = [each.format(major=major) for each in _PLACES]
    for place in places:
        if (program := Path(place) / "pg_dump").exists():
            yield program
    if found := shutil.which("pg_dump"):
        yield Path(found)


def _major(program: Path) -> int:
    try:
        said = subprocess.run(  # noqa: S603 - pg_dump, as found or named by the caller
            [str(program), "--version"], capture_output=True, timeout=10, check=True, text=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise errors.Unavailable(
            f"cannot run pg_dump: {program}", hint="name one that runs by --pg-dump"
        ) from error
    found = re.search(r"(\d+)", said.partition("PostgreSQL")[2])
    return int(found[1]) if found else 0


def _environment(url: str) -> dict[str, str]:
    """The URL as variables: arguments of a program can be read by everybody on the machine."""
    kept = {
        name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ
    }
    names = {each.keyword: each.envvar for each in pq.Conninfo.get_defaults() if each.envvar}
    for each in pq.Conninfo.parse(url.encode()):
        if each.val is not None and each.keyword in names:
            kept[(names[each.keyword] or b"").decode()] = each.val.decode()
    return kept
