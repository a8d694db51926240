"""An application in Kubernetes: which object its version goes to, and what changes of it."""

import json

from fairlead import validation
from fairlead.areas.deployments.domain.spec import Workload
from fairlead.areas.deployments.specs.application import Application, KubernetesContainer
from fairlead.areas.deployments.specs.build import BuiltApplication
from fairlead.areas.deployments.specs.environment import Environment


def check(app: Application, environment: Environment) -> None:
    """Invalid where the environment is elsewhere, or the application would be in two places."""
    place = environment.kubernetes
    if place is None:
        said = f"{environment.full_name} is not in Kubernetes"
        hint = "ask its operator for kubernetes in the environment, with its queue and namespace"
        raise validation.refusal("application.kubernetes", said, hint)
    if app.workload:
        raise validation.refusal("application.workload", "beside kubernetes", "keep one of the two")
    assert app.kubernetes is not None
    for n, each in enumerate(app.kubernetes.containers):
        if each.image and not (each.image.registry or place.default_registry):
            at = f"application.kubernetes.containers[{n}].image.registry"
            said = f"missing, and {environment.full_name} names no default_registry"
            raise validation.refusal(at, said, "name it here or there")
    for n, database in enumerate(app.databases):
        if database.postgres.migrate_command:
            at = f"application.databases[{n}].postgres.migrate_command"
            said = "it would run where no workload does"
            raise validation.refusal(at, said, "bring migrations as a folder of SQL files")


def workload(app: Application, environment: Environment, text: str) -> Workload:
    """The object is called as the application, so that none takes another's place."""
    place = environment.kubernetes
    assert place is not None
    return Workload(f"{place.namespace}/{app.name}", queue=place.queue, content=text)


def content(built: BuiltApplication, environment: Environment) -> str:
    """What the operator writes into the object; the same input gives the same bytes."""
    assert built.app.kubernetes is not None
    place = environment.kubernetes
    assert place is not None
    made = [
        {"name": each.name, "image": _image(each, place.default_registry, built.version)}
        | ({"env": each.env} if each.env else {})
        for each in built.app.kubernetes.containers
    ]
    return json.dumps({"containers": made}, sort_keys=True)


def _image(container: KubernetesContainer, registry: str, version: str) -> str:
    image = container.image
    if image is None:
        return container.image_url
    return f"{image.registry or registry}/{image.name}:{image.tag or version}"
