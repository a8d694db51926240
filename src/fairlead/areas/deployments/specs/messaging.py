"""Messages that reach a runtime: its queue, and what it subscribes to.

topic, o5-infra/topic              a topic of SNS
/pkg.Service, /pkg.Service/Method  a rule of the event bus
global/event, global/upsert        a rule for every event, or every upsert
"""

from collections.abc import Iterator
from typing import Any

from fairlead import validation
from fairlead.areas.deployments.specs.application import Runtime, Subscription
from fairlead.areas.deployments.specs.naming import Site, logical, resource

_ATTEMPTS = 3


def topics(site: Site) -> tuple[str, ...]:
    """The topics that the application publishes to."""
    return tuple(f"{site.environment.full_name}-{each.name}" for each in site.app.targets)


def resources(site: Site, runtime: Runtime) -> Iterator[tuple[str, dict[str, Any]]]:
    if not runtime.subscriptions:
        return
    queue = logical(runtime.name, "Queue")
    arn = {"Fn::GetAtt": [queue, "Arn"]}
    worker = runtime.worker_config
    properties: dict[str, Any] = {"QueueName": f"{site.stack}-{runtime.name}"}
    if worker is None or not worker.no_deadletters:
        letters = logical(runtime.name, "Deadletters")
        yield letters, resource("AWS::SQS::Queue", MessageRetentionPeriod=1_209_600)
        target = {"Fn::GetAtt": [letters, "Arn"]}
        properties["RedrivePolicy"] = {"deadLetterTargetArn": target, "maxReceiveCount": _ATTEMPTS}
    yield queue, resource("AWS::SQS::Queue", **properties)
    made = {
        logical(runtime.name, "Subscription", str(n)): _subscription(
            site, each, arn, f"runtimes[{site.app.runtimes.index(runtime)}].subscriptions[{n}]"
        )
        for n, each in enumerate(runtime.subscriptions)
    }
    services = {"Service": ["sns.amazonaws.com", "events.amazonaws.com"]}
    # Else any topic and rule, also of another account, could send through these services.
    sources = [
        each["Properties"].get("TopicArn") or {"Fn::GetAtt": [name, "Arn"]}
        for name, each in made.items()
    ]
    allow = {
        "Effect": "Allow",
        "Principal": services,
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": sources}},
    }
    yield (
        logical(runtime.name, "QueuePolicy"),
        resource(
            "AWS::SQS::QueuePolicy",
            Queues=[{"Ref": queue}],
            PolicyDocument={"Version": "2012-10-17", "Statement": [allow]},
        ),
    )
    yield from made.items()


def _subscription(site: Site, wanted: Subscription, queue: Any, at: str) -> dict[str, Any]:
    own = site.environment.full_name
    if wanted.env_name in {"", "*"}:
        full_name, prefix = own, own
    else:
        full_name, prefix = _link(site, wanted, at)
    if wanted.name.startswith(("/", "global/")):
        return _rule(site, wanted, queue, (full_name, at))
    name = wanted.name.removeprefix("o5-infra/")
    prefix = "o5-infra" if name != wanted.name else prefix
    return resource(
        "AWS::SNS::Subscription",
        TopicArn=site.topic_arn(f"{prefix}-{name}"),
        Protocol="sqs",
        Endpoint=queue,
        RawMessageDelivery=wanted.raw_message,
    )


def _rule(site: Site, wanted: Subscription, queue: Any, about: tuple[str, str]) -> dict[str, Any]:
    full_name, at = about
    bus = site.aws.event_bridge
    if bus is None:
        problem = f"needs the cluster's event bus: {wanted.name}"
        raise validation.refusal(f"{at}.name", problem, "give the cluster aws.event_bridge")
    detail: dict[str, Any] = {}
    if wanted.name.startswith("global/"):
        kind = wanted.name.removeprefix("global/")
        detail = {} if kind == "*" else {"type": [kind]}
    else:
        service, _, method = wanted.name[1:].partition("/")
        detail = {"grpcService": [service]} | ({"grpcMethod": [method]} if method else {})
    if wanted.env_name != "*":
        detail["environment"] = [full_name]
    return resource(
        "AWS::Events::Rule",
        EventBusName=bus.event_bus_arn,
        EventPattern={"source": [{"prefix": "o5/"}], "detail": detail},
        Targets=[{"Arn": queue, "Id": "queue"}],
    )


def _link(site: Site, wanted: Subscription, at: str) -> tuple[str, str]:
    for each in site.environment.aws.environment_links:
        if each.lookup_name == wanted.env_name:
            return each.full_name, each.sns_prefix
    hint = f"add it to aws.environment_links of {site.environment.full_name}"
    raise validation.refusal(f"{at}.env_name", f"no such link: {wanted.env_name}", hint)
