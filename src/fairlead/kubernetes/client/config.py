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

import yaml

from fairlead.adapters.kubernetes import clock as clocks
from fairlead.adapters.kubernetes import credentials as credential_sources
from fairlead.adapters.kubernetes.credentials import Certificate, Credentials, Identity
from fairlead.adapters.kubernetes.oidc import Oidc, OidcSpec
from fairlead.errors import Rejected

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
        raise Rejected("the kubeconfig names no current context", hint="choose one with --context")
    chosen = found.get("contexts", wanted)
    cluster = found.get("clusters", str(chosen.value.get("cluster", "")))
    user = found.get("users", str(chosen.value.get("user", "")))
    name = cluster.value.get("tls-server-name")
    return Connection(
        server=str(cluster.value["server"]).rstrip("/"),
        credentials=_credentials(user, cluster, env, clock),
        ca=cluster.bytes("certificate-authority"),
        verify=not cluster.value.get("insecure-skip-tls-verify", False),
        server_name=str(name) if name else None,
        proxy=cluster.value.get("proxy-url"),
        namespace=str(chosen.value.get("namespace") or "default"),
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
    """One named entry, and the folder its relative paths start from."""

    name: str
    value: Mapping[str, Any] = dataclasses.field(repr=False)
    folder: Path

    def bytes(self, field: str) -> bytes | None:
        """Inline `field`-data (base64) goes before the file named by `field`."""
        if data := self.value.get(f"{field}-data"):
            return _decode(str(data), f"{self.name}.{field}-data")
        if path := self.value.get(field):
            return _read(self.folder / str(path))
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Merged:
    current: str
    sections: Mapping[str, Mapping[str, _Entry]] = dataclasses.field(repr=False)

    def get(self, section: str, name: str) -> _Entry:
        if name not in self.sections[section]:
            known = ", ".join(sorted(self.sections[section])) or "none"
            raise Rejected(f"not in the kubeconfig, {section}: {name}", hint=f"it names: {known}")
        return self.sections[section][name]


def _merge(paths: Sequence[Path]) -> _Merged:
    present = [path for path in paths if path.exists()]
    if not present:
        raise Rejected(
            f"no kubeconfig there: {', '.join(map(str, paths))}", hint="set KUBECONFIG to one"
        )
    current = ""
    sections: dict[str, dict[str, _Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    for path in present:
        document = _parse(path)
        current = current or str(document.get("current-context") or "")
        for section, entries in sections.items():
            for item in document.get(section) or ():
                name, value = str(item["name"]), item.get(section[:-1]) or {}
                entries.setdefault(name, _Entry(name, value, path.parent))
    return _Merged(current, sections)


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(_read(path))
    except yaml.YAMLError:
        # No cause: YAML errors quote the line, and the line may be a token.
        raise Rejected(f"the kubeconfig is not YAML: {path}", hint="look at the file") from None
    if not isinstance(document, dict):
        raise Rejected(f"the kubeconfig is not a mapping: {path}", hint="look at the file")
    return document


def _credentials(
    user: _Entry, cluster: _Entry, env: Mapping[str, str], clock: clocks.Clock
) -> Credentials:
    value = user.value
    if exec_plugin := value.get("exec"):
        return credential_sources.ExecPlugin(_exec_spec(user, exec_plugin, cluster), env, clock)
    if provider := value.get("auth-provider"):
        return Oidc(_oidc_spec(user, provider), clock)
    if "username" in value:
        raise Rejected(
            f"the API server takes no passwords: user {user.name}", hint="use a token instead"
        )
    chain, key = user.bytes("client-certificate"), user.bytes("client-key")
    certificate = Certificate(chain, key) if chain and key else None
    # As with kubectl, an inline token goes before a token file.
    if value.get("tokenFile") and not value.get("token"):
        return credential_sources.TokenFile(user.folder / str(value["tokenFile"]), clock)
    return credential_sources.Fixed(Identity(str(value.get("token") or ""), certificate))


def _exec_spec(
    user: _Entry, plugin: Mapping[str, Any], cluster: _Entry
) -> credential_sources.ExecSpec:
    command = str(plugin["command"])
    # A path with a separator is relative to the kubeconfig; a bare name is looked up on PATH.
    if os.sep in command:
        command = str(user.folder / command)
    told = None
    if plugin.get("provideClusterInfo"):
        names = ("server", "certificate-authority-data", "tls-server-name", "proxy-url")
        told = {name: cluster.value[name] for name in names if name in cluster.value}
    return credential_sources.ExecSpec(
        command=command,
        args=tuple(map(str, plugin.get("args") or ())),
        env=tuple((str(e["name"]), str(e["value"])) for e in plugin.get("env") or ()),
        api_version=str(plugin.get("apiVersion") or ""),
        install_hint=" ".join(str(plugin.get("installHint") or "").split()),
        cluster=told,
    )


def _oidc_spec(user: _Entry, provider: Mapping[str, Any]) -> OidcSpec:
    if provider.get("name") != "oidc":
        raise Rejected(
            f"unknown auth-provider: {provider.get('name')}", hint="use an exec plug-in instead"
        )
    settings = {key: str(value) for key, value in (provider.get("config") or {}).items()}
    return OidcSpec(
        issuer=settings.get("idp-issuer-url", ""),
        client_id=settings.get("client-id", ""),
        client_secret=settings.get("client-secret", ""),
        id_token=settings.get("id-token", ""),
        refresh_token=settings.get("refresh-token", ""),
        ca=_Entry(user.name, settings, user.folder).bytes("idp-certificate-authority"),
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


def _decode(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Rejected(f"not base64 in the kubeconfig: {what}", hint="look at the file") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Rejected(f"cannot read: {path}", hint="check that it exists and is ours") from error
