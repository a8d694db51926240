"""The kinds of a rollout: what they are called, what they read, and what they tell the machine.

object + children + related ──► observe ──► want · sight · paused, and requests by annotation
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairlead.adapters.canaries import names, overlaps, reading, review, seeing, types
from fairlead.adapters.canaries.ledger import STANDING_BY, Ledger
from fairlead.adapters.canaries.provider import Provider
from fairlead.adapters.canaries.reading import Reading
from fairlead.domain.rollouts import machine, messages, ports
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.sight import Sight
from fairlead.domain.rollouts.spec import Check
from fairlead.errors import Rejected
from fairlead.intents.kubernetes import (
    Api,
    Around,
    Kind,
    Level,
    Look,
    Related,
    Request,
    Shown,
    stream_key,
)

Object = dict[str, Any]

CANARIES = Api("fairlead.dev", "v1alpha1", "canarydeployments", "CanaryDeployment")
ISTIO_CANARIES = Api("fairlead.dev", "v1alpha1", "istiocanarydeployments", "IstioCanaryDeployment")
BY_SPEC = "spec.paused"
"""Who pauses by the field, so that only the field ends that pause."""

BY_REVIEW = "spec"
"""Who pauses because the spec makes no sense; a spec that does ends that pause."""

_COLUMNS = (
    ("Phase", ".status.phase"),
    ("Weight", ".status.canaryWeight"),
    ("Step", ".status.progress"),
    ("Stable", ".status.stableVersion"),
    ("Canary", ".status.canaryVersion"),
    ("Message", ".status.message"),
    ("Age", ".metadata.creationTimestamp"),
)
_WRITES = ("create", "patch", "delete")


Answers = Callable[[Check, str, ports.Names], Sequence[tuple[str, str]]]
"""Pairs of a field of the check and what is wrong with it, for a rollout and its names."""


class Canaries:
    """Both kinds, over the providers of this installation."""

    def __init__(self, providers: Sequence[Provider]) -> None:
        self.providers = {provider.name: provider for provider in providers}
        self.ledger = Ledger()
        self.readings = reading.Readings()
        self.refused: set[str] = set()
        """UIDs of objects that never made sense; no child of theirs is written."""

        self.answers: Answers | None = None
        """Says of a check why it cannot be asked; None where nobody knows yet."""

        self.kinds = (
            self._kind(CANARIES, types.CanarySpec, ("canary", "canaries")),
            self._kind(ISTIO_CANARIES, types.IstioCanarySpec, ("icd",)),
        )

    def observe(self, obj: Object, around: Around) -> Look:
        """The levels of one object; InvalidSpec where it makes no sense and never did."""
        uid = obj["metadata"]["uid"]
        try:
            found = self._read(obj, around)
            version = self.readings.wanted(found, around)
        except Rejected as error:
            held = self._held(obj, around, error)
            if held is not None:
                return held
            self.refused.add(uid)
            raise
        self.refused.discard(uid)
        self.readings.stand(found, obj)
        seen = self.see(found, around)
        want = messages.Want(
            name=stream_key(obj),
            spec=found.spec,
            version=version,
            replicas=_replicas(found, around),
            override=found.override,
            generation=found.generation,
        )
        levels = {"want": Level(want), "sight": _sighted(seen.sight)}
        return Look({**levels, **_paused(obj, found)}, requests(obj, found), seen.again)

    def _held(self, obj: Object, around: Around, error: Rejected) -> Look | None:
        """What the last spec that made sense shows: no step up by it, and the way home is open."""
        found = self.readings.standing(obj)
        if found is None:
            return None
        seen = self.see(found, around)
        levels = {"sight": _sighted(seen.sight)}
        if (obj.get("status") or {}).get("canaryRevision"):
            halt = messages.Pause(BY_REVIEW, error.message)
            levels["paused"] = Level(halt, (error.message, _halt(obj).get("at")))
        asked = requests(obj, found)
        safe = {verb: asked[verb] for verb in ("abort", "pause") if verb in asked}
        return Look(levels, safe, seen.again, error)

    def see(self, found: Reading, around: Around) -> seeing.Seen:
        provider, ledger = self.providers[found.provider], self.ledger
        seen = seeing.see(found, provider, around, lambda part: ledger.order(found.uid, part))
        route = seeing.standing_by(seen.sight.route, ledger.order(found.uid, STANDING_BY))
        return seeing.Seen(replace(seen.sight, route=route), seen.again)

    def review(self, new: Object, old: Object | None) -> Sequence[tuple[str, str]]:
        """What a write would get wrong; a metadata-only write of what stands is let pass."""
        if old is not None and new.get("spec") == old.get("spec"):
            return ()
        problems = review.of_object(new)
        if problems:
            return problems
        found = reading.read(new)
        unknown = [(f"spec.provider.{found.provider}", "there is no such provider here")]
        return unknown if found.provider not in self.providers else self._asked(found)

    def _read(self, obj: Object, around: Around) -> Reading:
        try:
            found = self.readings.of(obj)
        except Rejected:
            # The review names every fault with its field, not only the first one.
            review.refuse(self.review(obj, None))
            raise
        if not self.readings.is_good(found, self.answers):
            review.refuse(self.review(obj, None))
            self.readings.good(found, self.answers)
        review.refuse(review.of_surroundings(found, self.providers[found.provider], around))
        return found

    def _asked(self, found: Reading) -> Sequence[tuple[str, str]]:
        """Checks that this installation could not ask."""
        if self.answers is None:
            return ()
        called = reading.called(found, Slot.CANARY)
        return [
            (f"spec.checks[{index}].{path}", reason)
            for index, check in enumerate(found.spec.checks)
            for path, reason in self.answers(check, f"{found.namespace}/{found.name}", called)
        ]

    def _kind(self, api: Api, spec: type, short_names: tuple[str, ...]) -> Kind:
        return Kind(
            api=api,
            machine=machine.ROLLOUT,
            shown=Shown(spec, types.Status, short_names, _COLUMNS),
            observe=self.observe,
            delete=lambda _: messages.Delete(),
            adopt=lambda status: messages.Adopt(status) if status.get("memory") else None,
            review=self.review,
            children=(names.DEPLOYMENTS, names.SERVICES),
            related=self._related(),
            finalizer=names.FINALIZER,
            amended=True,
        )

    def _related(self) -> tuple[Related, ...]:
        routes = {
            api: Related(api, writes=_WRITES, optional=True)
            for provider in self.providers.values()
            for api in provider.apis
            if api != names.SERVICES
        }
        return (
            Related(names.DEPLOYMENTS, traits=overlaps.traits),
            Related(names.SERVICES),
            Related(names.REVISIONS, kept=seeing.kept_revision, writes=_WRITES),
            Related(names.CONFIG_MAPS, kept=seeing.kept_config),
            Related(names.SECRETS, kept=seeing.kept_config),
            Related(names.SLICES, terms=seeing.service_terms, kept=seeing.kept_slice),
            Related(
                names.SCALERS, terms=seeing.scaler_terms, kept=seeing.kept_scaler, optional=True
            ),
            *routes.values(),
        )


def requests(obj: Object, found: Reading) -> Mapping[str, Request]:
    """What people ask by annotations, each value once; the status says what was done."""
    told = obj["metadata"].get("annotations") or {}
    done = (obj.get("status") or {}).get("requests") or {}
    asked: dict[str, Request] = {}
    for verb, command in _VERBS.items():
        value = told.get(f"{names.REQUESTS}{verb}", "")
        if value and done.get(verb) != value:
            asked[verb] = Request(value, command(value))
    if found.paused and "resume" in asked:
        # The field says that it is paused, and would say so again at the next look.
        del asked["resume"]
    return asked


_BY = "annotation"
_VERBS: Mapping[str, Callable[[str], messages.Command]] = {
    "pause": lambda value: messages.Pause(_BY, value if value != "true" else ""),
    "resume": lambda _: messages.Resume(_BY),
    "approve": lambda _: messages.Approve(_BY),
    "promote": lambda _: messages.PromoteFully(_BY),
    "abort": lambda _: messages.Abort(_BY),
    "retry": lambda _: messages.Retry(_BY),
    # A value of its own for each request, and the revision before it: REVISION or REVISION/2.
    "rollback": lambda value: messages.RollBackTo(value.partition("/")[0], _BY),
}


def _sighted(sight: Sight) -> Level:
    return Level(messages.Observed(sight), sight.level)


def _paused(obj: Object, found: Reading) -> Mapping[str, Level]:
    if found.paused:
        pause = messages.Pause(BY_SPEC, "spec.paused is set")
        return {"paused": Level(pause, found.generation)}
    halt = _halt(obj)
    if halt.get("by") not in (BY_SPEC, BY_REVIEW):
        return {}
    return {"paused": Level(messages.Resume(halt["by"]), (halt.get("at"), found.generation))}


def _halt(obj: Object) -> Mapping[str, Any]:
    """Who paused and when, as the status remembers it."""
    memory = (obj.get("status") or {}).get("memory") or {}
    found: Mapping[str, Any] = ((memory.get("data") or {}).get("book") or {}).get("paused") or {}
    return found


def _replicas(found: Reading, around: Around) -> int | None:
    """What the spec says; None where an autoscaler looks after the primary."""
    if around.found(names.SCALERS, f"Deployment/{found.names.primary}"):
        return None
    given = reading.workload_of(found, around).get("replicas")
    return 1 if given is None else int(given)
