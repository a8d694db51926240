"""What is asked of a resource manager over HTTP, and what its answers say."""

import datetime as dt
import email.utils
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web

from fairlead import errors
from fairlead.clients.arm.client import MOST_BYTES, Answer, Arm, Follow, Question
from fairlead.clients.arm.identity import Application, ClientSecret, FileToken, ManagedIdentity
from tests.simulated_cloud import Behaviour, SimulatedCloud

ID = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/sets/a"
BODY = {"location": "West US", "properties": {}}
SETTING = "FAIRLEAD_RESOURCES_API_URL"


def secret(folder: Path, text: str = "s3cret") -> Path:
    (folder / "secret").write_text(text)
    return folder / "secret"


def client(cloud: SimulatedCloud, folder: Path) -> Arm:
    scope = f"{cloud.url}/.default"
    signed = Application(cloud.url, "tenant", "app", secret(folder), scope)
    return Arm(cloud.url, ClientSecret(signed), SETTING)


async def ask(arm: Arm, method: str, body: Any = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    question = Question(method, ID, "2026-01-01", body, named, "piece of work")
    return await arm.ask(question)


async def test_a_resource_is_written_and_read_with_its_etag(tmp_path: Path) -> None:
    async with SimulatedCloud().serving() as cloud:
        arm = client(cloud, tmp_path)
        async with arm.open():
            made = await ask(arm, "PUT", BODY, If_None_Match="*")
            read = await ask(arm, "GET")
            again = await ask(arm, "PUT", BODY, If_None_Match="*")
            gone = await ask(arm, "DELETE")
            nothing = await ask(arm, "GET")

    assert (made.status, read.status, read.etag) == (201, 200, '"1"')
    assert read.body["location"] == "West US"
    assert (again.status, gone.status, nothing.status) == (412, 200, 404)
    assert nothing.body["error"]["code"] == "ResourceNotFound"


async def test_requests_of_one_piece_of_work_are_told_together(tmp_path: Path) -> None:
    async with SimulatedCloud().serving() as cloud:
        arm = client(cloud, tmp_path)
        async with arm.open():
            answer = await ask(arm, "PUT", BODY)
            await ask(arm, "GET")

    first, second = (headers for _, _, headers in cloud.requests)
    assert first["x-ms-correlation-request-id"] == second["x-ms-correlation-request-id"]
    assert UUID(first["x-ms-client-request-id"]) != UUID(second["x-ms-client-request-id"])
    assert answer.request_id == "r1"


@pytest.mark.parametrize(
    ("style", "status", "follows"),
    [
        ("azure-async-operation", 201, "azure-async-operation"),
        ("location", 202, "location"),
        ("original-uri", 201, None),
        ("synchronous", 201, None),
    ],
)
async def test_each_style_of_operation_is_told_apart(
    style: Any, status: int, follows: str | None, tmp_path: Path
) -> None:
    async with SimulatedCloud(Behaviour(style, retry_after="5")).serving() as cloud:
        arm = client(cloud, tmp_path)
        async with arm.open():
            answer = await ask(arm, "PUT", BODY)
            told = [] if answer.follow is None else [await arm.follow(answer.follow)]

    assert answer.status == status
    assert (answer.follow.style if answer.follow else None) == follows
    assert all(each.retry_after == dt.timedelta(seconds=5) for each in told)


async def test_no_token_goes_to_another_host(tmp_path: Path) -> None:
    behaviour = Behaviour("azure-async-operation", elsewhere="https://evil.example")
    async with SimulatedCloud(behaviour).serving() as cloud:
        arm = client(cloud, tmp_path)
        async with arm.open():
            assert (await ask(arm, "PUT", BODY)).follow is None
            for url in (
                "https://evil.example/operations/1",
                cloud.url.replace("http://", "http://me@"),
                f"{cloud.url}0/operations/1",
                cloud.url.replace("http", "https"),
                "http://[",
            ):
                with pytest.raises(errors.Rejected, match="of another API"):
                    await arm.follow(Follow("location", url))


async def test_a_token_that_ends_is_renewed_and_the_request_asked_again(tmp_path: Path) -> None:
    async with SimulatedCloud(Behaviour(token_uses=2)).serving() as cloud:
        arm = client(cloud, tmp_path)
        async with arm.open():
            answers = [await ask(arm, "GET") for _ in range(6)]

    assert {each.status for each in answers} == {404}
    assert len(cloud.tokens) == 3


async def test_a_token_is_kept_until_shortly_before_its_end(tmp_path: Path) -> None:
    now = 1000.0
    async with SimulatedCloud().serving() as cloud:
        signed = Application(cloud.url, "tenant", "app", secret(tmp_path), "scope")
        arm = Arm(cloud.url, ClientSecret(signed, clock=lambda: now), SETTING)
        async with arm.open():
            for now in (1000.0, 4298.0, 4300.0):  # noqa: B007 - the clock reads it
                await ask(arm, "GET")

    assert len(cloud.tokens) == 2


async def test_a_secret_that_is_wrong_is_told_without_being_shown(tmp_path: Path) -> None:
    async with SimulatedCloud().serving() as cloud:
        arm = client(cloud, tmp_path)
        secret(tmp_path, "wr0ng")
        async with arm.open():
            with pytest.raises(errors.Forbidden, match="no token for app") as told:
                await ask(arm, "GET")

    assert "wr0ng" not in str(told.value)
    assert cloud.asked == []


async def test_a_pod_shows_the_token_of_its_own_issuer_instead_of_a_secret(tmp_path: Path) -> None:
    async with SimulatedCloud().serving() as cloud:
        federated = (secret(tmp_path, "pod-token"), f"{cloud.url}/.default")
        signed = Application(cloud.url, "tenant", "app", *federated, is_assertion=True)
        arm = Arm(cloud.url, ClientSecret(signed), SETTING)
        async with arm.open():
            assert (await ask(arm, "GET")).status == 404
            arm.credential.forget("token-1")
            secret(tmp_path, "stolen")
            with pytest.raises(errors.Forbidden):
                await ask(arm, "GET")


@pytest.mark.parametrize(("identity", "status"), [("", 404), ("app", 404), ("other", None)])
async def test_a_machine_asks_its_metadata_service_who_it_is(
    identity: str, status: int | None
) -> None:
    async with SimulatedCloud().serving() as cloud:
        arm = Arm(cloud.url, ManagedIdentity(cloud.url, cloud.url, identity), SETTING)
        async with arm.open():
            if status is None:
                with pytest.raises(errors.Forbidden):
                    await ask(arm, "GET")
                return
            assert (await ask(arm, "GET")).status == status
            assert (await ask(arm, "GET")).status == status

    assert len(cloud.tokens) == 1


async def test_a_token_in_a_file_is_read_anew(tmp_path: Path) -> None:
    async with SimulatedCloud(tokens={"first": 1, "second": 9}).serving() as cloud:
        arm = Arm(cloud.url, FileToken(secret(tmp_path, "first")), SETTING)
        async with arm.open():
            assert (await ask(arm, "GET")).status == 404
            assert (await ask(arm, "GET")).status == 401
            secret(tmp_path, "second")
            assert (await ask(arm, "GET")).status == 404


async def test_being_throttled_is_an_answer_with_a_time(tmp_path: Path) -> None:
    async with SimulatedCloud(throttled=1).serving() as cloud:
        arm = client(cloud, tmp_path)
        async with arm.open():
            answer = await ask(arm, "GET")

    assert (answer.status, answer.retry_after) == (429, dt.timedelta(seconds=17))


async def test_nobody_there_is_unavailable(tmp_path: Path) -> None:
    async with SimulatedCloud().serving() as cloud:
        url = cloud.url
    nobody = Arm(url, FileToken(secret(tmp_path)), SETTING)

    async with nobody.open():
        with pytest.raises(errors.Unavailable, match="did not answer") as told:
            await ask(nobody, "GET")

    assert SETTING in told.value.hint


async def test_an_answer_that_is_cut_is_unavailable(tmp_path: Path) -> None:
    outcomes = set()
    async with SimulatedCloud(Behaviour(failing=1.0)).serving() as cloud:
        arm = client(cloud, tmp_path)
        async with arm.open():
            for _ in range(12):
                try:
                    outcomes.add((await ask(arm, "PATCH", BODY)).status)
                except errors.Unavailable:
                    outcomes.add(0)

    assert outcomes == {0, 503}


async def answered(folder: Path, **more: Any) -> Answer:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(**more)

    app = web.Application()
    app.router.add_get("/{tail:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        arm = Arm(f"http://{host}:{port}", FileToken(secret(folder)), SETTING)
        async with arm.open():
            return await ask(arm, "GET")
    finally:
        await runner.cleanup()


async def test_redirects_are_not_followed_and_no_json_is_no_body(tmp_path: Path) -> None:
    moved = await answered(tmp_path, status=307, headers={"Location": "https://evil.example/"})
    page = await answered(tmp_path, text="<html>")

    assert (moved.status, moved.follow, page.status, page.body) == (307, None, 200, None)


@pytest.mark.parametrize(
    ("said", "seconds"), [("0", 0), ("120", 120), ("-1", None), ("soon", None), ("9" * 30, None)]
)
async def test_retry_after_is_seconds_or_nothing(
    said: str, seconds: int | None, tmp_path: Path
) -> None:
    then = await answered(tmp_path, status=429, headers={"Retry-After": said})

    assert then.retry_after == (None if seconds is None else dt.timedelta(seconds=seconds))


async def test_retry_after_may_be_a_date(tmp_path: Path) -> None:
    at = email.utils.format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), usegmt=True)
    then = await answered(tmp_path, status=503, headers={"Retry-After": at})

    assert then.retry_after is not None
    assert dt.timedelta(minutes=59) < then.retry_after <= dt.timedelta(hours=1)


async def test_an_answer_larger_than_any_resource_is_none(tmp_path: Path) -> None:
    with pytest.raises(errors.Unavailable):
        await answered(tmp_path, body=b"x" * (MOST_BYTES + 1))
