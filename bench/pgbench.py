"""pgbench with the statements of one transition, a transaction each, 256 clients.

It is what a program without group commit could reach if its own work cost nothing.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psycopg

from bench import harness, places
from bench.contestants import raw
from bench.contestants.job import Job
from bench.contestants.raw_postgres import fill
from fairlead import errors
from fairlead.clients.postgres.server.wheel import installed_wheel

CLIENTS = 256
_TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)
# The writes are pipelined, as ours are; without it, pgbench was no faster here.
_SCRIPT = f"""\
\\set stream :client_id + 1
BEGIN;
SELECT version + 1 AS seq FROM streams WHERE name = 'walk/raw-' || :stream \\gset
\\startpipeline
UPDATE streams SET version = :seq, state_type = 'Afoot', state_version = 1,
    state = '{{"owner":"bench","steps":10,"taken":' || :seq || '}}', ended_at = NULL,
    updated_at = {raw.NOW} WHERE id = :stream AND version = :seq - 1;
INSERT INTO events (stream, seq, type, version, data, cause, at)
    VALUES (:stream, :seq, 'Stepped', 1, '{{"step":' || :seq || '}}',
        'effect ' || :stream || '.' || :seq || '.0', {raw.NOW});
INSERT INTO commands (id, stream, digest, first, last, at)
    VALUES ('walk/raw-' || :stream || ' ' || :seq, :stream, '{raw.DIGEST}', :seq, :seq, {raw.NOW});
INSERT INTO outbox (stream, seq, n, type, version, data, in_order, owner, due_at)
    VALUES (:stream, :seq, 0, 'Step', 1, '{{"step":' || :seq || '}}', false, {raw.FENCE},
        {raw.NOW});
COMMIT;
\\endpipeline
"""  # noqa: S608 - only our own numbers are put in


def contestant(kept: places.Places, seconds: int) -> harness.Contestant | None:
    program = _program()
    if program is None:
        harness.say("pgbench is not installed, so its ratio is left out")
        return None
    script = kept.folder / "pgbench.sql"
    script.write_text(_SCRIPT)

    def run() -> Mapping[str, float]:
        with kept.fresh("postgres") as url:
            fill(Job(url, active=CLIENTS))
            return _run(program, script, url, seconds)

    return run


def _run(program: Path, script: Path, url: str, seconds: int) -> Mapping[str, float]:
    flags = ["-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds)]
    done = subprocess.run(
        [program, *flags, "-f", script, url], capture_output=True, text=True, check=False
    )
    found = _TPS.search(done.stdout)
    if done.returncode != 0 or found is None:
        raise harness.Failed(done.stderr.strip()[-500:])
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM events").fetchone()
    assert row is not None
    return {"per_second": float(found[1]), "events": row[0]}


def _program() -> Path | None:
    try:
        shipped = installed_wheel().programs / "pgbench"
    except errors.Unavailable:
        shipped = Path()
    if shipped.is_file():
        return shipped
    on_path = shutil.which("pgbench")
    return Path(on_path) if on_path else None
