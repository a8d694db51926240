"""The kinds of rollouts with every provider that ships; light, for every command reads kinds."""

from fairlead.adapters.canaries.kinds import Canaries
from fairlead.adapters.canaries.ratio import Ratio
from fairlead.adapters.gateway_api import GatewayApi
from fairlead.adapters.istio import Istio


def canaries() -> Canaries:
    return Canaries((Istio(), GatewayApi(), Ratio()))
