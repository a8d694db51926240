"""`fairlead operator` before it has a cluster: what it says when it cannot begin."""

import pytest

from fairlead import bootstrap, errors
from fairlead.cli import app
from fairlead.cli.surroundings import Surroundings
from tests.operator.flotilla import KIND
from tests.unit.cli.conftest import Run


def test_an_installation_without_kinds_says_so(run: Run) -> None:
    ran = run("operator")

    assert ran.code == errors.Rejected.exit_code
    assert "error: this installation has no kind of Kubernetes object\nhint: " in ran.err


@pytest.mark.usefixtures("state_dir")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "not inside a cluster"),
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
    cast = Surroundings(cast=lambda: bootstrap.Cast(kinds=[KIND]))

    code = app.run(["operator", *arguments], cast)

    assert code == errors.Rejected.exit_code
    assert said in capsys.readouterr().err
