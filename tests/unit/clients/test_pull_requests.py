"""Pull requests by one client at three hosts: opened once, renamed, closed, and never reopened."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.pull_requests import HOSTS, Merge, PullRequests, Standing, pull_requests
from tests.fakes.pull_requests import TOKEN, Pull, RequestHost

WANTED = Merge("fairlead/gathering", "main", "gathering: stable 1.0.1, canary 1.0.2")
COMMIT = "commit of fairlead/gathering"


@pytest.fixture(params=sorted(HOSTS))
async def host(request: pytest.FixtureRequest) -> AsyncIterator[RequestHost]:
    async with RequestHost(request.param).serving() as there:
        yield there


@pytest.fixture
async def client(host: RequestHost, tmp_path: Path) -> AsyncIterator[PullRequests]:
    (tmp_path / "token").write_text(TOKEN)
    made = host.client(tmp_path / "token")
    async with made.open():
        yield made


def other(**change: str) -> Pull:
    pull = Pull(WANTED.head, WANTED.base, "theirs", COMMIT)
    return dataclasses.replace(pull, **change)


async def test_one_is_opened_and_found_again_among_those_of_others(
    host: RequestHost, client: PullRequests
) -> None:
    host.pulls += [other(head="theirs"), other(base="release"), other(home="fork/ops")]

    first = await client.ensure(WANTED, COMMIT)
    again = await client.ensure(WANTED, COMMIT)

    assert first == again == Standing(f"{host.url}/acme/ops/4")
    assert all("per_page=20&limit=20" in each for each in host.asked if each.startswith("GET"))
    assert [(it.head, it.base, it.title) for it in host.pulls[3:]] == [
        (WANTED.head, WANTED.base, WANTED.title)
    ]


async def test_one_that_stands_is_renamed_when_it_asks_for_something_else(
    host: RequestHost, client: PullRequests
) -> None:
    await client.ensure(WANTED, COMMIT)

    await client.ensure(dataclasses.replace(WANTED, title="gathering: stable 1.0.2"), COMMIT)

    assert [it.title for it in host.pulls] == ["gathering: stable 1.0.2"]


async def test_one_that_nobody_wants_any_more_is_closed(
    host: RequestHost, client: PullRequests
) -> None:
    host.pulls.append(other(home="fork/ops"))
    await client.ensure(WANTED, COMMIT)

    await client.close(WANTED)
    await client.close(WANTED)

    assert [it.state for it in host.pulls] == ["open", "closed"]


async def test_what_somebody_closed_is_refused_and_not_asked_again(
    host: RequestHost, client: PullRequests
) -> None:
    await client.ensure(WANTED, COMMIT)
    host.pulls[0].state = "closed"

    assert await client.ensure(WANTED, COMMIT) == Standing(f"{host.url}/acme/ops/1", refused=True)
    assert len(host.pulls) == 1
    # Another commit is another question; so is one whose branch was merged before.
    host.pulls[0].state = "merged"
    assert not (await client.ensure(WANTED, COMMIT)).refused


async def test_who_may_not_is_told_without_the_token(host: RequestHost, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret-of-a-test")
    made = host.client(tmp_path / "token")
    async with made.open():
        with pytest.raises(errors.Forbidden) as told:
            await made.ensure(WANTED, COMMIT)

    assert "secret-of-a-test" not in f"{told.value} {told.value.hint}"


async def test_an_opening_that_the_host_refuses_is_told(
    host: RequestHost, client: PullRequests
) -> None:
    host.refusing = True

    with pytest.raises(errors.Rejected, match=r"refused POST of a pull request in acme/ops.*409"):
        await client.ensure(WANTED, COMMIT)


async def test_without_a_token_it_says_which_setting_is_missing(host: RequestHost) -> None:
    made = host.client(None)
    async with made.open():
        with pytest.raises(errors.Rejected) as told:
            await made.close(WANTED)

    assert told.value.hint == "set FAIRLEAD_CONTENT_GIT_TOKEN_FILE"


def test_only_hosts_that_are_known_are_asked() -> None:
    with pytest.raises(errors.Rejected, match="unknown kind of git host: svn"):
        pull_requests("svn", "https://svn.example/acme/ops", None)
