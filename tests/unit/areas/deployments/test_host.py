"""Whether this process performs deployments to AWS, and on which queue."""

from fairlead import settings as settings_
from fairlead.areas.deployments import host, requests
from fairlead.areas.deployments.domain import messages, migration
from fairlead.areas.deployments.settings import DeploymentSettings


def test_without_a_bucket_only_triggers_are_served() -> None:
    platform = host.platform(settings_.Settings())

    assert list(platform.queues) == [""]
    assert platform.services.find(requests.AWS_TARGET) is None


def test_with_a_bucket_all_effects_of_its_queue_are_performed() -> None:
    chosen = settings_.Settings(areas=(DeploymentSettings("templates", "prod"),))

    platform = host.platform(chosen)

    assert platform.services.find(requests.AWS_TARGET) is not None
    assert list(platform.queues) == ["", "aws@prod"]
    effects = {messages.StoreTemplate, messages.StabilizeStack, messages.PerformStep}
    performed = {*platform.queues["aws@prod"]}
    assert {*effects, messages.ObserveStep, migration.RunMigrations} <= performed
