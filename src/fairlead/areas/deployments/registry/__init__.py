"""Clusters, environments and push targets as they are stored, found and edited."""
