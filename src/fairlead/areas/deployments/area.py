"""What deployments bring: stacks with queues, plans that deployments walk, migrations."""

from fairlead.area import Area, Command, Link
from fairlead.areas.deployments.domain import declared_verbs

_HERE = "fairlead.areas.deployments"

DEPLOYMENTS = Area(
    name="deployments",
    core=f"{_HERE}.core:core",
    settings=f"{_HERE}.settings:DeploymentSettings",
    platform=f"{_HERE}.host:platform",
    web=f"{_HERE}.web:mount",
    commands={
        "plan": Command(
            f"{_HERE}.commands.plan:plan", "Show the steps that a deployment would take."
        ),
        "template": Command(
            f"{_HERE}.commands.template:template",
            "Print the CloudFormation template of an application.",
        ),
        "migrations": Command(
            f"{_HERE}.commands.migrations:migrations", "Evaluate, run or list database migrations."
        ),
        "deployments": Command(
            f"{_HERE}.commands.deployments:deployments", "Deploy a commit, branch or tag."
        ),
    },
    nouns={
        "stack": f"{_HERE}.commands.nouns:STACK_NOUN",
        "stacks": f"{_HERE}.commands.nouns:STACK_NOUN",
        "deployment": f"{_HERE}.commands.nouns:DEPLOYMENT_NOUN",
        "deployments": f"{_HERE}.commands.nouns:DEPLOYMENT_NOUN",
        **{
            word: f"{_HERE}.commands.{module}:{noun}"
            for module, noun, words in (
                ("definitions", "CLUSTER_NOUN", ("cluster", "clusters")),
                ("definitions", "ENVIRONMENT_NOUN", ("environment", "environments")),
                ("definitions", "PUSH_TARGET_NOUN", ("push-target", "push-targets")),
                ("definitions", "SCHEDULE_NOUN", ("schedule", "schedules")),
                ("triggers", "TRIGGER_NOUN", ("trigger", "triggers")),
            )
            for word in words
        },
        "application": f"{_HERE}.commands.file_nouns:APPLICATION",
    },
    verbs=declared_verbs.VERBS,
    navigation=(Link("Deployments", "/stacks"),),
)
