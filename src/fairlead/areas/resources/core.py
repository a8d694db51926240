"""What every process on a store must know of resources: nothing is stored of them yet."""

from fairlead.area import parts


def core() -> parts.Core:
    return parts.Core()
