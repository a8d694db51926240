"""Calls over the web: to whom, how signed, how often, and how much is taken of the answer."""

import asyncio
import base64
import hashlib
import hmac
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.webhooks import MOST_BYTES, Call, Hooks, Hosts, Manners, Reply, shown
from tests.unit.checks.web_server import SILENCE, answer, standing
from tools.cluster import pki
from tools.cluster.process import free_port

TEXT = b'{"rollout":"shop"}'


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    made = Hooks(Manners(deadline_seconds=2.0))
    async with made.open():
        yield made


@pytest.mark.parametrize(
    "url",
    [
        "https://gate.example/ask?a=b",
        "https://GATE.example:443",
        "https://gate.example./",
        "https://a.b.shop.example:8443/x",
        "http://127.0.0.1:9000/",
    ],
)
def test_hosts_on_the_list_may_be_called(url: str) -> None:
    Hosts.read("gate.example, *.shop.example:8443 , http://127.0.0.1:9000").check(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://gate.example/",
        "https://gate.example:444/",
        "https://gate.example.evil/",
        "https://evil-gate.example/",
        "https://shop.example:8443/",
        "https://evilshop.example:8443/",
        "https://a.shop.example/",
        "http://127.0.0.1:9001/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]:9000/",
        "https://gate.example\\@evil.example/",
    ],
)
def test_no_other_host_may_be_called(url: str) -> None:
    hosts = Hosts.read("gate.example, *.shop.example:8443 , http://127.0.0.1:9000")

    with pytest.raises(errors.Rejected, match=r"may not be called|malformed address"):
        hosts.check(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "gate.example",
        "ftp://gate.example",
        "https://",
        "https://me:secret@gate.example",
        "https://gate.example:port",
        "https://gate.example:0",
        "https://gate.example/a b",
        "https://gate.example/\r\nHost: evil",
        "https://[gate",
    ],
)
def test_a_malformed_address_is_refused_and_no_password_is_told(url: str) -> None:
    with pytest.raises(errors.Rejected, match="malformed address") as raised:
        Hosts.read("gate.example").check(url)

    assert "secret" not in raised.value.message


@pytest.mark.parametrize("text", ["gate.example/path", "ftp://gate.example", "gate.example?x"])
def test_a_list_of_hosts_holds_hosts_only(text: str) -> None:
    with pytest.raises(errors.Rejected):
        Hosts.read(text)


async def test_a_receiver_verifies_who_sent_it_in_three_lines(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\n")
    hooks = Hooks(Manners(secret_file=secret))

    async with hooks.open(), standing([answer()]) as stand:
        await hooks.call(Call(f"{stand.origin}/gate", "key-1", TEXT))

    headers, body = stand.heard[0].headers, stand.heard[0].body
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(b"correct horse", signed, hashlib.sha256)).decode()
    assert f"v1,{expected}" in headers["webhook-signature"].split(" ")

    assert stand.heard[0].line == "POST /gate HTTP/1.1"
    assert (body, headers["webhook-id"]) == (TEXT, "key-1")
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60


async def test_a_rotated_secret_signs_beside_the_old_one(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    encoded = base64.b64encode(b"old").decode()
    secret.write_text(f"new\nwhsec_{encoded}\n")
    hooks = Hooks(Manners(secret_file=secret, clock=lambda: 1_700_000_000.9))

    async with hooks.open(), standing([answer()]) as stand:
        await hooks.call(Call(stand.origin, "k"))

    def by(key: bytes) -> str:
        digest = hmac.digest(key, b"k.1700000000.", hashlib.sha256)
        return f"v1,{base64.b64encode(digest).decode()}"

    assert stand.heard[0].headers["webhook-signature"] == f"{by(b'new')} {by(b'old')}"
    assert stand.heard[0].line == "GET / HTTP/1.1"


async def test_a_secret_that_cannot_be_used_is_said_and_not_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    hooks = Hooks(Manners(secret_file=secret))

    async with hooks.open(), standing([answer()]) as stand:
        with pytest.raises(errors.Rejected, match="cannot read"):
            await hooks.call(Call(stand.origin, "k"))
        secret.write_text("whsec_!hush!")
        with pytest.raises(errors.Rejected, match="not base64") as raised:
            await hooks.call(Call(stand.origin, "k"))

    assert "hush" not in f"{raised.value.message}{raised.value.hint}"
    assert not stand.heard


async def test_what_may_pass_later_is_tried_again_with_the_same_key() -> None:
    troubles = [answer(503), b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", answer(429)]

    hooks = Hooks(Manners(deadline_seconds=10.0))
    async with hooks.open(), standing([*troubles, answer(200, b"yes")]) as stand:
        reply = await hooks.call(Call(stand.origin, "key-1", TEXT))

    assert reply == Reply(200, b"yes")
    assert [heard.headers["webhook-id"] for heard in stand.heard] == ["key-1"] * 5
    assert {heard.body for heard in stand.heard} == {TEXT}


async def test_a_receiver_may_say_how_long_to_wait(hooks: Hooks) -> None:
    began = time.monotonic()

    async with standing([answer(503, b"", "Retry-After: 1"), answer()]) as stand:
        await hooks.call(Call(stand.origin, "k"))

    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize(
    ("told", "last"),
    [
        (answer(503, b"over\x07loaded"), "status 503 over loaded"),
        (answer(503, b"", "Retry-After: 3600"), "status 503"),
        (SILENCE, "no answer"),
        (b"\x00garbage\r\n\r\n", "invalid HTTP answer"),
    ],
)
async def test_the_deadline_ends_all_tries_and_tells_the_last(
    hooks: Hooks, told: bytes, last: str
) -> None:
    async with standing([told]) as stand:
        with pytest.raises(errors.Unavailable, match="did not answer within 2 s") as raised:
            await hooks.call(Call(f"{stand.origin}/gate?token=hush", "k"))

    assert last in raised.value.message
    assert "hush" not in raised.value.message


async def test_one_that_hangs_leaves_time_for_another_try(hooks: Hooks) -> None:
    async with standing([SILENCE, answer(200, b"yes")]) as stand:
        assert (await hooks.call(Call(stand.origin, "k"))).body == b"yes"


async def test_nobody_there_is_unavailable(hooks: Hooks) -> None:
    with pytest.raises(errors.Unavailable, match=r"did not answer within 2 s: .*127\.0\.0\.1"):
        await hooks.call(Call(f"http://127.0.0.1:{free_port()}/", "k"))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_we_are_not_sent_elsewhere(hooks: Hooks, status: int) -> None:
    async with standing([answer()]) as elsewhere:
        moved = answer(status, b"", f"Location: {elsewhere.origin}/")
        async with standing([moved]) as stand:
            with pytest.raises(errors.Rejected, match=f"redirects, status: {status}"):
                await hooks.call(Call(stand.origin, "k", TEXT))

    assert not elsewhere.heard


async def test_an_answer_without_end_is_cut_off(hooks: Hooks) -> None:
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MOST_BYTES + 1)

    async with standing([endless]) as stand:
        with pytest.raises(errors.Rejected, match=f"more than {MOST_BYTES} bytes"):
            await hooks.call(Call(stand.origin, "k"))


async def test_a_packed_answer_is_not_unpacked(hooks: Hooks) -> None:
    async with standing([answer(200, b"\x1f\x8b", "Content-Encoding: gzip")]) as stand:
        with pytest.raises(errors.Rejected, match="an encoding that was not requested"):
            await hooks.call(Call(stand.origin, "k"))


async def test_a_stranger_behind_tls_is_not_told_anything(tmp_path: Path) -> None:
    authority = pki.Authority(tmp_path)
    pair = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    knowing = Hooks(Manners(ca_file=authority.certificate))
    unknowing = Hooks(Manners())

    async with standing([answer(200, b"yes")], context) as stand, knowing.open(), unknowing.open():
        reply = await knowing.call(Call(stand.origin, "k"))
        with pytest.raises(errors.Rejected, match="certificate that is not trusted"):
            await unknowing.call(Call(stand.origin, "k"))

    assert reply.body == b"yes"
    assert len(stand.heard) == 1


async def test_cookies_are_not_kept(hooks: Hooks) -> None:
    async with standing([answer(200, b"", "Set-Cookie: a=b")]) as stand:
        for _ in range(2):
            await hooks.call(Call(stand.origin, "k"))

    assert "cookie" not in stand.heard[1].headers


async def test_calls_outside_of_their_block_are_refused() -> None:
    with pytest.raises(errors.Unavailable, match="not open"):
        await Hooks(Manners()).call(Call("http://127.0.0.1:1", "k"))


async def test_who_gives_up_waiting_leaves_nothing_behind(hooks: Hooks) -> None:
    async with standing([SILENCE]) as stand:
        task = asyncio.create_task(hooks.call(Call(stand.origin, "k")))
        async with asyncio.timeout(60):
            while not stand.heard:  # noqa: ASYNC110 - the server has no event to wait for
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown("https://me:hush@gate.example:8443/a?token=hush#x") == (
        "https://gate.example:8443/a"
    )
