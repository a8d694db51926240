"""Requests to the API server: where it is, who we are there, connections, limits, retries."""
