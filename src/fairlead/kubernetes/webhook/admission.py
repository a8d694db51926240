"""The admission webhook: the API server asks before it stores an object, and we answer.

A reviewer is a pure function from what is asked to a verdict. What it refuses comes back to
the user with the path of the field and the reason; a reviewer that crashes gives no verdict,
and the failure policy of the webhook decides. Rights that the verdict needs of the user are asked
of the API server, by whoever serves.
"""

import asyncio
import base64
import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus

import msgspec
import structlog
from aiohttp import web

from fairlead.errors import Rejected
from fairlead.kubernetes.kinds import Need
from fairlead.kubernetes.objects import Object

log = structlog.get_logger(__name__)

# The API server's own bound is 3 MB for an object; a review carries the old and the new one.
_LARGEST = 8 * 2**20
_STOP_SECONDS = 5.0
_VERSION = "admission.k8s.io/v1"


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What the API server asks about."""

    operation: str
    name: str
    namespace: str
    object: Object | None
    old: Object | None
    user: "User"
    is_dry_run: bool = False


class User(msgspec.Struct, frozen=True):
    """Who asks, as the API server knows them."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """Why a field cannot be as it is, as in Problem("spec.steps[2]", "goes back")."""

    path: str
    message: str


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Allowed where there is no problem; `patch` holds JSON patch operations to put on it."""

    problems: tuple[Problem, ...] = ()
    patch: tuple[Object, ...] = ()
    warnings: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    """Rights that the user must have for it to be allowed."""


Reviewer = Callable[[Question], Verdict]
Missing = Callable[[User, Sequence[Need]], Awaitable[tuple[Problem, ...]]]
"""Which of these rights a user lacks."""


class _Kind(msgspec.Struct):
    group: str = ""
    kind: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    name: str = ""
    namespace: str = ""
    object: Object | None = None
    old_object: Object | None = None
    kind: _Kind = msgspec.field(default_factory=_Kind)
    user_info: User = User()
    dry_run: bool | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


@dataclasses.dataclass(frozen=True, slots=True)
class Reviewed:
    """One AdmissionReview, and what comes of it."""

    request: "_Request"
    verdict: Verdict

    def answer(self) -> bytes:
        response = {"uid": self.request.uid, **_response(self.verdict, self.request)}
        answer = {"apiVersion": _VERSION, "kind": "AdmissionReview", "response": response}
        return msgspec.json.encode(answer)


def review(body: bytes, reviewer: Reviewer) -> Reviewed:
    """What a reviewer says to one AdmissionReview."""
    try:
        asked = msgspec.json.decode(body, type=_Review)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(
            f"not an AdmissionReview: {error}", hint="only the API server sends requests here"
        ) from error
    if asked.api_version != _VERSION:
        raise Rejected(
            f"unknown version of AdmissionReview: {asked.api_version}",
            hint="set admissionReviewVersions to v1",
        )
    request = asked.request
    question = Question(
        operation=request.operation,
        name=request.name,
        namespace=request.namespace,
        object=request.object,
        old=request.old_object,
        user=request.user_info,
        is_dry_run=bool(request.dry_run),
    )
    return Reviewed(request, reviewer(question))


class Webhooks:
    """Serves reviewers by path, over TLS."""

    def __init__(self, reviewers: Mapping[str, Reviewer], missing: Missing | None = None) -> None:
        self._reviewers = dict(reviewers)
        self._missing = missing

    @contextlib.asynccontextmanager
    async def serving(self, host: str, port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
        """Serve inside the block; gives the port, which matters where 0 was asked for."""
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_post("/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=_STOP_SECONDS, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=context).start()
            yield int(runner.addresses[0][1])
        finally:
            await asyncio.shield(runner.cleanup())

    async def _handle(self, request: web.Request) -> web.Response:
        reviewer = self._reviewers.get(request.path)
        if reviewer is None:
            return web.Response(status=HTTPStatus.NOT_FOUND)
        try:
            answer = (await self._reviewed(await request.read(), reviewer)).answer()
        except Rejected as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=error.message)
        except web.HTTPException:
            raise
        except Exception:
            # No verdict: the failure policy of the webhook says what follows.
            log.exception("kubernetes.admission.crashed", path=request.path)
            return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR)
        return web.Response(body=answer, content_type="application/json")

    async def _reviewed(self, body: bytes, reviewer: Reviewer) -> Reviewed:
        found = review(body, reviewer)
        needs = () if found.verdict.problems else found.verdict.needs
        if not needs or self._missing is None:
            return found
        lacks = await self._missing(found.request.user_info, needs)
        return Reviewed(found.request, dataclasses.replace(found.verdict, problems=lacks))


def _response(verdict: Verdict, request: _Request) -> Object:
    response: Object = {"allowed": not verdict.problems}
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    if verdict.problems:
        response["status"] = _refusal(verdict.problems, request)
    elif verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    return response


def _refusal(problems: tuple[Problem, ...], request: _Request) -> Object:
    """As the API server itself would say it: kubectl then names object, fields and reasons."""
    causes = [
        {"field": problem.path, "message": problem.message, "reason": "FieldValueInvalid"}
        for problem in problems
    ]
    return {
        "status": "Failure",
        "code": int(HTTPStatus.UNPROCESSABLE_ENTITY),
        "reason": "Invalid",
        "message": "; ".join(f"{problem.path}: {problem.message}" for problem in problems),
        "details": {
            "group": request.kind.group,
            "kind": request.kind.kind,
            "name": request.name,
            "causes": causes,
        },
    }
