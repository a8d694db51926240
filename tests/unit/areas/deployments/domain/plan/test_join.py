"""EvalJoin takes the worst; configuration raises it, only a person lowers it."""

from dataclasses import replace

import pytest

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.change_set import Finding
from fairlead.areas.deployments.domain.plan.join import join, question
from fairlead.areas.deployments.domain.spec import Override, Policy
from tests.unit.areas.deployments.domain.samples import SPEC

FOUND = (Finding(Impact.PARALLEL, ("an index",)), Finding(Impact.BEFORE, ("a queue",)))


@pytest.mark.requirement("deployer P-gap")
def test_the_worst_of_database_and_infrastructure_decides() -> None:
    assert join(SPEC, FOUND) == Finding(Impact.BEFORE, ("an index", "a queue"))
    assert join(SPEC, ()) == Finding(Impact.NOP)


@pytest.mark.requirement("deployer P5")
def test_an_environment_forces_a_class_up_and_never_down() -> None:
    strict = replace(SPEC, policy=Policy(at_least=Impact.DOWNTIME))
    lax = replace(SPEC, policy=Policy(at_least=Impact.PARALLEL))

    assert join(strict, FOUND).impact is Impact.DOWNTIME
    assert join(lax, FOUND).impact is Impact.BEFORE


def test_a_person_may_say_otherwise_and_it_is_told() -> None:
    given = replace(SPEC, override=Override(Impact.NOP, "ann", "the table is empty"))

    found = join(given, FOUND)

    assert found.impact is Impact.NOP
    assert found.reasons[-1] == "ann set NOP instead: the table is empty"


def test_another_class_than_was_approved_is_a_surprise() -> None:
    told = question(replace(SPEC, expects=Impact.NOP), Impact.BEFORE)

    assert told == "NOP was approved, found BEFORE"
    assert not question(replace(SPEC, expects=Impact.BEFORE), Impact.BEFORE)
    assert not question(SPEC, Impact.DOWNTIME)


@pytest.mark.parametrize("migrations", [Impact.PARALLEL, Impact.DOWNTIME])
def test_nobody_skips_pending_migrations_by_an_override(migrations: Impact) -> None:
    given = replace(SPEC, override=Override(Impact.NOP, "ann", "no time"))
    found = (Finding(migrations, ("a column",)),)

    assert join(given, found, migrations).impact is migrations
    asked = question(given, migrations, migrations)
    assert asked == f"NOP would skip pending migrations, found {migrations.value}"
    lower = replace(SPEC, override=Override(Impact.PARALLEL, "ann", "the table is empty"))
    assert join(lower, found, migrations).impact is Impact.PARALLEL
    assert not question(lower, Impact.PARALLEL, migrations)
