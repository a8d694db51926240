"""A whole canary under constant load on a real gateway: no request is lost on the way.

`lost` are requests that no version answered. A bad version fails its own requests, and nobody
else's.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.areas.rollouts.domain import events
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.kubernetes.providers import gateway_api
from fairlead.checks.spec import Check
from fairlead.cli.demo.load import Load, Tally
from fairlead.values import Percent
from tests.cluster import client
from tests.dataplane import drive
from tests.dataplane import gateway as gateways
from tests.dataplane.conftest import NAMESPACE, Dataplane
from tests.dataplane.platform import DataplanePlatform

pytestmark = pytest.mark.dataplane
URL = f"http://127.0.0.1:{gateways.PORT}/"
PARENTS = [{"name": "public"}]
SPEC = Spec(
    Strategy(
        steps=tuple(Pace(Percent(weight)) for weight in (10, 50)),
        pause=dt.timedelta(seconds=2),
        bake=dt.timedelta(seconds=2),
    ),
    (Check("errors", success="result < 5"),),
)
COMPARED = dataclasses.replace(SPEC, strategy=dataclasses.replace(SPEC.strategy, baseline=True))
LOAD = 200.0
ROUTES = client.path("gateway.networking.k8s.io/v1", "httproutes", NAMESPACE)
THEIRS: client.Json = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "web", "labels": {"team": "web"}},
    "spec": {
        "parentRefs": PARENTS,
        "rules": [
            {
                "timeouts": {"request": "9s"},
                "backendRefs": [{"name": "shop", "port": 80}],
            }
        ],
    },
}


@pytest.fixture(params=["weighted clusters", "one cluster"])
async def dataplane_platform(
    request: pytest.FixtureRequest, data_plane: Dataplane
) -> DataplanePlatform:
    """A shop behind the gateway, which counts its backends apart or as one."""
    await data_plane.gateway.open(NAMESPACE, merge=request.param == "weighted clusters")
    made = DataplanePlatform(data_plane.admin, NAMESPACE, gateway_api.GatewayApi(), {})
    await made.open()
    return made


@pytest.mark.requirement("canary R18")
@pytest.mark.parametrize("way", ["own", "adopted", "compared"])
async def test_good_and_bad_canaries_lose_no_request(
    data_plane: Dataplane,
    dataplane_platform: DataplanePlatform,
    tmp_path: Path,
    tell: Callable[[str], None],
    way: str,
) -> None:
    adopted = way == "adopted"
    spec = COMPARED if way == "compared" else SPEC
    dataplane_platform.desired(
        {"routeName": "web"} if adopted else {"route": {"parentRefs": PARENTS}}
    )
    theirs = await data_plane.admin.create(ROUTES, THEIRS) if adopted else {}
    dataplane_platform.errors = {"v3": 100.0}
    data_plane.kubelet.errors["v3"] = 1.0
    async with drive.driven(dataplane_platform, tmp_path) as engine:
        await drive.want(engine, "v1", spec)
        await drive.until_idle(engine, "v1")

        async with Load(URL, per_second=LOAD).running() as good:
            await good.at_least(100)
            await drive.want(engine, "v2", spec)
            promoted = await drive.until_idle(engine, "v2", "v2")
            await good.at_least(100)
        async with Load(URL, per_second=LOAD).running() as bad:
            await drive.want(engine, "v3", spec)
            rolled_back = await drive.until_idle(engine, "v2", "v3")
            await bad.at_least(100)

    tell(f"good: {words(good.tally)}; bad: {words(bad.tally)}; {data_plane.gateway.memory_mb} MB")
    assert promoted.rollout.outcome.ending is events.Ending.PROMOTED
    assert good.tally.failed == 0
    made = {what for verb, what in dataplane_platform.writes if verb == "ensure"}
    assert any(what.startswith("shop-baseline v1") for what in made) == (way == "compared")
    assert good.tally.of("v1") > 0 < good.tally.of("v2")
    assert rolled_back.rollout.outcome.ending is events.Ending.ROLLED_BACK
    assert bad.tally.lost == 0
    assert bad.tally.failed == bad.tally.of("v3") > 0
    if adopted:
        assert (await data_plane.admin.get(f"{ROUTES}/web"))["spec"] == theirs["spec"]


def words(tally: Tally) -> str:
    seen = ", ".join(f"{n} x {version} {status}" for (version, status), n in tally.answers.items())
    return f"{tally.sent} sent, {tally.lost} lost ({seen})"
