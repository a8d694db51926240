"""Event Grid's web-hook through the real app: who is listened to, and what is read then."""

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead import bootstrap, errors
from fairlead.areas.resources import push
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Apply
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.engine.messages import command_id
from fairlead.web.services import Services
from tests.engines import events
from tests.unit.areas.content.service.test_bearer import Doors, doors, token
from tests.unit.areas.resources.domain.reconcile.samples import DECLARED, ID, SAME
from tests.unit.web import rig

__all__ = ["doors"]
AT = "/hooks/resources/event-grid"
READS = ["SpecChanged", "ReadStarted"]


@contextlib.asynccontextmanager
async def site(folder: Path, **more: Any) -> AsyncIterator[rig.Site]:
    (folder / "push").write_text("s3cret\nolder\n")
    known = push.senders(ResourcesSettings(resources_push_secret_file=str(folder / "push"), **more))
    assert known is not None
    cast = replace(bootstrap.installation(), services=Services({push.SENDERS: known}))
    async with rig.site(folder, cast) as made:
        await made.engine.submit(stream(ID), Apply(DECLARED), command_id("apply"))
        yield made


def changed(id_: str = ID, number: int = 1) -> dict[str, Any]:
    return {
        "id": f"e{number}",
        "topic": "/subscriptions/s",
        "subject": id_,
        "eventType": "Microsoft.Resources.ResourceWriteSuccess",
        "data": {"resourceUri": id_, "operationName": "write"},
        "eventTime": "2026-11-19T00:00:00Z",
    }


async def sent(made: rig.Site, *said: dict[str, Any], **more: Any) -> httpx.Response:
    given = {"params": {"code": "s3cret"}, **more}
    return await made.client.post(AT, json=[*said], **given)


@pytest.mark.requirement("resources R16")
@pytest.mark.parametrize("below", ["", "/extensions/x/status/y"])
async def test_what_changed_is_read_once_for_each_event(below: str, tmp_path: Path) -> None:
    async with site(tmp_path) as made:
        await kept(made)
        first = await sent(made, changed(f"{ID.upper()}{below}"))
        again = await sent(made, changed(f"{ID.upper()}{below}"))

        assert first.json() == again.json() == {"events": 1, "refreshed": 1}
        assert await events(made.engine, stream(ID)) == [*READS, "Converged", "ReadStarted"]


@pytest.mark.requirement("resources R16")
async def test_cloud_events_are_understood_alike(tmp_path: Path) -> None:
    event = {"specversion": "1.0", "id": "1", "type": "x", "source": "s", "subject": ID}
    async with site(tmp_path) as made:
        await kept(made)
        asked = {"WebHook-Request-Origin": "eventgrid.azure.net"}
        allowed = await made.client.options(AT, params={"code": "older"}, headers=asked)
        then = await made.client.post(AT, json=event, params={"code": "older"})

        assert allowed.headers["WebHook-Allowed-Origin"] == "eventgrid.azure.net"
        assert then.json() == {"events": 1, "refreshed": 1}


async def test_the_handshake_is_answered_to_who_is_known(tmp_path: Path) -> None:
    event = {
        "id": "1",
        "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
        "data": {"validationCode": "512d38b6"},
    }
    async with site(tmp_path) as made:
        known = await sent(made, event)
        unknown = await sent(made, event, params={})

    assert known.json() == {"validationResponse": "512d38b6"}
    assert unknown.status_code == 401


@pytest.mark.parametrize("code", ["", "wrong", "s3cret\n", "s3cretolder"])
async def test_who_does_not_know_the_secret_is_not_heard(code: str, tmp_path: Path) -> None:
    async with site(tmp_path) as made:
        await kept(made)
        then = await sent(made, changed(), params={"code": code})
        asked = await made.client.options(AT, params={"code": code})

        assert (then.status_code, asked.status_code) == (401, 401)
        assert await events(made.engine, stream(ID)) == [*READS, "Converged"]


async def test_a_token_for_us_opens_the_door_and_no_other(tmp_path: Path, doors: Doors) -> None:
    trusted = {"resources_push_jwks_file": str(doors.file), "resources_push_issuer": "us"}
    async with site(tmp_path, **trusted, resources_push_audience="push") as made:
        later = {"exp": time.time() + 600}
        good = await sent(made, params={}, headers=shown(aud="push", **later))
        bad = [
            await sent(made, params={}, headers=shown(**{"aud": "push", **later, **each}))
            for each in ({"aud": "content"}, {"iss": "them"}, {"exp": 1})
        ]

    assert good.status_code == 200
    assert [each.status_code for each in bad] == [401] * 3


async def test_without_secret_or_keys_nobody_is_listened_to(tmp_path: Path) -> None:
    assert push.senders(ResourcesSettings()) is None
    keys = ResourcesSettings(resources_push_jwks_file="keys")
    with pytest.raises(errors.Rejected, match="a token for anything"):
        push.senders(keys)
    async with rig.site(tmp_path, bootstrap.installation()) as made:
        assert (await sent(made, changed())).status_code == 404


@pytest.mark.parametrize("body", ["{", "3", "[1]", '["x"]', "[" * 100_000])
async def test_what_is_no_list_of_events_is_refused(body: str, tmp_path: Path) -> None:
    async with site(tmp_path) as made:
        then = await made.client.post(AT, content=body, params={"code": "s3cret"})

    assert then.status_code in (400, 413, 422)


async def test_what_is_not_kept_here_is_let_go(tmp_path: Path) -> None:
    async with site(tmp_path) as made:
        strange = [changed(f"/subscriptions/t{each}") for each in ("", "/../..", "/" * 500)]
        then = await sent(made, *strange, changed(""), {"subject": 3}, {})

    assert then.json() == {"events": 6, "refreshed": 0}


async def kept(made: rig.Site) -> None:
    """It is as declared: somebody read it."""
    await made.engine.submit(stream(ID), messages.Seen(1, SAME), command_id("seen"))


def shown(**claims: Any) -> dict[str, str]:
    said = {"sub": "event-grid", "iss": "us", **claims}
    return {"Authorization": f"Bearer {token(said)}"}
