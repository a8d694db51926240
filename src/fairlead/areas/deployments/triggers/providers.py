"""What GitHub, GitLab and Gitea send: how each is checked, and what it says.

Checked before anything is parsed: a body that nobody we know has signed is bytes and no more.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from fairlead import errors, validation

_NONE = re.compile(r"0+")
_LONGEST_NAME = 80
_TAGS = "refs/tags/"
Sha = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
RefName = Annotated[str, msgspec.Meta(pattern=r"^refs/[^\x00-\x20\x7f]+$", max_length=300)]
Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Push:
    """A branch or tag went from one commit to another."""

    repository: str
    ref: str
    before: str
    commit: str
    """Empty where it was deleted."""

    by: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class Rerun:
    """Somebody wants the newest commit deployed again."""

    repository: str
    ref: str
    commit: str
    by: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing that starts a deployment."""

    why: str


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of host."""

    check: Callable[[Headers, bytes, Sequence[str]], None]
    """Unauthorised unless it was sent by somebody who knows one of the secrets."""

    read: Callable[[Headers, bytes], Push | Rerun | Ignored]
    delivery: str
    """The header that names a delivery; empty where the signature covers all that matters."""

    reports: bool = False
    """Whether its commits show how deployments end."""


class _Repository(msgspec.Struct):
    full_name: str
    pushed_at: Any = 0


class _Person(msgspec.Struct):
    login: str = ""
    name: str = ""


class _Commit(msgspec.Struct):
    id: Sha


class _GitPush(msgspec.Struct):
    """Of GitHub, and of Gitea, which follows it."""

    ref: RefName
    before: Sha
    after: Sha
    repository: _Repository
    sender: _Person = msgspec.field(default_factory=_Person)
    head_commit: _Commit | None = None


class _Suite(msgspec.Struct):
    head_sha: Sha
    head_branch: str | None = None


class _CheckSuite(msgspec.Struct):
    action: str
    check_suite: _Suite
    repository: _Repository
    sender: _Person = msgspec.field(default_factory=_Person)


class _Project(msgspec.Struct):
    path_with_namespace: str


class _GitLabPush(msgspec.Struct):
    ref: RefName
    before: Sha
    after: Sha
    project: _Project
    user_username: str = ""
    checkout_sha: Sha | None = None


def _signed(header: str, prefix: str = "") -> Callable[[Headers, bytes, Sequence[str]], None]:
    def check(headers: Headers, body: bytes, secrets: Sequence[str]) -> None:
        given = headers.get(header, "").removeprefix(prefix).encode()
        digests = (hmac.new(each.encode(), body, hashlib.sha256).hexdigest() for each in secrets)
        # All are compared: the time taken tells nothing of which one is near.
        right = [hmac.compare_digest(each.encode(), given) for each in digests]
        _admit(right=any(right), header=header)

    return check


def _shown(header: str) -> Callable[[Headers, bytes, Sequence[str]], None]:
    def check(headers: Headers, _: bytes, secrets: Sequence[str]) -> None:
        given = headers.get(header, "").encode()
        right = [hmac.compare_digest(each.encode(), given) for each in secrets]
        _admit(right=any(right), header=header)

    return check


def _admit(*, right: bool, header: str) -> None:
    if not right:
        raise errors.Unauthorised(
            f"not signed by the secret of this webhook: {header}",
            hint="set the same secret there and in the file that the settings name",
        )


def _github(headers: Headers, body: bytes) -> Push | Rerun | Ignored:
    match headers.get("x-github-event", ""):
        case "push":
            return _git_push(body)
        case "check_suite":
            said = _decoded(body, _CheckSuite)
            if said.action != "rerequested" or not said.check_suite.head_branch:
                # Asked for with every push, which itself is told; a fork's has no branch here.
                return Ignored("only a re-run of a branch's checks starts something")
            ref = f"refs/heads/{said.check_suite.head_branch}"
            commit, by = said.check_suite.head_sha, _name(said.sender.login)
            return Rerun(said.repository.full_name, ref, commit, by)
        case other:
            return Ignored(f"nothing starts by this event: {other[:40] or 'none'}")


def _gitea(headers: Headers, body: bytes) -> Push | Rerun | Ignored:
    event = headers.get("x-gitea-event", "")
    if event != "push":
        return Ignored(f"nothing starts by this event: {event[:40] or 'none'}")
    return _git_push(body)


def _git_push(body: bytes) -> Push:
    said = _decoded(body, _GitPush)
    at = said.repository.pushed_at
    # The object that an annotated tag is has no files; its commit has.
    commit = said.head_commit.id if said.head_commit else said.after
    return Push(
        said.repository.full_name,
        said.ref,
        said.before,
        _commit(said.ref, said.after, commit),
        _name(said.sender.login or said.sender.name),
        at if isinstance(at, int) else 0,
    )


def _gitlab(headers: Headers, body: bytes) -> Push | Rerun | Ignored:
    event = headers.get("x-gitlab-event", "")
    if event not in ("Push Hook", "Tag Push Hook"):
        return Ignored(f"nothing starts by this event: {event[:40] or 'none'}")
    said = _decoded(body, _GitLabPush)
    commit = _commit(said.ref, said.after, said.checkout_sha or said.after)
    name = _name(said.user_username)
    return Push(said.project.path_with_namespace, said.ref, said.before, commit, name)


def _commit(ref: str, after: str, of_tag: str) -> str:
    if _NONE.fullmatch(after):
        return ""
    return of_tag if ref.startswith(_TAGS) else after


def _name(text: str) -> str:
    plain = "".join(each for each in text if each.isprintable())
    return plain[:_LONGEST_NAME] or "unknown"


T = Any


def _decoded(body: bytes, shape: type[T]) -> T:
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.Rejected(
            "the webhook's body is not JSON", hint="set its content type to application/json"
        ) from error
    return validation.convert(content, shape, about="send it as the host documents it")


PROVIDERS: Mapping[str, Provider] = {
    "github": Provider(_signed("x-hub-signature-256", "sha256="), _github, "", reports=True),
    "gitea": Provider(_signed("x-gitea-signature"), _gitea, "", reports=True),
    "gitlab": Provider(_shown("x-gitlab-token"), _gitlab, "x-gitlab-event-uuid", reports=True),
}
