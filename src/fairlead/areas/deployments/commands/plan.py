"""`fairlead plan`: the steps that a deployment would take; it touches nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from fairlead.areas.deployments.commands import spec_files
from fairlead.areas.deployments.domain.plan import build as plans
from fairlead.areas.deployments.domain.plan.change_set import Finding
from fairlead.areas.deployments.domain.plan.graph import Plan, Step
from fairlead.areas.deployments.domain.plan.join import join
from fairlead.areas.deployments.domain.plan.steps import Observation
from fairlead.areas.deployments.domain.spec import DeploymentSpec
from fairlead.areas.deployments.specs import build, observed
from fairlead.areas.deployments.specs.observed import ObservedWorld
from fairlead.console import options, printing
from fairlead.console.files import Document


@click.command(short_help="Show the steps that a deployment would take.")
@click.option("--app", required=True, metavar="FILE", help="The application.")
@click.option("--env", required=True, metavar="FILE", help="The environment.")
@click.option("--cluster", metavar="FILE", help="The cluster that it is in.")
@click.option("--observed", metavar="FILE", help="What was observed there.")
@click.option("--flag", "flags", multiple=True, metavar="NAME", help="Such as quick or db_only.")
@options.output
def plan(*, flags: Sequence[str], as_json: bool, **files: str | None) -> None:
    """Show the steps that deploying an application to an environment would take.

    It reads files and touches nothing. Without --observed the stack is taken to be there, and a
    plan with an evaluation shows all four branches; with it, the one that would be taken.
    """
    seen = files["observed"]
    told = _told(_spec(files, flags), _observed(seen) if seen else None)
    if as_json:
        printing.document(told)
    else:
        _show(told)


def _spec(files: Mapping[str, str | None], flags: Sequence[str]) -> DeploymentSpec:
    chosen = [build.flag(name) for name in flags]
    read = spec_files.read(files["app"] or "", files["env"] or "", files["cluster"])
    return build.planned(read.app, read.environment, read.cluster, chosen)


def _observed(file: str) -> ObservedWorld:
    text = Document.read(file)
    with text.placed():
        return observed.read(text.content)


def _told(spec: DeploymentSpec, world: ObservedWorld | None) -> dict[str, Any]:
    seen = observed.observation(world) if world else Observation(exists=True)
    made = plans.build(spec, seen)
    found = observed.findings(world, spec.databases) if world and made.branches else None
    joined = join(spec, found) if found is not None else None
    return {
        "mode": made.mode,
        "class": joined.impact.value if joined else None,
        "reasons": [*plans.notes(spec), *(joined.reasons if joined else _open(made, seen))],
        "steps": _steps(made, joined),
    }


def _open(made: Plan, seen: Observation) -> tuple[str, ...]:
    if not seen.exists:
        return ("the stack is missing: no version runs that could be disturbed",)
    return ("not observed: EvalJoin takes one of four branches",) if made.branches else ()


def _steps(made: Plan, joined: Finding | None) -> list[dict[str, Any]]:
    if joined is not None:
        return [_step(each) for each in (*made.steps, *made.branch(joined.impact))]
    branched = [
        {**_step(each), "branch": branch.impact.value}
        for branch in made.branches
        for each in branch.steps
    ]
    return [*(_step(each) for each in made.steps), *branched]


def _step(step: Step) -> dict[str, Any]:
    return {"name": step.name, "kind": step.kind, "depends_on": list(step.depends_on)}


def _show(told: dict[str, Any]) -> None:
    printing.pairs([("mode", told["mode"]), ("class", told["class"] or "not known")])
    for reason in told["reasons"]:
        click.echo(f"  {printing.shown(reason)}")
    rows = [
        (each["name"], each["kind"], each.get("branch", "-"), ", ".join(each["depends_on"]) or "-")
        for each in told["steps"]
    ]
    click.echo("")
    printing.columns(("STEP", "KIND", "BRANCH", "AFTER"), rows)
