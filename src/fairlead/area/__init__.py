"""The seam between the shared ground and an area: one value that says what an area brings.

`areas/*/area.py` makes an `Area` and imports nothing but this module and the declarations of its
verbs, which are plain data, so that `fairlead --help` stays quick. Everything heavy is a place,
`package.module:attribute`, which `area.parts` loads and holds against the type it must have; a
test loads every place of every area.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.values import Verb
from fairlead.web.navigation import Link

__all__ = ["Area", "Command", "Link", "Verb"]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the program, loaded when it is called."""

    place: str
    """Of a click.Command."""

    help: str
    """The one line that `fairlead --help` shows."""


@dataclass(frozen=True, slots=True)
class Area:
    """What an area brings; what it does not bring is left empty."""

    name: str
    core: str
    """Place of a function that makes `parts.Core`: machines, projections, step kinds."""

    commands: Mapping[str, Command] = field(default_factory=dict)
    nouns: Mapping[str, str] = field(default_factory=dict)
    """What `get`, `watch` and the verbs may name: each word with the place of its
    `console.nouns.Noun`."""

    verbs: Mapping[str, Verb] = field(default_factory=dict)
    """What people may ask of its nouns, by name: each is a command of the program too."""

    navigation: tuple[Link, ...] = ()
    settings: str = ""
    """Place of its group of settings: a frozen dataclass, declared as settings.py does."""

    platform: str = ""
    """Place of a function of the settings that makes `parts.Platform`, what it runs in
    `fairlead up`, or None where this machine cannot."""

    operator: str = ""
    """Place of a function that makes `parts.OperatorPart`: kinds, and who performs for them."""

    web: str = ""
    """Place of a function that makes `web.mounts.Mount`: API, pages, templates, assets."""
