"""Keys and certificates of one cluster: its own authority, its server, its users.

They live as long as the cluster, on loopback, and are never kept.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import oid

_LIFE = dt.timedelta(days=7)
_RSA_BITS = 2048
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs for one cluster."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(oid.NameOID.COMMON_NAME, "test cluster")])
        usage = x509.BasicConstraints(ca=True, path_length=None)
        certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self) -> Credential:
        loopback = ipaddress.IPv4Address("127.0.0.1")
        names = [x509.IPAddress(loopback), *(x509.DNSName(name) for name in _SERVER_NAMES)]
        return self._issue("server", [], x509.SubjectAlternativeName(names))

    def user(self, name: str, groups: Sequence[str] = ()) -> Credential:
        """Kubernetes reads the user from the common name, the groups from organizations."""
        return self._issue(name, groups, None)

    def service_account_key(self) -> Path:
        key = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)
        return _write_key(self._folder / "service-accounts.key", key)

    def _issue(
        self, name: str, groups: Sequence[str], names: x509.SubjectAlternativeName | None
    ) -> Credential:
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [
            x509.NameAttribute(oid.NameOID.ORGANIZATION_NAME, group) for group in groups
        ]
        subject = x509.Name(
            [x509.NameAttribute(oid.NameOID.COMMON_NAME, name), *organizations],
        )
        usages = [oid.ExtendedKeyUsageOID.SERVER_AUTH, oid.ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = self._builder(subject, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        serial = f"{certificate.serial_number:x}"
        path = self._folder / f"{serial}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return Credential(path, _write_key(self._folder / f"{serial}.key", key))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            # An hour back, for clocks that are set while a test runs.
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + _LIFE)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(authority, critical=False)
        )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return path
