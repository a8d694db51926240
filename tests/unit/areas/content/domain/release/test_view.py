"""What people see of a release: sentences, the verbs that fit, and who gets what."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content.domain import population
from fairlead.areas.content.domain.release import messages, view
from fairlead.areas.content.domain.release.declared_verbs import VERBS
from fairlead.areas.content.domain.release.place import (
    Flag,
    GitFile,
    KubernetesService,
    LocalService,
    Place,
)
from fairlead.engine.testing import START
from tests.unit.areas.content.domain.release import samples

SENTENCES = {
    "new": "nothing is in progress",
    "clearing": "the share goes to nobody before 1.0.2 is deployed",
    "deploying": "1.0.2 is being deployed, to nobody yet",
    "raising": "the share goes to 10 %",
    "baking": "10 % get 1.0.2",
    "paused": "10 % get 1.0.2; paused: lunch (by rita)",
    "awaiting": "10 % has baked; a person decides",
    "reverting": "everybody returns to 1.0.1: odd archives",
    "restoring": "1.0.1 is being restored: deployment failed: version not found: 1.0.2",
    "settling": "everybody gets 1.0.2; the share goes to nobody",
    "promoted": "everybody gets 1.0.2",
}
OPEN = {
    "new": (),
    "proposed": ("approve", "reject"),
    "deploying": ("abort",),
    "baking": ("pause", "abort"),
    "paused": ("resume", "abort"),
    "awaiting": ("advance", "promote", "pause", "abort"),
    "promoting": (),
    "proposed again": ("approve", "reject", "pause", "abort"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_tells_where_it_stands(name: str) -> None:
    assert view.sentence(samples.states()[name].state) == SENTENCES[name]


@pytest.mark.parametrize("name", OPEN)
def test_only_verbs_that_fit_are_open(name: str) -> None:
    assert view.open_verbs(samples.states()[name].state, START) == OPEN[name]


def test_every_declared_verb_has_its_command() -> None:
    made = {name: type(view.command(name, "ann", "why")).__name__ for name in VERBS}

    assert made == {name: verb.command for name, verb in VERBS.items()}
    assert view.command("approve", "ann", revision="3f2a") == messages.Approve("ann", "3f2a")
    with pytest.raises(errors.Rejected, match="unknown verb"):
        view.command("explode", "ann")


@pytest.mark.parametrize(
    ("source", "more", "told"),
    [
        (
            {"git": "https://me:secret@a.b/c", "tag": "v{version}"},
            {"local": LocalService(8000)},
            "tag v1.0.2 of https://…@a.b/c at any commit (not signed) to port 8000 of this machine",
        ),
        (
            {"directory": "/versions"},
            {"kubernetes": KubernetesService("a", "b", git=GitFile("v.yaml"))},
            "folder /versions/1.0.2 (not signed) to Deployment a/b through v.yaml of branch main",
        ),
        (
            {"archive": "s3://{version}.zip"},
            {"local": LocalService(80), "flag": Flag("f", "a", "stage")},
            "s3://1.0.2.zip (not signed) to port 80 of this machine, its share by flag f in stage",
        ),
    ],
)
def test_a_reviewer_reads_from_where_to_where(
    source: dict[str, str], more: dict[str, Any], told: str
) -> None:
    place = Place({"name": "gathering", "source": source}, **more)

    one = view.summary(samples.proposed(replace(samples.PROPOSE, place=place)).state, START)

    assert one.terms == f"1.0.2 from {told}, in steps of 10 %, 50 %"


def test_an_emergency_is_told_and_its_revision_is_that_of_the_proposal() -> None:
    state = samples.states()["emergency proposed"].state
    one = view.summary(state, START)

    assert "for everybody at once" in one.terms
    assert state.proposal is not None
    assert one.revision == state.proposal.revision
    assert view.summary(samples.baking().state, START).revision == ""


def test_a_summary_tells_proposal_canary_and_outcome() -> None:
    again = view.summary(samples.states()["proposed again"].state, START)
    done = view.summary(samples.states()["promoted"].state, START)

    assert (again.canary, again.share, again.step, again.steps) == ("1.0.2", "10", 1, 2)
    assert (again.proposed, again.proposed_by) == ("1.0.3", "rita")
    assert (done.outcome, done.canary, done.share) == ("1.0.2: Promoted", "", "0")


def test_who_gets_what_by_our_own_share_and_by_a_flag() -> None:
    own = samples.baking().state
    flagged = replace(own, place=replace(samples.PLACE, flag=Flag("gathering")))
    ids = [f"cluster-{number}" for number in range(200)]

    by_own = {each: view.who(own, each).version for each in ids}
    by_flag = {each: view.who(flagged, each).channel for each in ids}

    chosen = population.Population(own.salt, own.asked_share)
    assert by_own == {
        each: "1.0.2" if chosen.channel(each) is population.Channel.CANARY else "1.0.1"
        for each in ids
    }
    assert {each for each in ids if by_flag[each] == "canary"} == {
        each for each in ids if population.bucket("gathering", each) <= 10
    }
    assert view.who(own, "").channel == view.who(flagged, "").channel == "stable"


def test_while_instances_are_replaced_an_answer_is_not_settled() -> None:
    assert not view.who(samples.promoting().state, "a").settled
    assert view.who(samples.states()["promoted"].state, "a").settled
