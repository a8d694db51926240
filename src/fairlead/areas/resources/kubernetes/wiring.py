"""The kinds of resources, and who performs for them."""

import functools

from fairlead.area.operator_part import OperatorPart
from fairlead.areas.resources.kubernetes.kinds import CloudKinds
from fairlead.areas.resources.kubernetes.registration import CloudRegistrar


def operator_part() -> OperatorPart:
    kinds = CloudKinds()
    registrar = functools.partial(CloudRegistrar, kinds)
    return OperatorPart(kinds.kinds, registrar, kinds.settle)
