"""A real Kubernetes on this machine, for tests, benchmarks and people.

`parts` knows the programs and where they lie, `build` makes the missing ones from the pinned
Go modules under tests/cluster/rig, `pki` and `process` are what a server needs to start,
`control_plane` starts them all, and `python -m tools.cluster` is the door for people.
"""
