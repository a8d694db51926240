"""The Service as the route: its selector says who is asked, and its annotations which order."""

from datetime import datetime, timedelta

import pytest

from fairlead.adapters.canaries import children, names, reading
from fairlead.adapters.canaries.provider import Apply, Found, Wanted
from fairlead.adapters.canaries.ratio import Ratio
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.traffic.routes import AT_HOME, STANDBY, Match, Route, Where, only_split
from fairlead.errors import Rejected
from tests.unit.adapters.canaries.around import NOW, Json, canary

RATIO = Ratio()
SITE = children.site(reading.read(canary(provider={"replicas": {}})))


class Hands:
    """A cluster of one Service."""

    def __init__(self) -> None:
        self.live: Json | None = None

    @property
    def found(self) -> Found:
        return {RATIO.refs(SITE)[0]: self.live} if self.live is not None else {}

    def route(self, route: Route, order: int, at: datetime = NOW) -> int:
        writes = RATIO.writes(SITE, Wanted(order, route, at), self.found)
        for write in writes:
            assert isinstance(write, Apply)
            self.live = write.object
        return len(writes)

    def shown(self, later: float = 10) -> tuple[Shown | None, float]:
        return RATIO.shown(SITE, self.found, NOW + timedelta(seconds=later))


@pytest.mark.parametrize(
    ("route", "slot"),
    [
        (AT_HOME, "primary"),
        (STANDBY, "primary"),
        (only_split(30), None),
        (only_split(100), "canary"),
    ],
)
def test_the_selector_says_who_is_asked(route: Route, slot: str | None) -> None:
    hands = Hands()

    hands.route(route, 3)

    assert hands.live is not None
    selector = hands.live["spec"]["selector"]
    assert selector["app"] == "shop"
    assert selector.get(names.SLOT) == slot
    assert hands.shown() == (Shown(3, route.share), 0.0)


def test_a_change_is_shown_after_its_delay_and_before_that_the_route_before_it() -> None:
    hands = Hands()
    hands.route(AT_HOME, 1)
    hands.route(only_split(50), 2)

    assert hands.shown(0.5) == (Shown(1, 0), 1.5)
    assert hands.shown(2.0) == (Shown(2, 50), 0.0)


def test_a_late_or_repeated_wish_writes_nothing() -> None:
    hands = Hands()
    hands.route(only_split(50), 5)

    assert hands.route(only_split(50), 5, NOW + timedelta(seconds=9)) == 0
    assert hands.route(AT_HOME, 4) == 0


def test_a_changed_selector_is_drift() -> None:
    hands = Hands()
    hands.route(AT_HOME, 1)
    assert hands.live is not None
    hands.live["spec"]["selector"] = {"app": "else"}

    shown, _ = hands.shown()

    assert shown is not None
    assert shown.drift


def test_a_service_cannot_read_headers() -> None:
    route = Route(joined=True, matches=(Match(Where.HEADER, "x-beta", "yes"),))

    with pytest.raises(Rejected, match="no headers"):
        Hands().route(route, 1)
