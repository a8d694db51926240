"""Who gets in: tokens, roles, and pages of other sites that must not."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from fairlead import errors
from fairlead.access import intake, tokens
from fairlead.web import auth
from tests.unit.web import rig

STREAMS = "/api/v1/streams"
COMMANDS = "/api/v1/streams/depot/a/commands"
VIEWER, OPERATOR, _, ADMIN = tokens.Role


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path) as running:
        yield running


async def test_on_loopback_without_a_token_this_machine_is_the_admin(site: rig.Site) -> None:
    answer = await site.client.get("/api/v1/me")

    assert answer.json() == {"name": "local", "role": "admin", "token": None, "scope": ""}


async def test_as_soon_as_a_token_exists_one_is_needed(site: rig.Site) -> None:
    token = await site.token(VIEWER)

    bare = await site.client.get(STREAMS)
    shown = await site.client.get(STREAMS, headers=rig.bearer(token))

    assert bare.status_code == 401
    assert bare.headers["WWW-Authenticate"] == "Bearer"
    assert "fairlead token create" in bare.json()["error"]["hint"]
    assert shown.status_code == 200


async def test_beyond_loopback_a_token_is_needed_from_the_start(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bind=rig.PUBLIC) as site:
        assert (await site.client.get(STREAMS)).status_code == 401
        assert (await site.client.get("/healthz")).status_code == 200


async def test_health_and_readiness_need_no_token(site: rig.Site) -> None:
    await site.token(VIEWER)

    assert (await site.client.get("/healthz")).status_code == 200
    assert (await site.client.get("/readyz")).status_code == 200
    assert (await site.client.get("/metrics")).status_code == 401
    assert (await site.client.get("/healthz/metrics")).status_code == 401


async def test_a_door_that_checks_signatures_is_reached_without_a_token(site: rig.Site) -> None:
    await site.token(VIEWER)

    # None of this name, but it was looked for: no token was asked for.
    assert (await site.client.post("/hooks/none")).status_code == 404
    assert (await site.client.post("/hooks")).status_code == 401
    assert (await site.client.get("/hooks/../api/v1/streams")).status_code in (401, 404)
    foreign = {"Origin": "https://elsewhere.example"}
    assert (await site.client.post("/hooks/none", headers=foreign)).status_code == 403


async def test_a_role_too_small_is_told_which_one_it_takes(site: rig.Site) -> None:
    token = await site.token(VIEWER)

    answer = await site.client.post(COMMANDS, json=rig.ORDER, headers=rig.bearer(token))
    retry = await site.client.post("/api/v1/effects/1.1.0/retry", headers=rig.bearer(token))

    assert answer.status_code == retry.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden"
    assert "role operator" in answer.json()["error"]["hint"]


@pytest.mark.parametrize("role", [OPERATOR, ADMIN])
async def test_an_operator_and_an_admin_may_command(site: rig.Site, role: tokens.Role) -> None:
    token = await site.token(role)

    answer = await site.client.post(COMMANDS, json=rig.ORDER, headers=rig.bearer(token))

    assert answer.status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer flt_000000000000_" + "0" * 64,
        "Basic YTpi",
        "flt_000000000000_" + "0" * 64,
        "Bearer " + "x" * 5000,
    ],
)
async def test_a_wrong_token_is_refused(site: rig.Site, header: str) -> None:
    await site.token(ADMIN)

    answer = await site.client.get(STREAMS, headers={"Authorization": header})

    assert answer.status_code == 401
    assert "x" * 100 not in answer.text


async def test_a_wrong_token_is_refused_even_where_none_is_needed(site: rig.Site) -> None:
    answer = await site.client.get(STREAMS, headers={"Authorization": "Bearer wrong"})

    assert answer.status_code == 401


async def test_a_right_id_with_a_wrong_secret_is_refused(site: rig.Site) -> None:
    token = await site.token(ADMIN)
    forged = f"flt_{token.id}_{'0' * 64}"

    answer = await site.client.get(STREAMS, headers={"Authorization": f"Bearer {forged}"})

    assert answer.status_code == 401


async def test_an_expired_token_is_refused(site: rig.Site) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=2)
    request = tokens.TokenRequest("late", ADMIN, long_ago + timedelta(days=1))
    token = await site.engine.write(lambda s: tokens.mint(s, request, long_ago))

    answer = await site.client.get(STREAMS, headers=rig.bearer(token))

    assert answer.status_code == 401
    assert answer.json()["error"]["message"] == f"the token is expired: {token.id}"


async def test_a_revoked_token_is_refused_within_a_second(site: rig.Site) -> None:
    token = await site.token(ADMIN)
    ticks = 0.0
    keeper = auth.Authenticator(site.engine, rig.LOOPBACK, lambda: ticks)
    admitted = await keeper.admit(auth.Credential(token.text), site.context)
    await site.engine.write(lambda s: tokens.revoke(s, token.id, datetime.now(UTC)))

    remembered = await keeper.admit(auth.Credential(token.text), site.context)
    ticks = 1.01

    assert admitted == remembered == intake.Caller("a admin", ADMIN, token.id)
    with pytest.raises(errors.Unauthorised, match="revoked"):
        await keeper.admit(auth.Credential(token.text), site.context)


@pytest.mark.parametrize("guarded", [True, False], ids=["by its token", "on loopback"])
async def test_whoever_read_figures_lately_may_while_the_store_is_away(
    site: rig.Site, *, guarded: bool
) -> None:
    shown = auth.Credential((await site.token(VIEWER)).text) if guarded else None
    ticks = 0.0
    keeper = auth.Authenticator(site.engine, rig.LOOPBACK, lambda: ticks)
    before = await keeper.admit_to_figures(shown, site.context)

    with rig.stopped(site.engine):
        ticks = 599.0
        during = await keeper.admit_to_figures(shown, site.context)
        for other in (auth.Credential("flt_1_2"), shown):
            ticks = 601.0
            with pytest.raises(errors.Unavailable, match="does not answer"):
                await keeper.admit_to_figures(other, site.context)
        with pytest.raises(errors.Unavailable):
            await keeper.admit(shown, site.context)

    assert during == before


async def test_a_revoked_token_reads_no_figures_once_that_is_known(site: rig.Site) -> None:
    token = await site.token(VIEWER)
    shown = auth.Credential(token.text)
    ticks = 0.0
    keeper = auth.Authenticator(site.engine, rig.LOOPBACK, lambda: ticks)
    await keeper.admit_to_figures(shown, site.context)
    await site.engine.write(lambda s: tokens.revoke(s, token.id, datetime.now(UTC)))
    ticks = 2.0

    with pytest.raises(errors.Unauthorised, match="revoked"):
        await keeper.admit_to_figures(shown, site.context)
    with rig.stopped(site.engine), pytest.raises(errors.Unavailable):
        await keeper.admit_to_figures(shown, site.context)


async def test_revoking_the_last_token_does_not_open_the_door(site: rig.Site) -> None:
    token = await site.token(ADMIN)
    await site.engine.write(lambda s: tokens.revoke(s, token.id, datetime.now(UTC)))

    assert (await site.client.get(STREAMS)).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8600", "127.0.0.1.evil.example", "[::", "", "10.0.0.1"]
)
async def test_a_rebound_name_is_refused_on_loopback(site: rig.Site, host: str) -> None:
    answer = await site.client.get(STREAMS, headers={"Host": host})

    assert answer.status_code == 421
    assert "127.0.0.1" in answer.json()["error"]["hint"]


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:8600", "[::1]:8600"])
async def test_the_names_of_this_machine_are_ours(site: rig.Site, host: str) -> None:
    assert (await site.client.get(STREAMS, headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://[::"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_a_foreign_page_cannot_command(site: rig.Site, headers: dict[str, str]) -> None:
    answer = await site.client.post(COMMANDS, json=rig.ORDER, headers=headers)

    assert answer.status_code == 403
    assert (await site.client.get(STREAMS)).json()["items"] == []


async def test_a_foreign_page_may_link_here_and_no_more(site: rig.Site) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}

    link = await site.client.get("/", headers={**foreign, "Sec-Fetch-Mode": "navigate"})
    fetch = await site.client.get(
        "/api/v1/feed/live", headers={**foreign, "Sec-Fetch-Mode": "cors"}
    )

    assert (link.status_code, fetch.status_code) == (200, 403)


async def test_our_own_page_may_command(site: rig.Site) -> None:
    headers = {"Origin": rig.LOOPBACK.url, "Sec-Fetch-Site": "same-origin"}

    assert (await site.client.post(COMMANDS, json=rig.ORDER, headers=headers)).status_code == 200


async def test_no_secret_reaches_the_log(
    site: rig.Site, capsys: pytest.CaptureFixture[str]
) -> None:
    token = await site.token(OPERATOR)
    secret = token.text.rpartition("_")[2]

    with structlog.testing.capture_logs() as lines:
        await site.client.post(COMMANDS, json=rig.ORDER, headers=rig.bearer(token))
        await site.client.get(STREAMS, headers={"Authorization": f"Bearer {token.text}x"})
        await site.client.post("/login", content=f"token={token.text}")

    assert any(line["event"] == "command_taken" for line in lines)
    printed = capsys.readouterr()
    assert secret not in f"{lines}{printed.out}{printed.err}{token!r}"
