"""What is kept for deployments: objects in S3, secrets, topics."""

import json
from typing import Any

from fairlead import errors
from fairlead.clients.aws.session import client_code, translated


class ObjectStore:
    """Objects under keys made of their content: putting one twice changes nothing."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def put(self, bucket: str, key: str, text: str) -> None:
        with translated():
            self._client.put_object(
                Bucket=bucket, Key=key, Body=text.encode(), ContentType="application/json"
            )

    def get(self, bucket: str, key: str) -> str:
        try:
            with translated():
                body: bytes = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except errors.Rejected as error:
            if client_code(error) in {"NoSuchKey", "404"}:
                raise errors.NotFound(f"not stored: {key}", hint="deploy again") from error
            raise
        return body.decode()


def url(region: str, bucket: str, key: str) -> str:
    """Where CloudFormation finds an object."""
    return f"https://{bucket}.s3.{region}.amazonaws.com/{key}"


class SecretStore:
    """Secrets of several values under one name. No value is in an error."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get(self, name: str) -> dict[str, str] | None:
        """None where there is none, or where it has no value yet."""
        try:
            with translated():
                text = self._client.get_secret_value(SecretId=name)["SecretString"]
        except errors.Rejected as error:
            if client_code(error) == "ResourceNotFoundException":
                return None
            raise
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise errors.Rejected(
                f"not a secret of several values: {name}", hint="store a JSON object there"
            )
        return {str(key): str(value) for key, value in found.items()}

    def put(self, name: str, values: dict[str, str]) -> None:
        text = json.dumps(values, sort_keys=True)
        try:
            with translated():
                self._client.put_secret_value(SecretId=name, SecretString=text)
        except errors.Rejected as error:
            if client_code(error) != "ResourceNotFoundException":
                raise
            with translated():
                self._client.create_secret(Name=name, SecretString=text)


def ensure_topics(client: Any, names: tuple[str, ...]) -> None:
    """Topics that are there already stay as they are."""
    for name in names:
        with translated():
            client.create_topic(Name=name)
