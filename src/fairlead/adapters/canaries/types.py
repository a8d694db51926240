"""What users write in the objects of a rollout; the definitions of the kinds are made from this.

The rules of a rollout (strategy, checks, times) are the same words as in a file for this machine,
and come from intents/rollouts.py.
"""

from typing import Annotated, Any, ClassVar

import msgspec

from fairlead.adapters.kubernetes.schema import Rule
from fairlead.intents.rollouts import Rules, Words

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Open(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of somebody else's kind: what is not named here is kept as it stands."""

    __open__: ClassVar[bool] = True


class SelectorWords(Open, frozen=True):
    """Which pods; by labels alone, because the canary's pods get other values of them."""

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


class VirtualServiceWords(Open, frozen=True):
    """The spec of an Istio VirtualService."""

    hosts: list[str] | None = None
    gateways: list[str] | None = None
    http: list[Any] | None = None
    tcp: list[Any] | None = None
    tls: list[Any] | None = None
    export_to: list[str] | None = None


class IstioWords(Words, frozen=True):
    """Requests are shared out by a VirtualService: one that exists, or one of ours."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!(has(self.vsName) && has(self.virtualService))",
            "name a VirtualService or describe one, not both",
            path=".vsName",
        ),
    )

    vs_name: str | None = None
    virtual_service: VirtualServiceWords | None = None
    routes: list[str] | None = None
    destination_rule: str | None = None
    delay: float | None = None


class RouteWords(Open, frozen=True):
    """The spec of an HTTPRoute of the Gateway API."""

    parent_refs: list[Any] | None = None
    hostnames: list[str] | None = None
    rules: list[Any] | None = None


class GatewayWords(Words, frozen=True):
    """Requests are shared out by an HTTPRoute: one that exists, or one of ours."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.routeName) != has(self.route)",
            "name an HTTPRoute or describe one, not both",
            path=".routeName",
        ),
    )

    route_name: str | None = None
    route: RouteWords | None = None
    delay: float | None = None


class ReplicasWords(Words, frozen=True):
    """Requests are shared out by the Service itself, over all pods alike."""

    delay: float | None = None


class ProviderWords(Words, frozen=True):
    """What shares requests out between the two versions; exactly one."""

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "[has(self.istio), has(self.gatewayApi), has(self.replicas)].filter(x, x).size() == 1",
            "exactly one of istio, gatewayApi and replicas is needed",
        ),
    )

    istio: IstioWords | None = None
    gateway_api: GatewayWords | None = None
    replicas: ReplicasWords | None = None


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
        "either targetRef or deploymentSpec is needed",
        path=".targetRef",
    ),
    Rule(
        "has(self.targetRef) == has(self.service)"
        " && has(self.deploymentSpec) == has(self.serviceSpec)",
        "targetRef goes with service, deploymentSpec with serviceSpec",
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


class CanarySpec(WorkloadWords, frozen=True):
    """A workload whose new versions get their traffic step by step."""

    provider: ProviderWords = ProviderWords(replicas=ReplicasWords())


class IstioCanarySpec(WorkloadWords, frozen=True):
    """A workload whose new versions get their traffic step by step, by an Istio VirtualService."""

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


class ConditionWords(msgspec.Struct, rename="camel"):
    """A condition as Kubernetes spells it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class Status(msgspec.Struct, rename="camel"):
    """Where the rollout is; `memory` is what an operator with an empty store goes on from.

    `accepted` is the last spec that made sense, for as long as something would have to go home.
    """

    phase: str = ""
    message: str = ""
    observed_generation: int = 0
    stable_revision: str = ""
    stable_version: str = ""
    stable_hash: str = ""
    wanted_hash: str = ""
    config_hash: str = ""
    canary_revision: str = ""
    canary_version: str = ""
    canary_weight: int = 0
    primary_weight: int = 0
    baseline_weight: int = 0
    step: int = 0
    steps: int = 0
    progress: str = ""
    serial: int = 0
    revisions: list[str] = []
    requests: dict[str, str] = {}
    conditions: list[ConditionWords] = []
    accepted: Any = None
    memory: Any = None
