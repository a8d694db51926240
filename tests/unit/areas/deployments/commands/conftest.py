"""The command line that the tests of commands type on."""

from tests.unit.areas.deployments.migrations.conftest import pg_dump, target
from tests.unit.cli.conftest import quiet_after, run, state_dir

__all__ = ["pg_dump", "quiet_after", "run", "state_dir", "target"]
