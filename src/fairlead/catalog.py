"""The areas of this program."""

from fairlead.area import Area
from fairlead.areas.content.area import CONTENT
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.gitops.area import GITOPS
from fairlead.areas.resources.area import RESOURCES
from fairlead.areas.rollouts.area import ROLLOUTS

AREAS: tuple[Area, ...] = (ROLLOUTS, DEPLOYMENTS, CONTENT, RESOURCES, GITOPS)
