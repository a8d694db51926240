"""What docs/explanation/resources.md shows is typed here, line by line, and must say the same."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.resources import descriptions
from fairlead.areas.resources.domain.reading import ResourceType
from tests.architecture.sources import ROOT
from tests.simulated_cloud import SimulatedCloud
from tests.unit.areas.resources import swagger
from tests.unit.areas.resources.commands.test_reconcile import Type, cloud, run, written
from tests.unit.areas.resources.domain.scale_set import DEFINITIONS
from tests.unit.areas.resources.swagger import AZURE, needs_azure

__all__ = ["cloud", "run"]
PAGE = (ROOT / "docs" / "explanation" / "resources.md").read_text("utf-8")
EXAMPLE = re.compile(r"<!-- example: (\w+) -->\n```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
WEB = re.findall(r"resourceId: (\S+)", PAGE)[0]
SCALE_SETS = f"{WEB.rpartition('/')[0]}/{{name}}".replace("0000", "{subscription}")


def described(tmp_path: Path, *, patch: bool) -> str:
    """Its type, in a description of our own."""
    verbs = {
        "get": swagger.operation(shown=swagger.ref("Set")),
        "put": swagger.operation(swagger.ref("Set"), swagger.ref("Set")),
    }
    verbs |= {"patch": swagger.operation(swagger.ref("SetUpdate"))} if patch else {}
    url = SCALE_SETS.replace("/shop/", "/{group}/")
    return written(tmp_path, "vmss.json", json.dumps(swagger.swagger({url: verbs}, DEFINITIONS)))


def asked_of_the_cloud(cloud: SimulatedCloud, words: list[str]) -> str:
    """`az vmss`: what others do with the scale set, and see of it."""
    shown = cloud.shown(WEB)
    assert shown is not None
    if "show" in words:
        return f"{shown['sku']['capacity']}\n"
    sku: dict[str, Any] = {**shown["sku"], "capacity": int(words[-1])}
    cloud.put(WEB, {**cloud.stored[WEB.lower()].body, "sku": sku})
    return ""


@pytest.mark.requirement("resources R17", "resources R18", "resources R19", "resources R31")
@pytest.mark.parametrize("patch", [True, False], ids=["PATCH", "PUT"])
def test_the_story_of_the_scale_set_goes_as_the_page_tells_it(
    run: Type,
    tmp_path: Path,
    cloud: SimulatedCloud,
    monkeypatch: pytest.MonkeyPatch,
    *,
    patch: bool,
) -> None:
    cloud.behaviour.groups = ("shop",)
    monkeypatch.chdir(tmp_path)
    run("resources", "ingest", described(tmp_path, patch=patch))
    (_, file), *stories = EXAMPLE.findall(PAGE)
    written(tmp_path, "web.yaml", file)

    for line in "".join(text for _, text in stories).split("$ ")[1:]:
        command, _, told = line.partition("\n")
        program, *words = shlex.split(command)
        match program:
            case "fairlead":
                said = run(*words).out
            case "az":
                said = asked_of_the_cloud(cloud, words)
            case _:
                said = subprocess.run(
                    [program, *words], check=True, capture_output=True
                ).stdout.decode()

        expected = told if patch else told.replace("PATCH", "PUT")
        assert said == expected, command
    assert len(stories) == 3
    assert [method for method, _, _ in cloud.writes] == ["PUT", *["PATCH" if patch else "PUT"] * 2]


@needs_azure
def test_the_figures_of_the_page_are_those_of_the_descriptions() -> None:
    types = [*descriptions.read(AZURE, descriptions.files([AZURE]), {})]
    patchable = [each for each in types if "PATCH" in each.verbs]
    read_only = [said for each in types for said in each.properties if said.class_ == "read-only"]

    def takes_tags_only(each: ResourceType) -> bool:
        return {said.path.partition(".")[0] for said in each.properties if said.patch} == {"tags"}

    def takes_everything(each: ResourceType) -> bool:
        written = ("writable", "write-only")
        return all(said.patch for said in each.properties if said.class_ in written)

    counts = (
        sum("PUT" in each.verbs and not each.create for each in types),
        len(patchable),
        sum(map(takes_tags_only, patchable)),
        sum(map(takes_everything, patchable)),
        sum(any(said.path == "etag" for said in each.properties) for each in types),
        sum("PUT" in each.lro for each in types),
    )
    assert [int(each) for each in re.findall(r"^\|.*\| (\d+) \|$", PAGE, re.MULTILINE)] == [*counts]
    assert f"{len(read_only):,} read-only" in " ".join(PAGE.split())
    assert sum(said.provenance == "difference" for said in read_only) == 1
