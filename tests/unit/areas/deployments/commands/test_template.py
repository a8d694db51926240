"""`fairlead template` and `fairlead validate` on the files of deployments."""

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.areas.deployments.specs.files import APP, CLUSTER, ENV
from tests.unit.cli.conftest import Run

KINDS = {"app": "application", "env": "environment", "cluster": "cluster"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    contents = {"app": APP, "env": ENV, "cluster": CLUSTER}
    for name, content in contents.items():
        text = yaml.safe_dump({"kind": KINDS[name], **content}, sort_keys=False)
        (tmp_path / f"{name}.yaml").write_text(text)
    return {name: str(tmp_path / f"{name}.yaml") for name in contents}


def test_the_template_is_printed_the_same_each_time(files: dict[str, str], run: Run) -> None:
    args = ("template", "--app", files["app"], "--env", files["env"], "--cluster", files["cluster"])

    first, second = run(*args), run(*args)

    assert first.code == 0, first.err
    assert first.out == second.out
    assert "WebService" in json.loads(first.out)["Resources"]


def test_without_a_cluster_words_in_capitals_stand_for_it(files: dict[str, str], run: Run) -> None:
    done = run("template", "--app", files["app"], "--env", files["env"])

    service = json.loads(done.out)["Resources"]["WebService"]["Properties"]
    assert service["Cluster"] == "CLUSTER"
    assert "no cluster was named" in done.err


@pytest.mark.parametrize("kind", KINDS)
def test_validate_takes_each_kind(kind: str, files: dict[str, str], run: Run) -> None:
    done = run("validate", files[kind])

    assert done.code == 0, done.err
    assert f"valid: {KINDS[kind]} " in done.out


def test_validate_tells_line_and_field_of_every_mistake(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(
        "kind: application\nname: shop\nruntimes:\n  - name: web\n    containers:\n"
        "      - name: app\n        imag: {}\n    routes:\n      - port: many\n"
    )

    done = run("validate", str(file), "-o", "json")

    problems = json.loads(done.out)[0]["problems"]
    told = {(each["path"], each["line"]) for each in problems}
    assert ("runtimes[0].containers[0].imag", 7) in told
    assert ("runtimes[0].routes[0].port", 9) in told
    assert ("runtimes[0].routes[0].prefix", 9) in told


def test_what_lies_in_files_only_is_not_listed(run: Run) -> None:
    assert run("store", "migrate").code == 0

    done = run("get", "application")

    assert done.code != 0
    assert "lie in files" in done.err
