"""The rights of whoever writes an object, as the API server tells them."""

from typing import cast

import pytest

from fairlead.errors import Unavailable
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.kinds import Need
from fairlead.kubernetes.objects import Object, Resource
from fairlead.kubernetes.webhook import access_reviews
from fairlead.kubernetes.webhook.admission import Problem, User

ANN = User("ann", "u7", ["devs"], {"scopes": ["a"]})
SERVICES = Resource("", "v1", "services", "Service")
ROUTES = Resource("networking.istio.io", "v1", "virtualservices", "VirtualService")
NEEDS = (
    Need("spec.serviceSpec", "create", SERVICES, "bay"),
    Need("spec.vsName", "patch", ROUTES, "bay", "front"),
)


class ApiServer:
    """Answers access reviews; with nothing allowed it is away."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[Object] = []

    async def create(self, resource: Resource, obj: Object) -> Object:
        assert str(resource) == "subjectaccessreviews.authorization.k8s.io"
        if not self.allowed:
            raise Unavailable("no answer", hint="later")
        self.asked.append(obj["spec"])
        verb = obj["spec"]["resourceAttributes"]["verb"]
        return {**obj, "status": {"allowed": verb in self.allowed}}


async def missing(server: ApiServer) -> tuple[Problem, ...]:
    return await access_reviews.missing(cast("Client", server), ANN, NEEDS)


async def test_each_right_is_asked_for_the_user_as_the_api_server_knows_them() -> None:
    server = ApiServer("create", "patch")

    assert await missing(server) == ()
    assert server.asked[1] == {
        "user": "ann",
        "uid": "u7",
        "groups": ["devs"],
        "extra": {"scopes": ["a"]},
        "resourceAttributes": {
            "verb": "patch",
            "group": "networking.istio.io",
            "resource": "virtualservices",
            "namespace": "bay",
            "name": "front",
        },
    }


async def test_a_missing_right_is_told_with_its_field() -> None:
    (problem,) = await missing(ApiServer("create"))

    assert problem == Problem(
        "spec.vsName",
        "the operator would patch virtualservices.networking.istio.io front in namespace bay,"
        " which ann may not",
    )


async def test_without_an_answer_there_is_no_verdict() -> None:
    with pytest.raises(ExceptionGroup):
        await missing(ApiServer())
