"""The numbers and the gates that decide a rollout: two ports of `domain/rollouts/ports.py`.

    check ──► reading (problems, before anything is asked)
    check + names of a slot ──► queries ──► metrics ──► adapters/prometheus
    check + what the rollout is at ──► gates ──► hooks (hosts, signature, retries) ──► the web

`bootstrap.measures` makes both from settings and from a platform's `Naming`.
"""

from fairlead.adapters.measures.gates import WebGates
from fairlead.adapters.measures.hooks import Hooks, Hosts
from fairlead.adapters.measures.metrics import PrometheusMetrics
from fairlead.adapters.measures.reading import Reader
from fairlead.adapters.measures.servers import Servers

__all__ = ["Hooks", "Hosts", "PrometheusMetrics", "Reader", "Servers", "WebGates"]
