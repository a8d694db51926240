"""Which messages reach a runtime, by each form of a subscription's name."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.specs import template
from tests.unit.areas.deployments.specs.files import APP, CLUSTER, ENV
from tests.unit.areas.deployments.specs.test_template import changed, made, properties, site


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("/shop.v1.Orders", {"grpcService": ["shop.v1.Orders"], "environment": ["prod-eu"]}),
        (
            "/shop.v1.Orders/Placed",
            {
                "grpcService": ["shop.v1.Orders"],
                "grpcMethod": ["Placed"],
                "environment": ["prod-eu"],
            },
        ),
        ("global/upsert", {"type": ["upsert"], "environment": ["prod-eu"]}),
        ("global/*", {"environment": ["prod-eu"]}),
    ],
)
def test_events_come_by_a_rule_of_the_bus(name: str, detail: dict[str, Any]) -> None:
    rule = properties(made(subscriptions=[{"name": name}]), "WebSubscription0")

    assert rule["EventPattern"]["detail"] == detail
    assert rule["Targets"] == [{"Arn": {"Fn::GetAtt": ["WebQueue", "Arn"]}, "Id": "queue"}]


@pytest.mark.parametrize(
    ("name", "topic"), [("orders", "prod-eu-orders"), ("o5-infra/cloud", "o5-infra-cloud")]
)
def test_topics_come_by_a_subscription(name: str, topic: str) -> None:
    found = made(subscriptions=[{"name": name, "raw_message": True}])

    made_ = properties(found, "WebSubscription0")
    assert made_["TopicArn"] == f"arn:aws:sns:eu-west-1:123456789012:{topic}"
    assert made_["RawMessageDelivery"] is True


def test_a_queue_takes_messages_of_its_own_subscriptions_alone() -> None:
    found = made(subscriptions=[{"name": "orders"}, {"name": "global/event"}])

    (allowed,) = properties(found, "WebQueuePolicy")["PolicyDocument"]["Statement"]
    assert allowed["Condition"] == {
        "ArnEquals": {
            "aws:SourceArn": [
                "arn:aws:sns:eu-west-1:123456789012:prod-eu-orders",
                {"Fn::GetAtt": ["WebSubscription1", "Arn"]},
            ]
        }
    }


def test_all_environments_are_heard_by_a_star() -> None:
    app = changed(APP, subscriptions=[{"name": "global/event", "env_name": "*"}])

    found = template.template(site(app, {**ENV, "aws": {"all_environments": True}}))["Resources"]

    detail = properties(found, "WebSubscription0")["EventPattern"]["detail"]
    assert detail == {"type": ["event"]}


def test_another_environment_is_heard_by_its_link() -> None:
    link = {"lookup_name": "us", "full_name": "prod-us", "sns_prefix": "us-topics"}
    app = changed(APP, subscriptions=[{"name": "orders", "env_name": "us"}])

    found = template.template(site(app, {**ENV, "aws": {"environment_links": [link]}}))

    topic = properties(found["Resources"], "WebSubscription0")["TopicArn"]
    assert topic.endswith(":us-topics-orders")


def test_a_link_that_is_not_there_is_told_with_its_field() -> None:
    app = changed(APP, subscriptions=[{"name": "orders", "env_name": "us"}])

    with pytest.raises(errors.Invalid) as refused:
        template.template(site(app))
    (problem,) = refused.value.problems
    assert problem.path == "runtimes[0].subscriptions[0].env_name"


def test_without_a_bus_an_event_is_refused_with_its_field() -> None:
    aws = {name: each for name, each in CLUSTER["aws"].items() if name != "event_bridge"}

    with pytest.raises(errors.Invalid, match="event bus: /shop"):
        template.template(site(cluster={**CLUSTER, "aws": aws}))


def test_a_runtime_without_deadletters_has_one_queue() -> None:
    with_letters = made()
    without = made(worker_config={"no_deadletters": True})

    assert "RedrivePolicy" in properties(with_letters, "WebQueue")
    assert "WebDeadletters" not in without
    assert "RedrivePolicy" not in properties(without, "WebQueue")
