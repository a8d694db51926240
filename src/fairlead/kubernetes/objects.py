"""The words every other module here uses: a resource, a key, and an object's metadata.

Objects stay plain dicts, as the API server sends them: a typed model would drop the fields
of newer servers, and cost an import of thousands of classes.
"""

import dataclasses
import functools
import re
import urllib.parse
from typing import Any, NamedTuple

from fairlead.errors import Rejected

Object = dict[str, Any]

# A segment with any of these would address another path than the one meant.
_UNSAFE = re.compile(r"[/%]|^\.{1,2}$|^$")
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


class Key(NamedTuple):
    """What names an object within its resource; the namespace is empty for cluster scope."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Resource(NamedTuple):
    """A kind as the API server serves it; a tuple, for it is looked up by all the time."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def collection(self, namespace: str = "") -> str:
        """The path of all objects: of one namespace, or of the cluster."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            root = f"{root}/namespaces/{segment(namespace)}"
        return f"{root}/{self.plural}"

    def path(self, key: Key, subresource: str = "") -> str:
        """The path of one object, or of its subresource."""
        if self.namespaced and not key.namespace:
            raise Rejected(f"no namespace given for {self}: {key.name}", hint="name a namespace")
        path = f"{self.collection(key.namespace)}/{segment(key.name)}"
        return f"{path}/{subresource}" if subresource else path


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a resource: all, or those of a namespace and selectors."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        named = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in named.items() if value}


EVERYTHING = Selection()


@functools.lru_cache(1024)
def segment(text: str) -> str:
    """One path segment, refused where it could climb out of its place."""
    if _UNSAFE.search(text):
        raise Rejected(
            f"not a name that Kubernetes takes: {text!r}", hint="use letters, digits, - and ."
        )
    return text if _PLAIN.fullmatch(text) else urllib.parse.quote(text, safe="")


def metadata(obj: Object) -> dict[str, Any]:
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def key_of(obj: Object) -> Key:
    meta = metadata(obj)
    return Key(meta.get("namespace", ""), meta.get("name", ""))


def uid_of(obj: Object) -> str:
    return str(metadata(obj).get("uid", ""))


def version_of(obj: Object) -> str:
    return str(metadata(obj).get("resourceVersion", ""))


def is_deleting(obj: Object) -> bool:
    return "deletionTimestamp" in metadata(obj)


def owner_of(obj: Object) -> str:
    """The UID of the controller that owns this object, empty where there is none."""
    for reference in metadata(obj).get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid", ""))
    return ""


def owner_reference(owner: Object) -> dict[str, Any]:
    """What a child carries so that garbage collection and the cache know its parent."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
