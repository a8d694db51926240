"""Who we say we are: sources of a token or a client certificate, renewed before they end.

Nothing here shows a secret: `Identity` hides its fields from repr, and errors name the source
(a path, a command), never what it gave.
"""

import asyncio
import dataclasses
import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import msgspec

from fairlead.errors import Rejected, Unauthorised, Unavailable
from fairlead.kubernetes.client import clock as clocks
from fairlead.values import redacted

# The kubelet renews a projected token at 80 % of its life; a minute is what client-go takes.
_REREAD_SECONDS = 60.0
# Renew a little before the end: the clocks differ, and the request is still to travel.
_MARGIN = timedelta(seconds=30)
_EXEC_TIMEOUT = 60.0
_MOST_WORDS = 400
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclasses.dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, in PEM."""

    chain: bytes = dataclasses.field(repr=False)
    key: bytes = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """What one request carries to show who asks."""

    token: str = dataclasses.field(default="", repr=False)
    certificate: Certificate | None = dataclasses.field(default=None, repr=False)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class Credentials(Protocol):
    """A source of identities."""

    async def current(self) -> Identity:
        """The identity to use now; may read a file, run a plug-in or ask an issuer."""
        ...

    def refused(self, identity: Identity) -> bool:
        """The server did not know this one. True where asking again may bring another."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Fixed:
    """One identity for good."""

    identity: Identity = Identity()

    async def current(self) -> Identity:
        return self.identity

    def refused(self, identity: Identity) -> bool:
        del identity
        return False


class TokenFile:
    """A token that somebody else keeps fresh in a file: the kubelet, or a side-car."""

    def __init__(self, path: Path, clock: clocks.Clock) -> None:
        self._path = path
        self._clock = clock
        self._identity = Identity()
        self._read_at: float | None = None

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    async def current(self) -> Identity:
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _REREAD_SECONDS:
            self._identity = Identity(token=self._read())
            self._read_at = now
        return self._identity

    def refused(self, identity: Identity) -> bool:
        self._read_at = None
        return self._read() != identity.token

    def _read(self) -> str:
        try:
            return self._path.read_text().strip()
        except OSError as error:
            raise Unauthorised(
                f"cannot read the token file: {self._path}", hint="check that it is mounted"
            ) from error


@dataclasses.dataclass(frozen=True, slots=True)
class ExecSpec:
    """An exec plug-in of a kubeconfig: a program and its arguments, never a shell line."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = dataclasses.field(default=(), repr=False)
    api_version: str = _EXEC_VERSIONS[0]
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.api_version not in _EXEC_VERSIONS:
            raise Rejected(
                f"exec plug-in speaks an unknown version: {self.api_version}",
                hint=f"use {_EXEC_VERSIONS[0]}",
            )


class ExecCredential(msgspec.Struct, rename="camel"):
    """The part of a plug-in's answer that we read."""

    api_version: str
    kind: str
    status: "ExecStatus | None" = None


class ExecStatus(msgspec.Struct, rename="camel"):
    """What the plug-in vouches for."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecPlugin:
    """Runs a kubeconfig's program and keeps its answer until it ends."""

    def __init__(self, spec: ExecSpec, env: Mapping[str, str], clock: clocks.Clock) -> None:
        self._spec = spec
        self._env = dict(env)
        self._clock = clock
        self._lock = asyncio.Lock()
        self._identity: Identity | None = None
        self._ends: datetime | None = None

    def __repr__(self) -> str:
        return f"ExecPlugin({self._spec.command!r})"

    async def current(self) -> Identity:
        # The lock makes one run of the program serve all requests that wait for it.
        async with self._lock:
            if self._identity is None or self._has_ended():
                status = await self._run()
                self._identity = _identity_of(status)
                self._ends = status.expiration_timestamp
            return self._identity

    def refused(self, identity: Identity) -> bool:
        if self._identity == identity:
            self._identity = None
        return True

    def _has_ended(self) -> bool:
        return self._ends is not None and self._clock.now() >= self._ends - _MARGIN

    async def _run(self) -> ExecStatus:
        said = await _output(self._spec, self._environment())
        try:
            credential = msgspec.json.decode(said, type=ExecCredential)
        except msgspec.MsgspecError:
            # Neither text nor cause are passed on: they could hold the token.
            raise self._unusable("its answer is not an ExecCredential") from None
        if credential.api_version != self._spec.api_version:
            raise self._unusable(f"it answered in version {credential.api_version}")
        if credential.status is None:
            raise self._unusable("its answer has no status")
        return credential.status

    def _environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": False}
        if self._spec.cluster is not None:
            spec["cluster"] = dict(self._spec.cluster)
        info = {"apiVersion": self._spec.api_version, "kind": "ExecCredential", "spec": spec}
        told = {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        return {**self._env, **dict(self._spec.env), **told}

    def _unusable(self, why: str) -> Unauthorised:
        return Unauthorised(
            f"exec plug-in failed, {why}: {self._spec.command}",
            hint="run the plug-in by hand and check its output",
        )


def _identity_of(status: ExecStatus) -> Identity:
    certificate = None
    if status.client_certificate_data and status.client_key_data:
        chain, key = status.client_certificate_data, status.client_key_data
        certificate = Certificate(chain.encode(), key.encode())
    return Identity(status.token, certificate)


async def _output(spec: ExecSpec, env: Mapping[str, str]) -> bytes:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            spec.command, *spec.args, stdin=nothing, stdout=pipe, stderr=pipe, env=env
        )
    except OSError as error:
        raise Unauthorised(
            f"cannot run the exec plug-in: {spec.command}",
            hint=spec.install_hint or "install it, or put it on PATH",
        ) from error
    try:
        async with asyncio.timeout(_EXEC_TIMEOUT):
            said, talk = await process.communicate()
    except TimeoutError as error:
        raise Unavailable(
            f"the exec plug-in gave no answer in {_EXEC_TIMEOUT:.0f} s: {spec.command}",
            hint="run it by hand; it may wait for a person",
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != os.EX_OK:
        raise Unauthorised(
            f"the exec plug-in {spec.command} failed with exit code {process.returncode}:"
            f" {_words(talk)}",
            hint=spec.install_hint or "run it by hand; it may need a new login",
        )
    return said


def _words(talk: bytes) -> str:
    """What a plug-in says to people, its end; standard output is never told: it has the token."""
    said = " ".join(talk.decode(errors="replace").split())
    return redacted(said)[-_MOST_WORDS:] or "it says nothing"
