"""Clients of AWS by account: credentials of an assumed role are renewed before they expire."""

import contextlib
import datetime as dt
import functools
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import botocore.exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError

from fairlead import errors

_EARLY = dt.timedelta(minutes=5)
_THROTTLED = {
    *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled"),
    *("RequestLimitExceeded", "TooManyRequestsException", "SlowDown", "BandwidthLimitExceeded"),
}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId"}
_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_SERVER_FAULT = 500


@dataclass(frozen=True, slots=True)
class Account:
    """Where calls go, and as whom."""

    region: str
    """Empty: that of the environment."""

    role: str = ""
    """The ARN of a role to assume; empty: as whom this process is signed in."""


class Aws:
    """Makes clients, and keeps them for as long as their credentials are good."""

    def __init__(self, endpoint: str = "", seconds: float = 20.0) -> None:
        self._endpoint = endpoint or None
        self._config = Config(
            connect_timeout=min(seconds, 5.0),
            read_timeout=seconds,
            retries={"mode": "standard", "total_max_attempts": 3},
        )
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, Account], tuple[Any, dt.datetime | None]] = {}

    def client(self, service: str, account: Account) -> Any:
        with self._lock:
            client, until = self._kept.get((service, account), (None, None))
            if client is None or (until is not None and until - _EARLY < _now()):
                client, until = self._made(service, account)
                self._kept[service, account] = client, until
            return client

    def _heed(self, account: Account, parsed: dict[str, Any], **_: object) -> None:
        """Whoever called: of credentials that AWS calls expired, the next call has new ones."""
        if parsed.get("Error", {}).get("Code") in _EXPIRED:
            with self._lock:
                for key in [key for key in self._kept if key[1] == account]:
                    del self._kept[key]

    def _made(self, service: str, account: Account) -> tuple[Any, dt.datetime | None]:
        given, until = self._assumed(account) if account.role else ({}, None)
        # A session of its own: the shared one of boto3 must not be used from several threads.
        session = boto3.session.Session(region_name=account.region or None, **given)
        made = session.client(service, endpoint_url=self._endpoint, config=self._config)
        made.meta.events.register("after-call", functools.partial(self._heed, account))
        return made, until

    def _assumed(self, account: Account) -> tuple[dict[str, str], dt.datetime]:
        session = boto3.session.Session(region_name=account.region or None)
        sts = session.client("sts", endpoint_url=self._endpoint, config=self._config)
        with translated():
            answer = sts.assume_role(RoleArn=account.role, RoleSessionName="fairlead")
        found = answer["Credentials"]
        given = {
            "aws_access_key_id": found["AccessKeyId"],
            "aws_secret_access_key": found["SecretAccessKey"],
            "aws_session_token": found["SessionToken"],
        }
        return given, found["Expiration"]


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Errors of boto3 as ours: what a later try may mend, and what it will not."""
    try:
        yield
    except botocore.exceptions.ClientError as error:
        raise _told(error) from error
    except botocore.exceptions.NoCredentialsError as error:
        raise errors.Rejected(
            "no credentials for AWS", hint="set AWS_ACCESS_KEY_ID, or give this machine a role"
        ) from error
    except (botocore.exceptions.BotoCoreError, ResponseParserError) as error:
        # Connections that fail, answers that are none: named by kind, as texts may hold anything.
        raise errors.Unavailable(
            f"AWS did not answer: {type(error).__name__}", hint="it is tried again"
        ) from error


def code(error: botocore.exceptions.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def said(error: botocore.exceptions.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def client_code(error: errors.FairleadError) -> str:
    """What AWS called it; empty where AWS did not say it."""
    cause = error.__cause__
    return code(cause) if isinstance(cause, botocore.exceptions.ClientError) else ""


def short(token: str, length: int = 60) -> str:
    """A token in letters, digits and hyphens, the same for the same and of a length AWS takes."""
    return f"fairlead-{hashlib.sha256(token.encode()).hexdigest()}"[:length]


def _told(error: botocore.exceptions.ClientError) -> errors.FairleadError:
    name, message = code(error), said(error)[:500]
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if name in _THROTTLED or name in _EXPIRED or status >= _SERVER_FAULT:
        return errors.Unavailable(f"AWS: {name}: {message}", hint="it is tried again")
    if name in _DENIED:
        return errors.Rejected(f"AWS: {name}: {message}", hint="give the role this permission")
    return errors.Rejected(f"AWS: {name}: {message}", hint="see what the message names")


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
