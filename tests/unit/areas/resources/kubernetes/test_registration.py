"""Objects of resources on the fake API server, and what becomes of them in the simulated cloud."""

from pathlib import Path

from fairlead.areas.resources.kubernetes.kinds import CLOUD_RESOURCES
from tests.unit.areas.resources.kubernetes.operating import ID, resource, site


async def test_an_object_makes_a_resource_and_shows_it(tmp_path: Path) -> None:
    async with site(tmp_path) as there, there.operating():
        await there.hand.create(CLOUD_RESOURCES, resource())

        found = await there.seen()

    assert there.cloud.made == {ID.lower(): 1}
    assert found["status"]["resourceId"] == ID
    assert found["status"]["observed"]["sku"] == {"name": "Standard_D2_v3", "capacity": 3}
