"""The admission webhook: the API server asks before it stores an object, and we answer.

A reviewer is a pure function from what is asked to a verdict. What it refuses comes back to
the user with the path of the field and the reason; a reviewer that crashes gives no verdict,
and the failure policy of the webhook decides.
"""

import asyncio
import base64
import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus

import msgspec
import structlog
from aiohttp import web

from fairlead.adapters.kubernetes.objects import Object
from fairlead.errors import Rejected

log = structlog.get_logger(__name__)

# The API server's own bound is 3 MB for an object; a review carries the old and the new one.
_LARGEST = 8 * 2**20
_STOP_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What the API server asks about."""

    operation: str
    name: str
    namespace: str
    object: Object | None
    old: Object | None
    user: str
    is_dry_run: bool = False


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


Reviewer = Callable[[Question], Verdict]


class _User(msgspec.Struct):
    username: str = ""


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
    user_info: _User = msgspec.field(default_factory=_User)
    dry_run: bool | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


def review(body: bytes, reviewer: Reviewer) -> bytes:
    """The answer to one AdmissionReview."""
    try:
        asked = msgspec.json.decode(body, type=_Review)
    except msgspec.MsgspecError as error:
        raise Rejected(
            f"not an AdmissionReview: {error}", hint="only the API server asks here"
        ) from error
    if asked.api_version != "admission.k8s.io/v1":
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
        user=request.user_info.username,
        is_dry_run=bool(request.dry_run),
    )
    response = {"uid": request.uid, **_response(reviewer(question), request)}
    answer = {"apiVersion": asked.api_version, "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(answer)


class Webhooks:
    """Serves reviewers by path, over TLS."""

    def __init__(self, reviewers: Mapping[str, Reviewer]) -> None:
        self._reviewers = dict(reviewers)

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
            answer = review(await request.read(), reviewer)
        except Rejected as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=error.message)
        except web.HTTPException:
            raise
        except Exception:
            # No verdict: the failure policy of the webhook says what follows.
            log.exception("kubernetes.admission.crashed", path=request.path)
            return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR)
        return web.Response(body=answer, content_type="application/json")


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
