"""Two sample machines for the tutorial, the tests and the benchmark; not part of the API.

A depot queues trips and sends a few out at a time; a trip drives its legs and reports back.
Stacks and deployments will have this shape.
"""
