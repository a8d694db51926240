"""The operator's say in what is stored: each kind's review, served by every replica.

API server ──► Service (every ready replica) ──► Webhooks ──► Kind.review ──► refused, by field
                                                    ▲ TLS: Certificates (one Secret for all)

Who leads does not matter here: a review reads nothing but the question, and asks the API server
what its user may do (`access_reviews`).
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterable

import structlog

from fairlead.errors import Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.install import manifests
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.webhook import access_reviews, admission
from fairlead.kubernetes.webhook.admission import Problem, Question, Verdict, Webhooks
from fairlead.kubernetes.webhook.certificates import CertificatePlace, Certificates

log = structlog.get_logger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class WebhookPlace:
    """Where reviews are asked for, and by which names the cluster knows them."""

    host: str
    port: int
    configuration: str
    """Name of the ValidatingWebhookConfiguration that sends the API server to us."""

    secret: Key
    """Where the certificate is kept for all replicas."""

    every: float = 60.0
    """Seconds between two checks of the certificate."""


class AdmissionReviews:
    """Serves the reviews of some kinds for as long as it runs."""

    def __init__(
        self, admission_server: WebhookPlace, kinds: Iterable[Kind], client: Client, clock: Clock
    ) -> None:
        self._admission_server = admission_server
        self._webhooks = Webhooks(
            {path: reviewer(kind) for kind in kinds for path in paths_of(kind)},
            access_reviews.asking(client),
        )
        place = CertificatePlace(
            admission_server.secret,
            configurations=((manifests.WEBHOOKS, admission_server.configuration),),
        )
        self._certificates = Certificates(client, place, clock)
        self.listening = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled; Rejected where nothing can listen there."""
        admission_server = self._admission_server
        async with contextlib.AsyncExitStack() as stack:
            try:
                # Before the first certificate a handshake fails, as if nobody listened yet.
                serving = self._webhooks.serving(
                    admission_server.host, admission_server.port, self._certificates.context
                )
                await stack.enter_async_context(serving)
            except OSError as error:
                raise Rejected(
                    f"webhook cannot listen on: {admission_server.host}:{admission_server.port}",
                    hint="choose another --webhooks-listen",
                ) from error
            self.listening.set()
            await self._certificates.run(admission_server.every)

    def unready(self) -> list[str]:
        """Why the API server would get no answer here."""
        trouble = self._certificates.trouble
        return [f"webhook cannot serve: {trouble}"] if trouble else []


def paths_of(kind: Kind) -> list[str]:
    return [manifests.webhook_path(each) for each in manifests.reviewed(kind)]


def reviewer(kind: Kind) -> admission.Reviewer:
    """The kind's review as the API server asks for it."""

    def review(question: Question) -> Verdict:
        new, old = question.object, question.old
        # Whoever takes a finalizer off, or touches what no review reads, must not be stopped by
        # a spec that came in while nobody reviewed: the object could never be deleted.
        if new is None or objects.is_deleting(new) or (old and _judged(new) == _judged(old)):
            return Verdict()
        problems = _problems(kind, new, old)
        if problems:
            told = [f"{one.path}: {one.message}" for one in problems]
            place = f"{question.namespace}/{question.name}"
            log.info("kubernetes.admission.refused", kind=str(kind.api), key=place, problems=told)
        return Verdict(problems) if problems else Verdict(needs=tuple(kind.needs(new, old)))

    return review


def _problems(kind: Kind, new: Object, old: Object | None) -> tuple[Problem, ...]:
    try:
        return tuple(Problem(path, reason) for path, reason in kind.review(new, old))
    except Rejected as error:
        return (Problem("spec", f"{error.message}; {error.hint}"),)


def _judged(obj: Object) -> tuple[object, ...]:
    meta = objects.metadata(obj)
    return obj.get("spec"), meta.get("labels") or {}, meta.get("annotations") or {}
