"""Fixtures: AWS as moto plays it, one server per run, emptied for each test."""

import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fairlead import loading
from tools.servers.moto import MotoServer

REGION = "eu-west-1"


@dataclass(frozen=True, slots=True)
class Cloud:
    """A fresh AWS, and clients of its own to look behind our back."""

    url: str

    def client(self, service: str) -> Any:
        # Late: this is loaded for every test, and few of them are about AWS.
        session: Any = loading.load("boto3.session:Session", type)
        return session(region_name=REGION).client(service, endpoint_url=self.url)


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with MotoServer(tmp_path_factory.mktemp("moto")) as server:
        yield server.url


@pytest.fixture
def cloud(moto_server: str, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    reset = urllib.request.Request(f"{moto_server}/moto-api/reset", method="POST")  # noqa: S310 - our own server
    with urllib.request.urlopen(reset, timeout=60):  # noqa: S310 - the same
        return Cloud(moto_server)
