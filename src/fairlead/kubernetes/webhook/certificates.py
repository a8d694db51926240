"""The webhook's own certificates: made here, shared by a Secret, renewed before they end.

Every replica does the same in the same order: ask the webhook configurations by which names they
call us, read the Secret (or make it), tell the configurations whom to trust, give the API servers
time to hear of it, then serve with it. The bundle holds the authority before, too, so a replica
that is a minute behind is still trusted. An authority signs once; its key is never kept.
"""

import base64
import dataclasses
import ipaddress
import ssl
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib import parse

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead.errors import Conflict, Corrupt, FairleadError, NotFound
from fairlead.kubernetes import objects, rbac
from fairlead.kubernetes.client import clock as clocks
from fairlead.kubernetes.client import config
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.credentials import Certificate
from fairlead.kubernetes.objects import Key, Object, Resource

log = structlog.get_logger(__name__)

_LIFETIME = timedelta(days=90)
# Clocks differ: a certificate is valid a little before it was made.
_SKEW = timedelta(hours=1)
# API servers hear of a new bundle by a watch; a certificate served before they do is refused.
_SPREAD = timedelta(seconds=10)


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A serving certificate with its key, and the authority that vouches for it."""

    authority: bytes
    certificate: Certificate
    ends: datetime
    hosts: frozenset[str] = frozenset()

    def is_due(self, now: datetime) -> bool:
        """True in the last third of its life: time enough to fail for weeks."""
        return now >= self.ends - _LIFETIME / 3

    def is_fresh(self, now: datetime) -> bool:
        """True where it follows another one, and not every API server may know it yet."""
        return self.follows and now < self.ends - _LIFETIME + _SPREAD

    @property
    def follows(self) -> bool:
        return first(self.authority) != self.authority


@dataclasses.dataclass(frozen=True, slots=True)
class CertificatePlace:
    """Where the webhook is: its Secret, and the objects that point at it."""

    secret: Key
    hosts: tuple[str, ...] = ()
    """Names and addresses beyond those by which the configurations call us."""

    configurations: tuple[tuple[Resource, str], ...] = ()


class Certificates:
    """Keeps the TLS settings of the webhook server good."""

    def __init__(
        self, client: Client, place: CertificatePlace, clock: clocks.Clock | None = None
    ) -> None:
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._client = client
        self._place = place
        self._clock = clock or clocks.Clock()
        self._served: Pair | None = None
        self.trouble = "no certificate yet"
        """Why nothing can be served; empty where it can, or where nobody asks."""

    async def run(self, every: float = 60.0) -> None:
        """Keep them valid until cancelled; a failure is tried again next time."""
        absent = False
        while True:
            try:
                await self.ensure()
                absent = False
            except NotFound as error:
                # Nobody asks us, so nobody misses an answer: logged once, no trouble.
                if not absent:
                    log.info("kubernetes.certificates.no_webhook", error=str(error))
                absent, self.trouble = True, ""
            except FairleadError as error:
                log.warning("kubernetes.certificates.failed", error=str(error))
                self.trouble = "" if self._served else str(error)
            await self._clock.sleep(every)

    async def ensure(self) -> None:
        """Good certificates in the Secret, trusted by the API server, served by us."""
        places = self._place.configurations
        found = [(which, await self._client.get(which, Key("", name))) for which, name in places]
        pair = await self._current(self._hosts([obj for _, obj in found]))
        news = [await self._inject(which, obj, pair.authority) for which, obj in found]
        if self._served is not None and pair.certificate == self._served.certificate:
            return
        if pair.is_fresh(self._clock.now()) or (pair.follows and any(news)):
            await self._clock.sleep(_SPREAD.total_seconds())
        # On a context in use this holds for new connections; the old ones end in peace.
        config.load_certificate(self.context, pair.certificate)
        self._served, self.trouble = pair, ""
        log.info("kubernetes.certificates.served", ends=pair.ends.isoformat())

    def _hosts(self, configurations: Sequence[Object]) -> tuple[str, ...]:
        called = [host for one in configurations for host in _called(one)]
        hosts = tuple(dict.fromkeys([*self._place.hosts, *called]))
        if not hosts:
            names = ", ".join(name for _, name in self._place.configurations)
            raise NotFound(f"no webhook in the configuration: {names}", hint="install a kind")
        return hosts

    async def _current(self, hosts: tuple[str, ...]) -> Pair:
        try:
            secret = await self._client.get(rbac.SECRETS, self._place.secret)
        except NotFound:
            # A person may have deleted it to get a new one: the replicas still serve the old.
            return await self._store(None, self._served, hosts)
        pair = _read(secret)
        good = pair is not None and not pair.is_due(self._clock.now())
        if pair is not None and good and pair.hosts.issuperset(hosts):
            return pair
        return await self._store(secret, pair, hosts)

    async def _store(self, secret: Object | None, old: Pair | None, hosts: tuple[str, ...]) -> Pair:
        new = make(hosts, self._clock.now())
        if old is not None:
            # The newest first; of older ones only the last, or the bundle would grow for good.
            kept = new.authority + first(old.authority)
            new = dataclasses.replace(new, authority=kept)
        try:
            await self._write(secret, new)
        except Conflict:
            # Another replica was faster: its pair is the one that all shall serve.
            stored = _read(await self._client.get(rbac.SECRETS, self._place.secret))
            if stored is None:
                raise
            return stored
        return new

    async def _write(self, secret: Object | None, pair: Pair) -> None:
        data = {
            "ca.crt": pair.authority,
            "tls.crt": pair.certificate.chain,
            "tls.key": pair.certificate.key,
        }
        coded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        if secret is not None:
            await self._client.replace(rbac.SECRETS, {**secret, "data": coded})
            return
        key = self._place.secret
        body: Object = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
        body["metadata"] = {"namespace": key.namespace, "name": key.name}
        await self._client.create(rbac.SECRETS, {**body, "data": coded})

    async def _inject(self, resource: Resource, found: Object, authority: bytes) -> bool:
        """Tell it whom to trust; True where it did not know."""
        desired = base64.b64encode(authority).decode()
        change = [
            operation
            for index, hook in enumerate(found.get("webhooks") or ())
            if (hook.get("clientConfig") or {}).get("caBundle") != desired
            for operation in _trusting(index, hook["name"], desired)
        ]
        if change:
            key = objects.key_of(found)
            await self._client.patch(resource, key, change, kind="json")
            log.info("kubernetes.certificates.trusted", configuration=key.name)
        return bool(change)


def make(hosts: Sequence[str], now: datetime) -> Pair:
    """A new authority, and a serving certificate by it for these names and addresses."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("fairlead webhook authority")
    ends = now + _LIFETIME
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), (now - _SKEW, ends))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signing(), critical=True)
        .add_extension(_subject(authority_key), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    served = (
        _builder(_name(hosts[0][:64]), authority_name, key.public_key(), (now - _SKEW, ends))
        .add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(_subject(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = Certificate(served.public_bytes(pem), private)
    return Pair(authority.public_bytes(pem), chain, ends, frozenset(hosts))


def _read(secret: Object) -> Pair | None:
    """The pair in a Secret; None where the Secret holds none (a person may have made it)."""
    data = secret.get("data") or {}
    if not {"ca.crt", "tls.crt", "tls.key"} <= data.keys():
        return None
    authority, chain, key = (base64.b64decode(data[n]) for n in ("ca.crt", "tls.crt", "tls.key"))
    try:
        shown = x509.load_pem_x509_certificate(chain)
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        raise Corrupt(
            f"no certificate in the Secret: {objects.key_of(secret)}",
            hint="delete the Secret; a new one is made",
        ) from None
    hosts = frozenset(str(name.value) for name in names)
    return Pair(authority, Certificate(chain, key), shown.not_valid_after_utc, hosts)


def _called(configuration: Object) -> list[str]:
    """The names by which the API server calls the webhooks of a configuration."""
    hosts = []
    for hook in configuration.get("webhooks") or ():
        asked = hook.get("clientConfig") or {}
        if service := asked.get("service"):
            hosts.append(f"{service['name']}.{service['namespace']}.svc")
        elif host := parse.urlsplit(asked.get("url") or "").hostname:
            hosts.append(host)
    return hosts


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    valid: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
    )


def _signing() -> x509.KeyUsage:
    named = dict.fromkeys(
        (
            *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
            *("key_agreement", "crl_sign", "encipher_only", "decipher_only"),
        ),
        False,
    )
    return x509.KeyUsage(key_cert_sign=True, **named)


def _subject(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def first(bundle: bytes) -> bytes:
    """The newest authority of a bundle."""
    end = b"-----END CERTIFICATE-----\n"
    return bundle.partition(end)[0] + end


def _trusting(index: int, name: str, bundle: str) -> list[Object]:
    # The test holds the place: a person may have changed the order meanwhile.
    return [
        {"op": "test", "path": f"/webhooks/{index}/name", "value": name},
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle},
    ]
