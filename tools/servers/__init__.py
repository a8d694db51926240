"""Real servers for tests and benchmarks: each started by us, on loopback, and gone after use."""
