"""Objects, secrets and topics on moto's server."""

import pytest

from fairlead import errors
from fairlead.clients.aws import stores
from fairlead.clients.aws.session import Account, Aws
from tests.aws import REGION, Cloud

pytestmark = pytest.mark.xdist_group("moto")
HERE = Account(REGION)


def test_an_object_is_found_again_and_a_missing_one_is_told(cloud: Cloud) -> None:
    where = {"LocationConstraint": REGION}
    cloud.client("s3").create_bucket(Bucket="templates", CreateBucketConfiguration=where)
    kept = stores.ObjectStore(Aws(cloud.url).client("s3", HERE))

    kept.put("templates", "a/b.json", "{}")
    kept.put("templates", "a/b.json", "{}")

    assert kept.get("templates", "a/b.json") == "{}"
    with pytest.raises(errors.NotFound, match=r"not stored: a/c\.json"):
        kept.get("templates", "a/c.json")
    with pytest.raises(errors.Rejected, match="NoSuchBucket"):
        kept.put("elsewhere", "a", "{}")
    assert stores.url(REGION, "b", "k") == "https://b.s3.eu-west-1.amazonaws.com/k"


def test_a_secret_is_made_and_changed(cloud: Cloud) -> None:
    secrets = stores.SecretStore(Aws(cloud.url).client("secretsmanager", HERE))

    assert secrets.get("prod/shop/orders") is None
    secrets.put("prod/shop/orders", {"username": "a"})
    secrets.put("prod/shop/orders", {"username": "b"})

    assert secrets.get("prod/shop/orders") == {"username": "b"}


def test_a_secret_that_is_no_object_is_refused_without_its_value(cloud: Cloud) -> None:
    cloud.client("secretsmanager").create_secret(Name="plain", SecretString="hunter2")
    secrets = stores.SecretStore(Aws(cloud.url).client("secretsmanager", HERE))

    with pytest.raises(errors.Rejected, match="several values: plain") as refused:
        secrets.get("plain")
    assert "hunter2" not in str(refused.value)


def test_topics_are_made_once(cloud: Cloud) -> None:
    topics = Aws(cloud.url).client("sns", HERE)

    stores.ensure_topics(topics, ("prod-orders",))
    stores.ensure_topics(topics, ("prod-orders",))

    found = cloud.client("sns").list_topics()["Topics"]
    assert [each["TopicArn"].rpartition(":")[2] for each in found] == ["prod-orders"]
