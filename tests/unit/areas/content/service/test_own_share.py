"""The share from a file: read again, kept where it makes no sense, written whole."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.content.domain.population import Channel, Population, Share
from fairlead.areas.content.service import own_share
from fairlead.areas.content.service.own_share import OwnShare


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "share.json"


@pytest.mark.requirement("content 6")
async def test_a_changed_file_changes_who_gets_the_canary(file: Path) -> None:
    own_share.write(file, Population("1.0.2", Share(0)))
    share = OwnShare(file, "1.0.2")
    await share.start()
    assert share.channel("a") is Channel.STABLE

    own_share.write(file, Population("1.0.2", Share(10_000)))
    await share.refresh()

    assert share.channel("a") is Channel.CANARY
    assert share.channel("") is Channel.STABLE


@pytest.mark.requirement("content 5")
async def test_a_share_that_is_older_than_the_canary_lets_nobody_in(file: Path) -> None:
    own_share.write(file, Population("1.0.1-4", Share(10_000), "1.0.1"))
    share = OwnShare(file, "1.0.2")
    await share.start()
    assert (share.channel("a"), share.degraded) == (Channel.STABLE, "")

    own_share.write(file, Population("1.0.2-5", Share(10_000), "1.0.2"))
    await share.refresh()

    assert share.channel("a") is Channel.CANARY


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b'{"salt": "x", "share": "200"}', b"\xff", b'{"share": 5}'),
        *(b'{"salt": "", "share": "%s"}' % odd for odd in (b"1e999999", b"1e900000", b"sNaN")),
    ],
)
async def test_what_makes_no_sense_leaves_the_last_known_share_in_force(
    file: Path, raw: bytes
) -> None:
    own_share.write(file, Population("1.0.2", Share(10_000)))
    share = OwnShare(file, "1.0.2")
    await share.start()

    overwrite(file, raw)
    await share.refresh()

    assert share.channel("a") is Channel.CANARY
    assert "cannot read the share" in share.degraded
    own_share.write(file, Population("1.0.2", Share(10_000)))
    await share.refresh()
    assert share.degraded == ""


@pytest.mark.requirement("content 20")
async def test_without_its_file_at_the_start_everybody_is_on_stable(file: Path) -> None:
    share = OwnShare(file, "1.0.2")

    await share.start()

    assert share.channel("a") is Channel.STABLE
    assert share.degraded


async def test_without_a_file_nobody_gets_the_canary_and_nothing_is_amiss() -> None:
    share = OwnShare(None, "1.0.2")

    await share.start()

    assert (share.channel("a"), share.degraded) == (Channel.STABLE, "")


def test_a_share_is_refused_by_its_words() -> None:
    with pytest.raises(errors.Rejected, match=r"not a share: 0\.001"):
        own_share.parse(b'{"salt": "x", "share": "0.001"}')


def overwrite(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
