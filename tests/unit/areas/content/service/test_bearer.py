"""Who asks, by a token: what is signed by a key of ours, and nothing that only looks so."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from hypothesis import given, strategies

from fairlead import errors
from fairlead.access import bearer
from fairlead.access.bearer import Issuer
from fairlead.areas.content.service.bearer import Bearers
from fairlead.areas.content.service.catalogue import Refusal

NOW = 1_800_000_000.0
MISSING = Refusal(401, "Missing auth token")
INVALID = Refusal(401, "Invalid/Malformed auth token")
CLAIMS = {"sub": "cluster-1", "exp": NOW + 60, "iss": "us", "aud": ["content"]}
LARGE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SMALL = rsa.generate_private_key(65537, 1024)  # noqa: S505 - refused, which is the test
POINT = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int, size: int = 0) -> str:
    return encoded(value.to_bytes(size or (value.bit_length() + 7) // 8))


def by_rsa(data: bytes) -> bytes:
    return LARGE.sign(data, padding.PKCS1v15(), hashes.SHA256())


def by_point(data: bytes) -> bytes:
    first, second = utils.decode_dss_signature(POINT.sign(data, ec.ECDSA(hashes.SHA256())))
    return first.to_bytes(32) + second.to_bytes(32)


def of_rsa(key: rsa.RSAPublicKey, name: str = "r") -> dict[str, str]:
    numbers = key.public_numbers()
    return {"kty": "RSA", "kid": name, "n": number(numbers.n), "e": number(numbers.e)}


def of_point() -> dict[str, str]:
    numbers = POINT.public_key().public_numbers()
    at = {"x": number(numbers.x, 32), "y": number(numbers.y, 32)}
    return {"kty": "EC", "crv": "P-256", "kid": "p", **at}


def of_edwards() -> dict[str, str]:
    raw = EDWARDS.public_key().public_bytes_raw()
    return {"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": encoded(raw)}


SIGNERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "RS256": ("r", by_rsa),
    "ES256": ("p", by_point),
    "EdDSA": ("e", EDWARDS.sign),
}


def token(claims: object = CLAIMS, algorithm: str = "EdDSA", **head: Any) -> str:
    name, sign = SIGNERS[algorithm]
    first = {"alg": algorithm, "typ": "JWT", "kid": name, **head}
    signed = f"{encoded(json.dumps(first).encode())}.{encoded(json.dumps(claims).encode())}"
    return f"{signed}.{encoded(sign(signed.encode()))}"


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Doors:
    """The file of keys, and what it opens."""

    file: Path
    clock: Clock = field(default_factory=Clock)

    def write(self, *keys: dict[str, str]) -> None:
        beside = self.file.with_name("new")
        beside.write_text(json.dumps({"keys": keys}))
        beside.replace(self.file)

    def opened(self, **more: str) -> Bearers:
        return Bearers(Issuer(self.file, **more), self.clock)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Doors:
    made = Doors(tmp_path_factory.mktemp("keys") / "jwks.json")
    made.write(of_rsa(LARGE.public_key()), of_point(), of_edwards())
    return made


def ask(bearers: Bearers, text: str, scheme: str = "Bearer ") -> str | Refusal:
    return bearers.identify({"authorization": f"{scheme}{text}"})


@pytest.mark.parametrize("algorithm", SIGNERS)
def test_a_signed_token_says_who_asks(doors: Doors, algorithm: str) -> None:
    bearers = doors.opened(issuer="us", audience="content")

    assert ask(bearers, token(algorithm=algorithm)) == "cluster-1"
    assert ask(bearers, token(algorithm=algorithm), "bearer ") == "cluster-1"


@pytest.mark.parametrize("sent", ["", "Basic eDp5", "Bearer", "Bearer "])
def test_without_a_token_nobody_is_let_in(doors: Doors, sent: str) -> None:
    assert doors.opened().identify({"authorization": sent}) == MISSING


@pytest.mark.parametrize(
    "claims",
    [
        {**CLAIMS, "exp": NOW - 60},
        {**CLAIMS, "nbf": NOW + 60},
        {**CLAIMS, "iss": "them"},
        {**CLAIMS, "aud": "other"},
        {**CLAIMS, "sub": ""},
        {**CLAIMS, "sub": 7},
        {**CLAIMS, "exp": "later"},
        {**CLAIMS, "exp": True},
        {key: value for key, value in CLAIMS.items() if key != "exp"},
        {key: value for key, value in CLAIMS.items() if key != "aud"},
        ["sub"],
    ],
)
def test_a_token_that_is_over_or_for_others_is_refused(doors: Doors, claims: object) -> None:
    assert ask(doors.opened(issuer="us", audience="content"), token(claims)) == INVALID


def test_the_key_says_the_algorithm_and_not_the_token(doors: Doors) -> None:
    bearers = doors.opened()
    signed = token().rpartition(".")[0]
    claims = signed.partition(".")[2]

    def headed(**head: Any) -> str:
        return f"{encoded(json.dumps(head).encode())}.{claims}"

    public = EDWARDS.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    shared = headed(alg="HS256", kid="e")
    forged = hmac.new(public, shared.encode(), hashlib.sha256).digest()

    assert ask(bearers, f"{headed(alg='none', kid='e')}.") == INVALID
    assert ask(bearers, f"{shared}.{encoded(forged)}") == INVALID
    assert ask(bearers, token(kid="r")) == INVALID
    assert ask(bearers, token(kid="other")) == INVALID
    assert ask(bearers, token(crit=["exp"])) == INVALID
    assert ask(bearers, f"{signed}.{encoded(b'0' * 64)}") == INVALID
    assert ask(bearers, f"{token()}=") == INVALID


def test_a_token_that_was_good_is_none_when_its_time_is_over(doors: Doors) -> None:
    clock = Clock()
    bearers = Bearers(Issuer(doors.file), clock)
    assert ask(bearers, token()) == "cluster-1"

    clock.now = NOW + 600

    assert ask(bearers, token()) == INVALID


def test_a_key_that_is_taken_out_opens_nothing_from_then_on(tmp_path: Path) -> None:
    doors = Doors(tmp_path / "jwks.json")
    doors.write(of_rsa(LARGE.public_key()), of_edwards())
    bearers = doors.opened()
    assert ask(bearers, token()) == "cluster-1"

    doors.write(of_rsa(LARGE.public_key()))
    doors.clock.now += 2
    assert ask(bearers, token()) == INVALID
    assert ask(bearers, token(algorithm="RS256")) == "cluster-1"

    doors.file.write_text("half a fi")
    doors.clock.now += 2
    assert ask(bearers, token(algorithm="RS256")) == "cluster-1"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "{}",
        '{"keys": []}',
        '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',
        '{"keys": [{"kty": "EC", "crv": "P-521", "x": "", "y": ""}]}',
        '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}',
        json.dumps({"keys": [of_edwards(), of_edwards()]}),
        json.dumps({"keys": [of_rsa(SMALL.public_key())]}),
    ],
    # Keys differ from process to process; the names of tests must not.
    ids=["empty", "no list", "no key", "shared", "P-521", "no point", "twice", "small"],
)
def test_a_file_without_good_keys_is_refused_at_the_start(tmp_path: Path, words: str) -> None:
    (tmp_path / "jwks.json").write_text(words)

    with pytest.raises(errors.Rejected, match="keys"):
        bearer.read_keys(tmp_path / "jwks.json")
    with pytest.raises(errors.Rejected, match="cannot read the keys"):
        bearer.read_keys(tmp_path / "missing.json")


def test_a_head_without_end_is_refused_as_any_other(doors: Doors) -> None:
    deep = encoded(b'{"alg":' + b"[" * 3000 + b"]" * 3000 + b"}")

    assert ask(doors.opened(), f"{deep}.{deep}.e30") == INVALID


@given(strategies.text(alphabet="abcABC019-_.=+/ é\udc80") | strategies.text())
def test_whatever_is_sent_as_a_token_is_refused(text: str) -> None:
    assert isinstance(ask(ANY, text), Refusal)


@pytest.fixture(scope="module", autouse=True)
def _any(doors: Doors) -> None:
    global ANY  # noqa: PLW0603 - hypothesis runs one test many times, and takes no fixture for each
    ANY = doors.opened()


ANY: Bearers
