"""The commands that take files, with a control plane and without one."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors, values
from fairlead.areas.rollouts.commands import manifest
from fairlead.cli import files
from fairlead.console.files import Document
from tests.unit.cli.conftest import Run
from tests.unit.console.test_remote import Plane, plane

__all__ = ["plane"]
SHOP = """\
name: shop
version: v1
listen: 8080
program: {command: [shop], cwd: /srv}
checks: [{name: a, gate: b}]
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP, encoding="utf-8")
    return file


def whole(file: Path) -> Any:
    declared = manifest.read(json.loads(json.dumps(_content(file))), file.parent)
    return declared.whole


def _content(file: Path) -> Any:
    return Document.read(str(file)).content


def deployed(plane: Plane, **more: Any) -> None:
    told = {"name": "shop", "revision": "r1", "url": "http://x", "receipt": {"events": 2}}
    plane.says("/workloads", told | more)


def test_a_file_to_start_from_is_valid_and_never_overwritten(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"

    first, again = run("init", str(file)), run("init", str(file))

    assert (first.code, again.code) == (0, errors.Conflict.exit_code)
    assert first.err == f"written: {file}; next: fairlead deploy {file} --wait\n"
    assert file.read_text() == manifest.STARTER
    assert run("validate", str(file)).out == f"{file}: valid: shop v1, canary, checks: 2\n"
    assert run("init", str(tmp_path / "none" / "x.yaml")).code == errors.Rejected.exit_code


def test_all_mistakes_of_all_files_are_told(run: Run, shop: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: shop\nlistn: 80\n", encoding="utf-8")

    ran = run("validate", str(shop), str(wrong))
    for_programs = run("validate", str(shop), str(wrong), "-o", "json")

    assert (ran.code, for_programs.code) == (errors.Rejected.exit_code,) * 2
    assert ran.out == f"{shop}: valid: shop v1, canary, checks: 1\n"
    assert f"error: {wrong}:1:1: listen: missing\nhint: add it: it takes a whole number" in ran.err
    assert f"error: {wrong}:2:1: listn: unknown field\nhint: did you mean listen?" in ran.err
    good, bad = json.loads(for_programs.out)
    assert (good["valid"], good["name"], bad["valid"]) == (True, "shop", False)
    assert {"path": "listn", "line": 2, "column": 1}.items() <= bad["problems"][2].items()


def test_a_file_that_is_no_yaml_hides_no_other(run: Run, shop: Path, tmp_path: Path) -> None:
    broken, wrong = tmp_path / "broken.yaml", tmp_path / "wrong.yaml"
    broken.write_text("name: shop\n  x: 1\n", encoding="utf-8")
    wrong.write_text("name: shop\nlistn: 80\n", encoding="utf-8")

    ran = run("validate", str(broken), str(shop), str(wrong))

    assert ran.code == errors.Rejected.exit_code
    assert ran.out == f"{shop}: valid: shop v1, canary, checks: 1\n"
    assert f"error: {broken}:2:4: not YAML or JSON" in ran.err
    assert f"error: {wrong}:2:1: listn: unknown field" in ran.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: enviroment\n", "kind: unknown value: enviroment\nhint: did you mean environment?"),
        (
            "apiVersion: fairlead.dev/v1alpha1\nkind: CanaryDeployment\n",
            "kind: unknown value: CanaryDeployment\nhint: apply it with kubectl; the operator says",
        ),
    ],
)
def test_a_kind_that_no_file_has_is_told_alone(
    run: Run, tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(text, encoding="utf-8")

    ran = run("validate", str(file))

    line = 1 + text.count("\n", 0, text.index("kind"))
    assert ran.code == errors.Rejected.exit_code
    assert ran.err.startswith(f"error: {file}:{line}:1: {told}")
    assert ran.err.count("error:") == 1


def test_a_dry_run_asks_no_server(run: Run, shop: Path) -> None:
    ran = run("deploy", "--dry-run", str(shop))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{shop}: valid: shop v1, canary, checks: 1\n"


def test_a_file_without_checks_is_deployed_with_a_warning(
    run: Run, shop: Path, plane: Plane
) -> None:
    deployed(plane)
    shop.write_text(SHOP.replace("checks:", "# checks:"), encoding="utf-8")

    ran = run("deploy", str(shop))

    assert (ran.code, ran.out) == (0, "shop  r1  http://x  taken\n")
    assert ran.err.startswith("warning: no checks: a new version is rolled back only where")
    assert json.loads(plane.posted[0][1])["name"] == "shop"


def test_what_the_server_refuses_is_told_at_its_line(run: Run, shop: Path, plane: Plane) -> None:
    problem = {"path": "listen", "message": "too low", "hint": "go up"}
    plane.says("/workloads", {"error": {"problems": [problem]}}, 400)

    ran = run("deploy", str(shop))

    assert ran.code == errors.Rejected.exit_code
    assert ran.err == f"error: {shop}:3:1: listen: too low\nhint: go up\n"


def test_without_a_difference_nothing_would_change(run: Run, shop: Path, plane: Plane) -> None:
    plane.says("/workloads/shop", {"name": "shop", "whole": whole(shop)})

    ran = run("diff", str(shop))

    assert (ran.code, ran.out, ran.err) == (0, "", "nothing would change\n")


def test_a_difference_is_shown_line_by_line(run: Run, shop: Path, plane: Plane) -> None:
    plane.says("/workloads/shop", {"name": "shop", "whole": whole(shop)})
    shop.write_text(SHOP.replace("v1", "v2"), encoding="utf-8")

    ran = run("diff", str(shop))
    for_programs = run("diff", str(shop), "-o", "json")

    assert (ran.code, for_programs.code) == (files.DIFFERS, files.DIFFERS)
    assert ran.out.splitlines()[:2] == ["--- deployed", f"+++ {shop}"]
    changed = [line for line in ran.out.splitlines()[2:] if line[0] in "+-"]
    assert changed == ["-version: v1", "+version: v2"]
    assert json.loads(for_programs.out)["after"]["version"] == "v2"


def test_a_secret_in_an_address_is_no_difference_and_is_not_shown(
    run: Run, shop: Path, plane: Plane
) -> None:
    text = SHOP.replace("gate: b", "gate: 'https://gate.example/?token=hunter2'")
    shop.write_text(text, encoding="utf-8")
    shown = json.loads(values.redacted(json.dumps(whole(shop), ensure_ascii=False)))
    plane.says("/workloads/shop", {"name": "shop", "whole": shown})

    same = run("diff", str(shop))
    shop.write_text(text.replace("v1", "v2"), encoding="utf-8")
    other = run("diff", str(shop))

    assert (same.code, same.out) == (0, "")
    assert same.err.endswith("nobody says\nnothing else would change\n")
    assert other.code == files.DIFFERS
    assert "hunter2" not in other.out


def test_what_is_not_deployed_yet_differs_as_a_whole(run: Run, shop: Path, plane: Plane) -> None:
    missing = {"error": {"message": "no such workload", "hint": "deploy it", "code": "not_found"}}
    plane.says("/workloads/shop", missing, 404)

    ran = run("diff", str(shop))

    assert ran.code == files.DIFFERS
    assert "+name: shop" in ran.out


def test_a_timeout_is_for_those_who_wait(run: Run, shop: Path) -> None:
    ran = run("deploy", str(shop), "--timeout", "5m")

    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: --timeout is for --wait")


@pytest.mark.parametrize("text", ["5", "5x", "m", "1h 5m", "-5s", ""])
def test_a_time_to_wait_needs_its_unit(run: Run, shop: Path, text: str) -> None:
    ran = run("deploy", str(shop), "--wait", "--timeout", text)

    assert ran.code == 2
    assert "not a time such as 90s, 10m or 1h" in ran.err
