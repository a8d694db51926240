"""The document's plans, step by step, and what flags make of them."""

import itertools
from collections.abc import Callable, Iterable

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.build import build, notes
from fairlead.areas.deployments.domain.plan.graph import Step, check_steps
from fairlead.areas.deployments.domain.plan.steps import Observation
from fairlead.areas.deployments.domain.spec import Database, DeploymentSpec, Flag
from tests.unit.areas.deployments.domain.samples import BARE, SPEC, TWO, flagged

HERE, MISSING = Observation(exists=True), Observation(exists=False)
NOTHING_PENDING = Observation(exists=True, pending={"orders": 0})


def drawn(steps: Iterable[Step]) -> dict[str, str]:
    """Each step with what it waits for."""
    return {step.name: " ".join(step.depends_on) for step in steps}


@pytest.mark.requirement("deployer P1")
def test_quick_with_nothing_to_migrate_is_one_step() -> None:
    for spec, observed in (
        (flagged(Flag.QUICK, spec=BARE), HERE),
        (flagged(Flag.QUICK), NOTHING_PENDING),
        (flagged(Flag.QUICK, Flag.SEQUENTIAL), HERE),
    ):
        assert drawn(build(spec, observed).steps) == {"CFUpsert": ""}


@pytest.mark.requirement("deployer P2")
def test_full_without_evaluation_is_a_line() -> None:
    plan = build(flagged(Flag.SEQUENTIAL), HERE)

    assert drawn(plan.steps) == {
        "ScaleDown": "",
        "InfraMigrate": "ScaleDown",
        "PGMigrate": "InfraMigrate",
        "ScaleUp": "PGMigrate",
    }
    # One step stands for upsert, clean-up, run and clean-up.
    assert plan.steps[2].words["whole"] is True


@pytest.mark.requirement("deployer P3")
def test_quick_migrates_beside_the_infrastructure() -> None:
    assert drawn(build(flagged(Flag.QUICK), HERE).steps) == {
        "CFUpsert": "",
        "PGUpsert": "",
        "PGMigrate": "PGUpsert",
        "PGCleanup": "PGMigrate",
    }


@pytest.mark.requirement(
    "deployer P4",
    "deployer P4a",
    "deployer P4b",
    "deployer P4c",
    "deployer P4d",
)
def test_full_evaluates_and_then_takes_one_of_four_branches() -> None:
    plan = build(SPEC, HERE)

    assert plan.mode == "full"
    assert drawn(plan.steps) == {
        "PGUpsert": "",
        "PGEval": "PGUpsert",
        "CFPlan": "",
        "EvalJoin": "PGEval CFPlan",
    }
    assert drawn(plan.branch(Impact.DOWNTIME)) == {
        "ScaleDown": "EvalJoin",
        "InfraMigrate": "ScaleDown",
        "PGMigrate": "ScaleDown",
        "PGCleanup": "PGMigrate",
        "ScaleUp": "InfraMigrate PGCleanup",
    }
    assert drawn(plan.branch(Impact.BEFORE)) == {
        "InfraMigrate": "EvalJoin",
        "PGMigrate": "EvalJoin",
        "PGCleanup": "PGMigrate",
        "VersionMigrate": "InfraMigrate PGCleanup",
    }
    assert drawn(plan.branch(Impact.NOP)) == {"VersionMigrate": "EvalJoin"}
    assert drawn(plan.branch(Impact.PARALLEL)) == {
        "CFUpsert": "EvalJoin",
        "PGMigrate": "EvalJoin",
        "PGCleanup": "PGMigrate",
    }


def test_steps_on_the_stack_are_told_apart() -> None:
    plan = build(SPEC, HERE)
    before = {step.name: step.words for step in plan.branch(Impact.BEFORE)}
    down = {step.name: step.words for step in plan.branch(Impact.DOWNTIME)}

    assert before["InfraMigrate"] == {"images": "kept", "counts": "kept"}
    assert before["VersionMigrate"] == {"images": "new", "counts": "restored"}
    # Nothing runs after ScaleDown, and no later step would bring the new version.
    assert down["InfraMigrate"] == {"images": "new", "counts": "kept"}
    assert down["ScaleUp"] == {"counts": "restored"}


@pytest.mark.requirement("deployer P-gap", "deployer P5")
@pytest.mark.parametrize("flags", [(), (Flag.QUICK,), (Flag.SEQUENTIAL,)])
def test_a_missing_stack_is_made_and_scaled_up(flags: tuple[Flag, ...]) -> None:
    assert drawn(build(flagged(*flags), MISSING).steps) == {
        "InfraMigrate": "",
        "PGMigrate": "InfraMigrate",
        "ScaleUp": "PGMigrate",
    }


def test_a_missing_stack_without_databases_ends_with_its_services_running() -> None:
    (step,) = build(flagged(Flag.QUICK, spec=BARE), MISSING).steps

    assert (step.name, step.kind, step.words) == ("CFUpsert", "CFCreate", {"counts": "new"})


def test_several_databases_run_beside_each_other() -> None:
    assert drawn(build(flagged(Flag.SEQUENTIAL, spec=TWO), HERE).steps) == {
        "ScaleDown": "",
        "InfraMigrate": "ScaleDown",
        "PGMigrate.orders": "InfraMigrate",
        "PGMigrate.stock": "InfraMigrate",
        "ScaleUp": "PGMigrate.orders PGMigrate.stock",
    }


@pytest.mark.parametrize(
    ("flag", "steps"),
    [
        (Flag.INFRA_ONLY, {"InfraMigrate": ""}),
        (Flag.DESTROY_DATABASE, {"ScaleDown": "", "PGDestroy": "ScaleDown"}),
        (
            Flag.RECREATE_DATABASE,
            {
                "ScaleDown": "",
                "PGDestroy": "ScaleDown",
                "PGUpsert": "PGDestroy",
                "PGMigrate": "PGUpsert",
                "PGCleanup": "PGMigrate",
                "ScaleUp": "PGCleanup",
            },
        ),
        (Flag.DB_ONLY, {"PGUpsert": "", "PGMigrate": "PGUpsert", "PGCleanup": "PGMigrate"}),
    ],
)
def test_a_flag_chooses_its_steps(flag: Flag, steps: dict[str, str]) -> None:
    plan = build(flagged(flag), HERE)

    assert (plan.mode, drawn(plan.steps)) == (flag.value, steps)


def test_resources_are_imported_into_a_new_stack() -> None:
    plan = build(flagged(Flag.IMPORT_RESOURCES), MISSING)

    assert drawn(plan.steps) == {"CFCreateEmpty": "", "CFImportPlan": "CFCreateEmpty"}
    with pytest.raises(errors.Rejected, match="it is there: prod-shop"):
        build(flagged(Flag.IMPORT_RESOURCES), HERE)


@pytest.mark.parametrize("flag", [Flag.DESTROY_DATABASE, Flag.RECREATE_DATABASE, Flag.DB_ONLY])
def test_what_needs_a_stack_and_databases_is_refused_without(flag: Flag) -> None:
    with pytest.raises(errors.Rejected, match="it is missing: prod-shop"):
        build(flagged(flag), MISSING)
    with pytest.raises(errors.Rejected, match="with databases: shop"):
        build(flagged(flag, spec=BARE), HERE)


def test_of_two_flags_the_first_in_the_order_decides_and_that_is_told() -> None:
    spec = flagged(Flag.QUICK, Flag.INFRA_ONLY)

    assert build(spec, HERE).mode == "infra_only"
    assert notes(spec) == ("quick has no effect beside infra_only",)


ORDER = (
    *(Flag.IMPORT_RESOURCES, Flag.INFRA_ONLY, Flag.DESTROY_DATABASE),
    *(Flag.RECREATE_DATABASE, Flag.DB_ONLY, Flag.QUICK),
)
REFUSED: dict[Flag | None, Callable[[bool, tuple[Database, ...]], bool]] = {
    # Over which stacks and databases a flag makes no sense.
    Flag.IMPORT_RESOURCES: lambda exists, databases: exists,
    **dict.fromkeys(
        (Flag.DESTROY_DATABASE, Flag.RECREATE_DATABASE, Flag.DB_ONLY),
        lambda exists, databases: not exists or not databases,
    ),
}


@pytest.mark.requirement("deployer P5")
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("spec", [BARE, SPEC, TWO], ids=["none", "one", "two"])
def test_of_any_combination_of_flags_the_first_chooses_and_its_plan_can_end(
    spec: DeploymentSpec, *, exists: bool
) -> None:
    """All 512: each is the plan of its first flag alone, or refused as that is."""
    for count in range(len(Flag) + 1):
        for flags in itertools.combinations(Flag, count):
            first = next((each for each in ORDER if each in flags), None)
            if first in REFUSED and REFUSED[first](exists, spec.databases):
                with pytest.raises(errors.Rejected):
                    build(flagged(*flags, spec=spec), Observation(exists=exists))
                continue

            plan = build(flagged(*flags, spec=spec), Observation(exists=exists))

            assert plan.mode == (first.value if first else "full"), flags
            beside = {Flag.SEQUENTIAL, Flag.ROTATE_CREDENTIALS, Flag.CANCEL_UPDATES} & {*flags}
            alone = {*([first] if first else []), *beside}
            same = build(flagged(*alone, spec=spec), Observation(exists=exists))
            assert plan == same, "the others change nothing"
            for steps in [plan.steps, *(each.steps for each in plan.branches)]:
                check_steps(steps if steps is plan.steps else [*plan.steps, *steps])
            everything = {each.name for each in plan.steps}
            # Whatever is scaled down, and not destroyed on purpose, comes up again.
            assert (
                "ScaleDown" not in everything
                or first is Flag.DESTROY_DATABASE
                or ("ScaleUp" in everything)
            )


def test_credentials_are_rotated_where_databases_are_upserted() -> None:
    plan = build(flagged(Flag.ROTATE_CREDENTIALS), HERE)

    assert plan.steps[0].words["work"]["rotate"] is True
