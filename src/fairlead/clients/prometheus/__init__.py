"""Numbers from Prometheus: a value, no data, or an error, never one taken for another.

    async with Prometheus(Access("http://127.0.0.1:9090")) as prometheus:
        query = render(ENVOY["request-success-rate"], {...})
        match await prometheus.instant(query):
            case Values() as values: values.only()
            case NoData(reason): ...

Flow: templates (a query from a metric and its arguments) -> shared (one question for all
who ask it in the same tick) -> client (the question itself).
"""

from fairlead.clients.prometheus.client import Access, Prometheus
from fairlead.clients.prometheus.outcome import NoData, Sample, Series, SeriesSet, Values
from fairlead.clients.prometheus.shared import Shared
from fairlead.clients.prometheus.templates import ENVOY, built_in, envoy, render

__all__ = [
    "ENVOY",
    "Access",
    "NoData",
    "Prometheus",
    "Sample",
    "Series",
    "SeriesSet",
    "Shared",
    "Values",
    "built_in",
    "envoy",
    "render",
]
