"""A deployment: one version on its way to a stack, walking its plan."""
