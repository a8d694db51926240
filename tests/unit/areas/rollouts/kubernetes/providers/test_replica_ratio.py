"""The Service as the route: its selector says who is asked, and its annotations which order."""

from datetime import datetime, timedelta

import pytest

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.kubernetes import children, names, parsing
from fairlead.areas.rollouts.kubernetes.providers.replica_ratio import ReplicaRatio
from fairlead.areas.rollouts.kubernetes.routing.provider import Apply, DesiredRoute, Found
from fairlead.errors import Rejected
from fairlead.traffic.routes import PRIMARY_ONLY, STANDBY, Match, Route, Where, only_split
from tests.unit.areas.rollouts.kubernetes.snapshot import NOW, Json, canary

RATIO = ReplicaRatio()
SITE = children.site(parsing.read(canary(provider={"replicas": {}})))


class ObjectServer:
    """A cluster of one Service."""

    def __init__(self) -> None:
        self.live: Json | None = None

    @property
    def found(self) -> Found:
        return {RATIO.refs(SITE)[0]: self.live} if self.live is not None else {}

    def route(self, route: Route, order: int, at: datetime = NOW) -> int:
        writes = RATIO.writes(SITE, DesiredRoute(order, route, at), self.found)
        for write in writes:
            assert isinstance(write, Apply)
            self.live = write.object
        return len(writes)

    def shown(self, later: float = 10) -> tuple[ObservedRoute | None, float]:
        return RATIO.shown(SITE, self.found, NOW + timedelta(seconds=later))


@pytest.mark.parametrize(
    ("route", "slot"),
    [
        (PRIMARY_ONLY, "primary"),
        (STANDBY, "primary"),
        (only_split(30), None),
        (only_split(100), "canary"),
    ],
)
def test_the_selector_says_who_is_asked(route: Route, slot: str | None) -> None:
    server = ObjectServer()

    server.route(route, 3)

    assert server.live is not None
    selector = server.live["spec"]["selector"]
    assert selector["app"] == "shop"
    assert selector.get(names.SLOT) == slot
    assert server.shown() == (ObservedRoute(3, route.weight), 0.0)


def test_a_change_is_shown_after_its_delay_and_before_that_the_route_before_it() -> None:
    server = ObjectServer()
    server.route(PRIMARY_ONLY, 1)
    server.route(only_split(50), 2)

    assert server.shown(0.5) == (ObservedRoute(1, 0), 1.5)
    assert server.shown(2.0) == (ObservedRoute(2, 50), 0.0)


def test_a_late_or_repeated_request_writes_nothing() -> None:
    server = ObjectServer()
    server.route(only_split(50), 5)

    assert server.route(only_split(50), 5, NOW + timedelta(seconds=9)) == 0
    assert server.route(PRIMARY_ONLY, 4) == 0


def test_a_changed_selector_is_drift() -> None:
    server = ObjectServer()
    server.route(PRIMARY_ONLY, 1)
    assert server.live is not None
    server.live["spec"]["selector"] = {"app": "else"}

    shown, _ = server.shown()

    assert shown is not None
    assert shown.drift


def test_a_service_cannot_read_headers() -> None:
    route = Route(joined=True, matches=(Match(Where.HEADER, "x-beta", "yes"),))

    with pytest.raises(Rejected, match="no headers"):
        ObjectServer().route(route, 1)
