"""What rollouts are called: NAME or PROJECT/NAME on a machine, NAMESPACE/NAME/UID in a cluster."""

_QUALIFIED = 3


def is_of_cluster(name: str) -> bool:
    """Whether an object of Kubernetes stands behind it."""
    return len(name.split("/")) == _QUALIFIED


def title(name: str) -> str:
    """How people call it: without the UID."""
    return name.rpartition("/")[0] if is_of_cluster(name) else name


def scope(name: str) -> str:
    """The project or namespace it belongs to; empty for none."""
    first, slash, _ = name.partition("/")
    return first if slash else ""
