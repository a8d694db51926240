"""A database server without the databases that earlier tests made."""

from collections.abc import Iterator

import pytest

from fairlead.clients.postgres import administration
from fairlead.clients.postgres.server.running import Databases
from tests.unit.areas.deployments.migrations.conftest import pg_dump

__all__ = ["pg_dump"]
ENVIRONMENT = "fl-test"
NAME, STACK = "fl_test_shop_fl_orders", "fl-test/shop"


@pytest.fixture
def server(postgres_server: Databases) -> Iterator[str]:
    connect = administration.connector(postgres_server.admin_url)
    admin = administration.Administration(connect, STACK)
    admin.destroy(NAME, confirmed=NAME)
    yield postgres_server.admin_url
    admin.destroy(NAME, confirmed=NAME)
