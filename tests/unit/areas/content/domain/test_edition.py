"""A version is made whole, or refused with the file and line of all that is wrong."""

import json
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content.domain import edition, gathering, semver
from fairlead.areas.content.domain.edition import Layout
from tests import contents

GATHERING = (
    Layout("v1", gathering.V1_FILE, schema=gathering.V1_SCHEMA, shape=gathering.v1),
    Layout("v2", map=gathering.V2_MAP, schema=gathering.V2_SCHEMA, shape=gathering.v2),
)
MAP = "v2/cluster_version_mapping.json"


def broken(path: str, data: Any) -> dict[str, bytes]:
    raw = data if isinstance(data, bytes) else json.dumps(data, indent=1).encode()
    return {**contents.version_files("1.0.2"), path: raw}


def refused(files: dict[str, bytes], layouts: Any = GATHERING) -> errors.Invalid:
    with pytest.raises(errors.Invalid) as error:
        edition.load("1.0.2", files, layouts)
    return error.value


def test_a_sound_version_has_a_body_for_each_start_of_its_map() -> None:
    made = edition.load("1.0.2", contents.version_files("1.0.2"), GATHERING)

    assert [body.file for body in made.documents["v2"].bodies] == [
        *("v2/empty.json", "v2/experimental.json", "v2/sub/later.json")
    ]
    assert made.documents["v2"].starts[1] == semver.parse("4.17.0-0").key
    assert made.documents["v1"].bodies[0].data.startswith(b'{"version":"1.0.2","rules":[')


@pytest.mark.requirement("content 14")
@pytest.mark.parametrize("depth", range(700, 1100, 20))
def test_what_is_nested_too_deeply_to_be_written_is_refused_with_its_file(depth: int) -> None:
    rules = contents.version_files("1.0.2")["v1/rules.json"]
    deep = rules.replace(b'"alert": {', b'"alert": {"x": ' + b"[" * depth + b"]" * depth + b",")
    assert deep != rules

    assert "v1/rules.json:1:1: n" in str(refused(broken("v1/rules.json", deep)))


@pytest.mark.requirement("content 14")
@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        ("v1/rules.json", b'{"rules": [\n}', "v1/rules.json:2:1: not JSON"),
        ("v1/rules.json", {"rules": []}, "v1/rules.json:1:1: against its schema"),
        ("v2/empty.json", {"version": 1}, "v2/empty.json"),
        (MAP, {}, "not a list of pairs"),
        (MAP, [], "not a list of pairs"),
        (MAP, [["4.0.0"]], f"{MAP}:2:2: [0]: not a version and a file"),
        (MAP, [["4.0", "empty.json"]], "not a semantic version: 4.0"),
        (MAP, [["4.0.0", "../v1/rules.json"]], "outside of the folder: ../v1/rules.json"),
        (MAP, [["4.0.0", "/etc/passwd"]], "outside of the folder: /etc/passwd"),
        (MAP, [["4.0.0", "sub/../empty.json"]], "outside of the folder"),
        (MAP, [["4.0.0", "gone.json"]], "the file that it names is missing: v2/gone.json"),
        (MAP, [["4.1.0", "empty.json"], ["4.0.0", "empty.json"]], "[1][0]: not in rising order"),
        (MAP, [["4.0.0", "empty.json"], ["4.0.0", "empty.json"]], "[1][0]: not in rising order"),
    ],
)
def test_any_fault_in_a_file_refuses_the_version(path: str, data: Any, said: str) -> None:
    assert said in str(refused(broken(path, data)))


@pytest.mark.requirement("content 14")
def test_a_missing_file_is_named() -> None:
    files = contents.version_files("1.0.2")
    del files["v1/rules.json"]

    assert str(refused(files)) == "v1/rules.json: missing"


@pytest.mark.requirement("content 17")
def test_a_version_inside_that_is_another_is_refused_at_its_line() -> None:
    then = refused(contents.version_files("1.0.1"))

    assert "v1/rules.json:20:13: version: the content says version '1.0.1', not '1.0.2'" in str(
        then
    )
    assert {each.file for each in then.problems} == {
        *("v1/rules.json", "v2/empty.json", "v2/experimental.json", "v2/sub/later.json")
    }


def test_all_faults_are_told_at_once() -> None:
    files = {**broken("v1/rules.json", b"nope"), "v2/empty.json": b"nope"}

    assert [each.file for each in refused(files).problems] == ["v1/rules.json", "v2/empty.json"]


def test_a_content_of_any_owner_brings_its_own_schema() -> None:
    layouts = (Layout("", "limits.json", schema_file="schema.json"),)
    schema = {"type": "object", "properties": {"most": {"type": "integer"}}}
    files = {
        "limits.json": b'{ "version": "1.0.2", "most": 5 }\n',
        "schema.json": json.dumps(schema).encode(),
    }

    made = edition.load("1.0.2", files, layouts)

    assert made.documents[""].bodies[0].data == files["limits.json"]
    worse = {**files, "limits.json": b'{"version": "1.0.2",\n "most": "x"}'}
    assert "limits.json:2:10: most: against its schema" in str(refused(worse, layouts))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "nonsense"}, "not a JSON Schema"),
        ({"$ref": "http://127.0.0.1:9/x"}, "refers to what is not there"),
    ],
)
def test_a_schema_that_is_none_or_lies_elsewhere_is_refused(schema: Any, said: str) -> None:
    layouts = (Layout("", "limits.json", schema_file="schema.json"),)
    files = {"limits.json": b'{"version": "1.0.2"}', "schema.json": json.dumps(schema).encode()}

    assert said in str(refused(files, layouts))
