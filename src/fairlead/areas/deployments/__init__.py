"""Deployments: stacks with queues, and plans that span database, infrastructure and version."""
