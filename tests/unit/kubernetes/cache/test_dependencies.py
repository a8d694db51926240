"""Who hears of whom: an object hears of what it asked for, by name or by another term."""

from datetime import UTC, datetime

import pytest

from fairlead.errors import Rejected
from fairlead.kubernetes.cache.dependencies import (
    CachedSnapshot,
    Dependencies,
    DependencyIndexes,
    Lookup,
    Owned,
)
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.kinds import Related
from fairlead.kubernetes.objects import Key, Object, Resource

SECRETS = Resource("", "v1", "secrets", "Secret")
SCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
GADGETS = Resource("", "v1", "gadgets", "Gadget")
SHOP = Key("bay", "shop")


def obj(name: str, version: int, **fields: object) -> Object:
    meta = {"namespace": "bay", "name": name, "uid": name, "resourceVersion": str(version)}
    return {"metadata": meta, **fields}


class DependencyCaches:
    """Related kinds, found by name, by target or by name and flags, and who was told."""

    def __init__(self) -> None:
        self.told: list[Key] = []
        self.dependencies = Dependencies(self.told.append)
        self.secrets = Cache(SECRETS)
        self.scalers = Cache(SCALERS)
        self.dependencies.add(Related(SECRETS), self.secrets)
        self.dependencies.add(Related(SCALERS, terms=lambda one: [one["target"]]), self.scalers)
        self.gadgets = Cache(GADGETS)
        self.dependencies.add(
            Related(GADGETS, traits=lambda one: tuple(one["flags"])), self.gadgets
        )

    def found_by(self, api: Resource, term: str) -> list[str]:
        snapshot = CachedSnapshot(
            self.dependencies, "bay", Owned(list, list), datetime(2026, 1, 1, tzinfo=UTC)
        )
        found = [one["metadata"]["name"] for one in snapshot.found(api, term)]
        self.dependencies.read(SHOP, snapshot.asked)
        return found


@pytest.fixture
def caches_() -> DependencyCaches:
    return DependencyCaches()


def test_what_was_asked_for_is_heard_of_when_it_comes_changes_and_goes(
    caches_: DependencyCaches,
) -> None:
    assert caches_.found_by(SECRETS, "key") == []

    caches_.secrets.put(obj("key", 1))
    caches_.secrets.put(obj("key", 2))
    caches_.secrets.put(obj("other", 3))
    caches_.secrets.remove(Key("bay", "key"), 4)

    assert caches_.told == [SHOP] * 3


def test_what_is_no_longer_asked_for_is_forgotten(caches_: DependencyCaches) -> None:
    caches_.found_by(SECRETS, "key")
    caches_.found_by(SECRETS, "other")

    caches_.secrets.put(obj("key", 1))

    assert caches_.told == []


def test_an_object_is_found_by_its_term_and_heard_of_under_the_old_one(
    caches_: DependencyCaches,
) -> None:
    caches_.scalers.put(obj("scaler", 1, target="shop"))
    assert caches_.found_by(SCALERS, "shop") == ["scaler"]

    caches_.scalers.put(obj("scaler", 2, target="till"))

    assert caches_.told == [SHOP]
    assert caches_.found_by(SCALERS, "shop") == []
    assert caches_.found_by(SCALERS, "till") == ["scaler"]


def test_several_readers_of_one_object_all_hear_and_each_can_stop(
    caches_: DependencyCaches,
) -> None:
    readers = [Key("bay", name) for name in ("shop", "stall", "till")]
    asked = [Lookup(SECRETS, "bay", "key")]
    for reader in readers:
        caches_.dependencies.read(reader, asked)
    caches_.secrets.put(obj("key", 1))
    assert caches_.told == readers

    caches_.told.clear()
    caches_.dependencies.read(readers[0], ())
    caches_.secrets.put(obj("key", 2))
    assert caches_.told == readers[1:]

    caches_.told.clear()
    for reader in readers[1:]:
        caches_.dependencies.read(reader, ())
    caches_.secrets.put(obj("key", 3))
    assert caches_.told == []


def test_two_objects_under_one_term_are_found_in_order_until_they_go(
    caches_: DependencyCaches,
) -> None:
    for version, name in enumerate(("b", "a", "c"), 1):
        caches_.scalers.put(obj(name, version, target="shop"))
    assert caches_.found_by(SCALERS, "shop") == ["a", "b", "c"]

    caches_.scalers.put(obj("b", 4, target="shop", size=2))
    assert caches_.found_by(SCALERS, "shop") == ["a", "b", "c"]
    for version, name in enumerate(("a", "c"), 5):
        caches_.scalers.remove(Key("bay", name), version)

    assert caches_.found_by(SCALERS, "shop") == ["b"]
    caches_.scalers.remove(Key("bay", "b"), 7)
    assert caches_.found_by(SCALERS, "shop") == []


def test_kinds_that_read_the_same_share_one_index_and_both_hear() -> None:
    indexes, scalers = DependencyIndexes(), Cache(SCALERS)
    filed: list[str] = []

    def terms(one: Object) -> list[str]:
        filed.append(one["metadata"]["name"])
        return [one["target"]]

    told: list[tuple[str, Key]] = []
    for kind in ("one", "other"):
        dependencies = Dependencies(lambda key, kind=kind: told.append((kind, key)), indexes)  # type: ignore[misc]  # a name for each
        dependencies.add(Related(SCALERS, terms=terms), scalers)
        dependencies.read(SHOP, [Lookup(SCALERS, "bay", "shop")])

    scalers.put(obj("scaler", 1, target="shop"))

    assert filed == ["scaler"]
    assert told == [("one", SHOP), ("other", SHOP)]


def test_a_kind_that_was_not_declared_is_refused(caches_: DependencyCaches) -> None:
    with pytest.raises(Rejected, match="not a related kind: widgets"):
        caches_.found_by(Resource("", "v1", "widgets", "Widget"), "x")


def test_a_trait_finds_all_that_show_it_and_a_name_still_finds_its_own(
    caches_: DependencyCaches,
) -> None:
    for name, flags in (("ann", ["?red"]), ("bea", ["?red", "?blue"]), ("cid", [])):
        caches_.gadgets.put(obj(name, 1, flags=flags))

    assert caches_.found_by(GADGETS, "?red") == ["ann", "bea"]
    assert caches_.found_by(GADGETS, "?blue") == ["bea"]
    assert caches_.found_by(GADGETS, "cid") == ["cid"]


def test_who_asked_for_a_trait_hears_only_when_traits_change(caches_: DependencyCaches) -> None:
    caches_.found_by(GADGETS, "?red")

    caches_.gadgets.put(obj("ann", 1, flags=["?red"]))
    caches_.gadgets.put(obj("ann", 2, flags=["?red"], speed=7))
    assert caches_.told == [SHOP]

    caches_.gadgets.put(obj("ann", 3, flags=["?red", "?blue"]))
    caches_.gadgets.put(obj("ann", 4, flags=["?blue"]))
    caches_.gadgets.put(obj("ann", 5, flags=["?red"]))
    caches_.gadgets.remove(Key("bay", "ann"), 6)

    assert caches_.told == [SHOP] * 5
    assert caches_.found_by(GADGETS, "?red") == []


def test_who_asked_for_a_name_hears_of_each_change(caches_: DependencyCaches) -> None:
    caches_.found_by(GADGETS, "ann")

    caches_.gadgets.put(obj("ann", 1, flags=["?red"]))
    caches_.gadgets.put(obj("ann", 2, flags=["?red"], speed=7))

    assert caches_.told == [SHOP] * 2


def test_a_kind_that_nobody_watches_is_not_served(caches_: DependencyCaches) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    snapshot = CachedSnapshot(caches_.dependencies, "bay", Owned(list, list), at)

    assert snapshot.is_served(SECRETS)
    assert not snapshot.is_served(Resource("", "v1", "widgets", "Widget"))
