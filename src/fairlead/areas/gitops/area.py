"""What GitOps brings: namespaces kept as folders of git repositories have them."""

from fairlead.area import Area

_HERE = "fairlead.areas.gitops"

GITOPS = Area(
    name="gitops",
    core=f"{_HERE}.core:core",
    operator=f"{_HERE}.kubernetes.wiring:operator_part",
)
