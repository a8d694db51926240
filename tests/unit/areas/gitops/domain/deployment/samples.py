"""A deployment from git at each point of its life, and every command there is."""

from collections.abc import Mapping

from fairlead.areas.gitops.domain import messages
from fairlead.areas.gitops.domain.deployment.machine import DEPLOYMENT
from fairlead.areas.gitops.domain.deployment.state import Deployment, Phase
from fairlead.engine.testing import Given
from fairlead.kubernetes.messages import Subject

SUBJECT = Subject("gitopsdeployments.managed-gitops.redhat.com", "team-a", "shop", "6f0d3c5e-uid")
INTENT = messages.Intent("https://git.example/shop.git", "deploy")
MANUAL = messages.Intent("https://git.example/shop.git", "deploy", type=messages.MANUAL)
WRONG = messages.Intent("https://git.example/shop.git", "/")
REVISION = "0123456789abcdef0123456789abcdef01234567"
MAP = messages.ObjectRef("", "v1", "ConfigMap", "settings")
WEB = messages.ObjectRef("apps", "v1", "Deployment", "web")


def declare(intent: messages.Intent = INTENT, generation: int = 1) -> messages.Declare:
    return messages.Declare(SUBJECT, generation, intent)


def observed(
    *refs: messages.ObjectRef, health: messages.Health = messages.Health.HEALTHY
) -> tuple[messages.Observed, ...]:
    return tuple(messages.Observed(ref, messages.SyncStatus.SYNCED, health) for ref in refs)


def after(*commands: object, at: Given | None = None) -> Given:
    """The machine after these commands, each decided on what the ones before left."""
    given = at or Given(DEPLOYMENT, Deployment())
    for command in commands:
        given = Given(DEPLOYMENT, given.when(command).state)
    return given


def answer(given: Given, kind: type, *rest: object) -> object:
    """An answer to what the machine asks at the moment."""
    return kind(given.state.order, *rest)


GATHERING = after(declare())
RENDERING = after(answer(GATHERING, messages.Gathered, "ns-uid", "builtin"), at=GATHERING)
APPLYING = after(answer(RENDERING, messages.Rendered, REVISION, (MAP, WEB)), at=RENDERING)
WAITING = after(answer(APPLYING, messages.Applied, observed(MAP, WEB)), at=APPLYING)
REMOVING = after(messages.Delete(SUBJECT), at=WAITING)
STUCK = after(answer(REMOVING, messages.Failed, "the API server is away"), at=REMOVING)

STATES: Mapping[Phase, Given] = {
    Phase.IDLE: after(),
    Phase.REFUSED: after(declare(WRONG)),
    Phase.GATHERING: GATHERING,
    Phase.RENDERING: RENDERING,
    Phase.APPLYING: APPLYING,
    Phase.WAITING: WAITING,
    Phase.REMOVING: REMOVING,
    Phase.STUCK: STUCK,
    Phase.GONE: after(answer(REMOVING, messages.Removed), at=REMOVING),
}


def commands(given: Given) -> Mapping[str, object]:
    """Each command, as an answer to what is asked at the moment."""
    order = given.state.order
    return {
        "Declare": declare(messages.Intent("https://git.example/other.git", "deploy"), 2),
        "Delete": messages.Delete(SUBJECT),
        "Adopt": messages.Adopt(1000, (MAP,)),
        "Sync": messages.Sync("1"),
        "Gathered": messages.Gathered(order, "ns-uid", "builtin"),
        "Rendered": messages.Rendered(order, REVISION, (MAP,)),
        "Applied": messages.Applied(order, observed(MAP)),
        "Removed": messages.Removed(order),
        "Failed": messages.Failed(order, "the repository is gone"),
        "Wake": messages.Wake(order),
        "Expire": messages.Expire(order),
    }
