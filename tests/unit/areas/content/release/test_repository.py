"""The two variables in a file of a repository: found in the forms that people write."""

import pytest
import yaml

from fairlead import errors
from fairlead.areas.content.domain.release.place import Versions
from fairlead.areas.content.release.repository import edited

WANTED = Versions("1.10", "1.11")
DEPLOYMENT = b"""\
spec:  # the service
  containers:
    - name: content
      env:
        - name: STABLE_VERSION
          value: "1.0.1"  # everybody
        - name: OTHER_STABLE_VERSION
          value: kept
        - name: 'CANARY_VERSION'
          value: none
"""


def test_the_entries_of_a_deployment_change_and_nothing_else() -> None:
    then = edited(DEPLOYMENT, WANTED, "")

    assert then == DEPLOYMENT.replace(b'"1.0.1"', b'"1.10"').replace(b"none", b'"1.11"')
    (container,) = yaml.safe_load(then)["spec"]["containers"]
    assert [each["value"] for each in container["env"]] == ["1.10", "kept", "1.11"]
    assert edited(then, WANTED, "") == then


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            b"parameters:\n  STABLE_VERSION: 1.0.1\n  CANARY_VERSION: 'none'\n",
            b"parameters:\n  STABLE_VERSION: \"1.10\"\n  CANARY_VERSION: '1.11'\n",
        ),
        (
            b"CANARY_VERSION=none\nSTABLE_VERSION=1.0.1\n",
            b"CANARY_VERSION=1.11\nSTABLE_VERSION=1.10\n",
        ),
        (
            b"- STABLE_VERSION=1.0.1\n- CANARY_VERSION=none",
            b"- STABLE_VERSION=1.10\n- CANARY_VERSION=1.11",
        ),
    ],
)
def test_pairs_keep_the_way_they_are_written(text: bytes, expected: bytes) -> None:
    assert edited(text, WANTED, "") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "STABLE_VERSION stands 0 times"),
        (DEPLOYMENT + DEPLOYMENT, "STABLE_VERSION stands 2 times"),
        (DEPLOYMENT.replace(b"value: none", b"valueFrom: {}"), "CANARY_VERSION stands 0 times"),
        (b"# STABLE_VERSION: 1.0.1\nCANARY_VERSION: none", "STABLE_VERSION stands 0 times"),
        (b"STABLE_VERSION: {{ version }}\nCANARY_VERSION: none", "STABLE_VERSION stands 0 times"),
    ],
)
def test_where_it_is_not_plain_which_value_is_meant_nothing_is_changed(
    text: bytes, said: str
) -> None:
    with pytest.raises(errors.Rejected, match=said):
        edited(text, WANTED, "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("FAIRLEAD_CONTENT_COMMITS=''\n", "FAIRLEAD_CONTENT_COMMITS='1.10=5f1d 1.11=7e9d'\n"),
        (
            'FAIRLEAD_CONTENT_COMMITS: "1.0.1=0a0b"  # pins\n',
            'FAIRLEAD_CONTENT_COMMITS: "1.10=5f1d 1.11=7e9d"  # pins\n',
        ),
        (
            '- name: FAIRLEAD_CONTENT_COMMITS\n  value: ""\n',
            '- name: FAIRLEAD_CONTENT_COMMITS\n  value: "1.10=5f1d 1.11=7e9d"\n',
        ),
        ("# none\n", "# none\n"),
    ],
)
def test_commits_that_were_approved_are_written_where_there_is_room_for_them(
    before: str, after: str
) -> None:
    text = "STABLE_VERSION=1.10\nCANARY_VERSION=1.11\n"
    pinned = WANTED.pinned({"1.10": "5f1d", "1.11": "7e9d", "1.9": "0a0b"})

    assert edited(f"{text}{before}".encode(), WANTED, pinned).decode() == f"{text}{after}"
