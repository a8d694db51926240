"""Durable machines: knows SQL and time, nothing of delivery."""
