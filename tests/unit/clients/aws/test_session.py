"""Credentials of roles, and answers that are none."""

import datetime as dt

import pytest
from botocore.stub import Stubber

from fairlead import errors
from fairlead.clients.aws import session
from fairlead.clients.aws.session import Account, Aws, short
from tests.aws import REGION, Cloud

pytestmark = pytest.mark.xdist_group("moto")
ROLE = "arn:aws:iam::123456789012:role/deployer"


def test_a_client_is_kept_while_its_role_is_good(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws, account = Aws(cloud.url), Account(REGION, ROLE)
    first = aws.client("sts", account)

    again = aws.client("sts", account)
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=2)
    monkeypatch.setattr(session, "_now", lambda: later)
    renewed = aws.client("sts", account)

    assert again is first
    assert renewed is not first
    assert "assumed-role/deployer" in first.get_caller_identity()["Arn"]


@pytest.mark.parametrize(("code", "forgets"), [("ExpiredToken", True), ("AccessDenied", False)])
def test_credentials_that_ended_early_are_renewed_whoever_heard_of_it(
    cloud: Cloud, code: str, *, forgets: bool
) -> None:
    aws, account = Aws(cloud.url), Account(REGION, ROLE)
    first, other = aws.client("sts", account), aws.client("sts", Account(REGION))
    secrets = aws.client("secretsmanager", account)

    with Stubber(secrets) as stub:
        stub.add_client_error("get_secret_value", code, http_status_code=400)
        with pytest.raises(errors.FairleadError), session.translated():
            secrets.get_secret_value(SecretId="shop")

    assert (aws.client("sts", account) is not first) is forgets
    assert (aws.client("secretsmanager", account) is not secrets) is forgets
    assert aws.client("sts", Account(REGION)) is other


def test_nobody_listening_is_told_as_unavailable(cloud: Cloud) -> None:
    nowhere = Aws("http://127.0.0.1:1", seconds=1.0).client("sts", Account(REGION))

    with pytest.raises(errors.Unavailable, match="EndpointConnectionError"), session.translated():
        nowhere.get_caller_identity()


def test_a_token_is_short_and_the_same_each_time() -> None:
    assert short("v1/ü-1") == short("v1/ü-1") != short("v1/ü-2")
    assert len(short("x" * 500, 36)) == 36
