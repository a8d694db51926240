"""What starts a rollout: a pod template that means something else, or a config it reads.

A template is hashed by meaning: what the API server fills in by default, empty fields and the
spelling of quantities do not count, and neither do replicas or anybody's metadata outside the
template. The hash is stored, so a restart compares with what was, not with what is.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.values import quantity

SCHEME = "t1"
"""Part of every hash: a change of these rules must not look like a change of a template."""

OPT_OUT = "fairlead.dev/config-tracking"
OURS = ("fairlead.dev/", "kubectl.kubernetes.io/last-applied-configuration")
_NOT_MEANT = ("creationTimestamp", "name", "namespace", "uid", "resourceVersion", "generation")
_POD = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODE = 0o644
_VOLUMES = ("configMap", "secret", "projected", "downwardAPI")


def template_hash(template: Mapping[str, Any]) -> str:
    """The template's meaning in a few letters; equal meaning, equal letters."""
    return f"{SCHEME}-{_digest(meaning(template))}"


def config_hash(configs: Mapping[str, Mapping[str, Any]]) -> str:
    """The content of the tracked ConfigMaps and Secrets, by `kind/name`."""
    content = {
        name: {key: config.get(key) or {} for key in ("data", "binaryData", "stringData")}
        for name, config in configs.items()
    }
    return _digest(content) if configs else ""


def meaning(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template without what does not change a pod."""
    metadata = {
        key: value
        for key, value in (template.get("metadata") or {}).items()
        if key not in _NOT_MEANT
    }
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {
        key: value for key, value in annotations.items() if not key.startswith(OURS)
    }
    spec = _without(template.get("spec") or {}, _POD)
    for group in ("containers", "initContainers"):
        spec[group] = [_container(each) for each in spec.get(group) or ()]
    spec["volumes"] = [_volume(each) for each in spec.get("volumes") or ()]
    # An old name that the API server fills in beside the new one.
    if spec.get("serviceAccount") == spec.get("serviceAccountName"):
        spec.pop("serviceAccount", None)
    pruned = _pruned({"metadata": metadata, "spec": spec})
    return pruned if isinstance(pruned, dict) else {}


def tracked(template: Mapping[str, Any]) -> tuple[str, ...]:
    """The ConfigMaps and Secrets a pod reads, as `kind/name`; none if it opted out."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    if annotations.get(OPT_OUT) == "disabled":
        return ()
    spec = template.get("spec") or {}
    found: set[str] = set()
    for volume in spec.get("volumes") or ():
        found |= _from_volume(volume)
        for source in (volume.get("projected") or {}).get("sources") or ():
            found |= _from_volume(source)
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            found |= _from_environment(container)
    return tuple(sorted(found))


def is_tracked(config: Mapping[str, Any]) -> bool:
    """A ConfigMap or Secret may opt out by itself."""
    annotations = (config.get("metadata") or {}).get("annotations") or {}
    return bool(annotations.get(OPT_OUT) != "disabled")


def _from_volume(source: Mapping[str, Any]) -> set[str]:
    config, secret = source.get("configMap") or {}, source.get("secret") or {}
    secret_name = secret.get("secretName") or secret.get("name")
    named = (("configmap", config.get("name")), ("secret", secret_name))
    return {f"{kind}/{name}" for kind, name in named if name}


def _from_environment(container: Mapping[str, Any]) -> set[str]:
    found = set()
    for source in container.get("envFrom") or ():
        for kind, key in (("configmap", "configMapRef"), ("secret", "secretRef")):
            found |= {f"{kind}/{name}" for name in [(source.get(key) or {}).get("name")] if name}
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        for kind, key in (("configmap", "configMapKeyRef"), ("secret", "secretKeyRef")):
            found |= {f"{kind}/{name}" for name in [(source.get(key) or {}).get("name")] if name}
    return found


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    kept = _without(container, _CONTAINER)
    if kept.get("imagePullPolicy") == _usual_pull(str(kept.get("image", ""))):
        del kept["imagePullPolicy"]
    kept["ports"] = [_without(port, {"protocol": "TCP"}) for port in kept.get("ports") or ()]
    for name in _PROBES:
        if kept.get(name):
            kept[name] = _probe(kept[name])
    resources = kept.get("resources") or {}
    kept["resources"] = {
        key: {name: _quantity(value) for name, value in (resources.get(key) or {}).items()}
        for key in ("limits", "requests")
    }
    return kept


def _probe(probe: Mapping[str, Any]) -> dict[str, Any]:
    kept = _without(probe, _PROBE)
    if kept.get("httpGet"):
        kept["httpGet"] = _without(kept["httpGet"], {"scheme": "HTTP"})
    return kept


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(volume)
    for kind in _VOLUMES:
        if kept.get(kind):
            kept[kind] = _without(kept[kind], {"defaultMode": _MODE})
    return kept


def _usual_pull(image: str) -> str:
    name = image.rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    tag = name.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _quantity(value: Any) -> str:
    """`0.5` and `500m` are the same amount."""
    amount = quantity(str(value))
    return str(value) if amount is None else format(amount, "f")


def _without(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if defaults.get(key, _NEVER) != value}


_NEVER = object()


def _pruned(value: Any) -> Any:
    """Without null and empty fields, at any depth; an empty item of a list keeps its place."""
    if isinstance(value, Mapping):
        kept = {key: _pruned(each) for key, each in value.items()}
        # An empty volume of emptyDir is a meaning; a missing one is another.
        return {
            key: each
            for key, each in kept.items()
            if each not in (None, [], {}) or (key == "emptyDir" and each == {})
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_pruned(each) for each in value]
    return value


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
