"""A deployment as people ask for it, in one document."""

from typing import Any

from tests.unit.areas.deployments.specs.files import APP, CLUSTER, ENV

WORDS: dict[str, Any] = {
    "version": "v1",
    "application": APP,
    "environment": {key: value for key, value in ENV.items() if key != "deployments"},
    "cluster": CLUSTER,
}
