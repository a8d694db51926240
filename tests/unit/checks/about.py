"""What checks are asked about in these tests: a shop whose slots are called after their slots."""

import datetime as dt

from fairlead import errors
from fairlead.areas.rollouts.kubernetes import provider_registry
from fairlead.checks.subject import Names, Side, Subject, Version

NOW = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
MINUTE = dt.timedelta(minutes=1)


def version(revision: str) -> Version:
    return Version(revision, revision)


def about(weight: int = 10, since: dt.datetime = NOW - 10 * MINUTE) -> Subject:
    return Subject("team/shop", 7, version("v1"), version("v2"), weight, since)


def naming(asked: Subject, side: Side) -> Names:
    if asked.name != "team/shop":
        raise errors.NotFound(f"no such rollout: {asked.name}", hint="look at their list")
    name = "shop" if side is Side.PRIMARY else f"shop-{side.value}"
    arguments = {"namespace": "team", "target": name, "service": name, "port": "80"}
    return Names(provider_registry.found()["istio"].metrics, arguments)
