"""What a content is and where its versions come from, as its owner writes it into a file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from fairlead import errors, validation
from fairlead.areas.content import signatures
from fairlead.areas.content.domain import gathering
from fairlead.areas.content.domain.edition import Layout

NONE = "none"
_ABOUT = "see docs/reference/content.md"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of three: git, directory, archive."""

    git: str = ""
    """Path or URL of a repository; each version is a tag."""

    tag: str = "{version}"
    directory: str = ""
    """Folder with one folder for each version."""

    archive: str = ""
    """Path or URL with `{version}` in it."""

    path: str = ""
    """Folder within, where not all of it is content."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a version was when it was approved."""

    commit: str = ""
    sha256: str = ""
    """Of the archive; else of all files, as `fairlead content check` shows it."""


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One content."""

    name: str
    source: Source
    kind: Literal["gathering", "json"] = "json"
    file: str = ""
    map: str = ""
    schema: str = ""
    pins: dict[str, Pin] = {}
    public_key: str = ""
    identity: str = "X-Entity-Id"
    """Of kind `json`: the header that says who asks."""

    @property
    def layouts(self) -> Sequence[Layout]:
        if self.kind == "json":
            return (Layout("", self.file, self.map, schema_file=self.schema),)
        v1 = Layout("v1", gathering.V1_FILE, schema=gathering.V1_SCHEMA, shape=gathering.v1)
        v2 = Layout("v2", map=gathering.V2_MAP, schema=gathering.V2_SCHEMA, shape=gathering.v2)
        return (v1, v2)

    @property
    def key(self) -> signatures.Key | None:
        return signatures.parse_key(self.public_key) if self.public_key else None


def read(content: object, folder: Path) -> Description:
    """From plain data; Invalid with all that does not hold. Paths are from that folder on."""
    words = validation.convert(content, Description, about=_ABOUT)
    gathered = validation.Gathered()
    for check in (_check_name, _check_source, _check_files, _check_key):
        with gathered.part():
            check(words)
    gathered.settle()
    source = words.source
    placed = msgspec.structs.replace(
        source,
        git=_placed(source.git, folder),
        directory=_placed(source.directory, folder),
        archive=_placed(source.archive, folder),
    )
    return msgspec.structs.replace(words, source=placed)


def pinned(content: Description, commits: str) -> Description:
    """With commits as a deployment names them, such as `1.0.2=5f1d…`; Rejected where it is none."""
    pins = dict(content.pins)
    for each in commits.split():
        version, _, commit = each.partition("=")
        if not _COMMIT.fullmatch(commit):
            hint = "write VERSION=COMMIT, with all 40 digits"
            raise errors.Rejected(f"not a commit of a version: {each[:80]}", hint=hint)
        pin = pins.get(version, Pin())
        pins[version] = msgspec.structs.replace(pin, commit=commit)
    return msgspec.structs.replace(content, pins=pins)


def check_version(version: str) -> str:
    """The version, never a path or an option: folders and addresses are made of it."""
    if not _VERSION.fullmatch(version) or version == NONE:
        raise errors.Rejected(f"not a version: {version[:80]!r}", hint="use its tag, such as 1.0.2")
    return version


def _check_name(words: Description) -> None:
    if not _NAME.fullmatch(words.name):
        hint = "use up to 63 lower-case letters, digits and dashes"
        raise validation.refusal("name", f"invalid name: {words.name[:80]!r}", hint)


def _check_source(words: Description) -> None:
    source = words.source
    if sum(map(bool, (source.git, source.directory, source.archive))) != 1:
        hint = "give exactly one of git, directory and archive"
        raise validation.refusal("source", "not one place", hint)
    if source.archive and "{version}" not in source.archive:
        raise validation.refusal("source.archive", "without {version}", "say where it differs")
    if source.git and "{version}" not in source.tag:
        raise validation.refusal(
            "source.tag", "without {version}", "use v{version}, or leave it out"
        )


def _check_files(words: Description) -> None:
    if words.kind == "gathering" and (words.file or words.map or words.schema):
        hint = "leave file, map and schema out: the original's own are known"
        raise validation.refusal("kind", "gathering has files of its own", hint)
    if words.kind == "json" and bool(words.file) == bool(words.map):
        hint = "give file where there is one document, map where it depends on a version"
        raise validation.refusal("file", "not one of file and map", hint)


def _check_key(words: Description) -> None:
    try:
        _ = words.key
    except errors.Rejected as error:
        raise validation.refusal("public_key", error.message, error.hint) from error


def _placed(where: str, folder: Path) -> str:
    return str(folder / where) if where and "://" not in where else where
