"""One port, three hosts: what a commit shows of its deployments, and what each refusal means."""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead import errors
from fairlead.clients.commit_statuses import commit_statuses
from fairlead.clients.github import Account, GitHub
from fairlead.clients.host_api import CheckReport
from tests.fakes import github as fake_github
from tests.fakes.status_hosts import TOKEN, StatusHost

COMMIT = "c" * 40
WORDS = ("acme/shop", COMMIT, "fairlead: prod/shop", "t/prod/shop")
PENDING = CheckReport(*WORDS, "pending", "waits for its deployment")
SUCCESS = CheckReport(*WORDS, "success", "deployed")
FAILURE = CheckReport(*WORDS, "failure", "failed")
FAILED = {"gitlab": "failed"}


@dataclass
class Host:
    """A client, and the host that it talks to."""

    kind: str
    client: Any
    server: Any
    token_file: Path

    def shown(self) -> list[tuple[str, str]]:
        """The newest state of each name, and its commit."""
        newest = {each.get("name") or each["context"]: each for each in self.server.statuses}
        assert {each["commit"] for each in newest.values()} <= {COMMIT}
        return [(name, each["state"]) for name, each in newest.items()]


@contextlib.asynccontextmanager
async def _github(folder: Path) -> AsyncIterator[Host]:
    file = folder / "token"
    file.write_text(fake_github.TOKEN)
    async with fake_github.GitHubServer().serving() as server:
        client = GitHub(Account(server.url, file))
        async with client.open():
            yield Host("github", client, server, file)


def _other(kind: str) -> Callable[[Path], Any]:
    @contextlib.asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Host]:
        file = folder / "token"
        file.write_text(TOKEN)
        async with StatusHost().serving() as server:
            client = commit_statuses(kind, server.url, file)
            async with client.open():
                yield Host(kind, client, server, file)

    return opened


HOSTS: dict[str, Callable[[Path], Any]] = {
    "github": _github,
    "gitlab": _other("gitlab"),
    "gitea": _other("gitea"),
}


@pytest.fixture(params=HOSTS)
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Host]:
    async with HOSTS[request.param](tmp_path) as made:
        yield made


@pytest.mark.parametrize("end", [SUCCESS, FAILURE])
async def test_the_newest_state_is_shown_under_one_name(host: Host, end: CheckReport) -> None:
    await host.client.publish(PENDING)
    await host.client.publish(end)

    failed = FAILED.get(host.kind, "failure")
    assert host.shown() == [(WORDS[2], failed if end is FAILURE else "success")]


async def test_a_second_delivery_changes_nothing(host: Host) -> None:
    for report in (PENDING, PENDING, SUCCESS, SUCCESS):
        await host.client.publish(report)

    assert host.shown() == [(WORDS[2], "success")]


async def test_a_retry_begins_again(host: Host) -> None:
    for report in (PENDING, FAILURE, PENDING, SUCCESS):
        await host.client.publish(report)

    assert host.shown() == [(WORDS[2], "success")]


async def test_targets_do_not_take_each_others_place(host: Host) -> None:
    till = CheckReport("acme/shop", COMMIT, "fairlead: prod/till", "t/prod/till", "failure", "no")
    await host.client.publish(SUCCESS)
    await host.client.publish(till)

    assert len(host.shown()) == 2


async def test_a_long_summary_is_cut(host: Host) -> None:
    await host.client.publish(CheckReport(*WORDS, "failure", "x" * 5000))

    assert len(host.server.statuses[0]["description"]) <= 140


@pytest.mark.parametrize(
    ("status", "headers", "fate"),
    [
        (401, {}, errors.Forbidden),
        (403, {}, errors.Forbidden),
        (404, {}, errors.Rejected),
        (422, {}, errors.Rejected),
        (302, {"Location": "https://evil.example"}, errors.Rejected),
        (429, {"Retry-After": "60"}, errors.Unavailable),
        (502, {}, errors.Unavailable),
    ],
)
async def test_each_refusal_has_its_fate_and_tells_no_token(
    host: Host, status: int, headers: dict[str, str], fate: type[errors.FairleadError]
) -> None:
    host.server.next_answers = [lambda: web.Response(status=status, headers=headers)]

    with pytest.raises(fate) as refused:
        await host.client.publish(SUCCESS)

    assert host.token_file.read_text() not in f"{refused.value} {refused.value.hint}"
    assert len(host.server.asked) == 1


async def test_a_rate_limit_is_kept_without_asking_again(host: Host) -> None:
    host.server.next_answers = [lambda: web.Response(status=429, headers={"Retry-After": "600"})]

    for _ in range(3):
        with pytest.raises(errors.Unavailable):
            await host.client.publish(SUCCESS)

    assert len(host.server.asked) == 1


async def test_a_wrong_token_is_told_as_such(host: Host) -> None:
    host.token_file.write_text("of-somebody-else")

    with pytest.raises(errors.Forbidden, match="does not let us into acme/shop"):
        await host.client.publish(SUCCESS)


@pytest.mark.parametrize("kind", ["gitlab", "gitea"])
async def test_without_a_token_nothing_is_asked(kind: str) -> None:
    client = commit_statuses(kind, "http://127.0.0.1:9", None)

    with pytest.raises(errors.Rejected, match="no token") as refused:
        await client.publish(SUCCESS)

    assert f"FAIRLEAD_DEPLOYMENTS_{kind.upper()}_TOKEN_FILE" in refused.value.hint


async def test_a_project_in_a_group_of_groups_is_named_in_one_part(tmp_path: Path) -> None:
    async with _other("gitlab")(tmp_path) as host:
        host.server.known = "acme/web/shop"
        report = CheckReport("acme/web/shop", COMMIT, "fairlead: prod/shop", "t", "success", "done")
        await host.client.publish(report)

    assert host.server.asked == [f"/api/v4/projects/acme%2Fweb%2Fshop/statuses/{COMMIT}"]
