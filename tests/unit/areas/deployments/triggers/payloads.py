"""What hosts send, as they document it, and how they sign it."""

import hashlib
import hmac
import json
from typing import Any

SECRET = "a secret of the webhook"  # noqa: S105 - of tests alone
NONE = "0" * 40


def github(body: dict[str, Any], event: str = "push", secret: str = SECRET) -> dict[str, Any]:
    data = json.dumps(body).encode()
    signature = hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    return {"content": data, "headers": headers}


def gitea(body: dict[str, Any]) -> dict[str, Any]:
    data = json.dumps(body).encode()
    signature = hmac.new(SECRET.encode(), data, hashlib.sha256).hexdigest()
    return {"content": data, "headers": {"X-Gitea-Event": "push", "X-Gitea-Signature": signature}}


def gitlab(body: dict[str, Any], uuid: str = "1", event: str = "Push Hook") -> dict[str, Any]:
    headers = {"X-Gitlab-Event": event, "X-Gitlab-Token": SECRET, "X-Gitlab-Event-UUID": uuid}
    return {"content": json.dumps(body).encode(), "headers": headers}


def push(
    after: str,
    before: str = NONE,
    ref: str = "refs/heads/main",
    repository: str = "acme/shop",
    at: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """GitHub's, which Gitea follows; GitHub always says when it was."""
    commit = None if after == NONE else {"id": after}
    return {
        "ref": ref,
        "before": before,
        "after": after,
        "repository": {"full_name": repository, "fork": False, "pushed_at": at},
        "pusher": {"name": "ann", "email": "ann@example.test"},
        "sender": {"login": "ann"},
        "head_commit": commit,
        "commits": [],
        **more,
    }


def gitlab_push(after: str, ref: str = "refs/heads/main", **more: Any) -> dict[str, Any]:
    return {
        "object_kind": "push",
        "ref": ref,
        "before": NONE,
        "after": after,
        "checkout_sha": after,
        "user_username": "ann",
        "project": {"path_with_namespace": "acme/shop"},
        **more,
    }


def check_suite(commit: str, action: str = "rerequested", branch: Any = "main") -> dict[str, Any]:
    return {
        "action": action,
        "check_suite": {"head_sha": commit, "head_branch": branch},
        "repository": {"full_name": "acme/shop"},
        "sender": {"login": "ann"},
    }
