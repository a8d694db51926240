"""What a parent knows of the machines it started, and how it cancels all of them.

`Children` is a part of the parent's state. The parent's decision, what its children make of a
`Cancel` and what they answer are one transaction, so neither acts on what the other no longer is:
a child that ended has said so before, and no `Cancel` overtakes the start of a child.
"""

from dataclasses import dataclass

from fairlead.engine import machine as machines
from fairlead.engine.messages import Cancel, ChildEnded, Send, StreamName, parse_stream


@dataclass(frozen=True, slots=True)
class Children:
    """Those that were started and have not ended, in the order of their start."""

    running: tuple[StreamName, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.running)

    def __contains__(self, child: object) -> bool:
        return child in self.running

    def started(self, *children: StreamName) -> "Children":
        """For evolve: these run from now on; one that runs already is the same."""
        return Children(tuple(dict.fromkeys((*self.running, *children))))

    def ended(self, child: StreamName) -> "Children":
        """For evolve: this one runs no longer; one that is not known is no error."""
        return Children(tuple(each for each in self.running if each != child))

    def cancel(self, reason: str) -> tuple[Send, ...]:
        """For decide: tell all of them to end; each answers with ChildEnded when it has."""
        return tuple(Send(child, Cancel(reason)) for child in self.running)


def report(
    parent: str, child: StreamName, *, succeeded: bool, reason: str = ""
) -> tuple[Send, ...]:
    """For the decide of a child that ends: what its parent hears, nothing where it has none."""
    return (Send(parse_stream(parent), ChildEnded(child, succeeded, reason)),) if parent else ()


def check(known: machines.Machines) -> None:
    """Refuse at the start a family that could not be cancelled: it would be found out too late."""
    by_name = {each.name: each for each in known}
    for parent in known:
        if parent.children and not _hears(parent, Cancel, ChildEnded):
            raise ValueError(f"a parent must know Cancel and ChildEnded: {parent.name}")
        for name in parent.children:
            if name in by_name and not _hears(by_name[name], Cancel):
                raise ValueError(f"a child must know Cancel: {name}, which {parent.name} starts")


def _hears(machine: machines.AnyMachine, *commands: type) -> bool:
    return {*commands} <= {*machines.members(machine.vocabulary.commands)}
