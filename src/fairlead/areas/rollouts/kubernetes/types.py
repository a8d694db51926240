"""What users write in the objects of a rollout; the definitions of the kinds are made from this.

The rules of a rollout (strategy, checks, times) are the same words as in a file for this machine,
and come from areas/rollouts/rules.py.
"""

import functools
import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, cast

import msgspec

from fairlead.areas.rollouts.kubernetes import provider_registry
from fairlead.areas.rollouts.kubernetes.providers.istio import VirtualServiceWords
from fairlead.areas.rollouts.kubernetes.routing.provider import Open, Provider
from fairlead.areas.rollouts.rules import Rules, Words
from fairlead.kubernetes.schema import Rule

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class SelectorWords(Open, frozen=True):
    """Which pods; by labels only, because the canary's pods get other values of them."""

    match_labels: dict[str, str] | None = None


class DeploymentWords(Open, frozen=True):
    """The spec of a Deployment."""

    replicas: Count | None = None
    selector: SelectorWords | None = None
    template: Any = None


class PortWords(Open, frozen=True):
    """A port of a Service."""

    port: Port


class ServiceWords(Open, frozen=True):
    """The spec of a Service; without a selector it has the Deployment's."""

    ports: list[PortWords] | None = None
    selector: dict[str, str] | None = None


class TargetWords(Words, frozen=True):
    """A Deployment that exists, in the same namespace."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]


class TargetServiceWords(Words, frozen=True):
    """The Service of the target, and the port that routes name."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
    port: Port


_FORMS = (
    Rule(
        "has(self.targetRef) != has(self.deploymentSpec)",
        "set either targetRef or deploymentSpec",
        path=".targetRef",
    ),
    Rule(
        "has(self.targetRef) == has(self.service)"
        " && has(self.deploymentSpec) == has(self.serviceSpec)",
        "set service with targetRef, serviceSpec with deploymentSpec",
    ),
)


class WorkloadWords(Rules, frozen=True):
    """What both kinds have in common."""

    __rules__: ClassVar[tuple[Rule, ...]] = _FORMS

    target_ref: TargetWords | None = None
    service: TargetServiceWords | None = None
    deployment_spec: DeploymentWords | None = None
    service_spec: ServiceWords | None = None
    paused: bool = False
    override: bool = False


class IstioCanarySpec(WorkloadWords, frozen=True):
    """A workload whose new versions get traffic step by step, by an Istio VirtualService."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        *_FORMS,
        Rule(
            "!(has(self.vsName) && has(self.virtualServiceSpec))",
            "name a VirtualService or describe one, not both",
            path=".vsName",
        ),
    )

    vs_name: str | None = None
    virtual_service_spec: VirtualServiceWords | None = None
    subset: str | None = None
    routes: list[str] | None = None
    destination_rule: str | None = None
    delay: float | None = None


def canary_spec() -> type[WorkloadWords]:
    """A workload with a field for each provider that is found."""
    return _canary_spec(tuple(provider_registry.found().values()))


@functools.cache
def _canary_spec(providers: tuple[Provider, ...]) -> type[WorkloadWords]:
    usual = provider_registry.usual()
    words = msgspec.defstruct(
        "ProviderWords",
        [(_snake(one.name), one.words | None, None) for one in providers],
        bases=(Words,),
        namespace={"__doc__": _PROVIDERS, "__rules__": (_one_of(providers),)},
        frozen=True,
    )
    default = words(**{_snake(usual.name): usual.words()})
    made = msgspec.defstruct(
        "CanarySpec",
        [("provider", words, default)],
        bases=(WorkloadWords,),
        namespace={"__doc__": _CANARY},
        frozen=True,
    )
    return cast("type[WorkloadWords]", made)


_PROVIDERS = "What splits traffic between the two versions; exactly one."
_CANARY = "A workload whose new versions get traffic step by step."


def _one_of(providers: Sequence[Provider]) -> Rule:
    names = [one.name for one in providers]
    asked = ", ".join(f"has(self.{name})" for name in names)
    return Rule(
        f"[{asked}].filter(x, x).size() == 1",
        f"set exactly one of {', '.join(names[:-1])} and {names[-1]}",
    )


def _snake(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()
