"""The API of resources: page by page, why one waits, and nothing for who has a scope."""

from dataclasses import replace
from pathlib import Path

from fairlead import bootstrap
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Apply
from fairlead.engine.messages import command_id
from tests.unit.areas.resources.domain.reconcile.samples import DECLARED, ID
from tests.unit.areas.rollouts.test_workload_api import scoped
from tests.unit.web import rig

AT = "/api/v1/resources"


async def declare(site: rig.Site, *ids: str) -> None:
    for id_ in ids:
        told = Apply(replace(DECLARED, id=id_), "rita")
        await site.engine.submit(stream(id_), told, command_id(f"apply {id_}"))


async def test_resources_come_page_by_page_and_one_by_its_id(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        await declare(site, ID, f"{ID}2")
        first = (await site.client.get(AT, params={"limit": 1})).json()
        further = {"limit": 1, "before": first["next"]}
        second = (await site.client.get(AT, params=further)).json()
        one = (await site.client.get(f"{AT}/{ID.strip('/').upper()}")).json()
        filtered = await site.client.get(AT, params={"where": "phase=Ready"})

    assert [each["id"] for page in (first, second) for each in page["items"]] == [f"{ID}2", ID]
    assert second["next"] is None
    assert (one["id"], one["phase"], one["next"]) == (ID, "Reading", None)
    assert (one["last_write"], one["differs"]) == (None, [])
    assert filtered.json()["items"] == []


async def test_a_token_of_a_project_sees_no_resource(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        await declare(site, ID)
        theirs = await scoped(site, "payments")
        listed = await site.client.get(AT, headers=theirs)
        one = await site.client.get(f"{AT}/{ID.strip('/')}", headers=theirs)

    assert listed.json()["items"] == []
    assert one.status_code == 404
    assert one.json()["error"]["hint"] == "list them with fairlead get resources"
