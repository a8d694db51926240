"""Programs that are timed, each in a process of its own so that none disturbs another.

`python -m bench.contestants.NAME '{"url": …}'` prints one JSON object of figures.
"""
