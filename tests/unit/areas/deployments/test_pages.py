"""The pages of stacks, deployments and triggers as the server writes them."""

import contextlib
import html
import re
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairlead import bootstrap
from fairlead.access import tokens
from fairlead.areas.deployments import pages
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.deployment.state import Status as DeploymentStatus
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.stack.state import Status
from fairlead.areas.deployments.domain.trigger.messages import Progress
from tests.fakes import deployments as story
from tests.unit.areas.deployments.triggers.world import TARGET, world
from tests.unit.web import rig


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path, bootstrap.installation()) as made:
        yield made


async def page(site: rig.Site, path: str, headers: dict[str, str] | None = None) -> str:
    answer = await site.client.get(path, headers={"Accept": "text/html", **(headers or {})})
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def buttons(text: str) -> list[tuple[str, str]]:
    return re.findall(r'data-verb="([a-z-]+)"[^>]*>([A-Za-z ]+)', text)


async def test_empty_lists_say_how_to_fill_them(site: rig.Site) -> None:
    assert "fairlead deploy release.yaml" in await page(site, "/stacks")
    assert "fairlead deployments start" in await page(site, "/triggers")


async def test_an_address_without_a_name_leads_to_the_list(site: rig.Site) -> None:
    answer = await site.client.get("/deployments", headers={"Accept": "text/html"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/stacks")


async def test_what_is_broken_comes_first(site: rig.Site) -> None:
    await story.broken(site.engine)
    await story.evaluated(site.engine)

    text = await page(site, "/stacks")

    assert re.findall(r"/stacks/(prod/\w+)", text) == ["prod/till", "prod/shop"]
    assert "no room on the disk" in text


async def test_a_stack_shows_who_has_its_turn_who_waits_and_what_was(site: rig.Site) -> None:
    running = await story.evaluated(site.engine)
    waiting = await story.requested(site.engine, story.spec("shop", "v3"))

    text = await page(site, "/stacks/prod/shop")

    assert f'data-stream="stack/prod/shop deployment/{running}"' in text
    queue = text[text.index('id="queue"') : text.index('id="deployments"')]
    assert re.findall(r"/deployments/([\w/.]+)", queue) == [waiting]
    assert buttons(text) == [("abort", "Abort")]
    assert "by github:ann" in text


async def test_a_broken_stack_offers_its_ways_out(site: rig.Site) -> None:
    await story.broken(site.engine)

    text = await page(site, "/stacks/prod/till")

    assert [verb for verb, _ in buttons(text)] == ["retry", "force-available"]
    assert '"why": true' in text


@pytest.mark.parametrize(("path", "kept"), [("stacks/prod/shop", "abort"), ("deployments/", "")])
async def test_a_token_of_another_environment_sees_none_of_it(
    site: rig.Site, path: str, kept: str
) -> None:
    name = await story.evaluated(site.engine)
    wanted = tokens.TokenRequest("far", tokens.Role.OPERATOR, None, "staging")
    far = await site.engine.write(lambda s: tokens.mint(s, wanted, datetime.now(UTC)))
    asked = f"/{path}" if kept else f"/{path}{name}"

    answer = await site.client.get(asked, headers={"Accept": "text/html", **rig.bearer(far)})

    assert answer.status_code == 404
    assert "prod/shop" not in await page(site, "/stacks", rig.bearer(far))


async def test_a_deployment_shows_its_plan_what_was_found_and_why(site: rig.Site) -> None:
    name = await story.evaluated(site.engine)

    text = await page(site, f"/deployments/{name}")

    assert re.findall(r'<g class="node (\w+) \w+" data-key="(\w+)"', text) == [
        *(("done", "PGUpsert"), ("done", "PGEval"), ("done", "CFPlan"), ("done", "EvalJoin")),
        *(("active", "InfraMigrate"), ("active", "PGMigrate")),
        *(("blocked", "PGCleanup"), ("blocked", "VersionMigrate")),
    ]
    assert "ALTER TABLE orders ADD COLUMN note text" in text
    assert "AccessExclusiveLock on orders" in text
    assert "safer: <code>none is needed</code>" in text
    assert "push to main of acme/shop by github:ann" in text
    assert "/streams/postgres-migration/" in text
    assert "<b>Run step</b>" in text
    assert text.count("<time") > 5
    assert buttons(text) == [("abort", "Abort")]


def change_effects(folder: Path, change: str) -> None:
    (file,) = folder.rglob("*.db")
    with contextlib.closing(sqlite3.connect(file)) as store:
        store.execute(f"UPDATE outbox SET {change}")  # noqa: S608 - our own words
        store.commit()


async def test_what_is_tried_again_is_shown_beside_its_step(site: rig.Site, tmp_path: Path) -> None:
    name = await story.evaluated(site.engine)
    # As if whoever performs had tried three times.
    change_effects(tmp_path, "attempts = 3, error = 'AWS: Throttling'")

    text = await page(site, f"/deployments/{name}")

    why = "try 3 failed, it is tried again: AWS: Throttling"
    for step in ("InfraMigrate", "PGMigrate"):
        row = text[text.index(f'<tr data-key="{step}">') :]
        assert why in row[: row.index("</tr>")]


async def test_what_no_worker_performs_is_shown(site: rig.Site, tmp_path: Path) -> None:
    name = await story.evaluated(site.engine)
    early = await page(site, f"/deployments/{name}")
    change_effects(tmp_path, "due_at = 0")

    late = await page(site, f"/deployments/{name}")

    why = "no worker serves streams without a queue since 1970-01-01 00:00:00 UTC"
    assert why not in early
    assert f'<p class="refused">{why}</p>' in late
    row = late[late.index('<tr data-key="PGMigrate">') :]
    assert why in row[: row.index("</tr>")]


async def test_before_the_evaluation_every_branch_is_told(site: rig.Site) -> None:
    name = await story.requested(site.engine, story.spec("shop", "v2"))
    await story.settled(site.engine, name)

    text = await page(site, f"/deployments/{name}")

    assert (
        "<dt>DOWNTIME</dt><dd>ScaleDown, InfraMigrate, PGMigrate, PGCleanup, ScaleUp</dd>" in text
    )


async def test_who_is_asked_may_approve_or_refuse(site: rig.Site) -> None:
    name = await story.asking(site.engine)

    text = await page(site, f"/deployments/{name}")
    refused = await site.client.post(f"/api/v1/deployments/{name}/abort", json={"why": "not now"})
    after = await page(site, "/stacks/prod/desk")

    assert "Awaiting approval" in text
    assert buttons(text) == [("approve", "Approve"), ("abort", "Refuse")]
    assert refused.status_code == 200
    assert "Available" in after, "who says no breaks no stack"
    ended = await page(site, f"/deployments/{name}")
    assert buttons(ended) == []
    assert "It was ended before its plan was." in ended
    assert set(pages.LEADS) | {"NEW", "ASKING", "FROZEN", "RUNNING"} == set(pages.DEPLOYMENTS)


async def test_a_reader_gets_no_buttons(site: rig.Site) -> None:
    name = await story.asking(site.engine)
    reader = rig.bearer(await site.token(tokens.Role.VIEWER))

    for path in (f"/deployments/{name}", "/stacks/prod/desk"):
        text = await page(site, path, reader)

        assert buttons(text) == []
        assert "read-only" in text


async def test_markup_of_strangers_is_text(site: rig.Site) -> None:
    name = await story.evaluated(site.engine)
    why = "<script>alert(1)</script> https://ann:pw@db"
    await site.client.post(f"/api/v1/deployments/{name}/abort", json={"why": why})

    text = (await site.client.get(f"/deployments/{name}")).text

    assert "<script>alert" not in text
    assert "ann:pw" not in text


async def test_what_is_not_there_is_told(site: rig.Site) -> None:
    answer = await site.client.get("/stacks/prod/none", headers={"Accept": "text/html"})

    assert answer.status_code == 404
    assert "hint: list them: fairlead get stacks" in answer.text


async def test_a_trigger_shows_each_target_and_its_deployment(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.store("push-targets", **{**TARGET, "application": "till", "path": "till.yaml"})
        for target in ("prod/shop", "prod/till"):
            asked = {"target": target, "commit": "c" * 40}
            answer = await made.site.client.post("/api/v1/triggers", json=asked)
            name = answer.json()["trigger"]
            await made.trigger(name)
            text = await page(made.site, f"/triggers/{name}")

            assert target in text
            assert ("/deployments/prod/shop" in text) is (target == "prod/shop")
        assert "till.yaml" in text, "the reason of what was refused"
        assert "started for cccccccccccc" in await page(made.site, "/triggers")


def test_every_state_has_a_sign_and_words() -> None:
    assert {each.value for each in Status} == {*pages.STACKS}
    assert {each.value for each in DeploymentStatus} < {*pages.DEPLOYMENTS}
    assert {each.value for each in StepStatus} == {*pages.STEPS}
    assert {each.value for each in Impact} == {*pages.CLASSES}
    assert {each.value for each in Progress} < {*pages.TRIGGERS}
