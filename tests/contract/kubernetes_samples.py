"""Objects that the Kubernetes contract suite plays with."""

from typing import Any

from fairlead.kubernetes.objects import Object, Resource

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICES = Resource("", "v1", "services", "Service")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CRDS = Resource(
    *("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    namespaced=False,
)
WIDGETS = Resource("tests.fairlead.dev", "v1", "widgets", "Widget")


def namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "contract-"}}


def widget_definition() -> Object:
    spec = {
        "type": "object",
        "required": ["length"],
        "properties": {
            "length": {"type": "integer", "minimum": 1, "maximum": 400},
            "sails": {"type": "integer", "default": 2},
            "rig": {"type": "string", "enum": ["sloop", "ketch"]},
            "crew": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "role": {"type": "string"}},
                },
            },
            "ports": {"type": "array", "items": {"type": "string"}},
        },
    }
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.tests.fairlead.dev"},
        "spec": {
            "group": "tests.fairlead.dev",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }


def widget(namespace: str, name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "tests.fairlead.dev/v1",
        "kind": "Widget",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"length": 12, **spec},
    }


def config_map(namespace: str, name: str, **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name},
        "data": data,
    }


def deployment(namespace: str, name: str, image: str = "shop:1") -> Object:
    port = {"containerPort": 8080, "name": "http"}
    container = {"name": "web", "image": image, "ports": [port]}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def service(namespace: str, name: str) -> Object:
    port = {"port": 80, "targetPort": 8080}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {"app": name}, "ports": [port]},
    }


def labelled(obj: Object, **labels: str) -> Object:
    obj["metadata"]["labels"] = labels
    return obj


def owned(obj: Object, *owners: Object) -> Object:
    obj["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": index == 0,
            "blockOwnerDeletion": True,
        }
        for index, owner in enumerate(owners)
    ]
    return obj


def held(obj: Object, *finalizers: str) -> Object:
    obj["metadata"]["finalizers"] = list(finalizers)
    return obj
