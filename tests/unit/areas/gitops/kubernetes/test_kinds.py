"""The document's kind: its fields, its admission, and what it forwards."""

from typing import Any

import pytest

from fairlead.areas.gitops.domain import messages
from fairlead.areas.gitops.kubernetes import kinds
from fairlead.kubernetes import rbac
from fairlead.kubernetes.kinds import InvalidSpec
from tests.unit.areas.gitops.rig import deployment

WHERE = "https://git.example/shop.git"


def made(**spec: Any) -> dict[str, Any]:
    obj = deployment(WHERE, **spec)
    return {**obj, "metadata": {**obj["metadata"], "uid": "uid", "generation": 3}}


def test_the_definition_has_the_documents_names_and_fields() -> None:
    found = rbac.definition(kinds.KIND)

    (version,) = found["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    spec, status = properties["spec"], properties["status"]["properties"]
    assert found["metadata"]["name"] == "gitopsdeployments.managed-gitops.redhat.com"
    assert version["name"] == "v1alpha1"
    assert set(spec["required"]) == {"source", "type"}
    assert set(spec["properties"]["source"]["properties"]) == {"repoURL", "path", "targetRevision"}
    assert set(spec["properties"]["destination"]["properties"]) == {"environment", "namespace"}
    assert spec["properties"]["type"]["enum"] == ["automated", "manual"]
    assert {
        "conditions",
        "sync",
        "health",
        "resources",
        "reconciledState",
        "operationState",
    } <= set(status)


def test_the_controller_forwards_what_the_object_says() -> None:
    obj = made(type="manual", source={"targetRevision": "main"}, syncPolicy={"syncOptions": ["x"]})

    found = kinds.observe(obj, Any)  # type: ignore[arg-type]  # it reads no snapshot

    (level,) = found.levels.values()
    intent = messages.Intent(WHERE, "deploy", "main", sync_options=("x",), type="manual")
    assert level.command == messages.Declare(kinds.KIND.subject(obj), 3, intent)


def test_a_spec_that_no_definition_lets_in_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="spec"):
        kinds.intent(made(source={"path": 7}))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"source": {"path": "/"}}, "spec.source.path"),
        ({"type": "often"}, "spec"),
        ({"destination": {"namespace": "kube-system"}}, "spec.destination.environment"),
        ({"syncPolicy": {"syncOptions": ["Prune=true"]}}, "spec.syncPolicy.syncOptions"),
    ],
)
def test_admission_names_the_field(spec: dict[str, Any], path: str) -> None:
    assert [at for at, _ in kinds.review(made(**spec), None)] == [path]


def test_an_annotation_asks_for_a_sync_until_the_status_names_it() -> None:
    obj = made()
    obj["metadata"]["annotations"] = {kinds.SYNC: "1"}

    asked = kinds.observe(obj, Any).requests  # type: ignore[arg-type]  # it reads no snapshot
    obj["status"] = {"requests": {"sync": "1"}}
    done = kinds.observe(obj, Any).requests  # type: ignore[arg-type]  # it reads no snapshot

    assert (asked["sync"].command, done) == (messages.Sync("1"), {})


def test_a_status_tells_an_empty_store_what_was_deployed() -> None:
    one = {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
        "name": "web",
        "status": "Synced",
    }

    found = kinds.adopt({**made(), "status": {"round": 9, "resources": [one, "broken"]}})

    assert found == messages.Adopt(9, (messages.ObjectRef("apps", "v1", "Deployment", "web"),))
    assert kinds.adopt(made()) is None


def test_an_object_that_is_gone_is_deleted_by_the_stream_alone() -> None:
    assert kinds.delete(None) == messages.Delete(None)
    assert kinds.delete(made()).subject == kinds.KIND.subject(made())
