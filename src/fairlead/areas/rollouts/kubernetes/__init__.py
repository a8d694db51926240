"""Rollouts on Kubernetes: the kinds, their children, and the ports of a rollout over caches.

object + children + related ──► kinds.observe ──► Want, Observed ──► rollout machine ──► effects
effects ──► platform (Deployments, Services) · providers (routes) · owner (status, Events, flag)
"""
