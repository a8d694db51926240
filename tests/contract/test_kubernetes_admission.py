"""A real API server asks our webhook; the fake does not ask, so it is left out."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.errors import Rejected, Unavailable
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.webhook.admission import Problem, Question, Verdict, Webhooks
from fairlead.kubernetes.webhook.certificates import CertificatePlace, Certificates
from tests.contract.kubernetes import Api
from tests.contract.kubernetes_samples import WIDGETS, widget
from tests.fakes.kubernetes.kinds import WEBHOOKS


def seaworthy(question: Question) -> Verdict:
    spec: Any = (question.object or {}).get("spec") or {}
    if spec.get("sails") == 13:
        return Verdict((Problem("spec.sails", "thirteen brings bad luck"),))
    return Verdict(warnings=("mind the tide",))


def configuration(api: Api, port: int, policy: str) -> Object:
    rule = {
        "apiGroups": ["tests.fairlead.dev"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["widgets"],
    }
    url = f"https://127.0.0.1:{port}/validate"
    hook = {
        "name": "widgets.fairlead.dev",
        "clientConfig": {"url": url},
        "rules": [rule],
        "failurePolicy": policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}},
    }
    kinds = {"apiVersion": WEBHOOKS.api_version, "kind": WEBHOOKS.kind}
    return {**kinds, "metadata": {"name": api.namespace}, "webhooks": [hook]}


@contextlib.asynccontextmanager
async def guarded(api: Api, policy: str) -> AsyncIterator[contextlib.AsyncExitStack]:
    """The webhook at work; close the stack given to take it down."""
    controller = CertificatePlace(api.key("webhook"), ("127.0.0.1",), ((WEBHOOKS, api.namespace),))
    served = Certificates(api.client, controller)
    async with contextlib.AsyncExitStack() as stack:
        webhooks = Webhooks({"/validate": seaworthy})
        port = await stack.enter_async_context(webhooks.serving("127.0.0.1", 0, served.context))
        await api.client.create(WEBHOOKS, configuration(api, port, policy))
        await served.ensure()
        try:
            yield stack
        finally:
            await api.client.delete(WEBHOOKS, Key("", api.namespace))


async def until_asked(api: Api) -> None:
    """The API server learns of a new webhook by a watch of its own."""
    for number in range(200):
        try:
            await api.client.create(WIDGETS, widget(api.namespace, f"probe-{number}", sails=13))
        except (Rejected, Unavailable):
            return
    pytest.fail("the API server never asked")


@pytest.fixture
def real(api: Api) -> Api:
    if not api.real:
        pytest.skip("the fake asks no webhook")
    return api


async def test_an_invalid_object_is_refused_with_field_and_reason(real: Api) -> None:
    async with guarded(real, "Fail"):
        await until_asked(real)
        with pytest.raises(Rejected, match=r"spec.sails: thirteen brings bad luck"):
            await real.client.create(WIDGETS, widget(real.namespace, "a", sails=13))
        made = await real.client.create(WIDGETS, widget(real.namespace, "b", sails=3))

    assert made["spec"]["sails"] == 3


async def test_without_the_webhook_policy_fail_keeps_everything_out(real: Api) -> None:
    async with guarded(real, "Fail") as webhook:
        await until_asked(real)
        await webhook.aclose()
        with pytest.raises(Unavailable):
            await real.client.create(WIDGETS, widget(real.namespace, "a", sails=3))


async def test_without_the_webhook_policy_ignore_lets_everything_in(real: Api) -> None:
    async with guarded(real, "Ignore") as webhook:
        await until_asked(real)
        await webhook.aclose()
        made = await real.client.create(WIDGETS, widget(real.namespace, "a", sails=13))

    assert made["spec"]["sails"] == 13
