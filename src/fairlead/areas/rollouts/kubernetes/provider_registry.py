"""The ways to split traffic on Kubernetes, by name: one file of `providers` each.

A new one is one new file with a function `provider`. Its fields in the definition, their rules, its
metrics and what it cannot do are its own; nothing else is edited.
"""

import functools
import pkgutil
from collections.abc import Mapping

from fairlead import loading
from fairlead.areas.rollouts.kubernetes import providers
from fairlead.areas.rollouts.kubernetes.routing.provider import Provider

USUAL = "replicas"


def found() -> Mapping[str, Provider]:
    """The providers that ship, by the field of the spec that chooses them."""
    return _made(tuple(providers.__path__))


def usual() -> Provider:
    """Who splits the traffic of an object that names nobody."""
    return found()[USUAL]


@functools.cache
def _made(folders: tuple[str, ...]) -> Mapping[str, Provider]:
    files = sorted(file.name for file in pkgutil.iter_modules(folders))
    place = f"{providers.__name__}.{{}}:provider"
    # The check is of the protocol's members, which a type cannot say of a file that is found.
    made = [loading.make(place.format(name), Provider) for name in files]  # type: ignore[type-abstract]  # a protocol
    return {one.name: one for one in made}
