"""GitHub's API as we ask it: files, commits, what is shown beside them, limits and refusals."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fairlead import errors
from fairlead.clients.github import Account, GitHub
from fairlead.clients.host_api import CheckReport
from tests.fakes.github import TOKEN, GitHubServer

COMMIT = "c" * 40
REPOSITORY = "acme/shop"
PENDING = CheckReport(REPOSITORY, COMMIT, "fairlead: prod/shop", "t/prod/shop", "pending", "waits")
DONE = CheckReport(REPOSITORY, COMMIT, "fairlead: prod/shop", "t/prod/shop", "success", "done")


@dataclass
class Clock:
    now: float = 1_900_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def server() -> AsyncIterator[GitHubServer]:
    files = {(REPOSITORY, COMMIT, "deploy/a b.yaml"): b"name: shop"}
    refs = {(REPOSITORY, "heads/main"): COMMIT, (REPOSITORY, "heads/feature/x"): COMMIT}
    async with GitHubServer(files, refs).serving() as running:
        yield running


@pytest.fixture
async def github(server: GitHubServer, clock: Clock, tmp_path: Path) -> AsyncIterator[GitHub]:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    made = GitHub(Account(server.url, token, clock=clock))
    async with made.open():
        yield made


@pytest.fixture
async def app(server: GitHubServer, clock: Clock, tmp_path: Path) -> AsyncIterator[GitHub]:
    key = rsa.generate_private_key(65537, 2048)
    server.app_key = key.public_key()
    file = tmp_path / "app.pem"
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    made = GitHub(Account(server.url, app_id="7", app_key_file=file, clock=clock))
    async with made.open():
        yield made


@pytest.mark.requirement("deployer G5", "deployer M3")
async def test_a_file_is_read_at_its_commit(github: GitHub) -> None:
    assert await github.read_file(REPOSITORY, COMMIT, "deploy/a b.yaml", 100) == b"name: shop"


async def test_a_missing_file_is_not_found_and_a_large_one_refused(github: GitHub) -> None:
    with pytest.raises(errors.NotFound, match=r"no such file at cccccccccccc: none\.yaml"):
        await github.read_file(REPOSITORY, COMMIT, "none.yaml", 100)
    with pytest.raises(errors.Rejected, match="larger than 9 bytes"):
        await github.read_file(REPOSITORY, COMMIT, "deploy/a b.yaml", 9)


async def test_a_branch_is_a_commit(github: GitHub) -> None:
    assert await github.resolve(REPOSITORY, "refs/heads/main") == COMMIT
    assert await github.resolve(REPOSITORY, "refs/heads/feature/x") == COMMIT
    with pytest.raises(errors.NotFound, match="no heads/other in acme/shop"):
        await github.resolve(REPOSITORY, "refs/heads/other")


async def test_a_token_shows_commit_statuses(github: GitHub, server: GitHubServer) -> None:
    await github.publish(PENDING)
    await github.publish(DONE)

    assert [(each["state"], each["context"]) for each in server.statuses] == [
        ("pending", "fairlead: prod/shop"),
        ("success", "fairlead: prod/shop"),
    ]


async def test_an_app_has_one_check_run_however_often_it_tells(
    app: GitHub, server: GitHubServer
) -> None:
    await app.publish(PENDING)
    await app.publish(PENDING)
    await app.publish(DONE)

    (run,) = server.runs.values()
    assert (run["status"], run["conclusion"], run["external_id"]) == (
        "completed",
        "success",
        "t/prod/shop",
    )
    tokens = [each for each in server.asked if each.endswith("access_tokens")]
    assert len(tokens) == 1


async def test_an_app_renews_its_token_before_it_is_over(
    app: GitHub, server: GitHubServer, clock: Clock
) -> None:
    await app.publish(PENDING)
    clock.now += 3000
    await app.publish(DONE)

    assert len([each for each in server.asked if each.endswith("access_tokens")]) == 2


async def test_a_token_that_was_revoked_is_replaced(app: GitHub, server: GitHubServer) -> None:
    await app.publish(PENDING)
    server.next_answers.append(lambda: web.Response(status=401))

    with pytest.raises(errors.Unavailable, match="no longer good"):
        await app.publish(DONE)
    await app.publish(DONE)

    assert [each["status"] for each in server.runs.values()] == ["completed"]


@pytest.mark.parametrize(
    "limit",
    [
        (429, {"Retry-After": "30"}, 30),
        (403, {"Retry-After": "30"}, 30),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1900000090"}, 90),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999999999"}, 3600),
        (429, {"Retry-After": "soon"}, 60),
    ],
)
async def test_a_limit_is_kept_without_asking_again_before_it_ends(
    github: GitHub, server: GitHubServer, clock: Clock, limit: tuple[int, dict[str, str], int]
) -> None:
    status, headers, pause = limit
    server.next_answers.append(lambda: web.Response(status=status, headers=headers))

    for _ in range(3):
        with pytest.raises(errors.Unavailable, match="rate limit"):
            await github.resolve(REPOSITORY, "refs/heads/main")
    asked = len(server.asked)
    clock.now += pause - 1
    with pytest.raises(errors.Unavailable, match="for 1 s"):
        await github.resolve(REPOSITORY, "refs/heads/main")
    clock.now += 2

    assert asked == 1
    assert await github.resolve(REPOSITORY, "refs/heads/main") == COMMIT


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (401, errors.Forbidden),
        (403, errors.Forbidden),
        (500, errors.Unavailable),
        (502, errors.Unavailable),
        (429, errors.Unavailable),
        (301, errors.Rejected),
    ],
)
async def test_each_refusal_has_its_fate_and_tells_no_token(
    github: GitHub, server: GitHubServer, status: int, fate: type[errors.FairleadError]
) -> None:
    elsewhere = {"Location": "http://127.0.0.1:9/"}
    server.next_answers.append(lambda: web.Response(status=status, headers=elsewhere))

    with pytest.raises(fate) as refused:
        await github.publish(PENDING)

    assert type(refused.value) is fate
    assert TOKEN not in f"{refused.value!r} {refused.value.message} {refused.value.hint}"
    assert len(server.asked) == 1


async def test_nobody_there_is_unavailable(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    github = GitHub(Account("http://127.0.0.1:9", token))
    async with github.open():
        with pytest.raises(errors.Unavailable, match="GitHub did not answer"):
            await github.resolve(REPOSITORY, "refs/heads/main")


async def test_without_a_token_nothing_is_asked(server: GitHubServer) -> None:
    github = GitHub(Account(server.url))
    async with github.open():
        with pytest.raises(errors.Rejected, match="no token for GitHub is set"):
            await github.resolve(REPOSITORY, "refs/heads/main")

    assert server.asked == []
