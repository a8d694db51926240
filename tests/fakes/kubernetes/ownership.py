"""The managed fields of an object: who owns which paths, written anew at every write."""

import dataclasses

from fairlead.kubernetes.objects import Object
from tests.fakes.kubernetes import fields
from tests.fakes.kubernetes.kinds import Served


@dataclasses.dataclass(frozen=True)
class Write:
    """Who writes, when, and by which road."""

    manager: str = "unknown"
    operation: str = "Update"
    subresource: str = ""
    force: bool = False
    time: str = ""
    dry: bool = False


def record_update(served: Served, old: Object, new: Object, write: Write) -> None:
    """What an update touched is now the writer's alone."""
    touched, present = fields.changed(old, new, served)
    if not old:
        new["metadata"].pop("managedFields", None)
    mine, others = owners(new, write)
    for entry in others:
        owned = fields.decode(entry.get("fieldsV1", {}))
        entry["fieldsV1"] = fields.encode((owned - touched) & present)
    claim(served, new, write, (mine | touched) & present)


def record_apply(
    served: Served, obj: Object, write: Write, *, wants: fields.Owned, lost: fields.Owned
) -> None:
    """An applier owns what it names; what it took by force leaves the others."""
    _, others = owners(obj, write)
    for entry in others:
        owned = fields.decode(entry.get("fieldsV1", {}))
        entry["fieldsV1"] = fields.encode(owned - lost)
    claim(served, obj, write, wants)


def owners(obj: Object, write: Write) -> tuple[fields.Owned, list[Object]]:
    """What the writer owns by this road, and everybody else's entries."""
    mine: fields.Owned = set()
    others: list[Object] = []
    for entry in obj["metadata"].get("managedFields") or ():
        if signature(entry) == (write.manager, write.operation, write.subresource):
            mine = fields.decode(entry.get("fieldsV1", {}))
        else:
            others.append(entry)
    return mine, others


def claim(served: Served, obj: Object, write: Write, mine: fields.Owned) -> None:
    entries = [entry for entry in owners(obj, write)[1] if entry.get("fieldsV1")]
    if mine:
        entry: Object = {
            "manager": write.manager,
            "operation": write.operation,
            "apiVersion": served.resource.api_version,
            "time": write.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields.encode(mine),
        }
        if write.subresource:
            entry["subresource"] = write.subresource
        entries.append(entry)
    obj["metadata"]["managedFields"] = entries


def signature(entry: Object) -> tuple[str, str, str]:
    return entry["manager"], entry["operation"], entry.get("subresource", "")
