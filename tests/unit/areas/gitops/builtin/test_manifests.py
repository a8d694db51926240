"""What of a repository becomes an object, and what is refused before anything is applied."""

import pytest

from fairlead import errors
from fairlead.areas.gitops.builtin import manifests
from tests.unit.areas.gitops.rig import config_map

TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - the type of a Secret, no secret


def parsed(text: str | bytes) -> list[tuple[str, str]]:
    data = text.encode() if isinstance(text, str) else text
    found = manifests.parsed([("app.yaml", data)], "team-a")
    return [(each.ref.kind, each.ref.name) for each in found]


def test_documents_and_lists_become_objects_of_the_namespace_in_an_order_of_kinds() -> None:
    web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    item = "{apiVersion: v1, kind: Secret, metadata: {name: s}}"
    listed = f"kind: List\napiVersion: v1\nitems:\n- {item}\n"
    text = f"# first\n---\n{web}--- # second\n{config_map('a').decode()}---\n{listed}---\n"

    found = manifests.parsed([("app.yaml", text.encode())], "team-a")

    assert [each.ref.kind for each in found] == ["Secret", "ConfigMap", "Deployment"]
    assert {each.body["metadata"]["namespace"] for each in found} == {"team-a"}


def test_a_line_of_dashes_in_a_text_is_no_new_document() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  note: |\n    ---\n    b\n"
    )

    assert parsed(text) == [("ConfigMap", "a")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: mine}", "kind that is not served"),
        (
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}",
            "not served",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-system}",
            "another namespace",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../a}",
            "no name that Kubernetes takes",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}", "no name"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, uid: x}", "sets metadata.uid"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, ownerReferences: []}",
            "ownerReferences",
        ),
        (
            f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ntype: {TOKEN}",
            "token",
        ),
        ("apiVersion: v1?dryRun=All\nkind: ConfigMap\nmetadata: {name: a}", "not served"),
        ("apiVersion: apps/..\nkind: Deployment\nmetadata: {name: a}", "not served"),
        ("- a\n- b", "not an object of Kubernetes"),
        ("kind: ConfigMap", "not an object of Kubernetes"),
        ("a: [", "not YAML or JSON"),
        ("a: 1\na: 2", "given twice"),
    ],
)
def test_what_reaches_beyond_its_namespace_or_makes_no_sense_is_refused(
    text: str, why: str
) -> None:
    with pytest.raises(errors.Rejected, match=why):
        parsed(text)


def test_a_bomb_of_aliases_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
    )

    with pytest.raises(errors.Rejected, match="more than 100000 parts"):
        parsed(bomb)


def test_an_object_that_is_there_twice_is_refused() -> None:
    twice = config_map("a") + b"---\n" + config_map("a")

    with pytest.raises(errors.Rejected, match="in the folder twice"):
        parsed(twice)


def test_five_thousand_objects_in_one_file_are_refused() -> None:
    many = b"---\n".join(config_map(f"a{number}") for number in range(5000))

    with pytest.raises(errors.Rejected, match="more than 1000 objects"):
        parsed(many)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(errors.Rejected, match="not a text in UTF-8"):
        parsed(b"\xff\xfe")


@pytest.mark.parametrize("name", ["kustomization.yaml", "Chart.yaml"])
def test_a_folder_for_a_renderer_is_refused_and_not_half_applied(name: str) -> None:
    with pytest.raises(errors.Rejected, match="not rendered yet"):
        manifests.check_names(["app.yaml", name])
