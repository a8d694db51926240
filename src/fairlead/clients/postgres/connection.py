"""Connections to any PostgreSQL, also behind a pooler, and how patient they are with locks."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from fairlead import errors

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a statement waits for a lock, and how often it is tried again."""

    lock_seconds: float = 5.0
    attempts: int = 10
    pause_seconds: float = 2.0
    sleep: Callable[[float], None] = field(default=time.sleep, compare=False)
    tell: Callable[[str], None] = field(default=lambda _: None, compare=False)


def connect(url: str, database: str = "") -> Connection:
    """To the URL's database or another one of its server; of the URL, only where it leads is told.

    Nothing is prepared, so that a pooler may stand in between.
    """
    try:
        parameters: dict[str, Any] = {"connect_timeout": 10, **_parts(url)}
        if database:
            parameters["dbname"] = database
        return psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise errors.Unavailable(
            f"cannot reach the database: {where(url)}",
            hint="check host, port, user and password of the URL",
        ) from error


def conninfo(**parts: str | int) -> str:
    """An address from its parts, whatever characters these have."""
    return psycopg.conninfo.make_conninfo("", **parts)


def of_database(url: str, database: str) -> str:
    """The same server and user, another database."""
    return psycopg.conninfo.make_conninfo("", **{**_parts(url), "dbname": database})


def as_user(url: str, user: str, password: str) -> str:
    """The same server and database, another user."""
    return psycopg.conninfo.make_conninfo("", **{**_parts(url), "user": user, "password": password})


def address(url: str) -> dict[str, str]:
    """Host (or the folder of a socket) and port, as a program that signs in needs them."""
    parts = _parts(url)
    return {"host": str(parts.get("host", "localhost")), "port": str(parts.get("port", 5432))}


def where(url: str) -> str:
    """The server's address without user or password."""
    try:
        parts = _parts(url)
    except psycopg.Error:
        return "a malformed URL"
    return f"{parts.get('host', 'local socket')}/{parts.get('dbname', '')}"


def _parts(url: str) -> dict[str, Any]:
    return psycopg.conninfo.conninfo_to_dict(url)
