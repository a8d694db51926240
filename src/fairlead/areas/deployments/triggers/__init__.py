"""Pushes and people that start deployments: doors in, and what reads repositories for them."""
