"""From an object as users write it to what a rollout needs to know; refused with the field's path.

object ──► words (types.py) ──► Reading: rules, names, provider and its site, and the two forms
target, configs ──► version (what the workload means today)
"""

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.areas.rollouts import rules
from fairlead.areas.rollouts.domain import status
from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version, within
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.areas.rollouts.kubernetes import names, provider_registry, types
from fairlead.areas.rollouts.kubernetes.routing.provider import Backend, Site
from fairlead.checks.subject import Names
from fairlead.errors import Rejected
from fairlead.kubernetes.kinds import InvalidSpec, Snapshot

Object = dict[str, Any]
_LONGEST_LABEL = 63
# Enough for all that are in progress at once; those at rest are not reconciled.
_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class ParsedRollout:
    """One object, understood."""

    namespace: str
    name: str
    uid: str
    generation: int
    spec: Spec
    names: names.Names
    provider: str
    site: Site
    workload: Object
    """The Deployment's spec; empty where a target has it."""

    service: Object
    """The Service's spec; empty where it exists already."""

    is_target: bool = False
    is_istio: bool = False
    """Whether the kind itself says the provider, and its fields stand on top."""

    paused: bool = False
    override: bool = False

    def field(self, path: str = "") -> str:
        """Where a field of the provider's words stands in the object, or all of them do."""
        if not self.is_istio:
            return f"spec.provider.{self.provider}{path and f'.{path}'}"
        # There the word of the provider for a route of ours has another name.
        return f"spec{path and f'.{path}'}".replace(".virtualService", ".virtualServiceSpec", 1)

    @property
    def adopts(self) -> bool:
        """Whether something of others is changed, and must be given back."""
        adopted = provider_registry.found()[self.provider].adopted
        return self.is_target or bool(adopted and self.site.desired.get(adopted))


def read(obj: Object) -> ParsedRollout:
    """The object's request; InvalidSpec where it cannot be understood."""
    raw = obj.get("spec") or {}
    is_istio = obj.get("kind") == "IstioCanaryDeployment"
    try:
        to = types.IstioCanarySpec if is_istio else types.canary_spec()
        words: types.WorkloadWords = rules.convert(raw, to, "spec")
        spec = rules.spec(words, "spec")
    except Rejected as error:
        raise InvalidSpec(error.message, hint=error.hint) from error
    _check_form(words)
    provider, desired = _provider(words, raw)
    meta = obj["metadata"]
    namespace, name = meta.get("namespace", ""), meta["name"]
    called = _names(words, name)
    backends = {slot.value: Backend(called.services[slot], _port(words)) for slot in Slot}
    site = Site(namespace, name, desired=desired, **backends)
    return ParsedRollout(
        namespace=namespace,
        name=name,
        uid=str(meta.get("uid", "")),
        generation=int(meta.get("generation") or 0),
        spec=within(spec, namespace, name),
        names=called,
        provider=provider,
        site=site,
        workload=raw.get("deploymentSpec") or {},
        service=raw.get("serviceSpec") or {},
        is_target=words.target_ref is not None,
        is_istio=is_istio,
        paused=words.paused,
        override=words.override,
    )


def status_of(obj: Object) -> RolloutStatus:
    """What the object shows; a status that nobody can read is as good as none."""
    try:
        return status.read(obj.get("status"))
    except Rejected:
        return RolloutStatus()


class ParseCache:
    """Objects of the cluster that were parsed: each spec is read once, not at each reconcile."""

    def __init__(self, is_own: Callable[[Object], bool] = lambda _: False) -> None:
        self._is_own = is_own
        """Whether what an object's status remembers is to be believed."""

        self._kept: OrderedDict[str, ParsedRollout] = OrderedDict()
        self._good: dict[str, object] = {}
        self._standing: OrderedDict[str, tuple[ParsedRollout, Object]] = OrderedDict()
        """By UID the last reading that made sense with all around it, and its words."""
        self._meant: dict[str, str] = {}

    def of(self, obj: Object) -> ParsedRollout:
        """What `read` says; a generation stands for its spec, as the API server counts it."""
        meta = obj["metadata"]
        found = self._kept.get(str(meta.get("uid", "")))
        if found is None or found.generation != int(meta.get("generation") or 0):
            found = read(obj)
            self._forget(found.uid)
        self._kept[found.uid] = found
        self._kept.move_to_end(found.uid)
        if len(self._kept) > _REMEMBERED:
            self._forget(self._kept.popitem(last=False)[0])
        return found

    def desired(self, found: ParsedRollout, snapshot: Snapshot) -> Version:
        """What `desired` says; a template of the object itself is hashed once for its reading."""
        if found.is_target or self._kept.get(found.uid) is not found:
            return desired(found, snapshot)
        template = template_of(found, snapshot)
        if found.uid not in self._meant:
            self._meant[found.uid] = triggers.template_hash(template)
        return version(template, snapshot, self._meant[found.uid])

    def is_good(self, found: ParsedRollout, by: object) -> bool:
        """Whether this very reading was found to be good by these rules."""
        reviewed = found.uid in self._good and self._good[found.uid] is by
        return reviewed and self._kept.get(found.uid) is found

    def good(self, found: ParsedRollout, by: object) -> None:
        self._good[found.uid] = by

    def stand(self, found: ParsedRollout, obj: Object) -> None:
        """This reading makes sense; it is gone by until another one does."""
        known = self._standing.get(found.uid)
        if known is None or known[0] is not found:
            self._standing[found.uid] = found, obj["spec"]
        self._standing.move_to_end(found.uid)
        if len(self._standing) > _REMEMBERED:
            self._standing.popitem(last=False)

    def standing(self, obj: Object) -> ParsedRollout | None:
        """What the object said when it last made sense, also if this process never saw that."""
        uid = str(obj["metadata"].get("uid", ""))
        if uid not in self._standing:
            self._recall(obj)
        known = self._standing.get(uid)
        return None if known is None else known[0]

    def acting(self, obj: Object) -> ParsedRollout:
        """By what effects are performed: what made sense last, else what stands there now."""
        return self.standing(obj) or self.of(obj)

    def kept(self, obj: Object, *, under_way: bool) -> Object | None:
        """What an object's status keeps of the reading that stands, for a successor of ours.

        Only where something would have to roll back or be given back. Without the template: a
        version that runs is kept elsewhere, by its name.
        """
        found = self.standing(obj)
        if found is None or not (under_way or found.adopts):
            return None
        words = self._standing[found.uid][1]
        workload = words.get("deploymentSpec")
        if workload is not None:
            bare = {key: value for key, value in workload.items() if key != "template"}
            words = {**words, "deploymentSpec": bare}
        return {"generation": found.generation, "spec": words}

    def _recall(self, obj: Object) -> None:
        told = status_of(obj).accepted
        if told is None or not self._is_own(obj):
            return
        generation = told.get("generation")
        with contextlib.suppress(Rejected):
            if generation == obj["metadata"].get("generation"):
                # The object itself still says it, and says more of it.
                self.stand(self.of(obj), obj)
                return
            meta = {**obj["metadata"], "generation": generation}
            earlier = {**obj, "metadata": meta, "spec": told.get("spec")}
            self.stand(read(earlier), earlier)

    def _forget(self, uid: str) -> None:
        self._good.pop(uid, None)
        self._meant.pop(uid, None)


def template_of(parsed: ParsedRollout, snapshot: Snapshot) -> Object:
    """The pod template as it is desired now; InvalidSpec while the target is not there."""
    return dict(workload_of(parsed, snapshot).get("template") or {})


def workload_of(parsed: ParsedRollout, snapshot: Snapshot) -> Object:
    """The spec of the Deployment: the object's own, or the target's as it stands."""
    if not parsed.is_target:
        return parsed.workload
    found = snapshot.found(names.DEPLOYMENTS, parsed.names.primary)
    if not found:
        raise InvalidSpec(
            f"spec.targetRef.name: no such Deployment in this namespace: {parsed.names.primary}",
            hint="create it, or name another; the rollout starts when it exists",
        )
    return dict(found[0]["spec"])


def desired(parsed: ParsedRollout, snapshot: Snapshot) -> Version:
    """The version that is desired now; of a target with an edit that waits, the edit's."""
    template = template_of(parsed, snapshot)
    waits = None
    if parsed.is_target:
        waits = parked(snapshot.found(names.DEPLOYMENTS, parsed.names.primary)[0])
    return waits or version(template, snapshot)


def parked(target: Object) -> Version | None:
    """The version of an edit that waits until the target may change."""
    told = (target["metadata"].get("annotations") or {}).get(names.PARKED, "")
    parts = told.split("/", len(Version.__match_args__) - 1)
    return Version(*parts) if len(parts) == len(Version.__match_args__) else None


def parking(waits: Version) -> str:
    """The annotation that `parked` reads."""
    return f"{waits.revision}/{waits.template}/{waits.configs}/{waits.label}"


def version(template: Object, snapshot: Snapshot, known: str = "") -> Version:
    """What the template and the configs it reads mean, and how people call it."""
    meant = known or triggers.template_hash(template)
    configs = triggers.config_hash(_configs(template, snapshot))
    told = hashlib.blake2b(f"{meant} {configs}".encode(), digest_size=5).hexdigest()
    return Version(told, meant, configs, _called(template))


def called(parsed: ParsedRollout, slot: Slot) -> Names:
    """Under which names the metrics know a slot."""
    arguments = {
        "namespace": parsed.namespace,
        "target": parsed.names.deployments[slot],
        "service": parsed.names.services[slot],
        "port": str(parsed.site.primary.port),
    }
    return Names(provider_registry.found()[parsed.provider].metrics, arguments)


def _configs(template: Object, snapshot: Snapshot) -> Mapping[str, Mapping[str, Any]]:
    """The configs as the caches keep them: a digest of each, by kind and name."""
    kinds = {"configmap": names.CONFIG_MAPS, "secret": names.SECRETS}
    found: dict[str, Mapping[str, Any]] = {}
    for called in triggers.tracked(template):
        kind, _, name = called.partition("/")
        if not snapshot.is_served(kinds[kind]):
            continue
        for config in snapshot.found(kinds[kind], name):
            if triggers.is_tracked(config):
                found[called] = config
    return found


def _called(template: Object) -> str:
    """The first image's name and tag: what people say when they mean a version."""
    containers = (template.get("spec") or {}).get("containers") or [{}]
    image = str(containers[0].get("image") or "")
    return image.rpartition("/")[2].partition("@")[0][:_LONGEST_LABEL]


def _check_form(words: types.WorkloadWords) -> None:
    """As the definition's rules say it; here for those who come around them."""
    embedded = words.deployment_spec is not None
    if embedded == (words.target_ref is not None):
        raise InvalidSpec(
            "spec.targetRef: set either targetRef or deploymentSpec",
            hint="name a Deployment that exists, or describe one",
        )
    if embedded != (words.service_spec is not None) or embedded == (words.service is not None):
        raise InvalidSpec(
            "spec.service: set service with targetRef, serviceSpec with deploymentSpec",
            hint="name the Service that selects the pods",
        )


def _names(words: types.WorkloadWords, name: str) -> names.Names:
    if words.target_ref is None or words.service is None:
        return names.embedded(name)
    return names.of_target(words.target_ref.name, words.service.name)


def _port(words: types.WorkloadWords) -> int:
    if words.service is not None:
        return words.service.port
    ports = (words.service_spec.ports if words.service_spec else None) or ()
    if not ports:
        raise InvalidSpec(
            "spec.serviceSpec.ports: required", hint="name the port that receives requests"
        )
    return ports[0].port


def _provider(words: types.WorkloadWords, raw: Object) -> tuple[str, Mapping[str, Any]]:
    """Which provider, and what the object says to it, as it was written."""
    if isinstance(words, types.IstioCanarySpec):
        shared = ("vsName", "subset", "routes", "destinationRule", "delay")
        desired = {key: raw.get(key) for key in shared}
        desired["virtualService"] = raw.get("virtualServiceSpec")
        return "istio", {key: value for key, value in desired.items() if value is not None}
    given = raw.get("provider") or {provider_registry.USUAL: {}}
    if len(given) != 1:
        raise InvalidSpec(
            f"spec.provider: set exactly one of {', '.join(provider_registry.found())}",
            hint="name what splits the traffic",
        )
    ((name, desired),) = given.items()
    return name, {key: value for key, value in (desired or {}).items() if value is not None}
