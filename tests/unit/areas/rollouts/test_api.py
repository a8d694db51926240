"""The API of rollouts: what it shows, how it is steered, what it refuses and with which hint."""

import datetime as dt
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.access import tokens
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.values import Percent
from tests.fakes import fleet
from tests.unit.web import rig

COMMANDS = "/api/v1/streams/rollout/shop/commands"
API = "/api/v1/rollouts"
IN_CLUSTER = "shops/web/7f3c1a60-0000-4000-8000-000000000001"
NAMESAKE = "games/web/7f3c1a60-0000-4000-8000-000000000002"


@dataclass
class RolloutSite:
    """A site with rollouts, and what is behind them."""

    site: rig.Site
    behind: fleet.Fleet
    counted: fleet.Counted

    async def get(self, path: str = "") -> dict[str, Any]:
        answer = await self.site.client.get(f"{API}{path}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def post(self, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
        answer = await self.site.client.post(f"{API}{path}", json=body)
        return answer.status_code, dict(answer.json())


@pytest.fixture
async def rollout_site(tmp_path: Path) -> AsyncIterator[RolloutSite]:
    made, counted = fleet.Fleet(), fleet.Counted()
    async with rig.site(tmp_path, made.cast(counted)) as running:
        yield RolloutSite(running, made, counted)


async def test_the_list_tells_each_rollout_in_one_line(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")

    (item,) = (await rollout_site.get())["items"]

    told = {key: item[key] for key in ("name", "phase", "stable", "canary", "step", "steps")}
    assert told == {
        "name": "shop",
        "phase": "AwaitingApproval",
        "stable": "v1",
        "canary": "v2",
        "step": 1,
        "steps": 3,
    }
    assert (item["primary_weight"], item["canary_weight"]) == (90, 10)
    assert item["sentence"].startswith("at 10 % since ")
    assert item["sentence"].endswith("waiting for approval")


async def test_one_rollout_tells_plan_checks_verbs_and_history(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")

    told = await rollout_site.get("/shop")

    plan = [(step["weight"], step["state"], step["approve"]) for step in told["plan"]]
    assert plan == [(10, "here", True), (50, "ahead", True), (100, "ahead", False)]
    assert told["verbs"] == ["approve", "promote", "pause", "abort", "delete"]
    (check,) = told["checks"]
    assert (check["name"], check["good"]) == ("error rate", "at most 1")
    (run,) = told["runs"]
    assert (run["target"], run["why"], run["ended"]) == ("v2", "v2 was requested", None)
    assert [mark["weight"] for mark in run["weights"]] == [0, 10]
    assert [news["kind"] for news in run["news"]][-1] == "Started"


@pytest.mark.requirement("canary R18")
async def test_a_bad_number_is_told_with_its_verdict(rollout_site: RolloutSite) -> None:
    rollout_site.behind.errors["shop-v2"] = 7.0
    await fleet.live(rollout_site.site.engine, "shop")
    await fleet.want(rollout_site.site.engine, "shop", "v2")
    await fleet.until(rollout_site.site.engine, "shop", lambda seen: seen.rollout.outcome != "")

    told = await rollout_site.get("/shop")

    assert told["rollout"]["phase"] == "RolledBack"
    assert told["rollout"]["why"].startswith("failed at 10 %: error rate: ")
    assert "7" in told["rollout"]["why"]
    (run,) = told["runs"]
    assert run["ending"] == "RolledBack"
    (mark,) = run["checks"]
    assert (mark["check"], mark["phase"], mark["failed"]) == ("error rate", "Failed", 1)
    assert [weight["weight"] for weight in run["weights"]][-1] == 0
    assert told["verbs"] == ["pause", "retry", "delete"]


async def test_abort_returns_traffic_to_stable_and_names_who_asked(
    rollout_site: RolloutSite,
) -> None:
    engine = rollout_site.site.engine
    await fleet.halfway(engine, "shop")

    status, told = await rollout_site.post("/shop/abort", why="the basket is empty")
    home = await fleet.until(engine, "shop", lambda seen: seen.rollout.phase == "RolledBack")

    assert status == 200
    assert told["receipt"]["events"] > 0
    assert told["rollout"]["phase"] in ("RollingBack", "RolledBack")
    assert home.rollout.why == "aborted by local: the basket is empty"
    assert rollout_site.behind.weight("shop") == 0


async def test_approve_lets_the_step_go_on_and_is_told(rollout_site: RolloutSite) -> None:
    engine = rollout_site.site.engine
    await fleet.halfway(engine, "shop")

    status, _ = await rollout_site.post("/shop/approve")
    later = await fleet.until(engine, "shop", lambda seen: seen.rollout.canary_weight == 50)

    assert status == 200
    assert ("Approved", "local") in [(news.kind, news.by) for news in later.runs[0].news]


async def test_pause_holds_and_resume_goes_on(rollout_site: RolloutSite) -> None:
    engine = rollout_site.site.engine
    await fleet.halfway(engine, "shop")

    _, paused = await rollout_site.post("/shop/pause", why="lunch")
    status, resumed = await rollout_site.post("/shop/resume")

    assert (paused["rollout"]["phase"], paused["rollout"]["why"]) == ("Paused", "lunch")
    assert (status, resumed["rollout"]["phase"]) == (200, "AwaitingApproval")


async def test_promote_skips_what_is_left_and_rollback_brings_back(
    rollout_site: RolloutSite,
) -> None:
    engine = rollout_site.site.engine
    await fleet.halfway(engine, "shop")

    await rollout_site.post("/shop/promote")
    promoted = await fleet.until(engine, "shop", lambda seen: seen.rollout.stable == "v2")
    status, _ = await rollout_site.post("/shop/rollback", revision="shop-v1")
    back = await fleet.until(engine, "shop", lambda seen: seen.rollout.stable == "v1")

    assert [kept.revision for kept in promoted.kept] == ["shop-v1"]
    assert status == 200
    assert back.runs[0].why == "rolled back to v1 by local"


async def test_retry_tries_what_was_rolled_back_again(rollout_site: RolloutSite) -> None:
    engine = rollout_site.site.engine
    await fleet.halfway(engine, "shop")
    await rollout_site.post("/shop/abort")
    await fleet.until(engine, "shop", lambda seen: seen.rollout.phase == "RolledBack")

    status, _ = await rollout_site.post("/shop/retry")
    again = await fleet.until(engine, "shop", lambda seen: seen.rollout.canary_weight == 10)

    assert (status, again.runs[0].why) == (200, "retried by local")
    assert [run.ending for run in again.runs] == ["", "RolledBack"]


@pytest.mark.parametrize(
    ("verb", "message", "hint"),
    [
        ("approve", "no step is waiting for approval", "fairlead get rollout"),
        ("promote", "no rollout in progress", "deploy another version"),
        ("abort", "no rollout in progress", "roll back to a revision"),
        ("retry", "nothing to retry", "deploy another version"),
    ],
)
async def test_a_verb_out_of_place_says_why_and_what_would_work(
    rollout_site: RolloutSite, verb: str, message: str, hint: str
) -> None:
    await fleet.live(rollout_site.site.engine, "shop")

    status, told = await rollout_site.post(f"/shop/{verb}")

    assert status == 409
    assert told["error"]["code"] == "conflict"
    assert message in told["error"]["message"]
    assert hint in told["error"]["hint"]


async def test_a_revision_that_is_not_kept_is_not_found(rollout_site: RolloutSite) -> None:
    await fleet.live(rollout_site.site.engine, "shop")

    unknown, told = await rollout_site.post("/shop/rollback", revision="shop-v9")
    unnamed, asked = await rollout_site.post("/shop/rollback")

    assert (unknown, told["error"]["hint"]) == (404, "kept revisions: none")
    assert (unnamed, asked["error"]["message"]) == (409, "no earlier version is kept")


async def test_a_deleted_rollout_is_told_once_more(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")

    status, told = await rollout_site.post("/shop/delete")
    again, _ = await rollout_site.post("/shop/delete")

    assert (status, again) == (200, 404)
    assert told["rollout"]["phase"] == "Gone"


async def test_to_delete_takes_the_role_of_who_deploys(rollout_site: RolloutSite) -> None:
    site = rollout_site.site
    await fleet.live(site.engine, "shop")
    operator = rig.bearer(await site.token(tokens.Role.OPERATOR))
    deployer = rig.bearer(await site.token(tokens.Role.DEPLOYER))

    page = await site.client.get("/rollouts/shop", headers={"Accept": "text/html"} | operator)
    refused = await site.client.post(f"{API}/shop/delete", json={}, headers=operator)
    taken = await site.client.post(f"{API}/shop/delete", json={}, headers=deployer)

    assert 'id="verb-delete"' not in page.text
    assert (refused.status_code, taken.status_code) == (403, 200)


async def test_the_same_id_is_taken_once(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")

    _, first = await rollout_site.post("/shop/pause", id="pause 1")
    _, resumed = await rollout_site.post("/shop/resume")
    _, again = await rollout_site.post("/shop/pause", id="pause 1")

    assert first["receipt"]["duplicate"] is False
    assert again["receipt"]["duplicate"] is True
    assert again["rollout"]["phase"] == resumed["rollout"]["phase"] == "AwaitingApproval"


async def test_an_idempotency_key_in_the_header_is_an_id(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")
    client = rollout_site.site.client
    key = {"Idempotency-Key": "pause 1"}

    answers = [
        await client.post(f"{API}/shop/pause", json={}, headers=key),
        await client.post(f"{API}/shop/pause", json={"id": "pause 1"}),
        await client.post(f"{API}/shop/pause", json={"id": "other"}, headers=key),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert answers[1].json()["receipt"]["duplicate"] is True
    assert "two ids for one request" in answers[2].json()["error"]["message"]


async def test_a_viewer_looks_and_does_not_steer(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")
    viewer = rig.bearer(await rollout_site.site.token(tokens.Role.VIEWER))
    client = rollout_site.site.client

    seen = await client.get(f"{API}/shop", headers=viewer)
    refused = await client.post(f"{API}/shop/abort", json={}, headers=viewer)
    nobody = await client.post(f"{API}/shop/abort", json={})

    assert (seen.status_code, refused.status_code, nobody.status_code) == (200, 403, 401)
    assert rollout_site.behind.weight("shop") == 10


async def test_who_steers_is_who_showed_the_token(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")
    operator = rig.bearer(await rollout_site.site.token(tokens.Role.OPERATOR))

    await rollout_site.site.client.post(f"{API}/shop/abort", json={}, headers=operator)
    home = await fleet.until(
        rollout_site.site.engine, "shop", lambda seen: seen.rollout.phase == "RolledBack"
    )

    assert home.rollout.why == "aborted by a operator"


RAW: dict[str, Any] = {
    "Request": {"name": "../../evil", "spec": {}, "version": {"revision": "v1", "template": "t"}},
    "Judged": {"ticket": 1, "findings": []},
    "Observed": {"observed": {"at": "2030-01-01T00:00:00Z"}},
    "Adopt": {"status": {"memory": {}}},
    "Grant": {},
    "ProceedTogether": {"gate": "full"},
    "Delete": {},
}


@pytest.mark.parametrize("role", [tokens.Role.OPERATOR, tokens.Role.ADMIN])
async def test_the_machines_own_words_are_refused_at_the_door_of_commands(
    rollout_site: RolloutSite, role: tokens.Role
) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")
    headers = rig.bearer(await rollout_site.site.token(role))

    for type_, data in RAW.items():
        body = {"type": type_, "data": data}
        answer = await rollout_site.site.client.post(COMMANDS, json=body, headers=headers)

        assert answer.status_code == 403, type_
        assert answer.json()["error"]["message"] == f"not a command of people: {type_}"
        assert "Approve, PromoteFully, Abort" in answer.json()["error"]["hint"]

    assert rollout_site.behind.weight("shop") == 10


async def test_a_raw_verb_is_in_the_name_of_the_caller_whatever_its_body_says(
    rollout_site: RolloutSite,
) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")
    operator = rig.bearer(await rollout_site.site.token(tokens.Role.OPERATOR))
    body = {"type": "Abort", "data": {"by": "the board", "why": "empty baskets"}}

    await rollout_site.site.client.post(COMMANDS, json=body, headers=operator)
    home = await fleet.until(
        rollout_site.site.engine, "shop", lambda seen: seen.rollout.phase == "RolledBack"
    )

    assert home.rollout.why == "aborted by a operator: empty baskets"


async def test_a_form_cannot_steer(rollout_site: RolloutSite) -> None:
    await fleet.halfway(rollout_site.site.engine, "shop")

    answer = await rollout_site.site.client.post(f"{API}/shop/abort", data={"why": "because"})

    assert answer.status_code == 400
    assert rollout_site.behind.weight("shop") == 10


async def test_unknown_words_are_refused_with_the_known_ones(rollout_site: RolloutSite) -> None:
    await fleet.live(rollout_site.site.engine, "shop")

    verb, wrong = await rollout_site.post("/shop/explode")
    field, odd = await rollout_site.post("/shop/abort", because="x")
    name, missing = await rollout_site.post("/none/abort")

    assert (verb, field, name) == (404, 400, 404)
    assert "approve, promote" in wrong["error"]["hint"]
    assert odd["error"]["message"].startswith("malformed action: because")
    assert missing["error"]["hint"] == "list them with fairlead get rollouts"


async def test_names_of_a_cluster_can_be_shortened_where_one_has_them(
    rollout_site: RolloutSite,
) -> None:
    await fleet.live(rollout_site.site.engine, IN_CLUSTER)

    whole = await rollout_site.get(f"/{IN_CLUSTER}")
    namespaced = await rollout_site.get("/shops/web")
    short = await rollout_site.get("/web")
    status, _ = await rollout_site.post("/shops/web/pause")

    assert whole["rollout"]["title"] == "shops/web"
    assert namespaced == short == whole
    assert status == 200


async def test_a_name_that_two_have_is_a_conflict_that_names_them(
    rollout_site: RolloutSite,
) -> None:
    await fleet.live(rollout_site.site.engine, IN_CLUSTER)
    await fleet.live(rollout_site.site.engine, NAMESAKE)

    answer = await rollout_site.site.client.get(f"{API}/web")
    one = await rollout_site.get("/games/web")

    assert answer.status_code == 409
    assert IN_CLUSTER in answer.json()["error"]["hint"]
    assert NAMESAKE in answer.json()["error"]["hint"]
    assert one["rollout"]["name"] == NAMESAKE


async def test_the_list_goes_on_where_it_ended(rollout_site: RolloutSite) -> None:
    for name in ("a", "b", "c"):
        await fleet.live(rollout_site.site.engine, name)

    first = await rollout_site.get("?limit=2")
    rest = await rollout_site.get(f"?limit=2&before={first['next']}")

    assert [item["name"] for item in first["items"]] == ["c", "b"]
    assert ([item["name"] for item in rest["items"]], rest["next"]) == (["a"], None)


async def test_numbers_are_told_from_where_the_caller_stands(rollout_site: RolloutSite) -> None:
    seen = await fleet.halfway(rollout_site.site.engine, "shop")
    at, second = seen.runs[0].started, dt.timedelta(seconds=1)
    rollout_site.counted.add("shop", fleet.point(at - second, Slot.PRIMARY, 90))
    rollout_site.counted.add("shop", fleet.point(at + second, Slot.CANARY, 10, failed=20))

    every = await rollout_site.get("/shop/numbers")
    later = await rollout_site.get(f"/shop/numbers?since={at:%Y-%m-%dT%H:%M:%S.%fZ}")

    assert every["recorded"] is True
    assert [(item["version"], item["run"]) for item in every["items"]] == [("v1", None), ("v2", 1)]
    (item,) = later["items"]
    assert item | {"at": ""} == {
        "at": "",
        "slot": "canary",
        "revision": "shop-v2",
        "version": "v2",
        "run": 1,
        "weight": 10,
        "requests": 200,
        "failed": 20,
        "p50_ms": 12.0,
        "p99_ms": 40.0,
    }


async def test_an_ended_run_tells_its_steps_verdicts_thresholds_and_points(
    rollout_site: RolloutSite,
) -> None:
    behind = rollout_site.behind
    behind.errors["shop-v2"] = 7.0
    behind.counted["shop"] = (SlotTraffic(Slot.CANARY, 29, 4, 14.0),)
    await fleet.live(rollout_site.site.engine, "shop")
    await fleet.want(rollout_site.site.engine, "shop", "v2")
    await fleet.until(rollout_site.site.engine, "shop", lambda seen: seen.rollout.outcome != "")

    told = await rollout_site.get("/shop")

    (run,) = told["runs"]
    assert (told["run"], run["stable"], run["target"]) == (1, "v1", "v2")
    assert [step[0] for step in run["plan"]] == [10, 50, 100]
    (check,) = run["checks"]
    assert (check["limit"], [point[1:] for point in check["points"]]) == (1.0, [[7.0, "Failed"]])
    (traffic,) = run["traffic"]
    assert (traffic["slot"], traffic["requests"], traffic["failed"]) == ("canary", 29, 4)
    assert [point[1:] for point in traffic["points"]] == [[29, 4, 14.0]]


async def test_without_a_recorder_there_are_no_numbers(tmp_path: Path) -> None:
    async with rig.site(tmp_path, fleet.Fleet().cast()) as site:
        await fleet.live(site.engine, "shop")

        answer = await site.client.get(f"{API}/shop/numbers")

    assert answer.json() == {"recorded": False, "items": []}


async def test_a_row_that_lags_is_never_shown(rollout_site: RolloutSite, tmp_path: Path) -> None:
    """What the projection has not read yet is read from the events themselves."""
    cast = fleet.Fleet().cast()
    without = replace(cast, views=())
    async with rig.site(tmp_path / "other", without) as site:
        await fleet.halfway(site.engine, "shop")

        told = (await site.client.get(f"{API}/shop")).json()

    assert (told["rollout"]["phase"], len(told["runs"])) == ("AwaitingApproval", 1)


async def test_blue_green_tells_its_preview(rollout_site: RolloutSite) -> None:
    spec = Spec(Strategy(steps=(Pace(Percent(0), approve=True),)))
    seen = await fleet.halfway(rollout_site.site.engine, "shop", spec)

    assert [(step.weight, step.state) for step in seen.plan] == [(0, "here"), (100, "ahead")]
