"""What a stack is called: here, and in the cloud."""

from dataclasses import replace

from fairlead.access import scopes
from fairlead.areas.deployments.domain.spec import stack_stream
from tests.unit.areas.deployments.domain.samples import SPEC


def test_a_scope_can_be_an_environment() -> None:
    spec = replace(SPEC, environment="prod-eu")

    assert spec.stack == "prod-eu-shop"
    assert scopes.covers("prod-eu", stack_stream(spec.key))
    assert not scopes.covers("prod", stack_stream(spec.key))
