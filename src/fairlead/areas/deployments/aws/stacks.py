"""Steps that change a stack: begun once for each token, then asked about until they have ended."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairlead import errors
from fairlead.areas.deployments.aws import imports, parameters
from fairlead.areas.deployments.databases import report
from fairlead.areas.deployments.domain.infrastructure import StackStatus, from_cloudformation
from fairlead.areas.deployments.domain.messages import PerformStep, ReportStep, StepStatus
from fairlead.areas.deployments.domain.plan import change_set
from fairlead.areas.deployments.domain.plan.graph import Kind
from fairlead.areas.deployments.domain.spec import DeploymentSpec
from fairlead.areas.deployments.specs.template import EMPTY
from fairlead.clients.aws import stores
from fairlead.clients.aws.cloudformation import Change, CloudFormation, Stack
from fairlead.clients.aws.session import Account, Aws


def account(spec: DeploymentSpec) -> Account:
    return Account(spec.template.region, spec.assume_role)


@dataclass(frozen=True, slots=True)
class Stacks:
    """The steps of CloudFormation."""

    aws: Aws

    def kinds(self) -> Mapping[str, tuple["Begin", "Begin"]]:
        """Who begins a step of a kind, and who says how it stands."""
        return {
            Kind.CF_CREATE.value: (self.create, self.observe),
            Kind.CF_UPDATE.value: (self.update, self.observe),
            Kind.CF_SCALE.value: (self.scale, self.observe),
            Kind.CF_PLAN.value: (self.plan, self.planned),
            Kind.CF_IMPORT.value: (self.import_, self.imported),
        }

    def of(self, spec: DeploymentSpec) -> CloudFormation:
        return CloudFormation(self.aws.client("cloudformation", account(spec)))

    def create(self, step: PerformStep) -> ReportStep:
        spec, stacks = step.spec, self.of(step.spec)
        if step.words.get("empty"):
            stacks.create(spec.stack, Change(step.token, body=json.dumps(EMPTY, sort_keys=True)))
            return report(step, StepStatus.ACTIVE)
        self._ensure_topics(spec)
        given = parameters.created(spec.parameters, step.words["counts"])
        stacks.create(spec.stack, Change(step.token, _url(spec), parameters=given))
        # Asked about later: an answer of this moment may still be that of before.
        return report(step, StepStatus.ACTIVE)

    def update(self, step: PerformStep) -> ReportStep:
        spec, stacks = step.spec, self.of(step.spec)
        self._ensure_topics(spec)
        change = self._change(step, self._there(stacks, spec))
        return self._begun(step, stacks.update(spec.stack, change))

    def scale(self, step: PerformStep) -> ReportStep:
        spec, stacks = step.spec, self.of(step.spec)
        given = parameters.scaled(self._there(stacks, spec).parameters, step.words["counts"])
        if given is None:
            return report(step)
        change = Change(step.token, parameters=given)
        return self._begun(step, stacks.update(spec.stack, change))

    def observe(self, step: PerformStep) -> ReportStep:
        """By the events of its own request; where these have no token, by the stack's status."""
        stacks, name = self.of(step.spec), step.spec.stack
        found = stacks.describe(name)
        status, reason = (found.status, found.reason) if found else ("", "")
        own, asked = (None, False) if found is None else stacks.told(name, step.token)
        if own is not None:
            status, reason = own.status, own.reason
        meaning = from_cloudformation(status)
        # AWS answers from copies that lag: a stack may still be told to rest as it did before the
        # request that was just taken, which is then missing among the events of others.
        behind = asked and own is None and meaning in _RESTS and step.kind in _ASKED
        if meaning.moving or behind:
            return report(step, StepStatus.ACTIVE)
        if meaning is StackStatus.COMPLETE:
            outputs = found.outputs if found else {}
            return ReportStep(step.step, step.attempt, StepStatus.DONE, outputs=outputs)
        error = f"the stack is {status or 'missing'}{f': {reason}' if reason else ''}"
        return report(step, StepStatus.FAILED, error)

    def plan(self, step: PerformStep) -> ReportStep:
        stacks = self.of(step.spec)
        words = {"images": "new", "counts": "kept"}
        change = self._change(step, self._there(stacks, step.spec), words)
        stacks.plan(step.spec.stack, change)
        return self.planned(step)

    def planned(self, step: PerformStep) -> ReportStep:
        stacks, name = self.of(step.spec), step.spec.stack
        changes = stacks.planned(name, step.token)
        if changes is None:
            return report(step, StepStatus.ACTIVE)
        found = change_set.classify(change_set.changes(changes))
        stacks.discard(name, step.token)
        return ReportStep(
            step.step,
            step.attempt,
            StepStatus.DONE,
            impact=found.impact,
            reasons=found.reasons,
        )

    def import_(self, step: PerformStep) -> ReportStep:
        spec, stacks = step.spec, self.of(step.spec)
        where = spec.template
        kept = stores.ObjectStore(self.aws.client("s3", account(spec)))
        wanted = imports.importable(kept.get(where.bucket, where.key))
        found = imports.existing(self.aws, account(spec), wanted)
        if not found:
            return report(step)
        change = Change(step.token, body=imports.template(wanted, found))
        stacks.plan(spec.stack, change, "IMPORT", ResourcesToImport=imports.request(wanted, found))
        return report(step, StepStatus.ACTIVE)

    def imported(self, step: PerformStep) -> ReportStep:
        """Made, then executed: from then on the stack is in one of the states of an import."""
        stacks, name = self.of(step.spec), step.spec.stack
        if self._there(stacks, step.spec).status.startswith("IMPORT_"):
            return self.observe(step)
        if stacks.planned(name, step.token) is None:
            return report(step, StepStatus.ACTIVE)
        stacks.execute(name, step.token)
        return report(step, StepStatus.ACTIVE)

    def _change(
        self, step: PerformStep, found: Stack, words: Mapping[str, str] | None = None
    ) -> Change:
        said = words or step.words
        given = parameters.updated(
            step.spec.parameters, found.parameters, said["images"], said["counts"]
        )
        return Change(step.token, _url(step.spec), parameters=given)

    def _there(self, stacks: CloudFormation, spec: DeploymentSpec) -> Stack:
        found = stacks.describe(spec.stack)
        if found is None:
            raise errors.Rejected(
                f"the stack is gone: {spec.stack}", hint="deploy again: it is made anew then"
            )
        return found

    def _begun(self, step: PerformStep, begun: bool) -> ReportStep:  # noqa: FBT001 - what update says
        return report(step, StepStatus.ACTIVE if begun else StepStatus.DONE)

    def _ensure_topics(self, spec: DeploymentSpec) -> None:
        if spec.sns_topics:
            stores.ensure_topics(self.aws.client("sns", account(spec)), spec.sns_topics)


_RESTS = (StackStatus.COMPLETE, StackStatus.ROLLED_BACK)
_ASKED = (Kind.CF_CREATE.value, Kind.CF_UPDATE.value, Kind.CF_SCALE.value)
"""Steps whose request has a token that its events tell."""

Begin = Callable[[PerformStep], ReportStep]


def _url(spec: DeploymentSpec) -> str:
    return stores.url(spec.template.region, spec.template.bucket, spec.template.key)
