"""A PostgreSQL server of our own, from a wheel: for the demo, tests and benchmarks."""
