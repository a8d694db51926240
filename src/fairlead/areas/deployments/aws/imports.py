"""Buckets and secrets that are there already come into a new stack as they are."""

import json
from collections.abc import Collection, Mapping
from typing import Any

import botocore.exceptions

from fairlead.areas.deployments.specs.template import EMPTY
from fairlead.clients.aws.session import Account, Aws, translated

_NAMED_BY = {"AWS::S3::Bucket": "BucketName", "AWS::SecretsManager::Secret": "Name"}
_IDENTIFIED_BY = {"AWS::S3::Bucket": "BucketName", "AWS::SecretsManager::Secret": "Id"}


def importable(text: str) -> dict[str, dict[str, Any]]:
    """What of a template can be imported: what holds data, and is kept when a stack goes."""
    found: dict[str, dict[str, Any]] = json.loads(text)["Resources"]
    return {name: each for name, each in found.items() if each["Type"] in _NAMED_BY}


def existing(aws: Aws, account: Account, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The identifiers of those that are there, by logical id."""
    found = {}
    for name, each in wanted.items():
        said = each["Properties"][_NAMED_BY[each["Type"]]]
        if each["Type"] == "AWS::S3::Bucket":
            client, method, request = aws.client("s3", account), "head_bucket", {"Bucket": said}
        else:
            client = aws.client("secretsmanager", account)
            method, request = "describe_secret", {"SecretId": said}
        if (answer := _asked(client, method, request)) is not None:
            found[name] = str(answer.get("ARN", said))
    return found


def template(wanted: Mapping[str, Any], found: Collection[str]) -> str:
    """The stack with these alone: an import may bring nothing else along."""
    resources = {**EMPTY["Resources"], **{name: wanted[name] for name in found}}
    return json.dumps({**EMPTY, "Resources": resources}, sort_keys=True)


def request(wanted: Mapping[str, Any], found: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "LogicalResourceId": name,
            "ResourceType": wanted[name]["Type"],
            "ResourceIdentifier": {_IDENTIFIED_BY[wanted[name]["Type"]]: identifier},
        }
        for name, identifier in sorted(found.items())
    ]


def _asked(client: Any, method: str, request: Mapping[str, str]) -> dict[str, Any] | None:
    """None where it is not there."""
    with translated():
        try:
            answer: dict[str, Any] = getattr(client, method)(**request)
        except botocore.exceptions.ClientError as error:
            if error.response.get("Error", {}).get("Code") in {"404", "ResourceNotFoundException"}:
                return None
            raise
    return answer
