"""The operator's pod and what stands around it; `manifests` adds its account and rights.

The pod is held to the "restricted" Pod Security Standard and writes nothing but two empty
folders: its store, which may be lost (objects carry their state in `.status`), and a place in
memory for keys on their way into OpenSSL.
"""

import dataclasses
from typing import Literal

from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.objects import Object

STATE = "/var/lib/fairlead"
HEALTH_PORT = 8601
WEBHOOK_PORT = 8443
# As in deploy/Containerfile, by a test.
USER = 65532
SHARD = "fairlead.dev/shard"


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How an installation differs from the next."""

    image: str
    name: str = "fairlead-operator"
    namespace: str = "fairlead"
    watched: str = ""
    """The one namespace whose objects are reconciled; empty for the operator's own."""

    everywhere: bool = False
    """Objects of all namespaces are reconciled, with rights over the whole cluster."""

    replicas: int = 1
    """One leads; the others wait for its lease."""

    database: tuple[str, str] | None = None
    """Name and key of a Secret in the operator's namespace that holds FAIRLEAD_DATABASE_URL."""

    shards: int = 1
    """Parts of all namespaces, each with a Deployment and a lease of its own."""

    webhooks: bool = True
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """What the API server does while no operator answers. Ignore: objects come in, and what the
    webhook would have refused is refused by a condition. Fail: nothing comes in."""

    policies: bool = True
    """Whether policies come along by which the API server changes writes: Kubernetes 1.36."""

    secrets: bool = True
    """Whether Secrets of the namespaces are read, so that a changed one starts a run."""

    egress: tuple[int, ...] = ()
    """Further TCP ports that the pod may reach, such as 9090 for Prometheus."""

    @property
    def reconciled(self) -> str:
        """The namespace that the operator has rights in; empty for all of them."""
        return "" if self.everywhere else self.watched or self.namespace

    @property
    def lease(self) -> str:
        return self.name

    @property
    def leases(self) -> list[str]:
        """The lease of each shard."""
        return [one.lease(self.lease) for one in self.parts]

    @property
    def parts(self) -> list[Shard]:
        return [Shard(index, self.shards) for index in range(self.shards)]

    @property
    def status_key(self) -> str:
        """The Secret with the key that seals statuses, made by the operator."""
        return f"{self.lease}-status"

    @property
    def certificate(self) -> str:
        """The Secret with the webhook's key, made and rotated by the operator."""
        return f"{self.name}-webhook"


def documents(options: Options) -> list[Object]:
    pods = [_deployment(options, shard) for shard in options.parts]
    return [*pods, _disruption(options), _network(options)]


def labels(options: Options) -> dict[str, str]:
    return {**_chosen(options), "app.kubernetes.io/part-of": "fairlead"}


def meta(options: Options, suffix: str = "") -> Object:
    return {**cluster_meta(options, suffix), "namespace": options.namespace}


def cluster_meta(options: Options, suffix: str = "") -> Object:
    return {"name": f"{options.name}{suffix}", "labels": labels(options)}


def webhook_name(options: Options) -> str:
    return f"{options.name}-webhook"


def webhook_service(options: Options) -> Object:
    port = {"name": "webhook", "port": 443, "targetPort": "webhook", "protocol": "TCP"}
    metadata = {**meta(options), "name": webhook_name(options)}
    spec = {"selector": _chosen(options), "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _chosen(options: Options) -> dict[str, str]:
    return {"app.kubernetes.io/name": options.name, "app.kubernetes.io/component": "operator"}


def _deployment(options: Options, shard: Shard) -> Object:
    # Pods of one Deployment need a label that those of the next do not have.
    own = {SHARD: str(shard.index)} if options.shards > 1 else {}
    suffix = f"-{shard.index}" if options.shards > 1 else ""
    template = {"metadata": {"labels": {**labels(options), **own}}, "spec": _pod(options, shard)}
    spec = {
        "replicas": options.replicas,
        "selector": {"matchLabels": {**_chosen(options), **own}},
        "template": template,
    }
    head: Object = {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {**head, "metadata": meta(options, suffix), "spec": spec}


def _pod(options: Options, shard: Shard) -> Object:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _chosen(options)},
    }
    return {
        "serviceAccountName": options.name,
        "automountServiceAccountToken": True,
        # Longer than the engine waits for effects under way.
        "terminationGracePeriodSeconds": 60,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(options, shard)],
        "topologySpreadConstraints": [spread],
        "volumes": [
            {"name": "state", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
        ],
    }


def _container(options: Options, shard: Shard) -> Object:
    made: Object = {
        "name": "operator",
        "image": options.image,
        "args": ["operator"],
        "env": _environment(options, shard),
        "ports": _ports(options),
        "startupProbe": _probe("/healthz", every=2, failures=30),
        "livenessProbe": _probe("/healthz", every=10, failures=3),
        "readinessProbe": _probe("/readyz", every=5, failures=2),
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            # No limit on processor time: it would slow a leader down in the middle of a lease.
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "state", "mountPath": STATE},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  the pod's own, in memory
        ],
    }
    if options.webhooks:
        # The API server asks the pod until it has heard that it goes: it answers that long.
        made["lifecycle"] = {"preStop": {"sleep": {"seconds": 5}}}
    return made


def _environment(options: Options, shard: Shard) -> list[Object]:
    plain = {
        "FAIRLEAD_STATE_DIR": STATE,
        # Probes come from outside the pod; the network policy says who else may.
        "FAIRLEAD_OPERATOR_LISTEN": f"0.0.0.0:{HEALTH_PORT}",
        "FAIRLEAD_OPERATOR_LEASE": options.lease,
        "FAIRLEAD_OPERATOR_NAMESPACE": options.reconciled,
        "FAIRLEAD_OPERATOR_SHARD": str(shard) if options.shards > 1 else "",
    }
    if not options.secrets:
        plain["FAIRLEAD_OPERATOR_SECRETS"] = "ignored"
    if options.webhooks:
        plain["FAIRLEAD_OPERATOR_WEBHOOKS_LISTEN"] = f"0.0.0.0:{WEBHOOK_PORT}"
        plain["FAIRLEAD_OPERATOR_WEBHOOKS_NAME"] = options.name
    given: list[Object] = [{"name": name, "value": value} for name, value in plain.items() if value]
    if options.database:
        name, key = options.database
        secret = {"secretKeyRef": {"name": name, "key": key}}
        given.append({"name": "FAIRLEAD_DATABASE_URL", "valueFrom": secret})
    return given


def _ports(options: Options) -> list[Object]:
    ports: list[Object] = [{"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"}]
    if options.webhooks:
        ports.append({"name": "webhook", "containerPort": WEBHOOK_PORT, "protocol": "TCP"})
    return ports


def _probe(path: str, *, every: int, failures: int) -> Object:
    get = {"path": path, "port": "health"}
    return {"httpGet": get, "periodSeconds": every, "failureThreshold": failures}


def _disruption(options: Options) -> Object:
    """One pod may go at a time: with one replica a drain is not blocked for good."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": _chosen(options)}}
    head: Object = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    return {**head, "metadata": meta(options), "spec": spec}


def _network(options: Options) -> Object:
    """In: health, metrics and webhook. Out: names, the API server, and what was named."""
    inward = [_tcp(port["containerPort"]) for port in _ports(options)]
    # The API server stands outside of the pods' network: it can only be told by its ports.
    outward = [_tcp(443), _tcp(6443), *(_tcp(port) for port in _egress(options))]
    names = [{"protocol": "UDP", "port": 53}, _tcp(53)]
    spec = {
        "podSelector": {"matchLabels": _chosen(options)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"ports": inward}],
        "egress": [{"ports": [*names, *outward]}],
    }
    head: Object = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return {**head, "metadata": meta(options), "spec": spec}


def _egress(options: Options) -> tuple[int, ...]:
    return (*((5432,) if options.database else ()), *options.egress)


def _tcp(port: int) -> Object:
    return {"protocol": "TCP", "port": port}
