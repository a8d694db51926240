"""Destinations of a VirtualService: which of them are a rollout's slots."""

from collections.abc import Iterator

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes.routing import backend_weights
from fairlead.areas.rollouts.kubernetes.routing.provider import Backend, Object, Site

SECTIONS = ("http", "tcp", "tls")


def sides(site: Site) -> backend_weights.Sides:
    def leads(item: Object, slot: Slot) -> bool:
        destination = item.get("destination") or {}
        if not is_host(destination.get("host"), site, site.at(slot).service):
            return False
        return slot is not Slot.PRIMARY or _is_named(destination, site)

    def made(primary: Object, slot: Slot) -> Object:
        return {**primary, "destination": destination_of(primary["destination"], site.at(slot))}

    return backend_weights.Sides(leads, made, unsaid=0)


def _is_named(destination: Object, site: Site) -> bool:
    """Whether a destination at the primary's host is the one that the object names.

    Another subset is other pods, and another port other traffic: theirs, to leave alone. What a
    route of ours describes is all named by that.
    """
    if not site.desired.get("vsName"):
        return True
    port = (destination.get("port") or {}).get("number", site.primary.port)
    same = destination.get("subset") == site.desired.get("subset")
    return bool(same and port == site.primary.port)


def destination_of(primary: Object, side: Backend) -> Object:
    """The primary's with another Service; a subset is one of the primary's own."""
    given = {key: value for key, value in primary.items() if key != "subset"}
    rest = str(given["host"]).partition(".")[1:]
    return {**given, "host": "".join((side.service, *rest))}


def is_host(host: object, site: Site, service: str) -> bool:
    """Whether a host of a VirtualService in the site's namespace means this Service."""
    name, _, rest = str(host).partition(".")
    space = site.namespace
    return name == service and (
        rest in ("", space, f"{space}.svc") or rest.startswith(f"{space}.svc.")
    )


def sections(spec: Object) -> Iterator[str]:
    return (section for section in SECTIONS if isinstance(spec.get(section), list))


def told(site: Site) -> str:
    """What the object names, in words."""
    subset = site.desired.get("subset")
    named = f", subset {subset}, port {site.primary.port}" if subset else ""
    return f"the Service {site.primary.service}{named}"


def elsewhere(site: Site, spec: Object) -> str:
    """Which other destinations at this host there are to name."""
    named: set[str] = set()
    for section in sections(spec):
        for rule in spec[section]:
            for one in rule.get("route") or ():
                found = one.get("destination") or {}
                if is_host(found.get("host"), site, site.primary.service):
                    port = (found.get("port") or {}).get("number", "any")
                    named.add(f"subset {found.get('subset', 'none')}, port {port}")
    return f"; it has: {'; '.join(sorted(named))}" if named else ""
