"""The command line that the tests of commands type on."""

from tests.unit.cli.conftest import quiet_after, run, state_dir

__all__ = ["quiet_after", "run", "state_dir"]
