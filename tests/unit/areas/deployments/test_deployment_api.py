"""The door for deployments: who may ask for one, and what becomes of it."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.access import tokens
from fairlead.areas.deployments import requests
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.specs import workload
from fairlead.areas.rollouts.domain import plan_step
from fairlead.areas.rollouts.domain.messages import Request
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.engine.messages import command_id, stream_name
from fairlead.web.services import Services
from tests.unit.areas.deployments.asked import WORDS
from tests.unit.areas.deployments.specs.files import CLUSTER
from tests.unit.areas.rollouts.test_workload_api import scoped
from tests.unit.web import rig

TARGET = requests.AwsTarget("aws@test", "templates")
NAME = "prod-eu/shop/v1"
MACHINE = workload.Machine("local@here", Path("/credentials"), postgres=True)
LOCAL: dict[str, Any] = {
    "version": "v1",
    "environment": {"full_name": "dev"},
    "application": {
        "name": "shop",
        "workload": {"listen": 8080, "program": {"command": ["serve"]}},
    },
}


async def post(site: rig.Site, body: Any, target: Any = TARGET, **headers: str) -> Any:
    known = Services({requests.AWS_TARGET: target} if target else None)
    if isinstance(target, workload.Machine):
        known = Services({requests.MACHINE: target})
    site.app.state.context = dataclasses.replace(site.context, services=known)
    return await site.client.post("/api/v1/deployments", json=body, headers=headers)


async def stored(site: rig.Site) -> dict[str, str]:
    """The cluster and the environment of the request, as an admin keeps them; its token."""
    admin = rig.bearer(await site.token(tokens.Role.ADMIN))
    environment = {**WORDS["environment"], "cluster_name": CLUSTER["name"]}
    for plural, content in (("clusters", CLUSTER), ("environments", environment)):
        answer = await site.client.post(f"/api/v1/{plural}", json=content, headers=admin)
        assert answer.status_code == 200, answer.text
    return admin


@pytest.mark.requirement("deployer Q1", "deployer Q4", "deployer Q6", "deployer Q7")
async def test_a_deployment_is_built_and_queued(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        first = (await post(site, WORDS)).json()
        again = (await post(site, WORDS)).json()
        stream = (await site.client.get(f"/api/v1/streams/deployment/{NAME}")).json()
        whole = (await site.client.get(f"/api/v1/deployments/{NAME}")).json()["whole"]
        effects = (await site.client.get("/api/v1/effects")).json()

    assert (first["name"], first["revision"], first["url"]) == (NAME, "v1", f"deployment/{NAME}")
    assert (first["receipt"]["events"] > 0, again["receipt"]["events"]) == (True, 0)
    assert stream["queue"] == "aws@test"
    assert whole["template"]["bucket"] == "templates"
    assert whole["parameters"]["ImageWebApp"] == "registry.example/shop:v1"
    assert effects


async def test_the_same_version_after_an_end_is_another_deployment(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        await post(site, WORDS)
        await site.engine.submit(
            stream_name("deployment", NAME), messages.Terminate("ann"), command_id("end")
        )
        second = (await post(site, WORDS)).json()

    assert second["name"] == f"{NAME}.d2"


async def test_other_content_under_the_same_name_is_a_conflict(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        await post(site, WORDS)
        other = await post(site, {**WORDS, "flags": ["quick"]})

    assert other.status_code == 409
    assert "other content" in other.json()["error"]["message"]


async def test_to_deploy_takes_the_role_and_the_environment(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        operator = rig.bearer(await site.token(tokens.Role.OPERATOR))
        foreign, own = await scoped(site, "staging"), await scoped(site, "prod-eu")
        refused = [await post(site, WORDS, **each) for each in (operator, foreign)]
        unseen = await site.client.get(f"/api/v1/deployments/{NAME}", headers=foreign)
        unknown = await post(site, WORDS, **own)
        await stored(site)
        taken = await post(site, WORDS, **own)

    assert [each.status_code for each in refused] == [403, 403]
    assert unseen.status_code == 404
    assert (unknown.status_code, "no such environment" in unknown.text) == (404, True)
    assert taken.status_code == 200, taken.text


@pytest.mark.requirement("deployer Q2", "deployer Q3")
async def test_who_deploys_acts_as_what_is_stored_says_not_as_the_request_says(
    tmp_path: Path,
) -> None:
    cluster = copy.deepcopy(CLUSTER)
    cluster["aws"]["o5_deployer"] = {"assume_role_arn": "arn:aws:iam::999999999999:role/theirs"}
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        own, admin = await scoped(site, "prod-eu"), await stored(site)
        await post(site, {**WORDS, "cluster": cluster}, **own)
        mine = await site.client.get(f"/api/v1/deployments/{NAME}", headers=admin)
        await post(site, {**WORDS, "version": "v2", "cluster": cluster}, **admin)
        second = f"/api/v1/deployments/{NAME.replace('v1', 'v2')}"
        theirs = await site.client.get(second, headers=admin)

    assert mine.json()["whole"]["assume_role"] != theirs.json()["whole"]["assume_role"]
    assert theirs.json()["whole"]["assume_role"].endswith("role/theirs")


async def test_mistakes_come_back_with_their_fields(tmp_path: Path) -> None:
    app = copy.deepcopy(WORDS["application"])
    app["databases"][0]["postgres"]["server_group"] = "other"
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        answer = await post(site, {**WORDS, "application": app})
        nowhere = await post(site, WORDS, target=None)

    problems = answer.json()["error"]["problems"]
    assert [each["path"] for each in problems] == ["application.databases[0].postgres.server_group"]
    assert nowhere.status_code == 404
    assert "FAIRLEAD_AWS_BUCKET" in nowhere.json()["error"]["hint"]


async def test_without_a_cluster_it_goes_to_this_machine_on_its_queue(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        done = await post(site, LOCAL, MACHINE)
        stream = (await site.client.get("/api/v1/streams/deployment/dev/shop/v1")).json()
        nowhere = await post(site, {**LOCAL, "version": "v2"}, None)
        both = await post(site, {**LOCAL, "cluster": CLUSTER}, MACHINE)

    assert done.status_code == 200, done.text
    assert stream["queue"] == "local@here"
    assert stream["data"]["spec"]["workload"]["rollout"] == "dev/shop"
    assert (nowhere.status_code, "runs no workloads" in nowhere.text) == (404, True)
    assert both.json()["error"]["problems"][0]["path"] == "application.workload"


async def test_who_is_no_admin_deploys_here_to_a_stored_environment_only(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        own, admin = await scoped(site, "dev"), rig.bearer(await site.token(tokens.Role.ADMIN))
        unknown = await post(site, LOCAL, MACHINE, **own)
        policy = {"full_name": "dev", "deployments": {"approve": True}}
        await site.client.post("/api/v1/environments", json=policy, headers=admin)
        taken = await post(site, LOCAL, MACHINE, **own)
        other = {**LOCAL, "environment": {"full_name": "prod"}}
        refused = await post(site, other, MACHINE, **own)
        whole = await site.client.get("/api/v1/deployments/dev/shop/v1", headers=admin)

    assert (unknown.status_code, refused.status_code) == (404, 403)
    assert taken.status_code == 200, taken.text
    assert whole.json()["whole"]["policy"]["approve"] is True, "the file does not say otherwise"


async def test_a_rollout_that_runs_on_another_machine_is_not_deployed_over(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        step = plan_step.StartStep("d1", "dev/shop", "dev/shop/f.json")
        await site.engine.submit(
            plan_step.stream("d1"), step, command_id("step"), queue="local@there"
        )
        version = Version("v0", "v0")
        applied = plan_step.Applied(Request("dev/shop", Spec(), version, 1))
        await site.engine.submit(plan_step.stream("d1"), applied, command_id("applied"))
        answer = await post(site, LOCAL, MACHINE)

    assert answer.status_code == 409
    assert "runs on another machine, which serves: local@there" in answer.text


async def test_to_kubernetes_it_goes_where_the_stored_environment_says(tmp_path: Path) -> None:
    """This machine walks the plan; the step of the version is the operator's."""
    containers = [{"name": "web", "image": {"name": "shop", "registry": "registry.example"}}]
    place = {"queue": "kubernetes@east", "namespace": "shops"}
    asked = {
        "version": "v1",
        # Another's namespace, as a repository would like to have it.
        "environment": {"full_name": "dev", "kubernetes": {**place, "namespace": "theirs"}},
        "application": {"name": "shop", "kubernetes": {"containers": containers}},
    }
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        own, admin = await scoped(site, "dev"), rig.bearer(await site.token(tokens.Role.ADMIN))
        stored = {"full_name": "dev", "kubernetes": place}
        await site.client.post("/api/v1/environments", json=stored, headers=admin)
        taken = await post(site, asked, MACHINE, **own)
        whole = await site.client.get("/api/v1/deployments/dev/shop/v1", headers=own)
        found = await site.client.get("/api/v1/streams/deployment/dev/shop/v1", headers=admin)

    assert taken.status_code == 200, taken.text
    runs = whole.json()["whole"]["workload"]
    assert (runs["rollout"], runs["queue"]) == ("shops/shop", "kubernetes@east")
    assert found.json()["queue"] == "local@here"
