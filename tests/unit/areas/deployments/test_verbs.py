"""The same verbs straight on a store, as the command line asks for them without a server."""

from pathlib import Path

import pytest

from fairlead import bootstrap, errors
from fairlead.areas.deployments import verbs
from fairlead.areas.deployments.commands import nouns
from fairlead.areas.deployments.domain import declared_verbs, messages
from fairlead.console.nouns import Action
from fairlead.engine.messages import command_id
from tests.engines import state
from tests.unit.areas.deployments.asked import WORDS
from tests.unit.areas.deployments.test_deployment_api import NAME, post
from tests.unit.web import rig


async def test_a_deployment_is_ended_on_the_store_itself(tmp_path: Path) -> None:
    steer = nouns.DEPLOYMENT_NOUN.steer
    assert steer is not None
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        await post(site, WORDS)
        receipt = await steer(site.engine, NAME, Action("abort", "ann", "no"), command_id("a"))
        with pytest.raises(errors.NotFound, match="no such deployment: none"):
            await steer(site.engine, "none", Action("abort", "ann"), command_id("b"))
        found = await state(site.engine, f"deployment/{NAME}")

    assert (receipt.events > 0, found["status"]) == (True, "TERMINATED")


def test_a_verb_becomes_the_command_of_its_machine() -> None:
    assert verbs.command("deployment", "approve", "ann", "") == messages.Approve("ann")
    assert verbs.command("deployment", "abort", "ann", "x") == messages.Terminate("ann", "x")
    assert verbs.command("stack", "retry", "ann", "") == messages.Retry("ann")
    assert verbs.command("stack", "force-available", "ann", "x") == (
        messages.ForceAvailable("ann", "x")
    )


def test_every_declared_verb_is_somebodys() -> None:
    used = {*declared_verbs.REMOVE}.union(*declared_verbs.OF_MACHINES.values())

    assert used == set(declared_verbs.VERBS)
