"""What a command is run in, as the root hands it down; light, for every start imports it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CliContext:
    """What the root's options ask for, and what the program is put together from."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    """Variables that stand above the environment's."""

    place: str = "fairlead.bootstrap:installation"
    """Of a function that makes the `console.installation.Installation`."""

    installation: Callable[[], object] | None = None
    """Makes another one; with it, nothing runs on this machine but what it brings."""
