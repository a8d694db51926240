"""Which line of a store's history this is, so that idempotency keys of two never meet.

After a restore from a backup, or a failover that lost commits, a stream writes the same event
numbers again for other data. The outside would take such an effect for one it has performed.
So keys carry an epoch: letters drawn anew when the store is found in another place than where
it was left, or when a person says so (docs/decisions/0035). An effect keeps the epoch of its
birth in its row: one that was in the backup keeps the key under which it may have been done.
"""

import secrets

from fairlead.engine.store import protocol

_FACT = "epoch"
UNKNOWN = ""
"""Where a store cannot say where it is, only a person starts a new epoch."""


def current(session: protocol.Session, place: str) -> str:
    """The epoch of a store found at this place; a new one if it was left at another."""
    while True:
        seen, was, epoch = _read(session)
        if place in (was, UNKNOWN):
            return epoch
        # A place that is known for the first time is no move.
        now = epoch if was == UNKNOWN else _new()
        session.rows("swap_fact", name=_FACT, seen=seen, value=_text(place, now))


def renew(session: protocol.Session) -> str:
    """A new epoch, because a person says that the store was restored."""
    while True:
        seen, was, before = _read(session)
        fresh = _new()
        session.rows("swap_fact", name=_FACT, seen=seen, value=_text(was, fresh))
        _, _, epoch = _read(session)
        # Another process may have been quicker: its epoch is as new as ours.
        if epoch != before:
            return epoch


def _read(session: protocol.Session) -> tuple[str, str, str]:
    if not session.rows("get_fact", name=_FACT):
        session.rows("put_fact", name=_FACT, value=_text(UNKNOWN, ""))
    ((value,),) = session.rows("get_fact", name=_FACT)
    place, _, epoch = str(value).partition(" ")
    return str(value), place, epoch


def _text(place: str, epoch: str) -> str:
    return f"{place} {epoch}"


def _new() -> str:
    return secrets.token_hex(4)
