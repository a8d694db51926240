"""One resource, one object."""

import pytest

from fairlead.areas.resources.kubernetes.claims import Claim, Claims, Taken
from fairlead.kubernetes.objects import Object

ID = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/sets/web"


def obj(name: str, since: str = "2026-01-01T00:00:00Z", **status: str) -> Object:
    meta = {"namespace": "shop", "name": name, "uid": name, "creationTimestamp": since}
    return {"metadata": meta, "status": status}


def test_the_first_that_names_a_resource_has_it() -> None:
    claims = Claims()
    claims.take(ID, obj("a"))

    claims.take(ID, obj("a"))
    with pytest.raises(Taken, match="shop/a has it already"):
        claims.take(ID.upper(), obj("b"))


def test_what_an_object_had_is_free_once_it_is_gone() -> None:
    claims, gone = Claims(), set[str]()
    claims.begin((), lambda claim: claim.uid not in gone)
    claims.take(ID, obj("a"))
    gone.add("a")

    claims.take(ID, obj("b"))


def test_after_a_restart_statuses_tell_and_the_older_object_has_it() -> None:
    def lives(_: Claim) -> bool:
        return True

    claims = Claims()
    young, old = obj("a", "2026-02-01", resourceId=ID), obj("b", "2026-01-01", resourceId=ID)

    claims.begin((young, old, obj("c")), lives)

    claims.take(ID, old)
    with pytest.raises(Taken):
        claims.take(ID, young)
