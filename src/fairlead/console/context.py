"""What a command is run in, as the root hands it down; light, for every start imports it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the root's options ask for, and the machines where they are not the usual ones."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    """Variables that stand above the environment's."""

    cast: Callable[[], Any] | None = None
    """Gives a bootstrap.Cast; None means the installation's own."""
