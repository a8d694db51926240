"""What a cache holds, tells and refuses: it never goes back in time."""

import tracemalloc
from typing import Any

import pytest

from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.objects import Key, Object, Selection
from tests.contract.kubernetes_samples import CONFIG_MAPS, WIDGETS, deployment

A = Key("shop", "a")


def state(version: int, name: str = "a", uid: str = "u1", **meta: Any) -> Object:
    named = {"namespace": "shop", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": {**named, **meta}, "data": {"at": str(version)}}


def child(version: int, name: str, owner: str, uid: str = "parent-uid") -> Object:
    reference = {"kind": "Widget", "name": owner, "uid": uid, "controller": True}
    return state(version, name, uid=f"uid-{name}", ownerReferences=[reference])


@pytest.fixture
def cache() -> Cache:
    return Cache(CONFIG_MAPS)


def at(cache: Cache, key: Key = A) -> str | None:
    found = cache.get(key)
    return None if found is None else str(found["data"]["at"])


def test_readers_get_copies_of_their_own(cache: Cache) -> None:
    cache.put(state(1))

    first = cache.get(A)
    assert first is not None
    first["data"]["at"] = "spoilt"

    assert at(cache) == "1"


def test_managed_fields_are_not_kept_and_the_giver_keeps_its_own(cache: Cache) -> None:
    given = state(1, managedFields=[{"manager": "x"}])

    cache.put(given)

    held = cache.get(A)
    assert held is not None
    assert "managedFields" not in held["metadata"]
    assert given["metadata"]["managedFields"] == [{"manager": "x"}]


def test_an_older_state_is_dropped(cache: Cache) -> None:
    cache.put(state(9))

    assert not cache.put(state(8))
    assert not cache.put(state(9))
    assert at(cache) == "9"


def test_versions_are_compared_as_numbers(cache: Cache) -> None:
    cache.put(state(9))

    assert cache.put(state(10))


def test_an_own_write_is_read_at_once_and_not_undone_by_the_past(cache: Cache) -> None:
    cache.put(state(5))

    cache.wrote(state(8))
    cache.put(state(6))

    assert at(cache) == "8"


def test_the_end_of_a_predecessor_does_not_remove_its_successor(cache: Cache) -> None:
    cache.put(state(5, uid="old"))
    cache.wrote(state(9, uid="new"))

    removed = cache.remove(A, 7)

    assert not removed
    assert at(cache) == "9"


def test_an_own_delete_removes_that_object_only(cache: Cache) -> None:
    cache.put(state(5, uid="new"))

    cache.deleted(A, "old")
    kept = A in cache
    cache.deleted(A, "new")

    assert kept
    assert A not in cache


def test_with_a_selector_an_own_write_waits_for_the_watch() -> None:
    cache = Cache(CONFIG_MAPS, Selection(labels="x=y"))

    cache.wrote(state(8))
    before = A in cache
    cache.put(state(8))

    assert not before
    assert at(cache) == "8"


def test_a_list_removes_what_it_does_not_name_but_not_later_writes(cache: Cache) -> None:
    cache.put(state(5, "kept"))
    cache.put(state(6, "gone"))
    cache.wrote(state(20, "later"))

    cache.keep_only([Key("shop", "kept")], 10)

    assert cache.known() == [Key("shop", "kept"), Key("shop", "later")]


def test_a_restored_cluster_is_believed(cache: Cache) -> None:
    cache.put(state(500))
    cache.progressed(500)

    cache.rewind_to(40)
    cache.put(state(30))
    cache.keep_only([A], 40)

    assert at(cache) == "30"


def test_handlers_hear_keys_of_what_is_new_different_or_gone(cache: Cache) -> None:
    heard: list[Key] = []
    cache.on_change(heard.append)

    cache.put(state(1))
    cache.put(state(1))
    cache.put(state(2))
    cache.remove(A, 3)
    cache.remove(A, 3)

    assert heard == [A, A, A]


def test_owners_hear_of_their_children(cache: Cache) -> None:
    heard: list[Key] = []
    cache.on_child_change("Widget", heard.append)
    cache.on_child_change("Other", lambda key: pytest.fail(f"told of {key}"))

    cache.put(child(1, "a", owner="first"))
    cache.put(child(2, "a", owner="second", uid="second-uid"))
    cache.put(state(3, "stray"))

    first, second = Key("shop", "first"), Key("shop", "second")
    assert heard == [first, first, second]


def test_children_are_found_by_owner(cache: Cache) -> None:
    cache.put(child(1, "b", owner="widget"))
    cache.put(child(2, "a", owner="widget"))
    cache.put(child(3, "c", owner="other", uid="other-uid"))

    names = [obj["metadata"]["name"] for obj in cache.owned_by("parent-uid")]
    cache.put(child(4, "a", owner="other", uid="other-uid"))
    cache.remove(Key("shop", "b"), 5)

    assert names == ["a", "b"]
    assert cache.owned_by("parent-uid") == []
    assert len(cache.owned_by("other-uid")) == 2


def test_keys_are_found_by_namespace(cache: Cache) -> None:
    cache.put(state(1))
    other = state(2)
    other["metadata"]["namespace"] = "other"
    cache.put(other)

    cache.remove(A, 3)

    assert cache.known("shop") == []
    assert cache.known("other") == [Key("other", "a")]


def test_ten_thousand_deployments_stay_small() -> None:
    def one(index: int) -> Object:
        obj = deployment(f"team-{index % 50}", f"web-{index}")
        uid, owner = f"uid-{index:032}", f"owner-{index // 3:032}"
        reference = {"kind": "Widget", "name": f"b{index // 3}", "uid": owner, "controller": True}
        annotations = {"note": "x" * 1500}
        obj["metadata"] |= {"uid": uid, "resourceVersion": str(index + 1)}
        obj["metadata"] |= {"ownerReferences": [reference], "annotations": annotations}
        return obj

    cache = Cache(WIDGETS)
    tracemalloc.start()
    for index in range(10_000):
        cache.put(one(index))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(cache) == 10_000
    # About 2.2 KB of JSON each; the bound of 250 MB is for the whole process.
    assert held < 50 * 2**20
