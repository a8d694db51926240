"""A program of an application that migrates its database: run to its end, signed in by variables.

It is the application's own, as the workload is, and runs with the same rights. Who signs in is made
for the run: should we end before it, the next run ends the sessions that it left.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import msgspec

from fairlead import errors, values
from fairlead.areas.deployments.migrations.files import MOST_BYTES

_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR")
_LONGEST = 400


class Program(msgspec.Struct, frozen=True):
    """What is run, and where."""

    run: list[str]
    plan: list[str] = []
    cwd: str | None = None
    env: dict[str, str] = {}


def output(
    program: Program, command: Sequence[str], database: Mapping[str, str], seconds: float
) -> str:
    """What it printed; Rejected where it fails, with the last of what it said."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    signs_in = {
        "DATABASE_URL": database["dburl"],
        "PGHOST": database["host"],
        "PGPORT": database["port"],
        "PGDATABASE": database["dbname"],
        "PGUSER": database["username"],
        "PGPASSWORD": database["password"],
    }
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        code = _ended(
            command, {**passed, **program.env, **signs_in}, program.cwd, (told, said), seconds
        )
        if code != 0:
            why = "did not end in time" if code is None else f"ended with code {code}"
            last = _read(said)[-_LONGEST:].strip().replace(database["password"], "…")
            raise errors.Rejected(
                values.redacted(f"{command[0]} {why}: {last}"),
                hint="run it by hand, with DATABASE_URL of a database like this one",
            )
        return _read(told)


def _ended(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: str | None,
    streams: tuple[BinaryIO, BinaryIO],
    seconds: float,
) -> int | None:
    """Its code; None where it did not end, and was ended with all that it had started."""
    told, said = streams
    try:
        process = subprocess.Popen(  # noqa: S603 - what the application's file says, as its workload
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=told, stderr=said,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise errors.Rejected(
            f"cannot start {command[0]}: {error.strerror}", hint="name a program of this machine"
        ) from error
    with process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def _read(stream: BinaryIO) -> str:
    stream.seek(0)
    text = stream.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise errors.Rejected(
            f"a program printed more than {MOST_BYTES // 2**20} MiB", hint="print the SQL alone"
        )
    return text.decode(errors="replace")
