"""What installs the operator in a cluster: its kinds, its rights, its pod, and what guards it.

kinds (and what follows from them: `rbac`) + Options (where, which image, how many) ──► documents

The rights follow from the kinds and are given where they are used: over the objects in the
namespaces that are reconciled, over the lease and the webhook's key in the operator's own,
over the webhook configuration by its name.
"""

from collections.abc import Iterable, Sequence

import yaml

from fairlead.kubernetes import rbac
from fairlead.kubernetes.controller.leader import LEASES
from fairlead.kubernetes.install import workload
from fairlead.kubernetes.install.workload import Options, meta
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Object, Resource

WEBHOOKS = Resource(
    *("admissionregistration.k8s.io", "v1"),
    *("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    namespaced=False,
)
POLICIES = Resource(
    *("admissionregistration.k8s.io", "v1"),
    *("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
    namespaced=False,
)
ALL = "all"
_RBAC = "rbac.authorization.k8s.io"
_HEADER = "# Made by `make manifests` from the code that needs it; edits are lost.\n"


def documents(kinds: Sequence[Kind], options: Options) -> list[Object]:
    """All objects, in an order in which they can be applied."""
    return [
        *(rbac.definition(kind) for kind in kinds),
        *_namespace(options),
        *_account(kinds, options),
        *workload.documents(options),
        *(_webhook(kinds, options) if options.webhooks else ()),
        *(_policies(kinds, options) if options.policies else ()),
    ]


def text(found: Iterable[Object]) -> str:
    """As `kubectl apply -f -` takes it."""
    return _HEADER + yaml.dump_all(found, Dumper=_Plain, sort_keys=False, explicit_start=True)


def webhook_path(resource: Resource) -> str:
    """Where the API server asks about objects of this kind."""
    return f"/validate/{resource}"


def reviews(kinds: Iterable[Kind]) -> list[Object]:
    """What the admission webhook has a say in: a name, a path and the rules for each kind."""
    resources = [each for kind in kinds for each in reviewed(kind)]
    return [
        {"name": str(each), "path": webhook_path(each), "rules": [_reviewed(each)]}
        for each in resources
    ]


def policies(kinds: Iterable[Kind]) -> list[Object]:
    """What the API server itself changes in writes: name and spec of each, once for all kinds."""
    found = {name: spec for kind in kinds for name, spec in kind.policies.items()}
    return [{"name": name, "spec": spec} for name, spec in found.items()]


def reviewed(kind: Kind) -> list[Resource]:
    """The kind, and all that are made in its group."""
    more = [Resource(kind.group, kind.api.version, ALL, "")] if kind.group else []
    return [kind.api, *more]


def _reviewed(resource: Resource) -> Object:
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": ["*" if resource.plural == ALL else resource.plural],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }


def _namespace(options: Options) -> list[Object]:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    labels = {**workload.labels(options), **enforced}
    metadata = {"name": options.namespace, "labels": labels}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}]


def _account(kinds: Sequence[Kind], options: Options) -> list[Object]:
    account: Object = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": meta(options),
        # The pod asks for its token; whatever else runs under this account gets none.
        "automountServiceAccountToken": False,
    }
    roles = [
        account,
        *_granted("Role", meta(options, "-own"), _own_rules(options), options),
    ]
    read = kinds if options.secrets else [kind.without("secrets") for kind in kinds]
    over_objects = rbac.rules(read)
    if options.reconciled:
        there = {**meta(options), "namespace": options.reconciled}
        roles += _granted("Role", there, over_objects, options)
    else:
        over_all = [*over_objects, rbac.cluster_rule()]
        roles += _granted("ClusterRole", workload.cluster_meta(options), over_all, options)
    if options.webhooks:
        named = {**workload.cluster_meta(options), "name": f"{options.name}-webhook"}
        roles += _granted("ClusterRole", named, _webhook_rules(options), options)
    return roles


def _own_rules(options: Options) -> list[Object]:
    """In the operator's own namespace; a create cannot be bound to a name."""
    leases: Object = {"apiGroups": [LEASES.group], "resources": [LEASES.plural]}
    rules = [
        {**leases, "verbs": ["create"]},
        {**leases, "verbs": ["get", "update"], "resourceNames": options.leases},
        *rbac.status_key_rules(options.status_key),
    ]
    if options.webhooks:
        secrets: Object = {"apiGroups": [""], "resources": ["secrets"]}
        named = {"verbs": ["get", "update"], "resourceNames": [options.certificate]}
        rules.append({**secrets, **named})
    return rules


def _webhook_rules(options: Options) -> list[Object]:
    rule: Object = {"apiGroups": [WEBHOOKS.group], "resources": [WEBHOOKS.plural]}
    asked: Object = {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"]}
    return [
        # To put in the certificate that the API server trusts us by.
        {**rule, "verbs": ["get", "patch"], "resourceNames": [options.name]},
        # To ask whether whoever writes an object may have made what we make of it.
        {**asked, "verbs": ["create"]},
    ]


def _granted(kind: str, metadata: Object, rules: list[Object], options: Options) -> list[Object]:
    """A role and its binding to the operator's account; nothing where there is no rule."""
    if not rules:
        return []
    account = {
        "kind": "ServiceAccount",
        "name": options.name,
        "namespace": options.namespace,
    }
    version = f"{_RBAC}/v1"
    role = {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]}
    return [
        {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [account],
        },
    ]


def _webhook(kinds: Sequence[Kind], options: Options) -> list[Object]:
    hooks = [_hook(review, options) for review in reviews(kinds)]
    metadata = workload.cluster_meta(options)
    kind = {"apiVersion": WEBHOOKS.api_version, "kind": WEBHOOKS.kind}
    return [workload.webhook_service(options), {**kind, "metadata": metadata, "webhooks": hooks}]


def _hook(review: Object, options: Options) -> Object:
    service = {
        "namespace": options.namespace,
        "name": workload.webhook_name(options),
        "path": review["path"],
        "port": 443,
    }
    hook: Object = {
        "name": review["name"],
        # No caBundle: the operator puts it in, and an apply of this file leaves it alone.
        "clientConfig": {"service": service},
        "rules": review["rules"],
        "failurePolicy": options.failure_policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    if options.reconciled:
        hook["namespaceSelector"] = _labelled(options)
    return hook


def _policies(kinds: Sequence[Kind], options: Options) -> list[Object]:
    """A policy is of the whole cluster; its binding says in which namespaces it holds."""
    made: list[Object] = []
    for policy in policies(kinds):
        metadata = workload.cluster_meta(options, f"-{policy['name']}")
        bound: Object = {"policyName": metadata["name"]}
        if options.reconciled:
            bound["matchResources"] = {"namespaceSelector": _labelled(options)}
        made += [
            {"apiVersion": POLICIES.api_version, "kind": kind, "metadata": metadata, "spec": spec}
            for kind, spec in ((POLICIES.kind, policy["spec"]), (f"{POLICIES.kind}Binding", bound))
        ]
    return made


def _labelled(options: Options) -> Object:
    return {"matchLabels": {"kubernetes.io/metadata.name": options.reconciled}}


class _Plain(yaml.SafeDumper):
    """Writes what is used twice twice: a person reads it from the top."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True
