"""The pages of what is stored: lists, versions and what changed, and a form that checks."""

import html
from typing import Any

import pytest

from fairlead.access import tokens
from tests.unit.areas.deployments.registry.test_api import PROD, bearer, site, stored
from tests.unit.areas.deployments.specs.test_target import TARGET
from tests.unit.web import rig

__all__ = ["site"]
HTML = {"Accept": "text/html"}


async def page(
    site: rig.Site, path: str, status: int = 200, headers: dict[str, str] | None = None
) -> str:
    answer = await site.client.get(path, headers={**HTML, **(headers or {})})
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


async def send(site: rig.Site, kind: str, text: str, expects: str = "", **headers: str) -> Any:
    form = {"text": text, "expects": expects}
    return await site.client.post(f"/definitions/{kind}", data=form, headers={**HTML, **headers})


async def test_everything_is_listed_by_its_kind(site: rig.Site) -> None:
    assert "None yet" in await page(site, "/definitions")
    await stored(site)

    text = await page(site, "/definitions")

    for path in ("cluster/east", "environment/prod", "push-target/prod/shop"):
        assert f'href="/definitions/{path}"' in text
    assert 'href="/definitions/cluster/new"' in text


async def test_versions_tell_who_changed_what(site: rig.Site) -> None:
    await stored(site)
    changed = {**TARGET, "branches": ["release/*"]}
    assert (await site.client.post("/api/v1/push-targets", json=changed)).status_code == 200

    text = await page(site, "/definitions/push-target/prod/shop?compare=2")
    first = await page(site, "/definitions/push-target/prod/shop?compare=1")

    assert "Push target, version 2 by local" in text
    assert "--- version 1\n+++ version 2\n" in text
    assert "\n-- " in text
    assert "+application: shop" in first
    await page(site, "/definitions/push-target/prod/shop?compare=9", 404)


async def test_the_form_stores_a_new_version_and_checks_as_validate_does(site: rig.Site) -> None:
    await stored(site)
    edit = await page(site, "/definitions/environment/prod?edit=true")
    assert "cluster_name: east" in edit

    wrong = await send(site, "environment", "full_name: prod\ncluster_name: west\n", "1")
    malformed = await send(site, "environment", "full_name: [", "1")
    good = await send(
        site, "environment", "full_name: prod\ncluster_name: east\ncors_origins: [a]\n", "1"
    )
    late = await send(site, "environment", "full_name: prod\n", "1")

    assert wrong.status_code == 400
    assert "environment:2:1" in wrong.text
    assert "cluster_name: west" in wrong.text, "what was typed stays"
    assert malformed.status_code == 400
    assert (good.status_code, good.headers["location"]) == (303, "/definitions/environment/prod")
    assert late.status_code == 409
    assert "it was edited meanwhile: version 2, not 1" in html.unescape(late.text)


async def test_something_new_is_made_from_a_file_to_begin_with(site: rig.Site) -> None:
    text = await page(site, "/definitions/environment/new")
    answer = await send(site, "environment", "kind: environment\nfull_name: staging\n")

    assert "full_name: staging" in text
    assert answer.headers["location"] == "/definitions/environment/staging"


async def test_what_was_removed_keeps_its_versions(site: rig.Site) -> None:
    await stored(site)
    await site.client.post("/api/v1/push-targets/prod/shop/remove", json={})

    text = await page(site, "/definitions/push-target/prod/shop")

    assert "version 2 by local" in text
    assert ": removed" in text
    assert "Difference of version 1" in text


async def test_who_may_not_edit_gets_no_form(site: rig.Site) -> None:
    await stored(site)
    deployer = await bearer(site, tokens.Role.DEPLOYER)

    text = await page(site, "/definitions/environment/prod", headers=deployer)
    target = await page(site, "/definitions/push-target/prod/shop", headers=deployer)
    refused = await send(site, "environment", "full_name: prod\n", "1", **deployer)

    assert "Edited by the role admin" in text
    assert 'href="?edit=true"' in target
    assert refused.status_code == 403
    await page(site, "/definitions/environment/prod?edit=true", 403, deployer)
    await page(site, "/definitions/environment/new", 403, deployer)


async def test_a_scope_sees_its_own_environment_only(site: rig.Site) -> None:
    await stored(site)
    staging = await bearer(site, tokens.Role.DEPLOYER, "staging")

    assert "prod/shop" not in await page(site, "/definitions", headers=staging)
    await page(site, "/definitions/push-target/prod/shop", 404, staging)


@pytest.mark.parametrize("path", ["none/prod", "environment/none", "cluster/none"])
async def test_what_is_not_there_is_told(site: rig.Site, path: str) -> None:
    assert "hint:" in await page(site, f"/definitions/{path}", 404)


async def test_a_secret_is_neither_shown_nor_overwritten_by_what_stands_for_it(
    site: rig.Site,
) -> None:
    hidden = {**PROD, "cluster_name": "", "vars": [{"name": "DB", "value": "https://a:pw@db"}]}
    assert (await site.client.post("/api/v1/environments", json=hidden)).status_code == 200

    text = await page(site, "/definitions/environment/prod?compare=1")
    edited = await page(site, "/definitions/environment/prod?edit=true", 400)

    assert "pw" not in text
    assert "which pages do not show" in edited


async def test_a_form_that_is_too_large_is_refused(site: rig.Site) -> None:
    answer = await send(site, "environment", "x" * 3_000_000)

    assert answer.status_code == 413
