"""The JSON API, the live pages and the health checks."""
