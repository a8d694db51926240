"""What people ask of stacks and deployments: from the name of a verb to the machine's command."""

from collections.abc import Awaitable, Callable

from fairlead import errors
from fairlead.areas.deployments.domain import declared_verbs, messages
from fairlead.console.nouns import Action
from fairlead.engine import service, visibility
from fairlead.engine.messages import CommandId, Receipt, stream_name
from fairlead.values import one_of


def command(machine: str, verb: str, by: str, why: str) -> object:
    known = declared_verbs.OF_MACHINES[machine]
    if verb not in known:
        raise errors.NotFound(f"unknown verb: {verb[:80]}", hint=one_of(verb, known))
    declared = declared_verbs.VERBS[verb]
    made = vars(messages)[declared.command]
    return made(by, why) if declared.takes_reason else made(by)


def check_known(machine: str, name: str, found: visibility.StreamView | None) -> None:
    """Else a verb would make what it names."""
    if found is None:
        raise errors.NotFound(
            f"no such {machine}: {name[:80]}", hint=f"list them: fairlead get {machine}s"
        )


def steering(
    machine: str,
) -> Callable[[service.Engine, str, Action, CommandId], Awaitable[Receipt]]:
    """Performs a verb straight on a store."""

    async def steer(engine: service.Engine, name: str, action: Action, id_: CommandId) -> Receipt:
        stream = stream_name(machine, name)
        check_known(machine, name, await engine.read(lambda s: visibility.find(s, stream)))
        return await engine.submit(
            stream, command(machine, action.verb, action.by, action.why), id_
        )

    return steer
