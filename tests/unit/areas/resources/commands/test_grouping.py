"""`fairlead resources import-group` as it is typed: files of all below, which plan to nothing."""

import json
from pathlib import Path

import pytest

from tests.simulated_cloud import SimulatedCloud
from tests.unit.areas.resources.commands.test_reconcile import Type, cloud, run, written
from tests.unit.areas.resources.swagger import SCOPE, Json, operation, ref, swagger

__all__ = ["cloud", "run"]
GROUP = "/subscriptions/s/resourceGroups/g"
NETS = f"{GROUP}/providers/Acme.Toys/nets"
OTHER = "/subscriptions/s/resourceGroups/other/providers/Acme.Toys/nets/far"
TEXT = {"type": "string"}


@pytest.fixture
def nets(run: Type, tmp_path: Path) -> None:
    """Networks, subnets that their networks show too, and one setting of a fixed name."""
    subnet = {"properties": {"id": {**TEXT, "readOnly": True}, "name": TEXT, "prefix": TEXT}}
    net = {"space": TEXT, "phrase": {**TEXT, "x-ms-secret": True}}
    net |= {"subnets": {"type": "array", "items": ref("Subnet")}}
    definitions: Json = {"Net": {"properties": net}, "Subnet": subnet, "Setting": subnet}
    every = {"get": operation(shown={"type": "object"})}

    def one(name: str) -> Json:
        return {"get": operation(shown=ref(name)), "put": operation(ref(name))}

    paths = {
        f"{SCOPE}/nets": every,
        f"{SCOPE}/nets/{{net}}": one("Net"),
        f"{SCOPE}/nets/{{net}}/subnets": every,
        f"{SCOPE}/nets/{{net}}/subnets/{{subnet}}": one("Subnet"),
        f"{SCOPE}/nets/{{net}}/settings/default": one("Setting"),
        "/subscriptions/{sub}/providers/Acme.Toys/plans/{plan}": one("Setting"),
    }
    run(
        "resources",
        "ingest",
        written(tmp_path, "nets.json", json.dumps(swagger(paths, definitions))),
    )


@pytest.mark.requirement("resources R33")
def test_a_group_with_all_below_becomes_files_that_plan_to_nothing(
    nets: None, run: Type, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    subnet = {"name": "a", "prefix": "10.0.1.0/24"}
    cloud.put(f"{NETS}/one/subnets/a", subnet)
    cloud.put(
        f"{NETS}/one",
        {"space": "10.0.0.0/8", "subnets": [{**subnet, "id": f"{NETS}/one/subnets/a"}]},
    )
    cloud.put(f"{NETS}/two", {"space": "11.0.0.0/8", "subnets": []})
    cloud.put(f"{NETS}/two/settings/default", {"prefix": "x"})
    cloud.put(OTHER, {"space": "12.0.0.0/8"})
    folder = tmp_path / "files"

    then = run("resources", "import-group", f"{GROUP}/", str(folder))

    assert then.code == 0, then.err
    made = sorted(each.name for each in folder.iterdir())
    assert made == [
        "acme.toys-nets-one-subnets-a.yaml",
        "acme.toys-nets-one.yaml",
        "acme.toys-nets-two-settings-default.yaml",
        "acme.toys-nets-two.yaml",
    ]
    assert sorted(then.out.splitlines()) == [str(folder / each) for each in made]
    for each in folder.iterdir():
        assert run("resources", "plan", str(each)).out == "nothing to change\n"
    assert "subnets" not in (folder / made[1]).read_text()
    kept = json.loads(run("get", "resources", "-o", "json").out)
    assert [each["phase"] for each in kept] == ["Ready"] * 4
    assert cloud.writes == []

    (folder / made[1]).write_text("mine\n")
    again = run("resources", "import-group", GROUP, str(folder))
    assert (again.code, again.out) == (0, "")
    assert (folder / made[1]).read_text() == "mine\n"


def test_what_needs_a_secret_is_written_and_not_attached_yet(
    nets: None, run: Type, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    cloud.put(f"{NETS}/one", {"space": "10.0.0.0/8", "phrase": "hunter2"})
    folder = tmp_path / "files"

    then = run("resources", "import-group", GROUP, str(folder))

    (made,) = folder.iterdir()
    assert "fromSecret: one-phrase" in made.read_text()
    assert "hunter2" not in made.read_text() + then.out + then.err
    assert "not attached, as a secret is missing: phrase" in then.err
    assert "no database here" in run("get", "resources").err


def test_what_cannot_be_listed_is_told(
    nets: None, run: Type, tmp_path: Path, cloud: SimulatedCloud
) -> None:
    cloud.behaviour.groups = ()

    then = run("resources", "import-group", GROUP, str(tmp_path / "files"))

    assert then.code == 0
    assert f"not listed: {NETS}: ResourceGroupNotFound" in then.err
    assert "resources: 0" in then.err
