"""The door for webhooks through the real app: what is taken, refused and ignored."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.areas.deployments.triggers import hooks
from fairlead.engine.messages import stream_name
from tests.unit.areas.deployments.triggers import payloads
from tests.unit.areas.deployments.triggers.world import COMMIT, NEXT, SHOP, TARGET, World, world

MAIN = "github:acme:shop:heads:main"


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


@pytest.mark.requirement(
    "deployer G1", "deployer G2", "deployer G3", "deployer G4", "deployer G5", "deployer G6"
)
async def test_a_push_becomes_a_deployment_and_its_end_is_shown_at_the_commit(
    made: World,
) -> None:
    answer = await made.send("github", payloads.github(payloads.push(COMMIT)))

    assert (answer.status_code, answer.json()["trigger"]) == (202, f"{MAIN}:1")
    found = await made.trigger(f"{MAIN}:1")
    (run,) = found["runs"]
    deployment = (
        await made.site.client.get(f"/api/v1/streams/deployment/{run['deployment']}")
    ).json()
    assert run["progress"] == "DONE"
    assert deployment["data"]["spec"]["version"] == COMMIT
    assert deployment["data"]["spec"]["assume_role"] == "arn:role"
    assert (deployment["data"]["cause"], deployment["data"]["by"]) == (
        "push to main of acme/shop",
        "github:ann",
    )
    assert [each["state"] for each in made.github.statuses] == ["pending", "success"]
    assert {each["commit"] for each in made.github.statuses} == {COMMIT}
    assert await made.streams("stack") == ["stack/prod/shop"]


async def test_a_delivery_that_comes_again_is_taken_once(made: World) -> None:
    sent = payloads.github(payloads.push(COMMIT))
    await made.send("github", sent)
    await made.trigger(f"{MAIN}:1")

    again = await made.send("github", sent)
    # Replayed by somebody who made up another name for it.
    sent["headers"]["X-GitHub-Delivery"] = "another"
    replayed = await made.send("github", sent)

    assert (again.status_code, replayed.status_code) == (200, 200)
    assert again.json() == replayed.json()
    assert again.json()["duplicate"] is True
    assert await made.streams("trigger") == [f"trigger/{MAIN}:1"]
    assert await made.events(f"ref/{MAIN}") == ["Pushed"]


async def test_one_that_comes_again_after_its_target_was_edited_is_taken_once_too(
    made: World,
) -> None:
    sent = payloads.github(payloads.push(COMMIT))
    await made.send("github", sent)
    await made.store("push-targets", **{**TARGET, "path": "elsewhere.yaml"})

    again = await made.send("github", sent)

    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    assert await made.events(f"ref/{MAIN}") == ["Pushed"]


async def test_an_older_push_that_comes_late_starts_nothing(made: World) -> None:
    await made.send("github", payloads.github(payloads.push(NEXT, COMMIT)))

    late = await made.send("github", payloads.github(payloads.push(COMMIT)))

    assert late.status_code == 200
    assert "is not the newest commit" in late.json()["reason"]
    assert await made.streams("trigger") == [f"trigger/{MAIN}:1"]


async def test_a_deleted_branch_starts_nothing_and_may_come_again(made: World) -> None:
    await made.send("github", payloads.github(payloads.push(COMMIT, at=1)))
    gone = await made.send("github", payloads.github(payloads.push(payloads.NONE, COMMIT, at=2)))
    anew = await made.send("github", payloads.github(payloads.push(COMMIT, at=3)))

    assert (gone.status_code, gone.json()["taken"]) == (200, False)
    assert anew.json()["trigger"] == f"{MAIN}:2"


async def test_a_force_push_and_a_tag_are_followed(made: World) -> None:
    await made.send("github", payloads.github(payloads.push(COMMIT, at=1)))
    forced = await made.send("github", payloads.github(payloads.push(NEXT, COMMIT, at=2)))
    back = await made.send("github", payloads.github(payloads.push(COMMIT, NEXT, at=3)))
    tag = await made.send("github", payloads.github(payloads.push(COMMIT, ref="refs/tags/v1")))

    assert [each.json()["trigger"] for each in (forced, back, tag)] == [
        f"{MAIN}:2",
        f"{MAIN}:3",
        "github:acme:shop:tags:v1:1",
    ]


async def test_a_rerun_deploys_the_newest_commit_and_no_other(made: World) -> None:
    await made.send("github", payloads.github(payloads.push(COMMIT)))

    again = await made.send("github", payloads.github(payloads.check_suite(COMMIT), "check_suite"))
    other = await made.send("github", payloads.github(payloads.check_suite(NEXT), "check_suite"))
    ping = await made.send("github", payloads.github({"zen": "…"}, "ping"))

    assert again.json()["trigger"] == f"{MAIN}:2"
    assert (other.status_code, other.json()["taken"]) == (200, False)
    assert (ping.status_code, ping.json()["taken"]) == (200, False)


@pytest.mark.parametrize("ref", ["refs/heads/feature", "refs/pull/1/head", "refs/tags/main"])
async def test_a_push_that_no_target_takes_leaves_no_trace(made: World, ref: str) -> None:
    answer = await made.send("github", payloads.github(payloads.push(COMMIT, ref=ref)))

    assert (answer.status_code, answer.json()["reason"]) == (200, f"no push target takes {ref}")
    assert await made.streams("ref") == []


@pytest.mark.parametrize("repository", ["acme/other", "eve/shop", 'x" or "1', "../acme/shop"])
async def test_an_unknown_repository_is_told_and_leaves_no_trace(
    made: World, repository: str
) -> None:
    # A fork has a name of its own, also where it knows the secret.
    answer = await made.send(
        "github", payloads.github(payloads.push(COMMIT, repository=repository))
    )

    assert answer.status_code == 404
    assert "no push target names the repository" in answer.json()["error"]["message"]
    assert await made.streams("ref") == []


async def test_letters_of_a_repository_do_not_matter(made: World) -> None:
    answer = await made.send(
        "github", payloads.github(payloads.push(COMMIT, repository="Acme/SHOP"))
    )

    assert answer.json()["trigger"] == f"{MAIN}:1"


async def test_a_wrong_signature_is_refused_before_anything_is_read(made: World) -> None:
    wrong = await made.send("github", payloads.github(payloads.push(COMMIT), "push", "guessed"))
    bare = await made.site.client.post("/hooks/github", content=b"\xff")
    changed = payloads.github(payloads.push(COMMIT))
    changed["content"] = changed["content"].replace(b"acme", b"evil")

    assert (wrong.status_code, bare.status_code) == (401, 401)
    assert (await made.send("github", changed)).status_code == 401
    assert payloads.SECRET not in wrong.text + bare.text
    assert await made.streams("ref") == []


async def test_a_host_without_a_secret_is_not_listened_to(made: World) -> None:
    gitea = await made.send("gitea", payloads.gitea(payloads.push(COMMIT)))
    unknown = await made.send("elsewhere", payloads.github(payloads.push(COMMIT)))
    (made.folder / "secret").write_text("\n")
    emptied = await made.send("github", payloads.github(payloads.push(COMMIT), "push", ""))

    (made.folder / "secret").unlink()
    lost = await made.send("github", payloads.github(payloads.push(COMMIT)))

    answers = (gitea, unknown, emptied, lost)
    assert {each.status_code for each in answers} == {404}
    assert str(made.folder) not in "".join(each.text for each in answers)


async def test_a_body_of_30_mb_is_refused_by_its_length_alone(made: World) -> None:
    reads = 0

    async def receive() -> dict[str, object]:
        nonlocal reads
        reads += 1
        return {"type": "http.request", "body": b"x" * 65_536, "more_body": True}

    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8600"), (b"content-length", b"31457280")]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "scheme": "http", "path": "/hooks/github", "raw_path": b"/hooks/github",
        "query_string": b"", "root_path": "", "headers": headers,
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8600),
    }  # fmt: skip
    await made.site.app(scope, receive, send)  # type: ignore[arg-type]  # plain dictionaries

    assert sent[0]["status"] == 413
    assert reads == 0


async def test_a_push_for_fifty_applications_deploys_each_of_them(made: World) -> None:
    names = [f"app{number}" for number in range(50)]
    for name in names:
        path = f"apps/{name}.yaml"
        made.github.files["acme/shop", COMMIT, path] = SHOP.replace(b"shop", name.encode())
        await made.store("push-targets", **{**TARGET, "application": name, "path": path})
    # One of them makes no sense, and holds up no other.
    made.github.files["acme/shop", COMMIT, "apps/app7.yaml"] = b"name: [oops"

    answer = await made.send("github", payloads.github(payloads.push(COMMIT)))
    found = await made.trigger(answer.json()["trigger"])

    ended = {run["target"]["application"]: run["progress"] for run in found["runs"]}
    assert ended == {**dict.fromkeys([*names, "shop"], "DONE"), "app7": "REFUSED"}
    assert len(await made.streams("stack")) == 50


async def test_what_a_branch_is_called_makes_no_two_streams_one() -> None:
    keys = {
        hooks.ref_key("github", "acme/shop", ref)
        for ref in ("refs/heads/a/b", "refs/heads/a-b", "refs/heads/a#b", "refs/tags/a-b")
    }

    assert len(keys) == 4
    longest = hooks.ref_key("github", "a/" + "b" * 148, f"refs/heads/{'é' * 200}")
    assert stream_name("trigger", f"{longest}:12345")
