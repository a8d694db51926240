"""The kinds of resources, and who performs for them."""

import functools

from fairlead import settings as settings_
from fairlead.area.operator_part import OperatorPart
from fairlead.areas.resources.kubernetes.kinds import CloudKinds
from fairlead.areas.resources.kubernetes.registration import CloudRegistrar


def operator_part() -> OperatorPart:
    kinds = CloudKinds()
    return OperatorPart(kinds.kinds, functools.partial(_registrar, kinds))


def _registrar(kinds: CloudKinds, chosen: settings_.Settings) -> CloudRegistrar:
    kinds.settle(chosen)
    return CloudRegistrar(kinds, chosen)
