"""The files that a deployment is described by, read together: each mistake at its line."""

from dataclasses import dataclass

from fairlead.areas.deployments.specs import reading
from fairlead.areas.deployments.specs.application import Application
from fairlead.areas.deployments.specs.environment import Cluster, Environment
from fairlead.console.files import Document


@dataclass(frozen=True, slots=True)
class SpecFiles:
    """An application, an environment, and the cluster where one was named."""

    app_text: Document
    app: Application
    environment: Environment
    cluster: Cluster | None


def read(app_file: str, env_file: str, cluster_file: str | None) -> SpecFiles:
    app_text, env_text = Document.read(app_file), Document.read(env_file)
    with app_text.placed():
        app = reading.application(app_text.content)
    with env_text.placed():
        environment = reading.environment(env_text.content)
    if not cluster_file:
        return SpecFiles(app_text, app, environment, None)
    text = Document.read(cluster_file)
    with text.placed():
        cluster = reading.cluster(text.content)
    with env_text.placed():
        reading.check_environment(environment, cluster)
    with app_text.placed():
        reading.check_servers(app, cluster)
    return SpecFiles(app_text, app, environment, cluster)
