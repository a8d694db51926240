"""The kinds of this area, and who performs for them."""

from fairlead import settings as settings_
from fairlead.area.operator_part import OperatorPart
from fairlead.areas.gitops.kubernetes.agent import AgentRegistrar
from fairlead.areas.gitops.kubernetes.kinds import KIND


def operator_part() -> OperatorPart:
    return OperatorPart((KIND,), _registrar)


def _registrar(_: settings_.Settings) -> AgentRegistrar:
    return AgentRegistrar()
