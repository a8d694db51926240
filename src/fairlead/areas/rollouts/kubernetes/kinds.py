"""The kinds of a rollout: what they are called, what they read, and what they tell the machine.

object + children + related ──► observe ──► request · observation, requests by annotation
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from fairlead.areas.rollouts.domain import actions, machine, messages
from fairlead.areas.rollouts.domain import status as statuses
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.areas.rollouts.kubernetes import (
    children,
    hold_policy,
    names,
    observe_cluster,
    parsing,
    requester,
    selector_overlap,
    types,
    validation,
)
from fairlead.areas.rollouts.kubernetes.applied_orders import STANDING_BY, AppliedOrders
from fairlead.areas.rollouts.kubernetes.parsing import ParsedRollout
from fairlead.areas.rollouts.kubernetes.routing.permitted import Permitted
from fairlead.areas.rollouts.kubernetes.routing.provider import Provider
from fairlead.checks.spec import Check
from fairlead.checks.subject import Names
from fairlead.errors import Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.kinds import (
    Kind,
    Level,
    Need,
    ObservedObject,
    Related,
    Request,
    Snapshot,
    stream_key,
)
from fairlead.kubernetes.objects import Resource
from fairlead.kubernetes.schema import Column, KindSchema
from fairlead.kubernetes.writes import finalizers
from fairlead.kubernetes.writes.seals import Seals
from fairlead.values import Verb

Object = dict[str, Any]

CANARIES = Resource("fairlead.dev", "v1alpha1", "canarydeployments", "CanaryDeployment")
ISTIO_CANARIES = Resource(
    "fairlead.dev", "v1alpha1", "istiocanarydeployments", "IstioCanaryDeployment"
)
BY_SPEC = "spec.paused"
"""Who pauses by the field, so that only the field ends that pause."""

BY_REVIEW = "spec"
"""Who pauses because the spec makes no sense; a spec that does ends that pause."""

_COLUMNS = (
    Column("Phase", ".status.phase"),
    Column("Weight", ".status.canaryWeight"),
    Column("Step", ".status.progress"),
    Column("Stable", ".status.stableVersion"),
    Column("Canary", ".status.canaryVersion"),
    Column("Message", ".status.message"),
    Column("Age", ".metadata.creationTimestamp"),
)
_WRITES = ("create", "patch", "delete")
_PAUSES = ("pause", "resume")


Answers = Callable[[Check, str, Names], Sequence[tuple[str, str]]]
"""Pairs of a field of the check and what is wrong with it, for a rollout and its names."""


class RolloutKinds:
    """Both kinds, over the providers of this installation."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        self.providers = {provider.name: provider for provider in providers}
        self.orders = AppliedOrders()
        self.parse_cache = parsing.ParseCache(self.is_own)
        self.refused: set[str] = set()
        """UIDs of objects that never made sense; no child of theirs is written."""

        self.answers: Answers | None = None
        """Says of a check why it cannot be asked; None where nobody knows yet."""

        self.permitted = Permitted()
        """What objects may ask for beyond their namespace."""

        self.seals: Seals | None = None
        """By which a status is known as one of ours; None before the first term."""

        self.kinds = (
            self._kind(CANARIES, types.canary_spec(), ("canary", "canaries")),
            self._kind(ISTIO_CANARIES, types.IstioCanarySpec, ("icd",)),
        )

    def observe(self, obj: Object, snapshot: Snapshot) -> ObservedObject:
        """The levels of one object; InvalidSpec where it makes no sense and never did."""
        uid = obj["metadata"]["uid"]
        try:
            found = self._read(obj, snapshot)
            version = self.parse_cache.desired(found, snapshot)
        except Rejected as error:
            held = self._held(obj, snapshot, error)
            if held is not None:
                return held
            self.refused.add(uid)
            raise
        self.refused.discard(uid)
        self.parse_cache.stand(found, obj)
        seen = self.see(found, snapshot)
        want = messages.Request(
            name=stream_key(obj),
            spec=found.spec,
            version=version,
            replicas=_replicas(found, snapshot),
            override=found.override,
            generation=found.generation,
        )
        # What runs is for a machine that knows nothing: a change of it alone is no news.
        running, live = self._running(found, snapshot)
        told = Level(replace(want, running=running, live=live), want)
        levels = {"want": told, "observed": _observed_level(seen.observed)}
        asked = _requests(obj, found, self.answered(obj, snapshot))
        return ObservedObject({**levels, **_paused(obj, found)}, asked, seen.again)

    def _running(self, found: ParsedRollout, snapshot: Snapshot) -> tuple[Version | None, bool]:
        """What the primary was last asked to hold, and whether it is a target that serves it."""
        live = observe_cluster.slot_of(found, Slot.PRIMARY, snapshot)
        version = children.version_in(live) if live is not None else None
        if live is None or version is None:
            return None, False
        if not found.is_target:
            return (version if objects.owner_of(live) == found.uid else None), False
        paused = bool((live.get("spec") or {}).get("paused"))
        held = paused or observe_cluster.is_at_rest(live)
        return (version if held else None), held and observe_cluster.ready_pods(live) > 0

    def _held(self, obj: Object, snapshot: Snapshot, error: Rejected) -> ObservedObject | None:
        """What the last spec that made sense shows: no step up by it, a rollback is possible."""
        found = self.parse_cache.standing(obj)
        if found is None:
            return None
        seen = self.see(found, snapshot)
        levels = {"observed": _observed_level(seen.observed)}
        status = parsing.status_of(obj)
        if status.canary_revision:
            halt = messages.Pause(BY_REVIEW, error.message)
            since = status.paused.since if status.paused else None
            levels["paused"] = Level(halt, (error.message, since))
        asked = _requests(obj, found, self.answered(obj, snapshot))
        safe = {name: each for name, each in asked.items() if VERBS[name].restrains}
        return ObservedObject(levels, safe, seen.again, error)

    def see(self, found: ParsedRollout, snapshot: Snapshot) -> observe_cluster.ClusterView:
        provider, orders = self.providers[found.provider], self.orders
        seen = observe_cluster.see(
            found, provider, snapshot, lambda part: orders.order(found.uid, part)
        )
        route = observe_cluster.standing_by(
            seen.observed.route, orders.order(found.uid, STANDING_BY)
        )
        return observe_cluster.ClusterView(replace(seen.observed, route=route), seen.again)

    def review(self, new: Object, old: Object | None) -> Sequence[tuple[str, str]]:
        """What a write would get wrong; a metadata-only write of what stands is let pass."""
        if old is not None and new.get("spec") == old.get("spec"):
            return ()
        problems = validation.of_object(new)
        if problems:
            return problems
        found = parsing.read(new)
        unknown = [(f"spec.provider.{found.provider}", "unknown provider")]
        if found.provider not in self.providers:
            return unknown
        before = None
        if old is not None:
            with contextlib.suppress(Rejected):
                before = parsing.read(old)
        held = validation.moved(found, before) if before is not None else ()
        return [*held, *requester.beyond(found, self.permitted), *self._asked(found)]

    def needs(self, new: Object, old: Object | None) -> Sequence[Need]:
        """The rights that whoever writes this must have; of one that made no sense before, all."""
        before = None
        if old is not None:
            with contextlib.suppress(Rejected):
                before = parsing.read(old)
        return requester.needs(parsing.read(new), before)

    def is_own(self, obj: Object) -> bool:
        """Whether what the status remembers was written by us, and of this very object."""
        status = parsing.status_of(obj)
        seals = self.seals
        return seals is not None and seals.holds(obj, status.remembered, status.seal)

    def answered(self, obj: Object, snapshot: Snapshot) -> Mapping[str, str]:
        """The requests that were done: from the first reconcile on, by this process's own word.

        Whoever may write a status could else have an old approval obeyed at the next gate.
        """
        uid = objects.uid_of(obj)
        known = self.orders.answered(uid)
        if known is not None:
            return known
        if self.is_own(obj):
            return self.orders.answer(uid, parsing.status_of(obj).requests)
        # Nobody knows what was done here: what stands there was, unless nothing is begun yet.
        is_begun = bool(snapshot.children) or finalizers.holds(obj, names.FINALIZER)
        return self.orders.answer(uid, _annotated(obj) if is_begun else {})

    def _answer(self, obj: Object, done: Mapping[str, str]) -> Object:
        """What the status says of requests when these were done as well."""
        told: Object = {"requests": self.orders.answer(objects.uid_of(obj), done)}
        # A seal that holds is renewed. Another is not made to hold before all is published anew.
        if self.seals is not None and self.is_own(obj):
            status = msgspec.structs.replace(parsing.status_of(obj), **told)
            told["seal"] = self.seals.of(obj, status.remembered)
        return told

    def _adopt(self, obj: Object) -> messages.Adopt | None:
        status = statuses.read(obj.get("status"))
        if not (status.is_resumable or status.accepted):
            return None
        if not self.is_own(obj):
            raise Rejected(
                "what the status remembers was not written by this operator",
                hint="the rollout goes on from what runs now; give an annotation that stands"
                " there a new value to ask again",
            )
        return messages.Adopt(status) if status.is_resumable else None

    def _read(self, obj: Object, snapshot: Snapshot) -> ParsedRollout:
        try:
            found = self.parse_cache.of(obj)
        except Rejected:
            # The review names every fault with its field, not only the first one.
            validation.refuse(self.review(obj, None))
            raise
        if not self.parse_cache.is_good(found, self.answers):
            validation.refuse(self.review(obj, None))
            self.parse_cache.good(found, self.answers)
        before = self.parse_cache.standing(obj)
        if before is not None and before is not found:
            validation.refuse(validation.moved(found, before))
        validation.refuse(validation.of_snapshot(found, self.providers[found.provider], snapshot))
        return found

    def _asked(self, found: ParsedRollout) -> Sequence[tuple[str, str]]:
        """Checks that this installation could not ask."""
        if self.answers is None:
            return ()
        called = parsing.called(found, Slot.CANARY)
        return [
            (f"spec.checks[{index}].{path}", reason)
            for index, check in enumerate(found.spec.checks)
            for path, reason in self.answers(check, f"{found.namespace}/{found.name}", called)
        ]

    def _kind(self, api: Resource, spec: type, short_names: tuple[str, ...]) -> Kind:
        return Kind(
            api=api,
            machine=machine.ROLLOUT,
            shown=KindSchema(spec, RolloutStatus, short_names, columns=_COLUMNS),
            observe=self.observe,
            delete=lambda _: messages.Delete(),
            adopt=self._adopt,
            answer=self._answer,
            review=self.review,
            needs=self.needs,
            children=(names.DEPLOYMENTS, names.SERVICES),
            related=self._related(),
            finalizer=names.FINALIZER,
            policies={hold_policy.NAME: hold_policy.spec()},
            amended=True,
            reads=lambda status: parsing.status_of({"status": status}).paused,
            # A status is adopted by an empty store only: one from a backup is behind it, and a
            # status that could not be adopted says nothing.
            bound=False,
        )

    def _related(self) -> tuple[Related, ...]:
        routes = {
            api: Related(api, writes=_WRITES, optional=True)
            for provider in self.providers.values()
            for api in provider.apis
            if api != names.SERVICES
        }
        return (
            Related(names.DEPLOYMENTS, traits=selector_overlap.traits),
            Related(names.SERVICES),
            Related(names.REVISIONS, kept=observe_cluster.kept_revision, writes=_WRITES),
            Related(names.CONFIG_MAPS, kept=observe_cluster.kept_config),
            Related(names.SECRETS, kept=observe_cluster.kept_secret),
            Related(
                names.SLICES, terms=observe_cluster.service_terms, kept=observe_cluster.kept_slice
            ),
            Related(
                names.SCALERS,
                terms=observe_cluster.scaler_terms,
                kept=observe_cluster.kept_scaler,
                optional=True,
            ),
            *routes.values(),
        )


def _requests(obj: Object, found: ParsedRollout, done: Mapping[str, str]) -> Mapping[str, Request]:
    """What people ask by annotations, each value once."""
    asked = {
        name: Request(value, _asked_by(VERBS[name], value))
        for name, value in _annotated(obj).items()
        if done.get(name) != value
    }
    if found.paused and "resume" in asked:
        # The field says that it is paused, and would say so again at the next reconcile.
        del asked["resume"]
    return asked


def _annotated(obj: Object) -> dict[str, str]:
    """The values of all requests that stand on an object."""
    told = obj["metadata"].get("annotations") or {}
    # A pause asked for together with a promotion or an approval comes before it.
    verbs = sorted(VERBS.values(), key=lambda verb: verb.name not in _PAUSES)
    # An object is deleted as every other, and not by a word on it.
    values = {v.name: told.get(f"{names.REQUESTS}{v.name}", "") for v in verbs if not v.deletes}
    return {name: value for name, value in values.items() if value}


def _asked_by(verb: Verb, value: str) -> messages.Command:
    given = actions.ActionRequest(
        verb.name,
        by="annotation",
        why=value if verb.annotation_is_reason and value != "true" else "",
        # A value of its own for each request, and the revision before it: REVISION or REVISION/2.
        revision=value.partition("/")[0],
    )
    return actions.made(verb, given)


def _observed_level(observed: Observation) -> Level:
    return Level(messages.Observed(observed), observed.level)


def _paused(obj: Object, found: ParsedRollout) -> Mapping[str, Level]:
    if found.paused:
        pause = messages.Pause(BY_SPEC, "spec.paused is true")
        return {"paused": Level(pause, found.generation)}
    halt = parsing.status_of(obj).paused
    if halt is None or halt.by not in (BY_SPEC, BY_REVIEW):
        return {}
    return {"paused": Level(messages.Resume(halt.by), (halt.since, found.generation))}


def _replicas(found: ParsedRollout, snapshot: Snapshot) -> int | None:
    """What the spec says; None where an autoscaler scales the primary, which it does not from 0."""
    given = parsing.workload_of(found, snapshot).get("replicas")
    if given != 0 and snapshot.found(names.SCALERS, f"Deployment/{found.names.primary}"):
        return None
    return 1 if given is None else int(given)
