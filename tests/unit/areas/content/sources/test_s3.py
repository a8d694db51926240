"""Archives in S3: as any archive, signed and summed."""

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content import description, loader
from fairlead.areas.content.sources import archive, limits
from tests import contents
from tests.aws import REGION, Cloud
from tests.minisign import Signer

AT = "s3://contents/rules/1.0.2.tar.gz"


@pytest.fixture
def s3(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A bucket, with the environment that AWS's tools go by."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.url)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    client = cloud.client("s3")
    client.create_bucket(
        Bucket="contents", CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    return client


def packed(version: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        for path, data in contents.version_files(version).items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            opened.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def put(s3: Any, data: bytes, key: str = "rules/1.0.2.tar.gz") -> None:
    s3.put_object(Bucket="contents", Key=key, Body=data)


def described(**more: Any) -> description.Description:
    source = {"archive": "s3://contents/rules/{version}.tar.gz"}
    return description.read({"name": "g", "kind": "gathering", "source": source, **more}, Path())


async def test_a_version_comes_from_s3_with_its_sum_and_its_signature(s3: Any) -> None:
    signer, data = Signer(), packed("1.0.2")
    put(s3, data)
    put(s3, signer.sign(data), "rules/1.0.2.tar.gz.minisig")
    sum_ = hashlib.sha256(data).hexdigest()
    content = described(public_key=signer.public, pins={"1.0.2": {"sha256": sum_}})

    then = await loader.load(content, "1.0.2")

    assert (then.edition.version, then.sha256) == ("1.0.2", sum_)


async def test_another_archive_than_the_signed_or_approved_one_is_refused(s3: Any) -> None:
    signer = Signer()
    put(s3, packed("1.0.2"))
    put(s3, signer.sign(b"another"), "rules/1.0.2.tar.gz.minisig")

    with pytest.raises(errors.Rejected, match="the signature does not fit"):
        await loader.load(described(public_key=signer.public), "1.0.2")
    with pytest.raises(errors.Conflict, match="is not what was approved"):
        await loader.load(described(pins={"1.0.2": {"sha256": "0" * 64}}), "1.0.2")


@pytest.mark.requirement("content 4")
@pytest.mark.parametrize("at", [AT, "s3://elsewhere/1.0.2.tar.gz"])
async def test_an_object_that_is_not_there_is_a_missing_version(s3: Any, at: str) -> None:
    with pytest.raises(errors.NotFound, match=r"version not found: 1\.0\.2"):
        await archive.fetch(at, "1.0.2")


async def test_an_object_without_end_is_cut_off(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_PACKED", 1_000_000)
    put(s3, b"\0" * 3_000_000)

    with pytest.raises(errors.Rejected, match="too large"):
        await archive.fetch(AT, "1.0.2")


async def test_an_s3_that_is_away_is_unavailable(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    with pytest.raises(errors.Unavailable, match="AWS did not answer"):
        await archive.fetch(AT, "1.0.2")
