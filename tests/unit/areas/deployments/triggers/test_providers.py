"""What each host says, and that nothing is parsed before its signature is right."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.triggers.providers import PROVIDERS, Ignored, Push, Rerun
from tests.unit.areas.deployments.triggers import payloads
from tests.unit.areas.deployments.triggers.payloads import NONE, SECRET

A, B, TAG = "a" * 40, "b" * 40, "d" * 40


def heard(provider: str, sent: dict[str, Any]) -> Push | Rerun | Ignored:
    headers = {name.lower(): value for name, value in sent["headers"].items()}
    PROVIDERS[provider].check(headers, sent["content"], [SECRET])
    return PROVIDERS[provider].read(headers, sent["content"])


@pytest.mark.requirement("deployer G1")
def test_a_push_of_github() -> None:
    body = payloads.push(B, A)
    body["repository"]["pushed_at"] = 1_900_000_000

    told = heard("github", payloads.github(body))

    assert told == Push("acme/shop", "refs/heads/main", A, B, "ann", 1_900_000_000)


def test_the_push_of_an_annotated_tag_is_its_commit() -> None:
    body = payloads.push(TAG, ref="refs/tags/v1", head_commit={"id": B})
    lab = payloads.gitlab_push(TAG, "refs/tags/v1", checkout_sha=B)

    told = heard("github", payloads.github(body))
    of_lab = heard("gitlab", payloads.gitlab(lab, event="Tag Push Hook"))

    assert isinstance(told, Push)
    assert isinstance(of_lab, Push)
    assert (told.commit, of_lab.commit) == (B, B)


def test_pushes_of_the_others() -> None:
    expected = Push("acme/shop", "refs/heads/main", NONE, A, "ann")

    assert heard("gitea", payloads.gitea(payloads.push(A))) == expected
    assert heard("gitlab", payloads.gitlab(payloads.gitlab_push(A))) == expected


def test_a_deleted_branch_has_no_commit() -> None:
    told = heard("github", payloads.github(payloads.push(NONE, A)))
    of_lab = heard("gitlab", payloads.gitlab(payloads.gitlab_push(NONE, checkout_sha=None)))

    assert isinstance(told, Push)
    assert isinstance(of_lab, Push)
    assert (told.commit, of_lab.commit) == ("", "")


def test_a_rerun_of_checks_is_heard_and_a_forks_is_not() -> None:
    again = heard("github", payloads.github(payloads.check_suite(A), "check_suite"))
    asked = payloads.github(payloads.check_suite(A, "requested"), "check_suite")
    fork = payloads.github(payloads.check_suite(A, branch=None), "check_suite")

    assert again == Rerun("acme/shop", "refs/heads/main", A, "ann")
    assert isinstance(heard("github", asked), Ignored)
    assert isinstance(heard("github", fork), Ignored)
    assert isinstance(heard("github", payloads.github({"zen": "…"}, "ping")), Ignored)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_signature_is_checked_before_anything_is_read(provider: str) -> None:
    for headers in ({}, {"x-hub-signature-256": "sha256="}, {"x-gitlab-token": ""}):
        with pytest.raises(errors.Unauthorised, match="not signed"):
            PROVIDERS[provider].check(headers, b"\xff no JSON", [SECRET, "another"])


def test_while_a_secret_is_rotated_both_are_good() -> None:
    sent = payloads.github(payloads.push(A), "push", "the next")
    headers = {name.lower(): value for name, value in sent["headers"].items()}

    PROVIDERS["github"].check(headers, sent["content"], [SECRET, "the next"])
    with pytest.raises(errors.Unauthorised):
        PROVIDERS["github"].check(headers, sent["content"], [SECRET])


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("after", "HEAD"),
        ("after", "a" * 39),
        ("ref", "main"),
        ("ref", "refs/heads/a b"),
        ("ref", "refs/heads/" + "a" * 300),
        ("repository", {}),
        ("before", 3),
    ],
)
def test_what_no_host_sends_is_refused_with_its_field(field: str, said: Any) -> None:
    with pytest.raises(errors.Invalid) as refused:
        heard("github", payloads.github(payloads.push(A) | {field: said}))

    assert refused.value.problems[0].path.startswith(field)


def test_a_form_is_refused_with_what_to_set() -> None:
    sent = payloads.github({})
    with pytest.raises(errors.Rejected, match="not JSON") as refused:
        PROVIDERS["github"].read({"x-github-event": "push"}, b"payload=%7B%7D")

    assert "application/json" in refused.value.hint
    assert sent["content"] == b"{}"
