"""The verbs of a rollout, each declared once.

Commands of the program, routes, buttons and annotations are made from here, so this holds plain
data only: `area.py` imports it, and `fairlead --help` must stay quick. What a verb does is in
`verbs`.
"""

from collections.abc import Mapping

from fairlead.values import Confirmation, Verb

_APPROVE = Verb(
    name="approve",
    command="Approve",
    help="Approve a step that waits for a person.",
    usage="Approve the step of rollout NAME that waits for a person.",
    label="Approve",
    tone="main",
)
_PROMOTE = Verb(
    name="promote",
    command="PromoteFully",
    help="Promote a rollout now, without the remaining steps.",
    usage="Promote rollout NAME now, without the remaining steps and checks.",
    label="Promote now",
    confirm=Confirmation(
        question="Promote {name} now, without the remaining steps and checks?",
        title="Promote now?",
        text="The new version gets all traffic, without the remaining steps and checks.",
        yes="Promote",
    ),
)
_PAUSE = Verb(
    name="pause",
    command="Pause",
    help="Pause a rollout; its weight stops rising.",
    usage="Pause rollout NAME: its weight stops rising, but it can still roll back.",
    label="Pause",
    takes_reason=True,
    restrains=True,
    annotation_is_reason=True,
)
_RESUME = Verb(
    name="resume",
    command="Resume",
    help="Resume a paused rollout.",
    usage="Resume rollout NAME after a pause; its checks start over.",
    label="Resume",
    tone="main",
)
_ABORT = Verb(
    name="abort",
    command="Abort",
    help="Abort a rollout and return all traffic to stable.",
    usage="Abort rollout NAME and return all traffic to the stable version.",
    label="Abort",
    tone="danger",
    confirm=Confirmation(
        question="Abort {name} and return all traffic to the stable version?",
        title="Abort this rollout?",
        text="All traffic returns to the stable version, and this one is rolled back.",
        yes="Abort",
    ),
    takes_reason=True,
    restrains=True,
)
_RETRY = Verb(
    name="retry",
    command="Retry",
    help="Retry a version that was rolled back.",
    usage="Retry the version of rollout NAME that was rolled back.",
    label="Retry",
    tone="main",
)
_ROLLBACK = Verb(
    name="rollback",
    command="RollBackTo",
    help="Roll back to the last good revision, or to another.",
    usage="Roll back rollout NAME to REVISION at once, without steps.\n\n"
    "Without REVISION, to the last good one: of a rollout in progress the stable version, else the"
    ' one before it. "fairlead get rollout NAME" lists the revisions that are kept.',
    label="Roll back",
    confirm=Confirmation(
        question="Roll back {name} to {revision} at once, without steps?",
        title="Roll back?",
        text="The chosen version gets all traffic, without steps.",
        yes="Roll back",
    ),
    takes_revision=True,
)
_DELETE = Verb(
    name="delete",
    command="Delete",
    help="Delete a rollout with everything that it runs.",
    usage="Delete rollout NAME: stop all of its versions and its proxy, forget its programs.\n\n"
    "Its port is free again. A rollout that an object of Kubernetes stands behind is deleted with"
    " that object, by kubectl.",
    label="Delete",
    tone="danger",
    confirm=Confirmation(
        question="Delete {name}: stop all of its versions and its proxy, and forget its programs?",
        title="Delete this rollout?",
        text="All of its versions and its proxy stop, and its programs are forgotten."
        " Nobody answers its requests any more.",
        yes="Delete",
    ),
    deletes=True,
)

VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (_APPROVE, _PROMOTE, _PAUSE, _RESUME, _ABORT, _RETRY, _ROLLBACK, _DELETE)
}
"""In the order in which people see them."""
