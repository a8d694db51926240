"""Who hears of whom: an object hears of what it asked for, by name or by another term."""

from datetime import UTC, datetime

import pytest

from fairlead.adapters.kubernetes import rights
from fairlead.adapters.kubernetes.cache import Cache
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.adapters.kubernetes.relations import Asked, Owned, Relations, Shelves, Surroundings
from fairlead.errors import Rejected
from fairlead.intents.kubernetes import Api, Related

SECRETS = Api("", "v1", "secrets", "Secret")
SCALERS = Api("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
SHIPS = Api("", "v1", "ships", "Ship")
SHOP = Key("bay", "shop")


def obj(name: str, version: int, **fields: object) -> Object:
    meta = {"namespace": "bay", "name": name, "uid": name, "resourceVersion": str(version)}
    return {"metadata": meta, **fields}


class Scene:
    """Related kinds, found by name, by target or by name and flags, and who was told."""

    def __init__(self) -> None:
        self.told: list[Key] = []
        self.relations = Relations(self.told.append)
        self.secrets = Cache(rights.resource(SECRETS))
        self.scalers = Cache(rights.resource(SCALERS))
        self.relations.add(Related(SECRETS), self.secrets)
        self.relations.add(Related(SCALERS, terms=lambda one: [one["target"]]), self.scalers)
        self.ships = Cache(rights.resource(SHIPS))
        self.relations.add(Related(SHIPS, traits=lambda one: tuple(one["flags"])), self.ships)

    def look(self, api: Api, term: str) -> list[str]:
        around = Surroundings(
            self.relations, "bay", Owned(list, list), datetime(2026, 1, 1, tzinfo=UTC)
        )
        found = [one["metadata"]["name"] for one in around.found(api, term)]
        self.relations.read(SHOP, around.asked)
        return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_what_was_asked_for_is_heard_of_when_it_comes_changes_and_goes(scene: Scene) -> None:
    assert scene.look(SECRETS, "key") == []

    scene.secrets.put(obj("key", 1))
    scene.secrets.put(obj("key", 2))
    scene.secrets.put(obj("other", 3))
    scene.secrets.remove(Key("bay", "key"), 4)

    assert scene.told == [SHOP] * 3


def test_what_is_no_longer_asked_for_is_forgotten(scene: Scene) -> None:
    scene.look(SECRETS, "key")
    scene.look(SECRETS, "other")

    scene.secrets.put(obj("key", 1))

    assert scene.told == []


def test_an_object_is_found_by_its_term_and_heard_of_under_the_old_one(scene: Scene) -> None:
    scene.scalers.put(obj("scaler", 1, target="shop"))
    assert scene.look(SCALERS, "shop") == ["scaler"]

    scene.scalers.put(obj("scaler", 2, target="till"))

    assert scene.told == [SHOP]
    assert scene.look(SCALERS, "shop") == []
    assert scene.look(SCALERS, "till") == ["scaler"]


def test_several_readers_of_one_object_all_hear_and_each_can_stop(scene: Scene) -> None:
    readers = [Key("bay", name) for name in ("shop", "stall", "till")]
    asked = [Asked(SECRETS, "bay", "key")]
    for reader in readers:
        scene.relations.read(reader, asked)
    scene.secrets.put(obj("key", 1))
    assert scene.told == readers

    scene.told.clear()
    scene.relations.read(readers[0], ())
    scene.secrets.put(obj("key", 2))
    assert scene.told == readers[1:]

    scene.told.clear()
    for reader in readers[1:]:
        scene.relations.read(reader, ())
    scene.secrets.put(obj("key", 3))
    assert scene.told == []


def test_two_objects_under_one_term_are_found_in_order_until_they_go(scene: Scene) -> None:
    for version, name in enumerate(("b", "a", "c"), 1):
        scene.scalers.put(obj(name, version, target="shop"))
    assert scene.look(SCALERS, "shop") == ["a", "b", "c"]

    scene.scalers.put(obj("b", 4, target="shop", size=2))
    assert scene.look(SCALERS, "shop") == ["a", "b", "c"]
    for version, name in enumerate(("a", "c"), 5):
        scene.scalers.remove(Key("bay", name), version)

    assert scene.look(SCALERS, "shop") == ["b"]
    scene.scalers.remove(Key("bay", "b"), 7)
    assert scene.look(SCALERS, "shop") == []


def test_kinds_that_read_the_same_share_one_shelf_and_both_hear() -> None:
    shelves, scalers = Shelves(), Cache(rights.resource(SCALERS))
    filed: list[str] = []

    def terms(one: Object) -> list[str]:
        filed.append(one["metadata"]["name"])
        return [one["target"]]

    told: list[tuple[str, Key]] = []
    for kind in ("one", "other"):
        relations = Relations(lambda key, kind=kind: told.append((kind, key)), shelves)  # type: ignore[misc]  # a name for each
        relations.add(Related(SCALERS, terms=terms), scalers)
        relations.read(SHOP, [Asked(SCALERS, "bay", "shop")])

    scalers.put(obj("scaler", 1, target="shop"))

    assert filed == ["scaler"]
    assert told == [("one", SHOP), ("other", SHOP)]


def test_a_kind_that_was_not_declared_is_refused(scene: Scene) -> None:
    with pytest.raises(Rejected, match="not a related kind: boats"):
        scene.look(Api("", "v1", "boats", "Boat"), "x")


def test_a_trait_finds_all_that_show_it_and_a_name_still_finds_its_own(scene: Scene) -> None:
    for name, flags in (("ann", ["?red"]), ("bea", ["?red", "?blue"]), ("cid", [])):
        scene.ships.put(obj(name, 1, flags=flags))

    assert scene.look(SHIPS, "?red") == ["ann", "bea"]
    assert scene.look(SHIPS, "?blue") == ["bea"]
    assert scene.look(SHIPS, "cid") == ["cid"]


def test_who_asked_for_a_trait_hears_only_when_traits_change(scene: Scene) -> None:
    scene.look(SHIPS, "?red")

    scene.ships.put(obj("ann", 1, flags=["?red"]))
    scene.ships.put(obj("ann", 2, flags=["?red"], speed=7))
    assert scene.told == [SHOP]

    scene.ships.put(obj("ann", 3, flags=["?red", "?blue"]))
    scene.ships.put(obj("ann", 4, flags=["?blue"]))
    scene.ships.put(obj("ann", 5, flags=["?red"]))
    scene.ships.remove(Key("bay", "ann"), 6)

    assert scene.told == [SHOP] * 5
    assert scene.look(SHIPS, "?red") == []


def test_who_asked_for_a_name_hears_of_each_change(scene: Scene) -> None:
    scene.look(SHIPS, "ann")

    scene.ships.put(obj("ann", 1, flags=["?red"]))
    scene.ships.put(obj("ann", 2, flags=["?red"], speed=7))

    assert scene.told == [SHOP] * 2


def test_a_kind_that_nobody_watches_is_not_served(scene: Scene) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    around = Surroundings(scene.relations, "bay", Owned(list, list), at)

    assert around.is_served(SECRETS)
    assert not around.is_served(Api("", "v1", "boats", "Boat"))
