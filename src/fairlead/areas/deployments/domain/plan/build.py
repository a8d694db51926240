"""From a specification and what was observed to the plan (P1 to P4, and the flags of a request).

P1 quick, nothing to migrate   CFUpsert
P2 full, sequential            ScaleDown > InfraMigrate > PGMigrate > ScaleUp
P3 quick                       CFUpsert | PGUpsert > PGMigrate > PGCleanup
P4 full, evaluated             PGUpsert > PGEval | CFPlan > EvalJoin > one of four branches

A stack that is missing has no version that could be disturbed: P2 without ScaleDown.
"""

from collections.abc import Callable, Mapping

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan import workload
from fairlead.areas.deployments.domain.plan.graph import Branch, Kind, Plan, Step, check, last
from fairlead.areas.deployments.domain.plan.steps import (
    DATABASE_FLAGS,
    JOIN,
    Observation,
    Steps,
    of_databases,
)
from fairlead.areas.deployments.domain.spec import DeploymentSpec, Flag


def build(spec: DeploymentSpec, observed: Observation) -> Plan:
    """The plan of a deployment; Rejected where the flags make no sense for this stack."""
    chosen = next((flag for flag in _MODES if spec.has(flag)), None)
    steps = Steps(spec, observed)
    if spec.workload is not None:
        return check(workload.build(steps, chosen))
    if chosen is None:
        return check(_full(steps))
    return check(Plan(chosen.value, _MODES[chosen](steps)))


def notes(spec: DeploymentSpec) -> tuple[str, ...]:
    """What a person should know about the flags: only one of them chooses the plan."""
    named = [flag for flag in _MODES if spec.has(flag)]
    return tuple(f"{each.value} has no effect beside {named[0].value}" for each in named[1:])


def _update(name: str, images: str, counts: str, after: tuple[str, ...] = ()) -> Step:
    """A change of the stack: which images and counts it has then, `kept` or `new`.

    Counts that are `restored` are kept too, unless an earlier deployment failed while the stack was
    scaled down: no ScaleUp follows that would bring it back.
    """
    return Step(name, Kind.CF_UPDATE.value, after, {"images": images, "counts": counts})


def _scale(name: str, after: tuple[str, ...] = ()) -> Step:
    words = {"counts": "zero" if name == "ScaleDown" else "restored"}
    return Step(name, Kind.CF_SCALE.value, after, words)


def _create(name: str, counts: str) -> Step:
    return Step(name, Kind.CF_CREATE.value, (), {"counts": counts})


def _created(steps: Steps) -> tuple[Step, ...]:
    """P2 without ScaleDown: there is no version that runs."""
    infra = _create("InfraMigrate", "zero")
    migrated = steps.whole((infra.name,))
    return infra, *migrated, _scale("ScaleUp", last((infra, *migrated)))


def _sequential(steps: Steps) -> tuple[Step, ...]:
    down = _scale("ScaleDown")
    # Nothing runs by then, so there is no image to keep.
    infra = _update("InfraMigrate", "new", "kept", (down.name,))
    migrated = steps.whole((infra.name,))
    return down, infra, *migrated, _scale("ScaleUp", last((infra, *migrated)))


def _full(steps: Steps) -> Plan:
    if not steps.observed.exists:
        return Plan("full", _created(steps))
    if steps.spec.has(Flag.SEQUENTIAL):
        return Plan("full", _sequential(steps))
    branches = tuple(Branch(impact, _BRANCHES[impact](steps)) for impact in Impact)
    return Plan("full", steps.evaluation(), branches)


def _downtime(steps: Steps) -> tuple[Step, ...]:
    down = _scale("ScaleDown", (JOIN,))
    both = (_update("InfraMigrate", "new", "kept", (down.name,)), *steps.runs(down.name))
    return down, *both, _scale("ScaleUp", last(both))


def _before(steps: Steps) -> tuple[Step, ...]:
    both = (_update("InfraMigrate", "kept", "kept", (JOIN,)), *steps.runs(JOIN))
    return *both, _update("VersionMigrate", "new", "restored", last(both))


def _parallel(steps: Steps) -> tuple[Step, ...]:
    return _update("CFUpsert", "new", "new", (JOIN,)), *steps.runs(JOIN)


def _nop(_: Steps) -> tuple[Step, ...]:
    return (_update("VersionMigrate", "new", "restored", (JOIN,)),)


_BRANCHES: Mapping[Impact, Callable[[Steps], tuple[Step, ...]]] = {
    Impact.DOWNTIME: _downtime,
    Impact.BEFORE: _before,
    Impact.NOP: _nop,
    Impact.PARALLEL: _parallel,
}


def _quick(steps: Steps) -> tuple[Step, ...]:
    sequential = steps.spec.has(Flag.SEQUENTIAL)
    if not steps.observed.exists:
        # Its services must run in the end, whatever comes before (a peer leaves them at none).
        nothing = not steps.spec.databases
        return (_create("CFUpsert", "new"),) if nothing else _created(steps)
    upsert = _update("CFUpsert", "new", "new")
    if sequential or not steps.migrating():
        return (upsert,)
    return upsert, *steps.chains()


def _import(steps: Steps) -> tuple[Step, ...]:
    if steps.observed.exists:
        raise errors.Rejected(
            f"resources are imported into a new stack, and it is there: {steps.spec.stack}",
            hint="deploy without import_resources",
        )
    empty = Step("CFCreateEmpty", Kind.CF_CREATE.value, (), {"empty": True})
    return empty, Step("CFImportPlan", Kind.CF_IMPORT.value, (empty.name,))


def _infra_only(steps: Steps) -> tuple[Step, ...]:
    if steps.observed.exists:
        return (_update("InfraMigrate", "kept", "kept"),)
    return (_create("InfraMigrate", "zero"),)


def _on_databases(flag: Flag) -> Callable[[Steps], tuple[Step, ...]]:
    return lambda steps: of_databases(
        steps, flag, _scale("ScaleDown"), lambda after: _scale("ScaleUp", after)
    )


_MODES: Mapping[Flag, Callable[[Steps], tuple[Step, ...]]] = {
    Flag.IMPORT_RESOURCES: _import,
    Flag.INFRA_ONLY: _infra_only,
    **{flag: _on_databases(flag) for flag in DATABASE_FLAGS},
    Flag.QUICK: _quick,
}
"""What a flag makes of the plan; the first that a request has decides."""
