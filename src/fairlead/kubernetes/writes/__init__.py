"""Every way we change the cluster: children, status, Events, finalizers."""
