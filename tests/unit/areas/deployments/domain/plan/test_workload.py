"""Plans of a workload: the database's steps as everywhere, the version as a rollout."""

import dataclasses

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan import workload
from fairlead.areas.deployments.domain.plan.build import build
from fairlead.areas.deployments.domain.plan.graph import Plan, Step
from fairlead.areas.deployments.domain.plan.steps import Observation
from fairlead.areas.deployments.domain.spec import Database, DeploymentSpec, Flag, Workload
from fairlead.areas.deployments.specs.build import NOWHERE

GOODS = Database("goods", "dev_shop_goods", "local")
SPEC = DeploymentSpec(
    *("shop", "dev", "v2", NOWHERE),
    databases=(GOODS,),
    workload=Workload("dev/shop", "dev/shop/f.json"),
)
THERE = Observation(exists=True)


def drawn(steps: tuple[Step, ...]) -> str:
    return ", ".join(
        f"{step.name}({' '.join(step.depends_on)})" if step.depends_on else step.name
        for step in steps
    )


def plan(*flags: Flag, observed: Observation = THERE, spec: DeploymentSpec = SPEC) -> Plan:
    return build(dataclasses.replace(spec, flags=flags), observed)


def test_the_evaluated_plan_has_one_branch_for_each_class() -> None:
    made = plan()

    assert drawn(made.steps) == "PGUpsert, PGEval(PGUpsert), CFPlan, EvalJoin(PGEval CFPlan)"
    assert {each.impact: drawn(each.steps) for each in made.branches} == {
        Impact.NOP: "VersionMigrate(EvalJoin)",
        Impact.PARALLEL: "VersionMigrate(EvalJoin), PGMigrate(EvalJoin), PGCleanup(PGMigrate)",
        Impact.BEFORE: ("PGMigrate(EvalJoin), PGCleanup(PGMigrate), VersionMigrate(PGCleanup)"),
        Impact.DOWNTIME: (
            "ScaleDown(EvalJoin), PGMigrate(ScaleDown), PGCleanup(PGMigrate), ScaleUp(PGCleanup)"
        ),
    }


@pytest.mark.parametrize(
    ("flags", "steps"),
    [
        ([Flag.QUICK], "VersionMigrate, PGUpsert, PGMigrate(PGUpsert), PGCleanup(PGMigrate)"),
        ([Flag.QUICK, Flag.SEQUENTIAL], "VersionMigrate"),
        ([Flag.SEQUENTIAL], "ScaleDown, PGMigrate(ScaleDown), ScaleUp(PGMigrate)"),
        ([Flag.DB_ONLY], "PGUpsert, PGMigrate(PGUpsert), PGCleanup(PGMigrate)"),
        ([Flag.DESTROY_DATABASE], "ScaleDown, PGDestroy(ScaleDown)"),
        (
            [Flag.RECREATE_DATABASE],
            (
                "ScaleDown, PGDestroy(ScaleDown), PGUpsert(PGDestroy), PGMigrate(PGUpsert),"
                " PGCleanup(PGMigrate), ScaleUp(PGCleanup)"
            ),
        ),
    ],
)
def test_flags_choose_the_steps(flags: list[Flag], steps: str) -> None:
    assert drawn(plan(*flags).steps) == steps


def test_quick_with_nothing_pending_is_the_version_alone() -> None:
    made = plan(Flag.QUICK, observed=Observation(exists=True, pending={"goods": 0}))

    assert drawn(made.steps) == "VersionMigrate"


@pytest.mark.parametrize("flags", [[], [Flag.QUICK], [Flag.SEQUENTIAL]])
def test_a_missing_workload_has_nobody_to_disturb(flags: list[Flag]) -> None:
    made = plan(*flags, observed=Observation(exists=False))

    assert drawn(made.steps) == "PGMigrate, VersionMigrate(PGMigrate)"
    assert made.steps[0].words["whole"] is True


def test_without_a_database_only_the_version_is_left() -> None:
    bare = dataclasses.replace(SPEC, databases=())

    assert drawn(plan(spec=bare).branch(Impact.NOP)) == "VersionMigrate(EvalJoin)"
    assert drawn(plan(spec=bare).branch(Impact.BEFORE)) == "VersionMigrate(EvalJoin)"
    assert drawn(plan(spec=bare, observed=Observation(exists=False)).steps) == "VersionMigrate"


@pytest.mark.parametrize("flag", [Flag.INFRA_ONLY, Flag.IMPORT_RESOURCES])
def test_flags_of_infrastructure_are_refused(flag: Flag) -> None:
    with pytest.raises(errors.Rejected, match=f"{flag.value} is for infrastructure"):
        plan(flag)


def test_the_version_is_a_rollout_and_downtime_stops_the_old_one() -> None:
    made = plan()

    (version,) = made.branch(Impact.NOP)
    down, *_, up = made.branch(Impact.DOWNTIME)
    assert {version.kind, down.kind, up.kind} == {workload.ROLLOUT}
    assert version.words == up.words == {"rollout": "dev/shop", "file": "dev/shop/f.json"}
    assert down.words["asleep"] is True


def test_where_the_workload_is_elsewhere_its_steps_go_there_and_bring_the_version_along() -> None:
    assert SPEC.workload is not None
    there = dataclasses.replace(SPEC.workload, queue="kubernetes@x", content="{}")
    made = plan(spec=dataclasses.replace(SPEC, workload=there))

    down, *_, up = made.branch(Impact.DOWNTIME)
    known = {"rollout": "dev/shop", "file": "dev/shop/f.json"}
    assert up.words == {**known, "queue": "kubernetes@x", "content": "{}"}
    assert down.words == {**up.words, "asleep": True}
