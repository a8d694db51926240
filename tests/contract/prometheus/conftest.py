"""Fixture: one real Prometheus for the tests of this folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead import errors
from tools.servers import prometheus
from tools.servers.prometheus import PrometheusServer


@pytest.fixture(scope="session")
def prometheus_program() -> Path:
    """Left out with a reason where there is none, unless FAIRLEAD_TEST_PROMETHEUS requires it."""
    try:
        return prometheus.find()
    except errors.Unavailable as missing:
        told = f"{missing.message}; {missing.hint}"
        if os.environ.get("FAIRLEAD_TEST_PROMETHEUS") == "required":
            pytest.fail(told, pytrace=False)
        pytest.skip(told)


@pytest.fixture
def server(prometheus_program: Path, tmp_path: Path) -> Iterator[PrometheusServer]:
    with PrometheusServer(tmp_path / "prometheus") as running:
        yield running
