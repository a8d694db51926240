"""Where the API server is and who we are there: from a kubeconfig, or from inside a pod.

Only bootstrap reads the environment; it hands the mapping in.
"""

import base64
import binascii
import dataclasses
import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog
import yaml

from fairlead.errors import Rejected
from fairlead.kubernetes.client import clock as clocks
from fairlead.kubernetes.client import credentials as credential_sources
from fairlead.kubernetes.client.credentials import Certificate, Credentials, Identity
from fairlead.kubernetes.client.oidc import Oidc, OidcSpec

log = structlog.get_logger(__name__)
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclasses.dataclass(frozen=True, slots=True)
class Connection:
    """All a client needs to reach one API server."""

    server: str
    credentials: Credentials
    ca: bytes | None = dataclasses.field(default=None, repr=False)
    verify: bool = True
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"
    impersonate: tuple[tuple[str, str], ...] = ()

    def trust(self, certificate: Certificate | None) -> ssl.SSLContext:
        """The TLS settings: whom we believe, and the certificate we show."""
        context = ssl.create_default_context(cadata=self.ca.decode() if self.ca else None)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            load_certificate(context, certificate)
        return context


def in_cluster(
    env: Mapping[str, str], clock: clocks.Clock, folder: Path = SERVICE_ACCOUNT
) -> Connection:
    """The connection a pod is given: its service account, with the token re-read as it rotates."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise Rejected(
            "not inside a cluster: KUBERNETES_SERVICE_HOST is not set", hint="give a kubeconfig"
        )
    address = f"[{host}]" if ":" in host else host
    return Connection(
        server=f"https://{address}:{port}",
        credentials=credential_sources.TokenFile(folder / "token", clock),
        ca=_read(folder / "ca.crt"),
        namespace=_read(folder / "namespace").decode().strip(),
    )


def from_kubeconfig(
    paths: Sequence[Path], env: Mapping[str, str], clock: clocks.Clock, context: str = ""
) -> Connection:
    """The connection of a kubeconfig's context; of several files the first to name it wins."""
    found = _merge(paths)
    wanted = context or found.current
    if not wanted:
        raise Rejected(
            f"no current-context: {found.files}", hint="set one, or choose one with --context"
        )
    chosen = found.get("contexts", wanted)
    cluster = found.get("clusters", chosen.text("cluster"))
    user = found.get("users", chosen.text("user"))
    verify = not cluster.value.get("insecure-skip-tls-verify", False)
    if not verify:
        log.warning(
            "kubernetes.server_not_verified",
            because=cluster.at("insecure-skip-tls-verify"),
            server=cluster.text("server"),
        )
    return Connection(
        server=cluster.need("server").rstrip("/"),
        credentials=_credentials(user, cluster, env, clock),
        ca=cluster.bytes("certificate-authority"),
        verify=verify,
        server_name=cluster.text("tls-server-name") or None,
        proxy=cluster.text("proxy-url") or None,
        namespace=chosen.text("namespace") or "default",
        impersonate=_impersonation(user.value),
    )


def load_certificate(context: ssl.SSLContext, certificate: Certificate) -> None:
    # OpenSSL's Python face loads a key only from a file: a private one, gone right after.
    with tempfile.TemporaryDirectory() as folder:
        pem = Path(folder) / "identity.pem"
        pem.touch(mode=0o600)
        pem.write_bytes(certificate.chain + b"\n" + certificate.key)
        try:
            context.load_cert_chain(pem)
        except (ssl.SSLError, ValueError) as error:
            raise Rejected(
                "the client certificate and its key do not fit", hint="renew both together"
            ) from error


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    """One part of a kubeconfig, and where it stands: errors name the file and the field."""

    where: str
    value: Mapping[str, Any] = dataclasses.field(repr=False)
    path: Path

    @property
    def folder(self) -> Path:
        """Where relative paths start from."""
        return self.path.parent

    def at(self, field: str) -> str:
        return f"{self.path}: {self.where}.{field}"

    def text(self, field: str) -> str:
        """The field's text, empty where it is absent."""
        found = self.value.get(field)
        if found is not None and not isinstance(found, str):
            raise _wrong(self.at(field), "not text")
        return found or ""

    def need(self, field: str) -> str:
        found = self.text(field)
        if not found:
            raise _wrong(self.at(field), "missing")
        return found

    def inner(self, field: str) -> "_Entry | None":
        found = self.value.get(field)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise _wrong(self.at(field), "not a mapping")
        return _Entry(f"{self.where}.{field}", found, self.path)

    def listed(self, field: str) -> list[Any]:
        found = self.value.get(field)
        if found is not None and not isinstance(found, list):
            raise _wrong(self.at(field), "not a list")
        return found or []

    def bytes(self, field: str) -> bytes | None:
        """Inline `field`-data (base64) goes before the file named by `field`."""
        if data := self.text(f"{field}-data"):
            return _decode(data, self.at(f"{field}-data"))
        if path := self.text(field):
            return _read(self.folder / path, self.at(field))
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Merged:
    files: str
    current: str
    sections: Mapping[str, Mapping[str, _Entry]] = dataclasses.field(repr=False)

    def get(self, section: str, name: str) -> _Entry:
        if name not in self.sections[section]:
            known = ", ".join(sorted(self.sections[section])) or "none"
            raise Rejected(f"not in {self.files}, {section}: {name}", hint=f"there are: {known}")
        return self.sections[section][name]


def _merge(paths: Sequence[Path]) -> _Merged:
    present = [path for path in paths if path.exists()]
    if not present:
        raise Rejected(
            f"no kubeconfig there: {', '.join(map(str, paths))}",
            hint="set KUBECONFIG to one, give --kubeconfig, or run in a pod",
        )
    current = ""
    sections: dict[str, dict[str, _Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    for path in present:
        document = _Entry("kubeconfig", _parse(path), path)
        current = current or document.text("current-context")
        for section, entries in sections.items():
            for index, item in enumerate(document.listed(section)):
                if not isinstance(item, dict):
                    raise _wrong(f"{path}: {section}[{index}]", "not a mapping")
                name = _Entry(f"{section}[{index}]", item, path).need("name")
                held = _Entry(f"{section}[{name}]", item, path).inner(section[:-1])
                entries.setdefault(name, held or _Entry(f"{section}[{name}]", {}, path))
    return _Merged(", ".join(map(str, present)), current, sections)


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(_read(path))
    except yaml.YAMLError:
        # No cause: YAML errors quote the line, and the line may be a token.
        raise Rejected(f"the kubeconfig is not YAML: {path}", hint="check the file") from None
    if not isinstance(document, dict):
        raise Rejected(f"the kubeconfig is not a mapping: {path}", hint="check the file")
    return document


def _credentials(
    user: _Entry, cluster: _Entry, env: Mapping[str, str], clock: clocks.Clock
) -> Credentials:
    if exec_plugin := user.inner("exec"):
        return credential_sources.ExecPlugin(_exec_spec(exec_plugin, cluster), env, clock)
    if provider := user.inner("auth-provider"):
        return Oidc(_oidc_spec(provider), clock)
    if "username" in user.value:
        raise Rejected(
            f"the API server takes no passwords: {user.at('username')}", hint="use a token instead"
        )
    chain, key = user.bytes("client-certificate"), user.bytes("client-key")
    if (chain is None) != (key is None):
        raise _wrong(user.at("client-certificate"), "a certificate and its key go together")
    certificate = Certificate(chain, key) if chain and key else None
    # As with kubectl, an inline token goes before a token file.
    token, file = user.text("token"), user.text("tokenFile")
    if file and not token:
        return credential_sources.TokenFile(user.folder / file, clock)
    return credential_sources.Fixed(Identity(token, certificate))


def _exec_spec(plugin: _Entry, cluster: _Entry) -> credential_sources.ExecSpec:
    command = plugin.need("command")
    # A path with a separator is relative to the kubeconfig; a bare name is looked up on PATH.
    if os.sep in command:
        command = str(plugin.folder / command)
    if plugin.text("interactiveMode") == "Always":
        raise _wrong(
            plugin.at("interactiveMode"), "the plug-in asks questions, and no terminal is here"
        )
    told = None
    if plugin.value.get("provideClusterInfo"):
        names = ("server", "certificate-authority-data", "tls-server-name", "proxy-url")
        told = {name: cluster.value[name] for name in names if name in cluster.value}
    try:
        env = tuple((str(e["name"]), str(e["value"])) for e in plugin.listed("env"))
    except (KeyError, TypeError) as error:
        raise _wrong(plugin.at("env"), "not a list of name and value") from error
    return credential_sources.ExecSpec(
        command=command,
        args=tuple(map(str, plugin.listed("args"))),
        env=env,
        api_version=plugin.text("apiVersion"),
        install_hint=" ".join(plugin.text("installHint").split()),
        cluster=told,
    )


def _oidc_spec(provider: _Entry) -> OidcSpec:
    if provider.text("name") != "oidc":
        raise Rejected(
            f"unknown auth-provider: {provider.at('name')}: {provider.text('name')}",
            hint="use an exec plug-in instead",
        )
    settings = provider.inner("config") or _Entry(provider.where, {}, provider.path)
    return OidcSpec(
        issuer=settings.text("idp-issuer-url"),
        client_id=settings.text("client-id"),
        client_secret=settings.text("client-secret"),
        id_token=settings.text("id-token"),
        refresh_token=settings.text("refresh-token"),
        ca=settings.bytes("idp-certificate-authority"),
    )


def _impersonation(user: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    headers: list[tuple[str, str]] = []
    if user.get("as"):
        headers.append(("Impersonate-User", str(user["as"])))
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for name, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{name}", str(value)) for value in values]
    return tuple(headers)


def _wrong(at: str, problem: str) -> Rejected:
    return Rejected(f"{at}: {problem}", hint="check the file, or choose another --context")


def _decode(text: str, at: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _wrong(at, "not base64") from None


def _read(path: Path, at: str = "") -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        named = f", named by {at}" if at else ""
        raise Rejected(
            f"cannot read: {path}{named}", hint="check that it exists and is ours"
        ) from error
