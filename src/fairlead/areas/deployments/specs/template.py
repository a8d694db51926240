"""The CloudFormation template of one application in one environment: same input, same bytes.

Images, counts and priorities of rules are parameters, so that a step can change the infrastructure
and keep the version that runs, or the other way about.
"""

import json
from collections.abc import Iterator
from typing import Any

from fairlead.areas.deployments.specs import containers, messaging
from fairlead.areas.deployments.specs.application import Blobstore, Container, Route, Runtime
from fairlead.areas.deployments.specs.naming import (
    COUNT,
    IMAGE,
    PRIORITY,
    SCALED_FROM,
    Site,
    logical,
    resource,
)

EMPTY: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {"NullResource": {"Type": "AWS::CloudFormation::WaitConditionHandle"}},
}
"""Of a stack with nothing in it: CloudFormation wants one resource at least."""

Resources = Iterator[tuple[str, dict[str, Any]]]


def text(site: Site) -> str:
    """The template as it is stored."""
    return json.dumps(template(site), sort_keys=True, indent=1) + "\n"


def template(site: Site) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "NullResource": {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    }
    for secret in site.app.secrets:
        name = site.secret(secret.name)
        made = resource("AWS::SecretsManager::Secret", keep=True, Name=name)
        resources[logical(secret.name, "Secret")] = made
    for store in site.app.blobstores:
        resources |= dict(_bucket(site, store))
    for runtime in site.app.runtimes:
        resources |= dict(_runtime(site, runtime))
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"{site.app.name} in {site.environment.full_name}, kept by Fairlead",
        "Parameters": {name: {"Type": type_} for name, type_ in _parameters(site)},
        "Resources": resources,
    }


def parameters(site: Site, version: str) -> dict[str, str]:
    """What a new version of the application gives the template."""
    found: dict[str, str] = {}
    for runtime in site.app.runtimes:
        found[logical(COUNT, runtime.name)] = "1"
        found[logical(SCALED_FROM, runtime.name)] = ""
        for container in runtime.containers:
            found[_image(runtime, container)] = site.image(container, version)
        for n in range(len(_routes(site, runtime))):
            found[logical(PRIORITY, runtime.name, str(n))] = site.priority(runtime.name, n)
    return found


def _parameters(site: Site) -> Iterator[tuple[str, str]]:
    for name in parameters(site, ""):
        yield name, "Number" if name.startswith((COUNT, PRIORITY)) else "String"


def _image(runtime: Runtime, container: Container) -> str:
    return logical(IMAGE, runtime.name, container.name)


def _bucket(site: Site, store: Blobstore) -> Resources:
    if store.ref is not None:
        return
    properties: dict[str, Any] = {"BucketName": site.bucket(store.name)}
    if store.emit_events:
        on = {"EventBridgeEnabled": True}
        properties["NotificationConfiguration"] = {"EventBridgeConfiguration": on}
    name = logical(store.name, "Bucket")
    yield name, resource("AWS::S3::Bucket", keep=True, **properties)
    if store.grants:
        who = [each.principal for each in store.grants]
        arn = f"arn:aws:s3:::{site.bucket(store.name)}"
        allow = _allow(["s3:GetObject", "s3:PutObject", "s3:ListBucket"], [arn, f"{arn}/*"])
        policy = _policy({**allow, "Principal": {"AWS": who}})
        made = resource("AWS::S3::BucketPolicy", Bucket={"Ref": name}, PolicyDocument=policy)
        yield logical(store.name, "BucketPolicy"), made


def _runtime(site: Site, runtime: Runtime) -> Resources:
    routes = _routes(site, runtime)
    yield logical(runtime.name, "Role"), _role(site, runtime)
    yield logical(runtime.name, "Task"), _task(site, runtime, routes)
    for n, route in enumerate(routes):
        yield from _route(site, runtime, n, route)
    yield logical(runtime.name, "Service"), _service(site, runtime, routes)
    yield from messaging.resources(site, runtime)


def _routes(site: Site, runtime: Runtime) -> list[Route]:
    return runtime.routes if site.aws.alb_ingress is not None else []


def _task(site: Site, runtime: Runtime, routes: list[Route]) -> dict[str, Any]:
    made = [
        containers.definition(site, each, {"Ref": _image(runtime, each)})
        for each in runtime.containers
    ]
    if (beside := containers.sidecar(site, runtime)) is not None:
        made.append(beside)
        for each in made[:-1]:
            each["Links"] = ["sidecar:sidecar"]
    for each in made:
        targets = [_target(site, runtime, n) for n in range(len(routes))]
        ports = {port for name, port in targets if name == each["Name"]}
        each["PortMappings"] = [{"ContainerPort": port} for port in sorted(ports)]
    return resource(
        "AWS::ECS::TaskDefinition",
        Family=f"{site.stack}-{runtime.name}",
        ContainerDefinitions=made,
        ExecutionRoleArn=site.aws.ecs_cluster.task_execution_role,
        TaskRoleArn={"Fn::GetAtt": [logical(runtime.name, "Role"), "Arn"]},
        NetworkMode="bridge",
        RequiresCompatibilities=["EC2"],
        Volumes=containers.volumes(runtime),
    )


def _service(site: Site, runtime: Runtime, routes: list[Route]) -> dict[str, Any]:
    balancers = []
    for n in range(len(routes)):
        name, port = _target(site, runtime, n)
        group = {"Ref": logical(runtime.name, "TargetGroup", str(n))}
        entry = {"ContainerName": name, "ContainerPort": port, "TargetGroupArn": group}
        balancers.append(entry)
    made = resource(
        "AWS::ECS::Service",
        Cluster=site.aws.ecs_cluster.cluster_name,
        DesiredCount={"Ref": logical(COUNT, runtime.name)},
        TaskDefinition={"Ref": logical(runtime.name, "Task")},
        # The old tasks answer until new ones do; a version that never starts is rolled back.
        DeploymentConfiguration={
            "MinimumHealthyPercent": 100,
            "MaximumPercent": 200,
            "DeploymentCircuitBreaker": {"Enable": True, "Rollback": True},
        },
        LoadBalancers=balancers,
    )
    rules = [logical(runtime.name, "Rule", str(n)) for n in range(len(routes))]
    return {**made, **({"DependsOn": rules} if rules else {})}


def _target(site: Site, runtime: Runtime, at: int) -> tuple[str, int]:
    """Which container takes a route's requests, and on which port."""
    route = runtime.routes[at]
    if containers.sidecar(site, runtime) is not None and not route.bypass_ingress:
        return "sidecar", containers.SIDECAR_PORT
    return route.target_container or runtime.containers[0].name, route.port


def _route(site: Site, runtime: Runtime, at: int, route: Route) -> Resources:
    ingress = site.aws.alb_ingress
    assert ingress is not None
    group = logical(runtime.name, "TargetGroup", str(at))
    yield (
        group,
        resource(
            "AWS::ElasticLoadBalancingV2::TargetGroup",
            VpcId=site.aws.vpc_id,
            Port=_target(site, runtime, at)[1],
            Protocol="HTTP",
            ProtocolVersion="GRPC" if route.protocol == "GRPC" else "HTTP1",
            HealthCheckPath="/AWS.ALB/healthcheck" if route.protocol == "GRPC" else "/healthz",
        ),
    )
    conditions: list[dict[str, Any]] = [
        {"Field": "path-pattern", "Values": [f"{route.prefix.rstrip('/')}/*", route.prefix]}
    ]
    host = site.environment.aws.host_header
    hosts = [f"{each}.{host}" for each in route.subdomains] or [host]
    if host:
        conditions.append({"Field": "host-header", "Values": hosts})
    yield (
        logical(runtime.name, "Rule", str(at)),
        resource(
            "AWS::ElasticLoadBalancingV2::ListenerRule",
            ListenerArn=ingress.listener_arn,
            Priority={"Ref": logical(PRIORITY, runtime.name, str(at))},
            Conditions=conditions,
            Actions=[{"Type": "forward", "TargetGroupArn": {"Ref": group}}],
        ),
    )


def _role(site: Site, runtime: Runtime) -> dict[str, Any]:
    trust = {**_allow(["sts:AssumeRole"], []), "Principal": {"Service": "ecs-tasks.amazonaws.com"}}
    del trust["Resource"]
    known = {each.name: each.policy_arn for each in site.environment.aws.iam_policies}
    return resource(
        "AWS::IAM::Role",
        AssumeRolePolicyDocument=_policy(trust),
        ManagedPolicyArns=[known[name] for name in runtime.named_env_policies],
        Policies=[{"PolicyName": "fairlead", "PolicyDocument": _policy(*_rights(site, runtime))}],
    )


def _rights(site: Site, runtime: Runtime) -> Iterator[dict[str, Any]]:
    for store in site.app.blobstores:
        arn = f"arn:aws:s3:::{site.bucket(store.name)}"
        ref = store.ref
        if ref is None or ref.read_permission:
            yield _allow(["s3:GetObject", "s3:ListBucket"], [arn, f"{arn}/*"])
        if ref is None or ref.write_permission:
            yield _allow(["s3:PutObject", "s3:DeleteObject"], [f"{arn}/*"])
    topics = [site.topic_arn(name) for name in messaging.topics(site)]
    if topics:
        yield _allow(["sns:Publish"], topics)
    if site.aws.event_bridge is not None:
        yield _allow(["events:PutEvents"], [site.aws.event_bridge.event_bus_arn])
    if runtime.subscriptions:
        queue = {"Fn::GetAtt": [logical(runtime.name, "Queue"), "Arn"]}
        taken = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
        yield _allow(taken, [queue])
    # ECS refuses a role whose policy says nothing.
    yield _allow(["ecs:DescribeTasks"], ["*"])


def _allow(actions: list[str], resources: list[Any]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


def _policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [*statements]}
