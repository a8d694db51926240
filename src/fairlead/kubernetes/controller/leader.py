"""One leader at a time, by a Lease.

Clocks of other machines are not believed: a lease is over when nobody has changed it for its
whole duration by our own clock. A leader that cannot renew stops acting after the renew
deadline, which is shorter than the duration, so its work has ended before another may begin.
Every term has a number that only grows (the fencing token), and `Term.check` refuses to act on
a term that may be over: call it before each write.

Give the election a client of its own, so that renewals do not queue behind other requests.
"""

import asyncio
import contextlib
import dataclasses
import math
import random
from collections.abc import Awaitable, Callable

import structlog

from fairlead.errors import Conflict, FairleadError, NotFound, Rejected
from fairlead.kubernetes import objects
from fairlead.kubernetes.client import clock as clocks
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.objects import Key, Object, Resource

log = structlog.get_logger(__name__)

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
# A stop must not hang on it: without the release, the lease ends by itself.
_RELEASE_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Candidacy:
    """What we stand for, as whom, and the times of it."""

    key: Key
    identity: str
    """Unique to this process: whoever has the same name is taken for ourselves."""
    duration: float = 15.0
    """Seconds after which a silent leader is taken over."""
    renew_deadline: float = 10.0
    """Seconds without a renewal after which a leader stops by itself."""
    retry: float = 2.0
    """Seconds between two reads of the lease."""

    def __post_init__(self) -> None:
        if not self.retry < self.renew_deadline < self.duration:
            raise Rejected(
                f"lease times out of order: {self.retry}, {self.renew_deadline}, {self.duration}",
                hint="retry < renew deadline < duration",
            )


class Term:
    """A time as leader: its number, and until when it may be acted upon."""

    def __init__(self, token: int, until: float, now: Callable[[], float]) -> None:
        self.token = token
        self._until = until
        self._now = now

    def extend(self, until: float) -> None:
        self._until = until

    def end(self) -> None:
        self._until = float("-inf")

    @property
    def left(self) -> float:
        """Seconds for which this may still be acted upon."""
        return self._until - self._now()

    @property
    def is_valid(self) -> bool:
        return self.left > 0

    def check(self) -> None:
        if not self.is_valid:
            raise Conflict(
                f"no longer the leader, term: {self.token}", hint="the next leader continues"
            )


class Election:
    """Stands for a lease, leads while holding it, and stands again after losing it."""

    def __init__(
        self,
        client: Client,
        candidacy: Candidacy,
        clock: clocks.Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._candidacy = candidacy
        self._clock = clock or clocks.Clock()
        self._chance = chance
        self._seen = ""
        self._observed_at = 0.0
        self._highest = -1
        self._held: Object | None = None

    async def run(self, lead: Callable[[Term], Awaitable[None]]) -> None:
        """Lead whenever elected, until the work ends or we are cancelled."""
        while True:
            term = await self._acquire()
            try:
                if not await self._reign(term, lead):
                    return
            finally:
                # Only after the work has ended: whoever sees the lease free begins at once.
                term.end()
                await self._release()

    async def _acquire(self) -> Term:
        while True:
            asked = self._clock.monotonic()
            if await self._try():
                term = Term(self._token(), asked + self._candidacy.renew_deadline, self._now)
                log.info("kubernetes.leader.elected", lease=str(self._key), term=term.token)
                return term
            # Spread, so that candidates do not all ask in the same moment.
            await self._clock.sleep(self._candidacy.retry * (1 + self._chance() / 5))

    async def _reign(self, term: Term, lead: Callable[[Term], Awaitable[None]]) -> bool:
        """Lead and renew side by side; the end of either ends both. True: the term was lost."""
        renewing = asyncio.ensure_future(self._renew(term))
        leading = asyncio.ensure_future(lead(term))
        try:
            await asyncio.wait((renewing, leading), return_when=asyncio.FIRST_COMPLETED)
            ended = leading.done()
        finally:
            renewing.cancel()
            leading.cancel()
            await asyncio.gather(renewing, leading, return_exceptions=True)
        if ended:
            leading.result()
        return not ended

    async def _renew(self, term: Term) -> None:
        """Keep the term alive; returns when it is lost."""
        while term.is_valid:
            await self._clock.sleep(min(self._candidacy.retry, term.left))
            # The term is counted from before the request: the answer may have been slow.
            asked = self._clock.monotonic()
            renewed = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, term.left)):
                    renewed = await self._try()
            if self._held is None or self._token() != term.token:
                break
            if renewed:
                term.extend(asked + self._candidacy.renew_deadline)
        log.warning("kubernetes.leader.lost", lease=str(self._key), term=term.token)

    async def _try(self) -> bool:
        """Take or renew the lease if it is ours to take; False for not now."""
        try:
            lease = await self._client.get(LEASES, self._key)
        except NotFound:
            self._held = None
            # Somebody deleted the lease: the count goes on from the last one that we saw.
            return await self._write(self._client.create, _new(self._key), term=self._highest + 1)
        except FairleadError as error:
            log.warning("kubernetes.leader.unreachable", error=str(error))
            return False
        self._reconcile_key(lease)
        spec = lease.get("spec") or {}
        holder, term = spec.get("holderIdentity") or "", int(spec.get("leaseTransitions") or 0)
        if holder == self._candidacy.identity and self._held is not None:
            return await self._write(self._client.replace, lease, term=term)
        self._held = None
        ours = holder in {"", self._candidacy.identity}
        if not ours and self._now() < self._observed_at + self._duration_of(spec):
            return False
        return await self._write(self._client.replace, lease, term=term + 1)

    async def _write(
        self, how: Callable[[Resource, Object], Awaitable[Object]], lease: Object, *, term: int
    ) -> bool:
        """The write carries the version that was read: of two candidates one gets a conflict."""
        spec = dict(lease.get("spec") or {})
        now = clocks.format_micro_time(self._clock.now())
        if self._held is None:
            spec["acquireTime"] = now
        spec["holderIdentity"] = self._candidacy.identity
        spec["leaseDurationSeconds"] = math.ceil(self._candidacy.duration)
        spec["leaseTransitions"] = term
        spec["renewTime"] = now
        try:
            self._held = await how(LEASES, {**lease, "spec": spec})
        except Conflict:
            return False
        except FairleadError as error:
            log.warning("kubernetes.leader.unreachable", error=str(error))
            return False
        self._reconcile_key(self._held)
        return True

    async def _release(self) -> None:
        lease, self._held = self._held, None
        if lease is None:
            return
        spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        # Versioned: where another took over meanwhile, its lease stays as it is.
        with contextlib.suppress(FairleadError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._client.replace(LEASES, {**lease, "spec": spec})
                log.info("kubernetes.leader.released", lease=str(self._key))

    def _reconcile_key(self, lease: Object) -> None:
        spec = lease.get("spec") or {}
        self._highest = max(self._highest, int(spec.get("leaseTransitions") or 0))
        version = objects.version_of(lease)
        if version != self._seen:
            self._seen, self._observed_at = version, self._now()

    def _duration_of(self, spec: Object) -> float:
        return float(spec.get("leaseDurationSeconds") or self._candidacy.duration)

    def _token(self) -> int:
        return int(self._held["spec"]["leaseTransitions"]) if self._held else -1

    @property
    def _key(self) -> Key:
        return self._candidacy.key

    def _now(self) -> float:
        return self._clock.monotonic()


def _new(key: Key) -> Object:
    meta = {"namespace": key.namespace, "name": key.name}
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta}
