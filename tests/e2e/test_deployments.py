"""`fairlead up` and `fairlead deploy` with moto's AWS and a real PostgreSQL, as users type them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from fairlead.clients.postgres import administration, connection
from fairlead.clients.postgres.server.running import Databases
from fairlead.clients.postgres.server.wheel import installed_wheel
from tests.aws import Cloud
from tests.contract.local.shop_versions import free_port
from tests.e2e import processes
from tests.unit.areas.deployments.aws.steps import APP, BUCKET, SQL, cluster, prepare

pytestmark = [pytest.mark.xdist_group("moto"), pytest.mark.slow]
NAME = "fl_e2e_shop_fl_orders"
SECONDS = 400


def write(folder: Path, server: str) -> None:
    (folder / "sql").mkdir()
    for name, text in SQL["orders"].items():
        (folder / "sql" / name).write_text(text)
    files = {
        "app.yaml": APP,
        "env.yaml": {"full_name": "fl-e2e"},
        "cluster.yaml": cluster(server),
        "release.yaml": {
            "kind": "deployment",
            "version": "v1",
            "application": "app.yaml",
            "environment": "env.yaml",
            "cluster": "cluster.yaml",
        },
    }
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))


def fairlead(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
    return subprocess.run(
        [sys.executable, "-m", "fairlead", *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.deadline(600)
def test_a_version_is_deployed_from_files_and_watched(
    tmp_path: Path, cloud: Cloud, postgres_server: Databases
) -> None:
    prepare(cloud)
    server = postgres_server.admin_url
    write(tmp_path, server)
    admin = administration.Administration(administration.connector(server), "fl-e2e/shop")
    admin.destroy(NAME, confirmed=NAME)
    listen = f"127.0.0.1:{free_port()}"
    environment = {
        "FAIRLEAD_STATE_DIR": str(tmp_path / "state"),
        "FAIRLEAD_LISTEN": listen,
        "FAIRLEAD_LOG_FORMAT": "json",
        "FAIRLEAD_AWS_BUCKET": BUCKET,
        "FAIRLEAD_AWS_ENDPOINT": cloud.url,
        "FAIRLEAD_AWS_PG_DUMP": str(installed_wheel().programs / "pg_dump"),
    }
    release = str(tmp_path / "release.yaml")
    try:
        with processes.running(["-m", "fairlead", "up"], environment) as up:
            up.until("fairlead is up: ")
            checked = fairlead(environment, "validate", release)
            done = fairlead(environment, "deploy", release, "--wait", "-o", "json")
            shown = fairlead(environment, "get", "deployment", "fl-e2e/shop/v1")
            stacks = fairlead(environment, "get", "stacks", "-o", "json")
        with psycopg.connect(connection.of_database(server, NAME)) as inside:
            owner = inside.execute(
                "SELECT tableowner FROM pg_tables WHERE tablename = 'orders'"
            ).fetchone()
    finally:
        admin.destroy(NAME, confirmed=NAME)

    assert checked.returncode == 0, checked.stderr
    assert done.returncode == 0, done.stderr
    told: Any = json.loads(done.stdout)
    assert (told["name"], told["outcome"]) == ("fl-e2e/shop/v1", "v1 is deployed")
    assert all(step in shown.stdout for step in ("InfraMigrate", "PGMigrate", "ScaleUp"))
    assert "AVAILABLE" in stacks.stdout
    assert owner == (NAME,)
