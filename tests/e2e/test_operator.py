"""`fairlead operator` as a process of its own, on the fake API server."""

import asyncio
import signal
from pathlib import Path

import pytest
import yaml

from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.schema import CRDS
from tests.e2e import processes
from tests.fakes.kubernetes.server import Server
from tests.operator.sample_kind import KIND


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_it(tmp_path: Path, ending: signal.Signals) -> None:
    async with Server().running() as server:
        async with Client(Connection(server.url, credentials.Fixed()), manager="hand") as hand:
            await hand.create(CRDS, rbac.definition(KIND))

        code = await asyncio.to_thread(_stopped, kubeconfig(tmp_path, server.url), ending)

    assert code == 0


def kubeconfig(folder: Path, url: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": "hand", "user": {"token": "any"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "hand"}}],
        "current-context": "fake",
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file


def _stopped(config: Path, ending: signal.Signals) -> int:
    """Its exit code, once it said that it stops and that it has."""
    options = ("--kubeconfig", str(config), "--listen", "127.0.0.1:0", "--no-leader-elect")
    command = ["-m", "tests.operator.entry", "operator", *options]
    with processes.running(command, {"FAIRLEAD_STATE_DIR": str(config.parent)}) as operator:
        operator.until("fairlead operator is running: http://127.0.0.1:")
        operator.process.send_signal(ending)
        operator.until("fairlead is stopping")
        operator.until("fairlead operator has stopped")
        return operator.process.wait(processes.PATIENCE)
