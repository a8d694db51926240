"""The API of releases: propose, review by somebody else, steer, look who gets what."""

import datetime as dt
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from fairlead import errors
from fairlead.access import tokens
from fairlead.areas.content import description, loader
from fairlead.areas.content import requests as door
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.place import Versions
from fairlead.engine import visibility
from fairlead.engine.messages import command_id
from tests import contents
from tests.fakes import content as fakes
from tests.unit.areas.rollouts.test_workload_api import scoped
from tests.unit.web import rig

AT = "/api/v1/releases"
# Everything of a plane without tokens is asked by `local`.
LOCAL = "local"
FAR = "https://versions.example/{version}.zip"


@dataclass(frozen=True, slots=True)
class Plane:
    """A control plane, the world behind it, and the file of a release."""

    site: rig.Site
    world: fakes.World
    file: dict[str, Any]

    async def propose(self, version: str = "1.0.2", **more: Any) -> httpx.Response:
        words = {"release": self.file, "version": version, "why": "new rules", **more}
        return await self.site.client.post(AT, json=words)

    async def approved(self, version: str = "1.0.2", **more: Any) -> None:
        """By somebody else, until it bakes or is at rest."""
        (await self.propose(version, **more)).raise_for_status()
        await self.tell("approve", "paul")
        await fakes.until(
            self.site.engine,
            lambda one: not one.proposed and one.phase in {"Baking", "Idle", "AwaitingDecision"},
        )

    async def tell(self, verb: str, by: str, name: str = "gathering") -> None:
        found = await self.site.engine.read(lambda s: door.find(s, name))
        revision = found.proposal.revision if found.proposal else ""
        asked, id_ = (
            view.command(verb, by, revision=revision),
            command_id(f"{verb} by {by}: {name}"),
        )
        await self.site.engine.submit(stream(name), asked, id_)


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Plane]:
    for version in ("1.0.1", "1.0.2"):
        contents.write(tmp_path / "versions" / version, contents.version_files(version))
    source = {"directory": str(tmp_path / "versions")}
    file = {
        "content": {"name": "gathering", "kind": "gathering", "source": source},
        "local": {"port": 8000},
        "steps": [{"share": 10, "bake": "2h"}, {"share": 50, "bake": "2h"}],
    }
    world = fakes.World()
    async with rig.site(tmp_path / "state", world.cast()) as site:
        yield Plane(site, world, file)


async def test_the_commit_of_a_tag_is_recorded_and_a_moved_tag_is_refused(
    plane: Plane, tmp_path: Path
) -> None:
    repository = contents.repository(tmp_path / "conditions")
    commit = contents.tag(repository, "1.0.2", contents.version_files("1.0.2"))
    file = {**plane.file, "content": {**plane.file["content"], "source": {"git": str(repository)}}}
    words = {"release": file, "version": "1.0.2", "why": "new rules", "stable": "1.0.1"}

    told = (await plane.site.client.post(AT, json=words)).json()["release"]
    contents.tag(repository, "1.0.2", contents.version_files("1.0.2"), force=True)

    assert f"at commit {commit[:12]}" in told["terms"]
    state = await plane.site.engine.read(lambda session: door.find(session, "gathering"))
    assert state.proposal is not None
    approved = description.read(state.proposal.place.description, Path("/"))
    with pytest.raises(errors.Conflict, match="was moved"):
        await loader.load(approved, "1.0.2")
    pins = {"pins": msgspec.to_builtins(approved.pins)}
    again = {**words, "release": {**file, "content": {**file["content"], **pins}}}
    assert (await plane.site.client.post(AT, json=again)).status_code == 409
    words = {**words, "version": "1.0.9"}
    missing = (await plane.site.client.post(AT, json=words)).json()["release"]
    assert "at any commit" in missing["terms"]


async def test_a_proposal_waits_for_somebody_else(plane: Plane) -> None:
    answer = await plane.propose(stable="1.0.1")

    told = answer.json()["release"]
    assert (told["phase"], told["proposed"], told["proposed_by"]) == ("Proposed", "1.0.2", LOCAL)
    refused = await plane.site.client.post(f"{AT}/gathering/approve", json={})
    assert refused.status_code == 403
    assert "somebody else" in refused.json()["error"]["hint"]
    assert plane.world.versions is None


async def test_only_what_was_read_is_approved(plane: Plane) -> None:
    read = (await plane.propose(stable="1.0.1")).json()["release"]["revision"]
    await plane.propose(release={**plane.file, "local": {"port": 9000}})
    paul = rig.bearer(await plane.site.token(tokens.Role.OPERATOR))

    for given in ({}, {"revision": "1.0.2"}, {"revision": read}):
        refused = await plane.site.client.post(f"{AT}/gathering/approve", json=given, headers=paul)
        assert refused.status_code == 409
        assert "fairlead get release gathering" in refused.json()["error"]["hint"]
    now = (await plane.site.client.get(f"{AT}/gathering", headers=paul)).json()["release"]
    given = {"revision": now["revision"]}
    taken = await plane.site.client.post(f"{AT}/gathering/approve", json=given, headers=paul)
    assert taken.json()["release"]["proposed"] == ""


async def test_an_approved_release_is_shown_with_steps_verbs_and_history(plane: Plane) -> None:
    await plane.approved(stable="1.0.1")

    found = (await plane.site.client.get(f"{AT}/gathering")).json()

    assert found["release"]["sentence"] == "10 % get 1.0.2"
    assert [step["state"] for step in found["steps"]] == ["here", "ahead"]
    assert found["verbs"] == ["pause", "abort"]
    assert found["news"][0]["kind"] == "ShareSet"
    assert found["news"][-1]["by"] == LOCAL
    listed = (await plane.site.client.get(AT)).json()["items"]
    assert [one["name"] for one in listed] == ["gathering"]


@pytest.mark.requirement("content 13")
async def test_a_release_whose_queue_nobody_serves_says_so(plane: Plane) -> None:
    await plane.propose(stable="1.0.1")
    await plane.site.engine.move([stream("gathering")], "kubernetes@prod")
    await plane.tell("approve", "paul")
    now = dt.datetime.now(dt.UTC)

    early, late = [
        await plane.site.engine.read(functools.partial(door.read, name="gathering", now=at))
        for at in (now, now + visibility.GRACE)
    ]

    assert early.unserved == ""
    assert late.unserved.startswith("no worker serves kubernetes@prod since ")


async def test_the_same_release_goes_through_stage_and_then_through_production(
    plane: Plane,
) -> None:
    reached: dict[str, str] = {}
    for environment, name in (("stage", "stage/gathering"), ("", "gathering")):
        file = {**plane.file, "environment": environment}
        words = {"release": file, "version": "1.0.2", "why": "new rules", "stable": "1.0.1"}
        (await plane.site.client.post(AT, json=words)).raise_for_status()
        waiting = (await plane.site.client.get(f"{AT}/{name}")).json()["release"]
        # What was approved on stage is not approved in production.
        assert waiting["phase"] == "Proposed"

        await plane.tell("approve", "paul", name)
        told = await fakes.until(plane.site.engine, functools.partial(_bakes, name))
        reached[told.name] = told.share

    assert reached == {"stage/gathering": "10", "gathering": "10"}


@pytest.mark.requirement("content 13")
async def test_production_gets_only_what_is_stable_on_stage_unless_in_an_emergency(
    plane: Plane,
) -> None:
    production = {**plane.file, "after": "stage"}
    first = await plane.propose(stable="1.0.1", release=production)
    assert first.status_code == 400
    assert "1.0.2 is not stable in stage/gathering" in first.text

    stage = {**plane.file, "environment": "stage"}
    await plane.propose(release=stage, emergency=True)
    await plane.tell("approve", "paul", "stage/gathering")
    await fakes.until(plane.site.engine, lambda one: one.stable == "1.0.2")

    refused = await plane.propose("1.0.3", stable="1.0.1", release=production)
    assert refused.status_code == 400
    urgent = await plane.propose("1.0.3", stable="1.0.1", release=production, emergency=True)
    assert urgent.json()["release"]["proposed"] == "1.0.3"
    taken = await plane.propose(stable="1.0.1", release=production)
    assert taken.json()["release"]["proposed"] == "1.0.2"


def _bakes(name: str, one: view.Summary) -> bool:
    return (one.name, one.phase) == (name, "Baking")


async def test_a_verb_is_taken_once_and_refused_where_it_does_not_fit(plane: Plane) -> None:
    await plane.approved(stable="1.0.1")
    body = {"why": "lunch", "id": "once"}

    first, again = [
        (await plane.site.client.post(f"{AT}/gathering/pause", json=body)).json() for _ in range(2)
    ]
    resumed = await plane.site.client.post(f"{AT}/gathering/promote", json={})

    assert first["release"]["phase"] == "Paused"
    assert (first["receipt"]["duplicate"], again["receipt"]["duplicate"]) == (False, True)
    assert resumed.status_code == 400
    unknown = await plane.site.client.post(f"{AT}/gathering/explode", json={})
    assert unknown.status_code == 404
    assert (await plane.site.client.get(f"{AT}/other")).status_code == 404


@pytest.mark.requirement("content 11")
async def test_an_emergency_release_goes_through_while_the_flag_server_is_away(
    plane: Plane,
) -> None:
    await plane.approved(stable="1.0.1")
    plane.world.away = True

    await plane.propose("1.0.7", emergency=True)
    await plane.tell("approve", "pia")
    told = await fakes.until(plane.site.engine, lambda one: one.stable == "1.0.7")

    assert told.phase == "Settling"
    assert plane.world.versions == Versions("1.0.7")
    assert plane.world.share.share == 1000
    plane.world.away = False
    await fakes.until(plane.site.engine, lambda one: one.phase == "Idle")
    assert plane.world.share.share == 0


async def test_who_gets_what(plane: Plane) -> None:
    await plane.approved(stable="1.0.1")
    share = plane.world.share

    for identity in ("cluster-1", "cluster-2", "cluster-30"):
        found = await plane.site.client.get(f"{AT}/gathering/who", params={"id": identity})
        channel = share.channel(identity).value
        version = "1.0.2" if channel == "canary" else "1.0.1"
        expected = {"identity": identity, "channel": channel, "version": version, "settled": True}
        assert found.json() == expected


async def test_the_difference_of_two_versions(plane: Plane) -> None:
    await plane.propose(stable="1.0.1")

    found = (await plane.site.client.get(f"{AT}/gathering/difference")).json()

    assert (found["stable"], found["other"]) == ("1.0.1", "1.0.2")
    assert '- "version": "1.0.1",' in found["lines"]
    assert '+ "version": "1.0.2",' in found["lines"]


async def test_nothing_to_compare_is_not_found(plane: Plane) -> None:
    await plane.approved("1.0.1", emergency=True)

    assert (await plane.site.client.get(f"{AT}/gathering/difference")).status_code == 404


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": "../x"}, "not a version"),
        ({"why": " "}, "no reason"),
        ({"release": {"content": {}}}, "name"),
        ({"when": "now"}, "when"),
    ],
)
async def test_a_proposal_without_sense_is_refused(
    plane: Plane, change: dict[str, Any], told: str
) -> None:
    answer = await plane.propose(**{"stable": "1.0.1", **change})

    assert answer.status_code == 400
    assert told in answer.text


async def test_a_proposal_is_no_command_for_the_door_of_streams(plane: Plane) -> None:
    await plane.propose(stable="1.0.1")
    body = {"type": "Propose", "data": {}}

    answer = await plane.site.client.post("/api/v1/streams/release/gathering/commands", json=body)

    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("at", "flag", "where", "status"),
    [
        ({"namespace": "staging"}, "staging", FAR, 200),
        ({"namespace": "prod"}, "staging", FAR, 403),
        ({"namespace": "staging"}, "prod", FAR, 403),
        ({"namespace": "staging", "git": {"file": "staging"}}, "staging", FAR, 403),
        ({"namespace": "staging"}, "staging", "/versions/{version}.zip", 403),
        ({"namespace": "staging"}, "staging", "s3://versions/{version}.zip", 403),
        ({"namespace": "staging"}, "staging", "http://169.254.169.254/{version}", 403),
        ({}, "staging", FAR, 403),
    ],
)
async def test_a_token_with_a_scope_acts_on_its_own_namespace_and_flags_only(
    plane: Plane, at: dict[str, Any], flag: str, where: str, status: int
) -> None:
    cluster = {"kubernetes": {"deployment": "gathering", **at}}
    file = {
        **{key: value for key, value in plane.file.items() if key != "local"},
        "content": {**plane.file["content"], "source": {"archive": where}},
        "environment": "staging",
        "flag": {"name": "gathering", "environment": flag},
        **(cluster if at else {"local": {"port": 8000}}),
    }
    words = {"release": file, "version": "1.0.2", "why": "new rules", "stable": "1.0.1"}
    own = await scoped(plane.site, "staging")

    then = await plane.site.client.post(AT, json=words, headers=own)

    assert then.status_code == status, then.text
