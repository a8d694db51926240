"""The kinds of a resource: what they are called, what they read, and what they tell the machine.

object + owner, others' outputs, Secrets ──► observe ──► Apply · Refresh where a Secret changed
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlead.areas.resources.catalogue import Models
from fairlead.areas.resources.domain import validation as words
from fairlead.areas.resources.domain.applied import Seal
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile import publishing
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import (
    Adopt,
    Apply,
    Origin,
    Refresh,
    Remove,
)
from fairlead.areas.resources.host import models
from fairlead.areas.resources.kubernetes import generated, parsing
from fairlead.areas.resources.kubernetes.claims import Claims, Taken
from fairlead.areas.resources.kubernetes.parsing import Form, Settled
from fairlead.areas.resources.kubernetes.types import (
    CloudResourceSpec,
    CloudResourceStatus,
    PlaceWords,
)
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.errors import FairleadError, Invalid, Rejected
from fairlead.kubernetes import objects, rbac
from fairlead.kubernetes.kinds import (
    InvalidSpec,
    Kind,
    Level,
    Need,
    ObservedObject,
    Related,
    Snapshot,
)
from fairlead.kubernetes.objects import Object, Resource
from fairlead.kubernetes.schema import Column, KindSchema
from fairlead.kubernetes.writes.seals import Seals
from fairlead.settings import Settings

CLOUD_RESOURCES = Resource("fairlead.dev", "v1alpha1", "cloudresources", "CloudResource")
_COLUMNS = (
    Column("Type", ".spec.type"),
    Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
    Column("Reason", ".status.conditions[?(@.type=='Ready')].reason"),
    Column("Message", ".status.message"),
    Column("Resource", ".status.resourceId", priority=1),
    Column("Age", ".metadata.creationTimestamp", "date"),
)
_AGAIN = 30.0
"""Seconds until an object asks again for what another one has; it does not hear of its end."""

_ANY_KEY = Seal(b"compared within one review")


class CloudKinds:
    """Kinds of resources, over the types that this installation knows."""

    def __init__(self) -> None:
        self.settled = Settled(Models(Path("/nonexistent")).model)
        self.seals: Seals | None = None
        """By which a status is known as one of ours; None before the first term."""

        self.claims = Claims()
        self._forms: dict[str, Form] = {}
        self.kinds = self._made({})

    def settle(self, chosen: Settings) -> tuple[Kind, ...]:
        """Take up what the installation says, and the typed kinds that it wants."""
        wanted = chosen.of(ResourcesSettings)
        known = models(chosen)
        self.settled = Settled(known.model, wanted.resources_owner, wanted.resources_within)
        typed: dict[Resource, Form] = {}
        for told in filter(None, map(str.strip, wanted.resources_kinds.split(","))):
            type_, _, version = told.partition("@")
            found = known.model(type_, version).type
            api = generated.api(found.type)
            if typed.setdefault(api, Form(found.type, found.version)).type != found.type:
                hint = "have one of them as a CloudResource"
                raise Rejected(f"two types would be called {api.kind}: {told}", hint=hint)
        self.kinds = self._made(typed)
        return self.kinds

    def _made(self, typed: Mapping[Resource, Form]) -> tuple[Kind, ...]:
        forms = {CLOUD_RESOURCES: Form(), **typed}
        self._forms = {str(api): form for api, form in forms.items()}
        return tuple(self._kind(api, form, [*forms]) for api, form in forms.items())

    def form(self, kind: Kind) -> Form:
        return self._forms[str(kind.api)]

    def observe(self, kind: Kind, form: Form, obj: Object, snapshot: Snapshot) -> ObservedObject:
        """The levels of one object; Rejected where it makes no sense, or not yet."""
        origin = Origin(kind.subject(obj), int(objects.metadata(obj).get("generation") or 0))
        sibling = functools.partial(self._sibling, snapshot)
        named = {name.partition("/")[0] for _, name in parsing.secrets(form, obj)}
        read = sorted(named) if snapshot.is_served(rbac.SECRETS) else ()
        kept = [each for name in read for each in snapshot.found(rbac.SECRETS, name)]
        try:
            declared = parsing.declared(form, self.settled, obj, sibling, origin)
            self.claims.take(declared.id, obj)
        except Invalid as error:
            raise InvalidSpec(error.message, hint=error.hint) from error
        except Taken as error:
            return ObservedObject({}, again=_AGAIN, refusal=error)
        levels = {"declared": Level(Apply(declared))}
        if kept:
            digest = _ANY_KEY.digest([each.get("data") for each in kept])
            levels["secrets"] = Level(Refresh(f"Secrets: {digest}"))
        return ObservedObject(levels)

    def review(self, new: Object, old: Object | None) -> Sequence[tuple[str, str]]:
        """What a write would get wrong; a write of metadata alone is let pass."""
        if old is not None and new.get("spec") == old.get("spec"):
            return ()
        form = self._form_of(new)
        if form is None:
            hint = "name its type in FAIRLEAD_RESOURCES_KINDS"
            return [("kind", f"the operator does not serve it: {new.get('kind')}; {hint}")]
        try:
            found = parsing.parsed(form, self.settled, new)
        except Invalid as error:
            return [
                (each.path or "spec", _told(each.message, each.hint)) for each in error.problems
            ]
        except FairleadError as error:
            return [("spec.type", _told(error.message, error.hint))]
        status: Mapping[str, Any] = (old or {}).get("status") or {}
        if old is None or not status.get("resourceId"):
            return ()
        return [*_moved(new, old), *self._frozen(form, found, old)]

    def needs(self, new: Object, _old: Object | None) -> Sequence[Need]:
        """To read a Secret: its value goes where the writer may read it."""
        form = self._form_of(new)
        assert form is not None, "reviewed before"
        namespace = objects.key_of(new).namespace
        return [
            Need(path, "get", rbac.SECRETS, namespace, name.partition("/")[0])
            for path, name in parsing.secrets(form, new)
        ]

    def adopt(self, obj: Object) -> Adopt | None:
        status = obj.get("status") or {}
        found = publishing.remembered(status)
        if found is None:
            return None
        if self.seals is None or not self.seals.holds(obj, found, str(status.get("seal"))):
            raise Rejected(
                "what the status remembers was not written by this operator",
                hint="the resource is compared with what is there, as one that was never applied",
            )
        return publishing.adopted(found)

    def _frozen(self, form: Form, found: parsing.Parsed, old: Object) -> list[tuple[str, str]]:
        try:
            before = parsing.parsed(form, self.settled, old)
        except FairleadError:
            return []
        sealed = _ANY_KEY.sealed(before.model, before.properties)
        frozen = words.frozen(found.model, _ANY_KEY, found.properties, sealed, {})
        return [(f"{form.body}.{each.path}", _told(each.message, each.hint)) for each in frozen]

    def _form_of(self, obj: Object) -> Form | None:
        place = (obj.get("apiVersion"), obj.get("kind"))
        served = (one for one in self.kinds if (one.api.api_version, one.api.kind) == place)
        kind = next(served, None)
        return None if kind is None else self.form(kind)

    def _sibling(self, snapshot: Snapshot, kind: str, name: str) -> Object | None:
        for each in self.kinds:
            if each.api.kind == (kind or CLOUD_RESOURCES.kind):
                return next(iter(snapshot.found(each.api, name)), None)
        raise Rejected(f"no such kind of resource: {kind}", hint="name one that is served here")

    def _kind(self, api: Resource, form: Form, all_: Sequence[Resource]) -> Kind:
        spec = PlaceWords if form.type else CloudResourceSpec
        short = generated.short_names(api) if form.type else ("cloud",)
        columns = _COLUMNS[1:] if form.type else _COLUMNS
        shown = KindSchema(spec, CloudResourceStatus, short, ("fairlead",), columns)
        made = Kind(
            api=api,
            machine=RESOURCE,
            shown=shown,
            observe=lambda obj, snapshot: self.observe(made, form, obj, snapshot),
            delete=lambda obj: _removed(made, obj),
            adopt=self.adopt,
            review=self.review,
            needs=self.needs,
            related=(Related(rbac.SECRETS, kept=kept_secret), *map(Related, all_)),
            finalizer=publishing.FINALIZER,
            reads=lambda _: None,
            bound=False,
            group="" if form.type else generated.GROUP,
        )
        return made


def kept_secret(obj: Object) -> Object:
    """What is remembered of a Secret: a digest, keyed by what few know of it."""
    meta = objects.metadata(obj)
    keyed = Seal(str(meta.get("uid", "")).encode()).digest(obj.get("data"))
    little = {name: meta[name] for name in ("namespace", "name", "uid", "resourceVersion")}
    return {"metadata": little, "data": {"digest": keyed}}


def _removed(kind: Kind, obj: Object | None) -> Remove:
    """An object that nobody held takes nothing along: its finalizer was taken off by a hand."""
    if obj is None:
        return Remove(retain=True)
    return Remove(origin=Origin(kind.subject(obj)))


def _moved(new: Object, old: Object) -> list[tuple[str, str]]:
    """What says which resource it is; another one is another object."""
    was, is_ = old.get("spec") or {}, new.get("spec") or {}
    told = "fixed once the resource exists; delete the object and make it anew"
    named = ("type", "owner", "resourceId", "resourceName")
    return [(f"spec.{name}", told) for name in named if _place(was, name) != _place(is_, name)]


def _place(spec: Json, name: str) -> object:
    value = spec.get(name)
    # An API server fills in what a writer leaves out.
    value = {key: each for key, each in value.items() if each} if isinstance(value, dict) else value
    return value or None


def _told(message: str, hint: str) -> str:
    return f"{message}; {hint}" if hint else message
