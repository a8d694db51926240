"""Answers to the API server, and the certificates that they travel under."""

import asyncio
import base64
import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from cryptography import x509

from fairlead.errors import Corrupt, NotFound, Rejected
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import utc_now
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.webhook import admission, certificates
from fairlead.kubernetes.webhook.admission import Problem, Question, User, Verdict, Webhooks
from fairlead.kubernetes.webhook.certificates import CertificatePlace, Certificates
from tests.contract.kubernetes_samples import widget
from tests.fakes.kubernetes.hand_clock import START, HandClock, ticking
from tests.fakes.kubernetes.kinds import SECRETS, WEBHOOKS
from tests.fakes.kubernetes.server import Fault, Server

SECRET = Key("default", "fairlead-webhook")
PLACE = CertificatePlace(SECRET, ("fairlead.default.svc", "127.0.0.1"), ((WEBHOOKS, "fairlead"),))
DAY = 86_400
ANN = {"username": "ann", "uid": "u7", "groups": ["devs"], "extra": {"scopes": ["a"]}}


def asked(obj: Object | None = None, **request: Any) -> bytes:
    body = {"uid": "u-1", "operation": "CREATE", "name": "a", "namespace": "shop", **request}
    body["object"] = obj or widget("shop", "a")
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}
    return json.dumps(review).encode()


def answer(reviewer: admission.Reviewer, **request: Any) -> Any:
    return json.loads(admission.review(asked(**request), reviewer).answer())["response"]


def test_what_has_no_problem_is_allowed() -> None:
    assert answer(lambda _: Verdict()) == {"uid": "u-1", "allowed": True}


def test_a_refusal_names_field_and_reason() -> None:
    problems = (Problem("spec.length", "too short"), Problem("spec.rig", "unknown"))

    said = answer(lambda _: Verdict(problems))

    assert said["allowed"] is False
    assert said["status"]["code"] == 422
    assert said["status"]["message"] == "spec.length: too short; spec.rig: unknown"
    assert [cause["field"] for cause in said["status"]["details"]["causes"]] == [
        *("spec.length", "spec.rig")
    ]


def test_a_patch_and_warnings_travel_along() -> None:
    operation = {"op": "add", "path": "/spec/sails", "value": 3}

    said = answer(lambda _: Verdict(patch=(operation,), warnings=("sails are a guess",)))

    assert said["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(said["patch"])) == [operation]
    assert said["warnings"] == ["sails are a guess"]


def test_the_question_holds_all_that_a_reviewer_needs() -> None:
    seen: list[Question] = []

    def note(question: Question) -> Verdict:
        seen.append(question)
        return Verdict()

    old = widget("shop", "a", length=3)
    answer(note, operation="UPDATE", oldObject=old, userInfo=ANN, dryRun=True)

    (question,) = seen
    assert question.operation == "UPDATE"
    assert question.object is not None
    assert question.object["spec"]["length"] == 12
    assert question.old == old
    assert question.user == User("ann", "u7", ["devs"], {"scopes": ["a"]})
    assert question.is_dry_run


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[1]", asked().replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1")],
)
def test_what_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(Rejected):
        admission.review(body, lambda _: Verdict())


class World:
    def __init__(self, server: Server, client: Client) -> None:
        self.server = server
        self.client = client
        self.clock = HandClock()
        # Begins now: handshakes check certificates by the real clock.
        self.clock.seconds = (utc_now() - START).total_seconds()

    def replica(self, controller: CertificatePlace = PLACE) -> Certificates:
        return Certificates(self.client, controller, self.clock.clock())

    async def ensured(self, replica: Certificates) -> None:
        """A whole look, with the time that it waits for the API servers."""
        async with ticking(self.clock, lambda: 1):
            await replica.ensure()

    async def asleep(self) -> None:
        """Until somebody waits for the clock."""
        async with asyncio.timeout(60):
            while not self.clock.sleeping:  # noqa: ASYNC110 - a hand clock has no event
                await asyncio.sleep(0.001)

    async def trusted(self) -> bytes:
        found = await self.client.get(WEBHOOKS, Key("", "fairlead"))
        bundles = {hook["clientConfig"]["caBundle"] for hook in found["webhooks"]}
        (bundle,) = bundles
        return base64.b64decode(bundle)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with (
        Server().running() as server,
        Client(Connection(server.url, credentials.Fixed())) as client,
    ):
        hooks = [{"name": f"{n}.fairlead.dev", "clientConfig": {}} for n in ("one", "two")]
        kinds = {"apiVersion": WEBHOOKS.api_version, "kind": WEBHOOKS.kind}
        body = {**kinds, "metadata": {"name": "fairlead"}, "webhooks": hooks}
        await client.create(WEBHOOKS, body)
        yield World(server, client)


@contextlib.asynccontextmanager
async def calling(replica: Certificates, trust: bytes) -> AsyncIterator[Any]:
    """The webhook served by this replica, and a caller who trusts this bundle."""

    def refuse(_: Question) -> Verdict:
        return Verdict((Problem("spec", "no"),))

    def crash(_: Question) -> Verdict:
        raise ZeroDivisionError

    webhooks = Webhooks({"/validate": refuse, "/crash": crash})
    context = ssl.create_default_context(cadata=trust.decode())
    async with (
        webhooks.serving("127.0.0.1", 0, replica.context) as port,
        aiohttp.ClientSession() as session,
    ):

        async def post(path: str, body: bytes) -> tuple[int, bytes]:
            url = f"https://127.0.0.1:{port}{path}"
            async with session.post(url, data=io.BytesIO(body), ssl=context) as response:
                return response.status, await response.read()

        yield post


async def test_the_webhook_answers_under_its_own_certificate(world: World) -> None:
    replica = world.replica()
    await replica.ensure()

    async with calling(replica, await world.trusted()) as post:
        status, body = await post("/validate", asked())
        crashed, _ = await post("/crash", asked())
        unknown, _ = await post("/elsewhere", asked())
        wrong, _ = await post("/validate", b"hello")
        large, _ = await post("/validate", b"x" * (9 * 2**20))

    assert (status, json.loads(body)["response"]["allowed"]) == (200, False)
    assert (crashed, unknown, wrong, large) == (500, 404, 400, 413)


async def test_a_stranger_s_authority_does_not_fit(world: World) -> None:
    replica = world.replica()
    await replica.ensure()
    stranger = certificates.make(("127.0.0.1",), world.clock.now()).authority

    async with calling(replica, stranger) as post:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await post("/validate", asked())


async def test_replicas_share_one_pair(world: World) -> None:
    first, second = world.replica(), world.replica()
    await first.ensure()
    before = await world.client.get(SECRETS, SECRET)

    await second.ensure()
    await first.ensure()

    assert await world.client.get(SECRETS, SECRET) == before
    async with calling(second, await world.trusted()) as post:
        assert (await post("/validate", asked()))[0] == 200


async def test_nothing_is_written_while_all_is_good(world: World) -> None:
    replica = world.replica()
    await replica.ensure()
    written = len(world.server.writes)

    await world.clock.advance(59 * DAY)
    await replica.ensure()

    assert len(world.server.writes) == written


async def test_a_pair_is_renewed_in_its_last_third_and_both_are_trusted(world: World) -> None:
    first, late = world.replica(), world.replica()
    await first.ensure()
    await late.ensure()
    before = await world.trusted()

    await world.clock.advance(60 * DAY)
    await world.ensured(first)
    after = await world.trusted()

    assert after.count(b"BEGIN CERTIFICATE") == 2
    assert after.endswith(before)
    async with calling(late, after) as post:
        assert (await post("/validate", asked()))[0] == 200


async def test_the_bundle_does_not_grow(world: World) -> None:
    replica = world.replica()
    for _ in range(4):
        await world.ensured(replica)
        await world.clock.advance(61 * DAY)

    assert (await world.trusted()).count(b"BEGIN CERTIFICATE") == 2


async def test_a_new_pair_is_served_only_after_the_api_servers_heard_of_it(world: World) -> None:
    world.clock.seconds -= 60 * DAY
    replica = world.replica()
    await replica.ensure()
    await world.clock.advance(60 * DAY)

    looking = asyncio.create_task(replica.ensure())
    await world.asleep()
    told = await world.trusted()
    async with calling(replica, certificates.first(told)) as post:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await post("/validate", asked())
        await world.clock.advance(10)
        await looking
        answered = await post("/validate", asked())

    assert answered[0] == 200


async def test_a_deleted_secret_is_made_anew_and_nobody_is_cut_off(world: World) -> None:
    replica, late = world.replica(), world.replica()
    await replica.ensure()
    await late.ensure()
    before = await world.trusted()

    await world.client.delete(SECRETS, SECRET)
    await world.ensured(replica)
    after = await world.trusted()

    assert after.endswith(before)
    async with calling(late, after) as post:
        assert (await post("/validate", asked()))[0] == 200


async def test_the_pair_is_for_the_names_that_the_configuration_uses(world: World) -> None:
    controller = CertificatePlace(SECRET, configurations=PLACE.configurations)
    replica = world.replica(controller)
    with pytest.raises(NotFound, match="no webhook in the configuration: fairlead"):
        await replica.ensure()

    await point(world, 0, {"service": {"name": "hook", "namespace": "ops", "path": "/"}})
    await replica.ensure()
    first = hosts(await world.client.get(SECRETS, SECRET))
    await point(world, 1, {"url": "https://127.0.0.1:8443/validate"})
    await world.ensured(replica)

    assert first == {"hook.ops.svc"}
    assert hosts(await world.client.get(SECRETS, SECRET)) == {"hook.ops.svc", "127.0.0.1"}
    async with calling(replica, await world.trusted()) as post:
        assert (await post("/validate", asked()))[0] == 200


async def test_a_webhook_that_nobody_installed_is_no_trouble(world: World) -> None:
    await world.client.delete(WEBHOOKS, Key("", "fairlead"))
    replica = world.replica()
    before = replica.trouble

    tending = asyncio.create_task(replica.run())
    await world.asleep()
    tending.cancel()

    assert (before, replica.trouble) == ("no certificate yet", "")


async def test_trouble_lasts_until_the_next_look(world: World) -> None:
    world.server.faults.append(Fault(403, only=lambda r: r.path.endswith("fairlead-webhook")))
    replica = world.replica()
    tending = asyncio.create_task(replica.run(60))
    await world.asleep()
    then = replica.trouble

    await world.clock.advance(60)
    await world.asleep()
    tending.cancel()

    assert "not allowed" in then
    assert replica.trouble == ""


async def point(world: World, index: int, place: Object) -> None:
    change = [{"op": "add", "path": f"/webhooks/{index}/clientConfig", "value": place}]
    await world.client.patch(WEBHOOKS, Key("", "fairlead"), change, kind="json")


def hosts(secret: Object) -> set[str]:
    shown = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return {str(name.value) for name in names.value}


async def test_a_lost_race_serves_the_winner_s_pair(world: World) -> None:
    winner, loser = world.replica(), world.replica()
    await winner.ensure()
    before = await world.client.get(SECRETS, SECRET)
    # The loser reads before the winner has written: it finds nothing, and creates too late.
    world.server.faults.append(Fault(404, only=lambda r: r.path.endswith("fairlead-webhook")))

    await loser.ensure()

    assert await world.client.get(SECRETS, SECRET) == before


async def test_a_bundle_taken_away_is_put_back(world: World) -> None:
    replica = world.replica()
    await replica.ensure()
    before = await world.trusted()
    broken = [{"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "eHg="}]
    await world.client.patch(WEBHOOKS, Key("", "fairlead"), broken, kind="json")

    await replica.ensure()

    assert await world.trusted() == before


async def test_a_spoilt_secret_is_told(world: World) -> None:
    await world.replica().ensure()
    await world.client.patch(SECRETS, SECRET, {"data": {"tls.crt": "eHg="}})

    with pytest.raises(Corrupt, match="no certificate in the Secret"):
        await world.replica().ensure()


async def test_a_missing_configuration_is_told(world: World) -> None:
    await world.client.delete(WEBHOOKS, Key("", "fairlead"))

    with pytest.raises(NotFound):
        await world.replica().ensure()


def test_keys_are_not_shown() -> None:
    pair = certificates.make(("a.b.svc",), START)

    assert "PRIVATE" not in repr(pair)
    assert pair.ends - START == timedelta(days=90)
