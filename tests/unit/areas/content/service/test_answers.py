"""Answers in every encoding, and when a client has one already."""

import gzip

import brotli
import pytest

from fairlead.areas.content.domain.edition import Body
from fairlead.areas.content.domain.population import Channel
from fairlead.areas.content.service import answers

LONG = Body("v2/a.json", b'{"a": "' + b"x" * 5000 + b'"}')


@pytest.mark.parametrize(
    ("accepted", "found"),
    [
        ("", ()),
        ("gzip", ("gzip",)),
        ("gzip, deflate, br", ("br", "gzip")),
        ("br;q=0.1, gzip;q=0.9", ("gzip", "br")),
        ("br;q=0, *", ("gzip",)),
        ("*;q=0", ()),
        ("GZIP ; q=1", ("gzip",)),
        ("gzip;q=nonsense, br;q=7", ()),
        ("identity", ()),
    ],
)
def test_a_client_gets_the_best_encoding_that_it_takes(
    accepted: str, found: tuple[str, ...]
) -> None:
    assert answers.preferred(accepted) == found


def test_every_encoding_holds_the_same_bytes() -> None:
    made = answers.answer(LONG, "1.0.2", Channel.CANARY, "User-Agent")

    assert made.form("").body == LONG.data
    assert gzip.decompress(made.form("gzip").body) == LONG.data
    assert brotli.decompress(made.form("br").body) == LONG.data
    assert len(made.etags) == 3


def test_a_short_body_is_sent_as_it_is() -> None:
    made = answers.answer(Body("a", b"{}"), "1.0.2", Channel.STABLE, "User-Agent")

    assert made.form("br, gzip").body == b"{}"


def test_no_shared_cache_may_keep_what_depends_on_who_asks() -> None:
    form = answers.answer(LONG, "1.0.2", Channel.CANARY, "X-Entity-Id").form("")

    for head in (form.head, form.unmodified):
        assert b"\r\ncache-control: private, no-cache\r\n" in head
        assert b"\r\nvary: Accept-Encoding, X-Entity-Id\r\n" in head
        assert b"\r\nfairlead-channel: canary\r\n" in head
        assert b"\r\nfairlead-version: 1.0.2\r\n" in head


def test_a_client_is_known_to_have_it_by_any_of_its_tags() -> None:
    made = answers.answer(LONG, "1.0.2", Channel.STABLE, "User-Agent")
    tag = made.form("gzip").head.decode().partition("etag: ")[2].partition("\r\n")[0]

    assert made.known(tag)
    assert made.known(f'"other", W/{tag}')
    assert made.known("*")
    assert not made.known('"other"')
