"""From a source to an edition: pins, signatures, and that nothing is served in part."""

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content import description, loader
from tests import contents, cosign, minisign


def described(source: dict[str, str], **more: Any) -> description.Description:
    return description.read({"name": "g", "kind": "gathering", "source": source, **more}, Path())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return contents.repository(tmp_path / "conditions")


def built(version: str) -> dict[str, bytes]:
    return {f"build/{path}": data for path, data in contents.version_files(version).items()}


async def test_a_tag_comes_with_its_commit_and_its_sum(repository: Path) -> None:
    commit = contents.tag(repository, "1.0.2", built("1.0.2"))

    then = await loader.load(described({"git": str(repository), "path": "build"}), "1.0.2")

    assert (then.edition.version, then.commit) == ("1.0.2", commit)
    assert len(then.sha256) == 64


async def test_a_tag_that_was_moved_is_refused_by_the_recorded_commit(repository: Path) -> None:
    commit = contents.tag(repository, "1.0.2", contents.version_files("1.0.2"))
    content = described({"git": str(repository)}, pins={"1.0.2": {"commit": commit}})
    await loader.load(content, "1.0.2")

    contents.tag(repository, "1.0.2", {"v2/more.json": b"{}"}, force=True)

    with pytest.raises(errors.Conflict, match=f"was moved: approved was commit {commit[:12]}"):
        await loader.load(content, "1.0.2")


@pytest.mark.requirement("content 17")
async def test_two_tags_on_one_commit_are_not_served_as_each_other(repository: Path) -> None:
    contents.tag(repository, "1.1.0", contents.version_files("1.1.0"))
    contents.git(repository, "tag", "1.1.1")

    with pytest.raises(errors.Invalid, match=r"the content says version '1.1.0', not '1.1.1'"):
        await loader.load(described({"git": str(repository)}), "1.1.1")


async def test_a_folder_that_was_changed_is_refused_by_its_recorded_sum(tmp_path: Path) -> None:
    contents.write(tmp_path / "1.0.2", contents.version_files("1.0.2"))
    sound = await loader.load(described({"directory": str(tmp_path)}), "1.0.2")
    pins = {"1.0.2": {"sha256": sound.sha256}}
    await loader.load(described({"directory": str(tmp_path)}, pins=pins), "1.0.2")

    contents.write(tmp_path / "1.0.2", {"v1/rules.json": b"{}"})

    with pytest.raises(errors.Conflict, match="is not what was approved"):
        await loader.load(described({"directory": str(tmp_path)}, pins=pins), "1.0.2")


@pytest.mark.parametrize(
    ("signer", "suffix"),
    [(minisign.Signer(), ".minisig"), (cosign.Signer(), ".sigstore.json")],
    ids=["minisign", "cosign"],
)
async def test_an_archive_is_held_against_sum_and_signature_before_it_is_unpacked(
    tmp_path: Path, signer: minisign.Signer | cosign.Signer, suffix: str
) -> None:
    packed = archived(contents.version_files("1.0.2"))
    (tmp_path / "1.0.2.tgz").write_bytes(packed)
    (tmp_path / f"1.0.2.tgz{suffix}").write_bytes(signer.sign(packed))
    pins = {"1.0.2": {"sha256": hashlib.sha256(packed).hexdigest()}}
    source = {"archive": f"{tmp_path}/{{version}}.tgz"}
    content = described(source, pins=pins, public_key=signer.public)

    assert (await loader.load(content, "1.0.2")).edition.version == "1.0.2"

    (tmp_path / "1.0.2.tgz").write_bytes(b"no archive at all")
    with pytest.raises(errors.Rejected, match="the signature does not fit"):
        await loader.load(content, "1.0.2")
    with pytest.raises(errors.Conflict, match="is not what was approved"):
        await loader.load(described(source, pins=pins), "1.0.2")


async def test_a_tag_that_nobody_signed_is_refused_where_a_key_is_given(repository: Path) -> None:
    contents.tag(repository, "1.0.2", contents.version_files("1.0.2"))

    with pytest.raises(errors.Rejected, match=r"version 1.0.2 is not signed"):
        await loader.load(
            described({"git": str(repository)}, public_key=minisign.Signer().public), "1.0.2"
        )


async def test_files_of_a_tag_are_those_whose_sums_cosign_signed(repository: Path) -> None:
    signer, files = cosign.Signer(), contents.version_files("1.0.2")
    sums = "".join(f"{hashlib.sha256(files[each]).hexdigest()}  {each}\n" for each in files)
    signed = {"SHA256SUMS": sums.encode(), "SHA256SUMS.sigstore.json": signer.sign(sums.encode())}
    contents.tag(repository, "1.0.2", {**files, **signed})
    content = described({"git": str(repository)}, public_key=signer.public)
    assert (await loader.load(content, "1.0.2")).edition.version == "1.0.2"

    contents.tag(repository, "1.0.2", {"v2/more.json": b"{}"}, force=True)

    with pytest.raises(errors.Rejected, match=r"not what was signed .*: v2/more.json"):
        await loader.load(content, "1.0.2")


def archived(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            opened.addfile(entry, io.BytesIO(data))
    return made.getvalue()


async def test_a_deployment_names_the_commits_that_were_approved(tmp_path: Path) -> None:
    repository = contents.repository(tmp_path / "conditions")
    commit = contents.tag(repository, "1.0.2", contents.version_files("1.0.2"))
    content = description.pinned(described({"git": str(repository)}), f"1.0.2={commit}")
    await loader.load(content, "1.0.2")

    contents.tag(repository, "1.0.2", contents.version_files("1.0.2"), force=True)

    with pytest.raises(errors.Conflict, match=f"was moved: approved was commit {commit[:12]}"):
        await loader.load(content, "1.0.2")
    with pytest.raises(errors.Rejected, match=r"not a commit of a version: 1\.0\.2"):
        description.pinned(content, "1.0.2")
