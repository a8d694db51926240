"""How bright lamps may be."""

from dataclasses import dataclass

from fairlead.settings import setting


@dataclass(frozen=True, slots=True)
class LampSettings:
    """Lamps of this installation."""

    lamp_watts: int = setting(40, "How many watts a lamp may have.")
