"""The API of rollouts: what it shows, how it is steered, what it refuses and with which hint."""

import datetime as dt
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.spec import Spec
from fairlead.domain.rollouts.strategy import Pace, Strategy
from fairlead.domain.values import Percent
from fairlead.intents import tokens
from tests.fakes import fleet
from tests.unit.web import rig

API = "/api/v1/rollouts"
IN_CLUSTER = "shops/web/7f3c1a60-0000-4000-8000-000000000001"
NAMESAKE = "games/web/7f3c1a60-0000-4000-8000-000000000002"


@dataclass
class Harbour:
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
async def harbour(tmp_path: Path) -> AsyncIterator[Harbour]:
    made, counted = fleet.Fleet(), fleet.Counted()
    async with rig.site(tmp_path, made.cast(counted)) as running:
        yield Harbour(running, made, counted)


async def test_the_list_tells_each_rollout_in_one_line(harbour: Harbour) -> None:
    await fleet.halfway(harbour.site.engine, "shop")

    (item,) = (await harbour.get())["items"]

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
    assert item["sentence"].startswith("10 % since ")
    assert item["sentence"].endswith("waiting for approval")


async def test_one_rollout_tells_plan_checks_verbs_and_history(harbour: Harbour) -> None:
    await fleet.halfway(harbour.site.engine, "shop")

    told = await harbour.get("/shop")

    plan = [(step["share"], step["state"], step["approve"]) for step in told["plan"]]
    assert plan == [(10, "here", True), (50, "ahead", True), (100, "ahead", False)]
    assert told["verbs"] == ["approve", "promote", "pause", "abort"]
    (check,) = told["checks"]
    assert (check["name"], check["good"]) == ("error rate", "at most 1")
    (run,) = told["runs"]
    assert (run["target"], run["why"], run["ended"]) == ("v2", "v2 is wanted", None)
    assert [mark["share"] for mark in run["weights"]] == [0, 10]
    assert [news["kind"] for news in run["news"]][-1] == "Started"


@pytest.mark.requirement("canary R18")
async def test_a_bad_number_is_told_with_its_verdict(harbour: Harbour) -> None:
    harbour.behind.errors["shop-v2"] = 7.0
    await fleet.live(harbour.site.engine, "shop")
    await fleet.want(harbour.site.engine, "shop", "v2")
    await fleet.until(harbour.site.engine, "shop", lambda seen: seen.rollout.outcome != "")

    told = await harbour.get("/shop")

    assert told["rollout"]["phase"] == "TakenBack"
    assert told["rollout"]["why"].startswith("Failed at 10 %: error rate: ")
    assert "7" in told["rollout"]["why"]
    (run,) = told["runs"]
    assert run["ending"] == "TakenBack"
    (mark,) = run["checks"]
    assert (mark["check"], mark["phase"], mark["failed"]) == ("error rate", "Failed", 1)
    assert [weight["share"] for weight in run["weights"]][-1] == 0
    assert told["verbs"] == ["pause", "retry"]


async def test_abort_sends_traffic_home_and_names_who_asked(harbour: Harbour) -> None:
    engine = harbour.site.engine
    await fleet.halfway(engine, "shop")

    status, told = await harbour.post("/shop/abort", why="the basket is empty")
    home = await fleet.until(engine, "shop", lambda seen: seen.rollout.phase == "TakenBack")

    assert status == 200
    assert told["receipt"]["events"] > 0
    assert told["rollout"]["phase"] in ("GoingHome", "TakenBack")
    assert home.rollout.why == "the basket is empty"
    assert harbour.behind.share("shop") == 0


async def test_approve_lets_the_step_go_on_and_is_told(harbour: Harbour) -> None:
    engine = harbour.site.engine
    await fleet.halfway(engine, "shop")

    status, _ = await harbour.post("/shop/approve")
    later = await fleet.until(engine, "shop", lambda seen: seen.rollout.canary_weight == 50)

    assert status == 200
    assert ("Approved", "local") in [(news.kind, news.by) for news in later.runs[0].news]


async def test_pause_holds_and_resume_goes_on(harbour: Harbour) -> None:
    engine = harbour.site.engine
    await fleet.halfway(engine, "shop")

    _, paused = await harbour.post("/shop/pause", why="lunch")
    status, resumed = await harbour.post("/shop/resume")

    assert (paused["rollout"]["phase"], paused["rollout"]["why"]) == ("Paused", "lunch")
    assert (status, resumed["rollout"]["phase"]) == (200, "AwaitingApproval")


async def test_promote_skips_what_is_left_and_rollback_brings_back(harbour: Harbour) -> None:
    engine = harbour.site.engine
    await fleet.halfway(engine, "shop")

    await harbour.post("/shop/promote")
    promoted = await fleet.until(engine, "shop", lambda seen: seen.rollout.stable == "v2")
    status, _ = await harbour.post("/shop/rollback", revision="shop-v1")
    back = await fleet.until(engine, "shop", lambda seen: seen.rollout.stable == "v1")

    assert [kept.revision for kept in promoted.kept] == ["shop-v1"]
    assert status == 200
    assert back.runs[0].why == "rolled back to v1 by local"


async def test_retry_tries_what_was_taken_back_again(harbour: Harbour) -> None:
    engine = harbour.site.engine
    await fleet.halfway(engine, "shop")
    await harbour.post("/shop/abort")
    await fleet.until(engine, "shop", lambda seen: seen.rollout.phase == "TakenBack")

    status, _ = await harbour.post("/shop/retry")
    again = await fleet.until(engine, "shop", lambda seen: seen.rollout.canary_weight == 10)

    assert (status, again.runs[0].why) == (200, "retried by local")
    assert [run.ending for run in again.runs] == ["", "TakenBack"]


@pytest.mark.parametrize(
    ("verb", "message", "hint"),
    [
        ("approve", "nothing waits for approval", "fairlead get rollout"),
        ("promote", "no rollout to promote", "change the version"),
        ("abort", "no rollout under way", "roll back to a revision"),
        ("retry", "nothing to retry", "change the version"),
    ],
)
async def test_a_verb_out_of_place_says_why_and_what_would_work(
    harbour: Harbour, verb: str, message: str, hint: str
) -> None:
    await fleet.live(harbour.site.engine, "shop")

    status, told = await harbour.post(f"/shop/{verb}")

    assert status == 409
    assert told["error"]["code"] == "conflict"
    assert message in told["error"]["message"]
    assert hint in told["error"]["hint"]


async def test_a_revision_that_is_not_kept_is_not_found(harbour: Harbour) -> None:
    await fleet.live(harbour.site.engine, "shop")

    unknown, told = await harbour.post("/shop/rollback", revision="shop-v9")
    unnamed, asked = await harbour.post("/shop/rollback")

    assert (unknown, told["error"]["hint"]) == (404, "kept are: none")
    assert (unnamed, asked["error"]["message"]) == (400, "no revision to roll back to")


async def test_the_same_id_is_taken_once(harbour: Harbour) -> None:
    await fleet.halfway(harbour.site.engine, "shop")

    _, first = await harbour.post("/shop/pause", id="pause 1")
    _, resumed = await harbour.post("/shop/resume")
    _, again = await harbour.post("/shop/pause", id="pause 1")

    assert first["receipt"]["duplicate"] is False
    assert again["receipt"]["duplicate"] is True
    assert again["rollout"]["phase"] == resumed["rollout"]["phase"] == "AwaitingApproval"


async def test_an_idempotency_key_in_the_header_is_an_id(harbour: Harbour) -> None:
    await fleet.halfway(harbour.site.engine, "shop")
    client = harbour.site.client
    key = {"Idempotency-Key": "pause 1"}

    answers = [
        await client.post(f"{API}/shop/pause", json={}, headers=key),
        await client.post(f"{API}/shop/pause", json={"id": "pause 1"}),
        await client.post(f"{API}/shop/pause", json={"id": "other"}, headers=key),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert answers[1].json()["receipt"]["duplicate"] is True
    assert "two ids for one request" in answers[2].json()["error"]["message"]


async def test_a_viewer_looks_and_does_not_steer(harbour: Harbour) -> None:
    await fleet.halfway(harbour.site.engine, "shop")
    viewer = rig.bearer(await harbour.site.token(tokens.Role.VIEWER))
    client = harbour.site.client

    seen = await client.get(f"{API}/shop", headers=viewer)
    refused = await client.post(f"{API}/shop/abort", json={}, headers=viewer)
    nobody = await client.post(f"{API}/shop/abort", json={})

    assert (seen.status_code, refused.status_code, nobody.status_code) == (200, 403, 401)
    assert harbour.behind.share("shop") == 10


async def test_who_steers_is_who_showed_the_token(harbour: Harbour) -> None:
    await fleet.halfway(harbour.site.engine, "shop")
    operator = rig.bearer(await harbour.site.token(tokens.Role.OPERATOR))

    await harbour.site.client.post(f"{API}/shop/abort", json={}, headers=operator)
    home = await fleet.until(
        harbour.site.engine, "shop", lambda seen: seen.rollout.phase == "TakenBack"
    )

    assert home.rollout.why == "aborted by a operator"


async def test_a_form_cannot_steer(harbour: Harbour) -> None:
    await fleet.halfway(harbour.site.engine, "shop")

    answer = await harbour.site.client.post(f"{API}/shop/abort", data={"why": "because"})

    assert answer.status_code == 400
    assert harbour.behind.share("shop") == 10


async def test_unknown_words_are_refused_with_the_known_ones(harbour: Harbour) -> None:
    await fleet.live(harbour.site.engine, "shop")

    verb, wrong = await harbour.post("/shop/explode")
    field, odd = await harbour.post("/shop/abort", because="x")
    name, missing = await harbour.post("/none/abort")

    assert (verb, field, name) == (404, 400, 404)
    assert "approve, promote" in wrong["error"]["hint"]
    assert odd["error"]["message"].startswith("malformed wish: because")
    assert missing["error"]["hint"] == "list them with fairlead get rollouts"


async def test_names_of_a_cluster_can_be_shortened_where_one_has_them(harbour: Harbour) -> None:
    await fleet.live(harbour.site.engine, IN_CLUSTER)

    whole = await harbour.get(f"/{IN_CLUSTER}")
    namespaced = await harbour.get("/shops/web")
    short = await harbour.get("/web")
    status, _ = await harbour.post("/shops/web/pause")

    assert whole["rollout"]["title"] == "shops/web"
    assert namespaced == short == whole
    assert status == 200


async def test_a_name_that_two_have_is_a_conflict_that_names_them(harbour: Harbour) -> None:
    await fleet.live(harbour.site.engine, IN_CLUSTER)
    await fleet.live(harbour.site.engine, NAMESAKE)

    answer = await harbour.site.client.get(f"{API}/web")
    one = await harbour.get("/games/web")

    assert answer.status_code == 409
    assert IN_CLUSTER in answer.json()["error"]["hint"]
    assert NAMESAKE in answer.json()["error"]["hint"]
    assert one["rollout"]["name"] == NAMESAKE


async def test_the_list_goes_on_where_it_ended(harbour: Harbour) -> None:
    for name in ("a", "b", "c"):
        await fleet.live(harbour.site.engine, name)

    first = await harbour.get("?limit=2")
    rest = await harbour.get(f"?limit=2&before={first['next']}")

    assert [item["name"] for item in first["items"]] == ["c", "b"]
    assert ([item["name"] for item in rest["items"]], rest["next"]) == (["a"], None)


async def test_numbers_are_told_from_where_the_caller_stands(harbour: Harbour) -> None:
    await fleet.live(harbour.site.engine, "shop")
    at = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
    second = dt.timedelta(seconds=1)
    harbour.counted.add("shop", fleet.point(at, Slot.PRIMARY, 90))
    harbour.counted.add("shop", fleet.point(at + second, Slot.CANARY, 10, failed=20))

    every = await harbour.get("/shop/numbers")
    later = await harbour.get("/shop/numbers?since=2030-01-01T12:00:00Z")

    assert every["recorded"] is True
    assert len(every["items"]) == 2
    assert later["items"] == [
        {
            "at": "2030-01-01T12:00:01Z",
            "slot": "canary",
            "revision": "shop-v2",
            "share": 10,
            "requests": 200,
            "failed": 20,
            "p50_ms": 12.0,
            "p99_ms": 40.0,
        }
    ]


async def test_without_a_recorder_there_are_no_numbers(tmp_path: Path) -> None:
    async with rig.site(tmp_path, fleet.Fleet().cast()) as site:
        await fleet.live(site.engine, "shop")

        answer = await site.client.get(f"{API}/shop/numbers")

    assert answer.json() == {"recorded": False, "items": []}


async def test_a_row_that_lags_is_never_shown(harbour: Harbour, tmp_path: Path) -> None:
    """What the projection has not read yet is read from the events themselves."""
    cast = fleet.Fleet().cast()
    without = type(cast)(machines=cast.machines, handlers=cast.handlers)
    async with rig.site(tmp_path / "other", without) as site:
        await fleet.halfway(site.engine, "shop")

        told = (await site.client.get(f"{API}/shop")).json()

    assert (told["rollout"]["phase"], len(told["runs"])) == ("AwaitingApproval", 1)


async def test_blue_green_tells_its_preview(harbour: Harbour) -> None:
    spec = Spec(Strategy(steps=(Pace(Percent(0), approve=True),)))
    seen = await fleet.halfway(harbour.site.engine, "shop", spec)

    assert [(step.share, step.state) for step in seen.plan] == [(0, "here"), (100, "ahead")]
