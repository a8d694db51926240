"""`fairlead operator` before it has a cluster: what it says when it cannot begin."""

import pytest

from fairlead import bootstrap, errors
from fairlead.cli import app
from fairlead.console.context import CliContext
from tests.operator.sample_kind import KIND


@pytest.mark.usefixtures("state_dir")
def test_an_installation_without_kinds_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code = app.run(["operator"], CliContext(installation=bootstrap.Installation))

    assert code == errors.Rejected.exit_code
    said = capsys.readouterr().err
    assert "error: this installation has no kind of Kubernetes object\nhint: " in said


@pytest.mark.usefixtures("state_dir")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "home/.kube/config\nhint: set KUBECONFIG to one, give --kubeconfig, or run in a pod"),
        (("--kubeconfig", "nowhere"), "no kubeconfig there: nowhere"),
    ],
    ids=["no-cluster", "no-file"],
)
def test_an_operator_without_a_cluster_says_so(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", "home")
    cast = CliContext(installation=lambda: bootstrap.Installation(kinds=[KIND]))

    code = app.run(["operator", *arguments], cast)

    assert code == errors.Rejected.exit_code
    assert said in capsys.readouterr().err
