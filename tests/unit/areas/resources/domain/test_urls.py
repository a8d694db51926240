"""The tree of URLs, and the types that they name."""

import itertools
import random

import pytest

from fairlead.areas.resources.domain import urls

NETWORKS = "/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.Network/virtualNetworks"
STORAGE = "/subscriptions/{s}/resourceGroups/{g}/providers/Microsoft.Storage/storageAccounts"
SOME = [
    f"{NETWORKS}/{{network}}",
    f"{NETWORKS}/{{n}}/subnets",
    f"{NETWORKS}/{{n}}/subnets/{{subnet}}",
    f"{NETWORKS}/{{n}}/subnets/{{subnet}}/PrepareNetworkPolicies",
    f"{STORAGE}/{{a}}",
    f"{STORAGE}/{{a}}/blobServices",
    f"{STORAGE}/{{a}}/blobServices/{{service}}",
    f"{STORAGE}/{{a}}/blobServices/default/containers/{{container}}",
]


@pytest.mark.requirement("resources R6", "resources R7")
def test_every_url_stands_below_the_deepest_that_is_its_beginning() -> None:
    then = urls.tree(SOME)

    assert {url: node.parent for url, node in then.items()} == {
        SOME[0]: None,
        SOME[1]: SOME[0],
        SOME[2]: SOME[1],
        SOME[3]: SOME[2],
        SOME[4]: None,
        SOME[5]: SOME[4],
        SOME[6]: SOME[5],
        SOME[7]: SOME[6],
    }
    assert [url for url, node in then.items() if node.is_child] == [SOME[1], SOME[3], SOME[5]]


@pytest.mark.requirement("resources R6")
def test_the_order_of_the_input_does_not_matter() -> None:
    shuffled = SOME.copy()
    for seed in range(20):
        random.Random(seed).shuffle(shuffled)

        assert list(urls.tree(shuffled).items()) == list(urls.tree(SOME).items())


@pytest.mark.requirement("resources R6")
def test_names_of_parameters_and_a_last_slash_make_no_difference() -> None:
    for same in itertools.permutations(["/toys/{a}", "/toys/{b}/"]):
        assert list(urls.tree(same)) == ["/toys/{a}"]


@pytest.mark.requirement("resources R6")
def test_a_bracket_begins_a_part_as_a_slash_does() -> None:
    then = urls.tree(["/items", "/items({id})", "/items({id})/lines"])

    assert [node.parent for node in then.values()] == [None, "/items", "/items({id})"]


def test_a_word_that_begins_alike_is_no_parent() -> None:
    assert urls.tree(["/toys/{a}", "/toyshops/{a}"])["/toyshops/{a}"].parent is None


@pytest.mark.parametrize(
    ("url", "type_"),
    [
        (SOME[2], "Microsoft.Network/virtualNetworks/subnets"),
        (SOME[7], "Microsoft.Storage/storageAccounts/blobServices/containers"),
        ("/{scope}/providers/Microsoft.Authorization/locks/{l}", "Microsoft.Authorization/locks"),
        (f"{SOME[0]}/providers/Acme.Watch/alerts/{{a}}", "Acme.Watch/alerts"),
        ("/subscriptions/{s}/resourcegroups/{g}", "Microsoft.Resources/resourceGroups"),
        ("/subscriptions/{s}", "Microsoft.Resources/subscriptions"),
        ("/pets/{pet}/toys/{toy}", "pets/toys"),
    ],
)
def test_a_url_names_its_type(url: str, type_: str) -> None:
    assert urls.type_of(url) == type_


def test_a_collection_is_what_stands_before_the_last_parameter() -> None:
    assert urls.collection("/pets/{pet}/") == "/pets"
    assert urls.collection("/pets/{pet}/toys") is None


@pytest.mark.parametrize(
    ("id_", "fits"),
    [
        ("/subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots/r2", True),
        ("/SUBSCRIPTIONS/s/resourcegroups/g/providers/acme.toys/robots/R2", True),
        ("/subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots", False),
        ("/subscriptions/s/resourceGroups/g/providers/Acme.Toys/others/r2", False),
        ("/subscriptions/s/resourceGroups/../providers/Acme.Toys/robots/r2", False),
        ("/subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots/r2?x=1", False),
        ("/subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots/%2e%2e", False),
        ("subscriptions/s/resourceGroups/g/providers/Acme.Toys/robots/r2", False),
        ("/subscriptions//resourceGroups/g/providers/Acme.Toys/robots/r2", False),
    ],
)
def test_an_id_names_this_resource_and_asks_for_nothing_else(id_: str, *, fits: bool) -> None:
    template = "/subscriptions/{s}/resourceGroups/{g}/providers/Acme.Toys/robots/{name}"

    assert urls.fits(template, id_) is fits
