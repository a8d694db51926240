"""Whether this process performs deployments to AWS, and on which queue."""

from pathlib import Path

from fairlead import settings as settings_
from fairlead.areas.deployments import host, requests
from fairlead.areas.deployments.domain import messages, migration
from fairlead.areas.deployments.settings import DeploymentSettings

EFFECTS = {
    *(messages.StoreTemplate, messages.StabilizeStack, messages.PerformStep),
    *(messages.ObserveStep, migration.RunMigrations),
}


def settings(folder: Path, *areas: object) -> settings_.Settings:
    return settings_.Settings(store=settings_.StoreSettings(state_dir=folder), areas=areas)


def test_without_a_bucket_triggers_and_this_machine_are_served(tmp_path: Path) -> None:
    platform = host.platform(settings(tmp_path))

    machine = platform.services.find(requests.MACHINE)
    assert machine is not None
    assert list(platform.queues) == ["", machine.queue]
    assert machine.queue.startswith("local@")
    assert not machine.postgres
    assert {*platform.queues[machine.queue]} >= EFFECTS
    assert platform.services.find(requests.AWS_TARGET) is None


def test_a_server_for_databases_is_told_to_who_asks(tmp_path: Path) -> None:
    group = DeploymentSettings(deployments_postgres_url="postgresql://u:hidden@db/postgres")

    machine = host.platform(settings(tmp_path, group)).services.find(requests.MACHINE)

    assert machine is not None
    assert machine.postgres
    assert "hidden" not in repr(machine)


def test_with_a_bucket_all_effects_of_its_queue_are_performed(tmp_path: Path) -> None:
    chosen = settings(tmp_path, DeploymentSettings("templates", "prod"))

    platform = host.platform(chosen)

    assert platform.services.find(requests.AWS_TARGET) is not None
    assert list(platform.queues)[0::2] == ["", "aws@prod"]
    assert {*platform.queues["aws@prod"]} >= EFFECTS
