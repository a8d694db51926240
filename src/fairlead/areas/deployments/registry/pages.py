"""The pages of what is stored: lists, one of them with its versions, and a form to edit it.

The form needs no script, and what is wrong with its text is told with line and field. A text with a
secret in an address is not edited here: pages show `…` in its place, and would store that.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import yaml
from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from fairlead import errors, values
from fairlead.areas.deployments.domain import declared_verbs, schedule
from fairlead.areas.deployments.registry import api, definitions
from fairlead.areas.deployments.registry.definitions import Kind
from fairlead.console.files import Document
from fairlead.engine import messages, visibility
from fairlead.engine.store import protocol
from fairlead.web import auth, bodies, verbs
from fairlead.web import context as contexts

router = APIRouter(include_in_schema=False)
_ROWS = 100
_MOST_VERSIONS = 500
_FORM_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Version:
    """What was stored once; without a text it was removed then."""

    number: int
    by: str
    at: datetime
    text: str


@router.get("/definitions")
@auth.within_scope
async def stored(request: Request) -> Response:
    scope, engine = contexts.caller(request).scope, contexts.of(request).engine

    def listed(session: protocol.Session) -> dict[Kind[Any], list[definitions.Entry[Any]]]:
        kinds = definitions.KINDS.values()
        return {each: definitions.listed(session, each, "", scope, _ROWS) for each in kinds}

    found = await engine.read(listed)
    new = [kind.name for kind in found if _may_edit(request, kind)]
    return contexts.page(request, "deployments/definitions.html", found=found, new=new)


@router.get("/definitions/{kind}/new")
@auth.within_scope
async def fresh(request: Request, kind: str) -> Response:
    chosen = _kind(kind)
    definitions.check_caller(chosen, contexts.caller(request))
    return _editor(request, chosen, chosen.starter, "")


@router.get("/definitions/{kind}/{name:path}")
@auth.within_scope
async def one(
    request: Request,
    kind: str,
    name: str,
    compare: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    edit: Annotated[bool, Query()] = False,  # noqa: FBT002 - a query has no keywords
) -> Response:
    chosen = _kind(kind)
    stream = contexts.stream(request, chosen.name, name)
    engine = contexts.of(request).engine
    versions = await engine.read(lambda s: _versions(s, stream))
    if not versions:
        await engine.read(lambda s: definitions.get(s, chosen, name))
    newest = versions[0]
    if edit:
        definitions.check_caller(chosen, contexts.caller(request))
        return _editor(request, chosen, newest.text or chosen.starter, str(newest.number))
    return contexts.page(
        request,
        "deployments/definition.html",
        kind=chosen,
        name=name,
        stream=stream,
        newest=newest,
        versions=versions,
        running=await engine.read(lambda s: _running(s, chosen, stream)),
        may_edit=_may_edit(request, chosen),
        lines=None if compare is None else _difference(versions, compare),
        compare=compare,
        buttons=verbs.buttons(declared_verbs.VERBS[each] for each in declared_verbs.REMOVE),
    )


@router.post("/definitions/{kind}")
@auth.within_scope
async def store(request: Request, kind: str) -> Response:
    chosen = _kind(kind)
    definitions.check_caller(chosen, contexts.caller(request))
    form = await bodies.form(request, _FORM_BYTES)
    text, expects = form.get("text", ""), form.get("expects", "")
    try:
        document = Document.parse(chosen.name, text)
        with document.placed():
            number = int(expects) if expects.isdecimal() else None
            key, _ = await api.put(request, chosen, document.content, number)
    except (errors.Rejected, errors.Conflict) as error:
        return _editor(request, chosen, text, expects, error)
    return RedirectResponse(f"/definitions/{chosen.name}/{quote(key)}", 303)


def _editor(
    request: Request,
    kind: Kind[Any],
    text: str,
    expects: str,
    error: errors.FairleadError | None = None,
) -> Response:
    if not _is_whole(text):
        raise errors.Rejected(
            "it holds a secret in an address, which pages do not show",
            hint=f"edit it as a file: fairlead deploy {kind.name}.yaml",
        )
    status = 200 if error is None else error.http_status
    words = {"kind": kind, "text": text, "expects": expects, "error": error}
    return contexts.page(request, "deployments/definition_edit.html", status=status, **words)


def _kind(name: str) -> Kind[Any]:
    if name not in definitions.KINDS:
        hint = values.one_of(name, definitions.KINDS)
        raise errors.NotFound(f"nothing of this kind is stored: {name[:80]}", hint=hint)
    return definitions.KINDS[name]


def _may_edit(request: Request, kind: Kind[Any]) -> bool:
    try:
        definitions.check_caller(kind, contexts.caller(request))
    except errors.Forbidden:
        return False
    return True


def _is_whole(text: str) -> bool:
    return values.redacted(text) == text


def _versions(session: protocol.Session, stream: messages.StreamName) -> list[Version]:
    """The newest first."""
    view = visibility.find(session, stream)
    if view is None:
        return []
    after = max(0, view.version - _MOST_VERSIONS)
    found: list[Version] = []
    for each in visibility.events(session, stream, after, _MOST_VERSIONS):
        if each.type in ("Stored", "Removed"):
            content = each.data.get("content")
            text = "" if content is None else _text(content)
            found.append(Version(each.data["version"], each.data["by"], each.at, text))
    found.reverse()
    return found


def _running(
    session: protocol.Session, kind: Kind[Any], stream: messages.StreamName
) -> schedule.Schedule | None:
    """When a schedule comes next; None of what only lies there."""
    view = visibility.find(session, stream) if kind.name == schedule.NAME else None
    return None if view is None else msgspec.convert(view.data, schedule.Schedule)


def _text(content: Any) -> str:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _difference(versions: Sequence[Version], number: int) -> list[str]:
    """From the version before to this one."""
    place = next((n for n, each in enumerate(versions) if each.number == number), None)
    if place is None:
        raise errors.NotFound(f"no such version: {number}", hint="choose one of its versions")
    new = versions[place]
    old = versions[place + 1] if place + 1 < len(versions) else Version(0, "", new.at, "")
    lines = old.text.splitlines(), new.text.splitlines()
    names = f"version {old.number}", f"version {new.number}"
    return list(difflib.unified_diff(*lines, *names, lineterm=""))
