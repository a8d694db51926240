"""Fixtures: a real PostgreSQL, one server per run and one database per test."""

import os
import uuid
from collections.abc import Iterator

import pytest

from fairlead.clients.postgres.server.running import Databases
from tools.servers.postgres_shared import shared_server


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """The run's server; a test that restarts a server starts a PostgresServer of its own."""
    given = os.environ.get("FAIRLEAD_TEST_POSTGRES_URL")
    if given:
        yield Databases(given)
        return
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # each worker has its own below that of the run
    with shared_server(folder / "postgres") as databases:
        yield databases


@pytest.fixture
def postgres_url(postgres_server: Databases) -> Iterator[str]:
    """An empty database for this test alone."""
    name = f"fairlead_test_{uuid.uuid4().hex[:16]}"
    try:
        yield postgres_server.create_database(name)
    finally:
        postgres_server.drop_database(name)
