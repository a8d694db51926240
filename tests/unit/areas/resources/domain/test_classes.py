"""Each path is in exactly one class, and says where that came from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.areas.resources.domain.classes import CLASSES, Classifier, Methods
from fairlead.areas.resources.domain.schemas import Property

PLAIN = Property("string")


def marked(*words: str) -> Property:
    return Property("string", mutability=frozenset(words))


def one(methods: Methods) -> tuple[str, str, str]:
    (found,) = Classifier().classified(methods, {})
    return found.class_, found.provenance, found.confidence


@pytest.mark.requirement("resources R10", "resources R12", "resources R13")
@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (Methods(get={"a": PLAIN}, put={"a": PLAIN}), ("writable", "difference", "assumed")),
        (Methods(get={"a": PLAIN}), ("read-only", "difference", "likely")),
        (Methods(post={"a": PLAIN}, get={"a": PLAIN}), ("writable", "difference", "assumed")),
    ],
)
def test_methods_are_compared_where_nothing_is_marked(
    methods: Methods, expected: tuple[str, str, str]
) -> None:
    assert one(methods) == expected


@pytest.mark.requirement("resources R12", "resources R13")
def test_what_only_some_methods_have_is_told_from_what_all_have() -> None:
    both, shown, made = {"b": PLAIN}, {"shown": PLAIN}, {"made": PLAIN}
    methods = Methods(
        get={**both, **shown, **made},
        put={**both, "hidden": PLAIN},
        post={**both, **made, "hidden": PLAIN},
        patch=both,
    )

    found = Classifier().classified(methods, {})

    assert {each.path: (each.class_, each.patch) for each in found} == {
        "b": ("writable", True),
        "hidden": ("write-only", False),
        "made": ("create-only", False),
        "shown": ("read-only", False),
    }


@pytest.mark.requirement("resources R10", "resources R34")
@pytest.mark.parametrize(
    ("said", "class_", "provenance"),
    [
        (Property("string", is_read_only=True), "read-only", "readOnly"),
        (Property("string", is_write_only=True), "write-only", "writeOnly"),
        (Property("string", is_secret=True), "write-only", "x-ms-secret"),
        (marked("read"), "read-only", "x-ms-mutability"),
        (marked("create", "read"), "create-only", "x-ms-mutability"),
        (marked("create"), "create-only", "x-ms-mutability"),
        (marked("create", "update"), "write-only", "x-ms-mutability"),
        (marked("update", "read"), "writable", "x-ms-mutability"),
        (marked("create", "read", "update"), "writable", "x-ms-mutability"),
    ],
)
def test_marks_decide_before_methods_are_compared(
    said: Property, class_: str, provenance: str
) -> None:
    then = one(Methods(get={"a": said}, put={"a": said}, patch={"a": said}))

    assert then[:2] == (class_, provenance)


def test_where_it_can_be_written_the_written_schema_says_how() -> None:
    methods = Methods(get={"a": Property("string", is_read_only=True)}, put={"a": PLAIN})

    assert one(methods) == ("writable", "difference", "assumed")


def test_what_patch_marks_is_left_alone_by_patch_only() -> None:
    read_only = {"a": Property("string", is_read_only=True)}
    methods = Methods(get={"a": PLAIN}, put={"a": PLAIN}, patch=read_only)

    (found,) = Classifier().classified(methods, {})

    assert (found.class_, found.patch) == ("writable", False)


def test_an_override_decides_before_all_else() -> None:
    said = {"a": Property("string", is_read_only=True), "b": PLAIN}

    then = Classifier().classified(Methods(get=said, put=said), {"a": "create-only"})

    assert [(each.class_, each.provenance) for each in then] == [
        ("create-only", "override"),
        ("writable", "difference"),
    ]


def test_one_classifier_keeps_resources_with_other_methods_apart() -> None:
    classifier = Classifier()
    said = {"a": PLAIN}

    first = classifier.classified(Methods(post=said, get=said), {})
    second = classifier.classified(Methods(post=said, get=said, put={"b": PLAIN}), {})

    assert first[0].class_ == "writable"
    assert {each.path: each.class_ for each in second}["a"] == "create-only"


@pytest.mark.requirement("resources R10")
@given(
    st.dictionaries(
        st.sampled_from(["get", "put", "post", "patch"]),
        st.dictionaries(
            st.sampled_from("abc"),
            st.sampled_from([PLAIN, Property("string", is_read_only=True), marked("create")]),
        ),
    )
)
def test_every_path_has_exactly_one_class(sides: dict[str, dict[str, Property]]) -> None:
    found = Classifier().classified(Methods(**sides), {})

    paths = [each.path for each in found]
    assert sorted(paths) == sorted({path for side in sides.values() for path in side})
    assert all(each.class_ in CLASSES for each in found)
