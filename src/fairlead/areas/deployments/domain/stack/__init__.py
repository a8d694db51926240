"""A stack: one application in one environment, and the queue of its deployments."""
