"""Deployments to this machine: databases of one server, versions as rollouts."""
