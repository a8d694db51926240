"""The kinds that the builtin engine applies, in the order in which it does; it deletes backwards.

A list of kinds instead of whatever the cluster serves: nothing that is cluster-wide is in it, and
nothing that gives rights. A manifest of any other kind is refused.
"""

import re
from collections.abc import Iterable, Mapping

from fairlead.areas.gitops.domain.messages import ObjectRef
from fairlead.kubernetes.objects import Resource

KINDS: tuple[Resource, ...] = (
    Resource("", "v1", "resourcequotas", "ResourceQuota"),
    Resource("", "v1", "limitranges", "LimitRange"),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Resource("", "v1", "services", "Service"),
    Resource("apps", "v1", "daemonsets", "DaemonSet"),
    Resource("", "v1", "pods", "Pod"),
    Resource("apps", "v1", "replicasets", "ReplicaSet"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Resource("apps", "v1", "statefulsets", "StatefulSet"),
    Resource("batch", "v1", "jobs", "Job"),
    Resource("batch", "v1", "cronjobs", "CronJob"),
    Resource("networking.k8s.io", "v1", "ingresses", "Ingress"),
    Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute"),
    Resource("networking.istio.io", "v1", "virtualservices", "VirtualService"),
    Resource("fairlead.dev", "v1alpha1", "canarydeployments", "CanaryDeployment"),
)
NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_VERSION = re.compile(r"v[0-9]{1,3}((alpha|beta)[0-9]{1,3})?")
_PLACES: Mapping[tuple[str, str], int] = {
    (each.group, each.kind): place for place, each in enumerate(KINDS)
}


def resource(ref: ObjectRef) -> Resource | None:
    """How the API server serves it, whichever version is named; None for what is not applied.

    Version and name become parts of a path, and come from a repository or from a status.
    """
    place = _PLACES.get((ref.group, ref.kind))
    if place is None or not _VERSION.fullmatch(ref.version) or not NAME.fullmatch(ref.name):
        return None
    return KINDS[place]._replace(version=ref.version)


def in_order(refs: Iterable[ObjectRef]) -> list[ObjectRef]:
    return sorted(refs, key=lambda ref: (_PLACES.get((ref.group, ref.kind), 0), ref.name))
