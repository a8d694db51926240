"""One version of a content, checked whole before anybody is served from it.

A source brings the files of a version (`Files`); a `Layout` says which of them are served and what
they must hold. Everything that is wrong is told at once, each with its file and line.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
from jsonschema import exceptions as schema_errors
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from fairlead import errors, validation
from fairlead.areas.content.domain import semver
from fairlead.areas.content.domain.located import Located, Part
from fairlead.errors import Problem

Files = Mapping[str, bytes]
"""Of a version: each by its path, with slashes, from the content's own folder."""

_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Layout:
    """One document of a content: a file, or several of them by version of who asks."""

    name: str
    file: str = ""
    map: str = ""
    """Of versions: `[["4.0.0", "old.json"], …]`, each from its version on, in rising order."""

    schema: dict[str, Any] | None = None
    schema_file: str = ""
    """Within the content, where it brings its own schema."""

    shape: Callable[[Any], str] | None = None
    """How it is written; as the file has it where there is none."""

    version_field: str = "version"
    """Of the document: it must say the version that was asked for."""


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent, and the file that it came from."""

    file: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Document:
    """What is sent for one layout, by version of who asks where it has a map."""

    bodies: tuple[Body, ...]
    starts: tuple[semver.Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Edition:
    """A version of a content that may be served."""

    version: str
    documents: Mapping[str, Document]


def load(version: str, files: Files, layouts: Sequence[Layout]) -> Edition:
    """The version made of its files; Invalid with all that is wrong with them."""
    gathered = validation.Gathered()
    documents: dict[str, Document] = {}
    for layout in layouts:
        with gathered.part():
            documents[layout.name] = _Loader(version, files, layout).document()
    gathered.settle()
    return Edition(version, documents)


@dataclass(frozen=True, slots=True)
class _Loader:
    version: str
    files: Files
    layout: Layout

    def document(self) -> Document:
        validator = self._validator()
        if not self.layout.map:
            return Document((self._body(self.layout.file, validator),))
        mapped = self._json(self.layout.map)
        starts = list(_starts(mapped))
        folder = posixpath.dirname(self.layout.map)
        gathered = validation.Gathered()
        bodies: dict[str, Body] = {}
        for number, (_, target) in enumerate(mapped.data):
            with gathered.part():
                path = self._target(mapped, number, posixpath.join(folder, target))
                bodies[target] = bodies.get(target) or self._body(path, validator)
        gathered.settle()
        return Document(tuple(bodies[target] for _, target in mapped.data), tuple(starts))

    def _target(self, mapped: Located, number: int, path: str) -> str:
        if path not in self.files:
            said = f"the file that it names is missing: {path}"
            raise errors.Invalid([mapped.problem((number, 1), said, "add it to the version")])
        return path

    def _body(self, path: str, validator: Validator | None) -> Body:
        found = self._json(path)
        problems = list(_violations(found, validator)) if validator else []
        problems += self._wrong_version(found)
        if problems:
            raise errors.Invalid(problems[:_MOST_PROBLEMS])
        if self.layout.shape is None:
            return Body(path, self.files[path])
        try:
            return Body(path, self.layout.shape(found.data).encode())
        except RecursionError as error:
            told = found.problem((), "nested too deeply", "mend the file")
            raise errors.Invalid([told]) from error

    def _wrong_version(self, found: Located) -> Iterator[Problem]:
        field = self.layout.version_field
        said = found.data.get(field) if isinstance(found.data, dict) else None
        # Two tags on one commit were once served as each other: the name of a tag says nothing.
        if said != self.version:
            message = f"the content says version {str(said)[:80]!r}, not {self.version!r}"
            yield found.problem((field,), message, "tag what was built for this version")

    def _json(self, path: str) -> Located:
        if path not in self.files:
            problem = Problem("", "missing", f"version {self.version} must have it", path)
            raise errors.Invalid([problem])
        return Located(path, self.files[path])

    def _validator(self) -> Validator | None:
        schema = self.layout.schema
        if self.layout.schema_file:
            schema = self._json(self.layout.schema_file).data
        if schema is None:
            return None
        made: type[Validator] = validator_for(schema, jsonschema.Draft202012Validator)
        try:
            made.check_schema(schema)
        except schema_errors.SchemaError as error:
            said = f"not a JSON Schema: {error.message[:200]}"
            file = self.layout.schema_file
            raise errors.Invalid([Problem("", said, "mend the schema", file)]) from error
        return made(schema)


def _violations(found: Located, validator: Validator) -> Iterator[Problem]:
    try:
        for each in sorted(validator.iter_errors(found.data), key=schema_errors.relevance):
            path: tuple[Part, ...] = tuple(each.absolute_path)
            hint = "mend it, or the schema that it must fit"
            yield found.problem(path, f"against its schema: {each.message[:200]}", hint)
    except (Unresolvable, RecursionError) as error:
        said = f"its schema refers to what is not there: {str(error)[:200]}"
        yield found.problem((), said, "put the whole schema into one file")


def _starts(mapped: Located) -> Iterator[semver.Key]:
    """The versions of a map; Invalid where it is none, unsorted, or leaves its folder."""
    if not isinstance(mapped.data, list) or not mapped.data:
        hint = 'write pairs: [["4.0.0", "first.json"]]'
        raise errors.Invalid([mapped.problem((), "not a list of pairs, or an empty one", hint)])
    last: semver.Key | None = None
    for number, row in enumerate(mapped.data):
        start = _start(mapped, number, row)
        if last is not None and start <= last:
            hint = "order the map by version, each once"
            raise errors.Invalid([mapped.problem((number, 0), "not in rising order", hint)])
        last = start
        yield start


def _start(mapped: Located, number: int, row: object) -> semver.Key:
    match row:
        case [str(version), str(target)]:
            pass
        case _:
            hint = 'write ["4.0.0", "first.json"]'
            raise errors.Invalid([mapped.problem((number,), "not a version and a file", hint)])
    if not _inside(target):
        hint = "name a file beside the map or below it"
        said = f"the file is outside of the folder: {target[:80]}"
        raise errors.Invalid([mapped.problem((number, 1), said, hint)])
    try:
        return semver.parse(version).key
    except errors.Rejected as error:
        said = f"not a semantic version: {version[:80]}: {error.message}"
        raise errors.Invalid([mapped.problem((number, 0), said, error.hint)]) from error


def _inside(target: str) -> bool:
    normal = posixpath.normpath(target)
    return target == normal and not normal.startswith(("/", "..")) and normal != "."
