"""Versions as archives: what is fetched whole, what is unpacked, and what never is."""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.content.sources import archive, limits


def tarred(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as opened:  # type: ignore[call-overload]  # any mode
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            opened.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        for path, data in files.items():
            opened.writestr(path, data)
    return made.getvalue()


def linked(kind: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as opened:
        entry = tarfile.TarInfo("rules.json")
        entry.type, entry.linkname = kind, "/etc/passwd"
        opened.addfile(entry)
    return made.getvalue()


def zip_link() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        entry = zipfile.ZipInfo("rules.json")
        entry.external_attr = 0o120777 << 16
        opened.writestr(entry, "/etc/passwd")
    return made.getvalue()


@pytest.mark.parametrize(
    "packed",
    [
        tarred({"./a.json": b"1", "sub/b.json": b"2"}),
        tarred({"a.json": b"1", "sub/b.json": b"2"}, "w:xz"),
        tarred({"a.json": b"1", "sub/b.json": b"2"}, "w"),
        zipped({"sub/": b"", "a.json": b"1", "sub/b.json": b"2"}),
    ],
    ids=["gzip", "xz", "tar", "zip"],
)
def test_tar_and_zip_are_unpacked(packed: bytes) -> None:
    assert archive.unpack(packed, "1") == {"a.json": b"1", "sub/b.json": b"2"}


BOMB = b"\0" * (limits.MOST_BYTES + 1)


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (tarred({"../rules.json": b""}), "a path out of its folder"),
        (tarred({"/etc/passwd": b""}), "a path out of its folder"),
        (tarred({"a/../../b": b""}), "a path out of its folder"),
        (zipped({"../rules.json": b""}), "a path out of its folder"),
        (zipped({"a\\..\\b": b""}), "a path out of its folder"),
        (linked(tarfile.SYMTYPE), "not a plain file"),
        (linked(tarfile.LNKTYPE), "not a plain file"),
        (linked(tarfile.CHRTYPE), "not a plain file"),
        (zip_link(), "not a plain file"),
        (tarred({"bomb": BOMB}), "too large"),
        (zipped({"bomb": BOMB}), "too large"),
        (tarred({"a": b"1"}) + tarred({"a": b"2"}), "damaged"),
        (tarred({"a.json": b"x" * 512, "b.json": b"2"}, "w")[:1024], "damaged"),
        (tarred({"a.json": b"x" * 512, "b.json": b"2"}, "w:xz")[:-8], "damaged"),
        (tarred({"a.json": b"x" * 9999})[:100], "damaged"),
        (zipped({"a.json": b"x" * 9999})[:60], "damaged"),
        (gzip.compress(b"no tar"), "damaged"),
        (b"", "damaged"),
    ],
    # An archive holds the time at which it was made, and workers must call a test the same.
    ids=lambda value: value if isinstance(value, str) else "packed",
)
def test_bombs_links_ways_out_and_damage_are_refused(packed: bytes, said: str) -> None:
    with pytest.raises(errors.Rejected, match=said):
        archive.unpack(packed, "1")


def test_a_zip_that_lies_about_its_size_is_refused() -> None:
    honest = zipped({"bomb": BOMB})
    lying = honest.replace(len(BOMB).to_bytes(4, "little"), (5).to_bytes(4, "little"))

    with pytest.raises(errors.Rejected, match=r"damaged|too large"):
        archive.unpack(lying, "1")


async def test_a_file_of_this_machine_is_an_archive_too(tmp_path: Path) -> None:
    (tmp_path / "1.zip").write_bytes(b"packed")

    assert await archive.fetch(str(tmp_path / "1.zip"), "1") == b"packed"
    with pytest.raises(errors.NotFound, match="version not found: 2"):
        await archive.fetch(str(tmp_path / "2.zip"), "2")


async def test_an_address_of_no_known_kind_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="not an archive that can be fetched: ftp://"):
        await archive.fetch("ftp://files.example/1.tar.gz", "1")
