"""Whether what a status remembers is our own: a keyed digest over it and over whose it is.

Whoever may write the status of an object could else have the operator go on from a state of their
choice, with rights that they lack. The key is in a Secret of the operator's own namespace, made by
whoever needs it first, and the same for all replicas and shards
(docs/decisions/0039-what-a-status-may-say.md).
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Any

import msgspec
import structlog

from fairlead.errors import Conflict, Corrupt, NotFound, Unauthorised
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.kinds import stream_key
from fairlead.kubernetes.objects import Key, Object

log = structlog.get_logger(__name__)
_BYTES = 32
_FIELD = "key"


class Seals:
    """Makes and checks seals with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, obj: Object, content: object) -> str:
        """The seal of this content on this very object; one made again under its name differs."""
        text = msgspec.json.encode([stream_key(obj), _canonical(content)], order="sorted")
        return hmac.new(self._key, text, hashlib.sha256).hexdigest()

    def holds(self, obj: Object, content: object, seal: str) -> bool:
        return hmac.compare_digest(self.of(obj, content).encode(), seal.encode())


async def load(client: Client, place: Key) -> Seals:
    """The seals of this installation; of this process only, where it may not read the Secret."""
    try:
        return Seals(_read(await _found(client, place), place))
    except Unauthorised as error:
        log.warning(
            "kubernetes.seals.unkept",
            secret=str(place),
            error=error.message,
            hint="without this right a restart with an empty store adopts no status",
        )
        return Seals(secrets.token_bytes(_BYTES))


async def _found(client: Client, place: Key) -> Object:
    try:
        return await client.get(rbac.SECRETS, place)
    except NotFound:
        key = base64.b64encode(secrets.token_bytes(_BYTES)).decode()
        made: Object = {
            "apiVersion": rbac.SECRETS.api_version,
            "kind": rbac.SECRETS.kind,
            "metadata": {"namespace": place.namespace, "name": place.name},
            # Whoever changes the key has all statuses refused at once; deleting it says so.
            "immutable": True,
            "data": {_FIELD: key},
        }
        try:
            return await client.create(rbac.SECRETS, made)
        except Conflict:
            # Another replica was first: there is one key, and it is theirs.
            return await client.get(rbac.SECRETS, place)


def _read(secret: Object, place: Key) -> bytes:
    try:
        key = base64.b64decode((secret.get("data") or {}).get(_FIELD, ""), validate=True)
    except binascii.Error:
        key = b""
    if len(key) < _BYTES:
        raise Corrupt(
            f"no key of {_BYTES} bytes in Secret: {place}",
            hint="delete the Secret; the operator makes another and adopts no older status",
        )
    return key


def _canonical(value: Any) -> Any:
    """The same before and after an API server: it writes 1.0 as 1, and may drop a null."""
    match value:
        case dict():
            return {key: _canonical(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return [_canonical(each) for each in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
