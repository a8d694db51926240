"""The command line that the tests of commands type on."""

from tests.unit.cli.conftest import filled, quiet_after, run, state_dir

__all__ = ["filled", "quiet_after", "run", "state_dir"]
