"""Which intents are work, and which are refused with the field that is wrong."""

import dataclasses
from typing import Any

import pytest

from fairlead.areas.gitops.domain import valid_work
from fairlead.areas.gitops.domain.messages import Intent

FINE = Intent("https://git.example/shop.git", "deploy")
SOURCE = "spec.source"


def at(**changed: Any) -> list[str]:
    found = valid_work.problems(dataclasses.replace(FINE, **changed))
    return [path for path, _ in found]


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"path": "."},
        {"path": "./a/b"},
        {"target_revision": "release/1.2"},
        {"type": "manual"},
        {"sync_options": ("CreateNamespace=true",)},
        {"environment": "prod", "namespace": "shop"},
        {"repo_url": "http://Git.example:8080/Shop"},
    ],
)
def test_these_are_work(changed: dict[str, Any]) -> None:
    assert at(**changed) == []


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"path": ""}, f"{SOURCE}.path"),
        ({"path": "/"}, f"{SOURCE}.path"),
        ({"path": "/etc"}, f"{SOURCE}.path"),
        ({"path": "a/../../b"}, f"{SOURCE}.path"),
        ({"path": "a\nb"}, f"{SOURCE}.path"),
        ({"repo_url": "/srv/git/shop"}, f"{SOURCE}.repoURL"),
        ({"repo_url": "file:///srv/git/shop"}, f"{SOURCE}.repoURL"),
        ({"repo_url": "https://me:secret@git.example/shop"}, f"{SOURCE}.repoURL"),
        ({"repo_url": "https://[git.example/shop"}, f"{SOURCE}.repoURL"),
        ({"repo_url": "https://git.example/a b"}, f"{SOURCE}.repoURL"),
        ({"target_revision": "--upload-pack=x"}, f"{SOURCE}.targetRevision"),
        ({"target_revision": "a..b"}, f"{SOURCE}.targetRevision"),
        ({"type": "often"}, "spec.type"),
        ({"sync_options": ("Prune=true",)}, "spec.syncPolicy.syncOptions"),
        ({"namespace": "kube-system"}, "spec.destination.environment"),
    ],
)
def test_these_are_refused_and_nothing_is_stripped(changed: dict[str, Any], path: str) -> None:
    assert at(**changed) == [path]


def test_what_is_not_served_yet_is_said() -> None:
    found = valid_work.unserved(dataclasses.replace(FINE, environment="prod"))

    assert [reason for _, reason in found] == ["managed environments are not served yet"]
