"""The verbs of a release, each declared once; plain data only, as `area.py` imports it.

Commands of the program, routes and buttons are made from here. What a verb does is in `machine`.
"""

from collections.abc import Mapping

from fairlead.values import Confirmation, Verb

_APPROVE = Verb(
    name="approve",
    command="Approve",
    help="Approve a proposed release.",
    usage="Approve what is proposed for NAME, by its REVISION (see fairlead get); never by who"
    " proposed it.",
    label="Approve",
    tone="main",
    confirm=Confirmation(
        question="Approve the version that is proposed for {name}?",
        title="Approve this version?",
        text="It is deployed as proposed: a canary to nobody at first, an emergency release to"
        " everybody at once. Its review covers its way back, too.",
        yes="Approve",
    ),
    takes_revision=True,
)
_REJECT = Verb(
    name="reject",
    command="Reject",
    help="Reject a proposed release.",
    usage="Reject the version that is proposed for NAME; nothing is deployed.",
    label="Reject",
    takes_reason=True,
    restrains=True,
    confirm=Confirmation(
        question="Reject the version that is proposed for {name}?",
        title="Reject this version?",
        text="The proposal is closed; nothing is deployed.",
        yes="Reject",
    ),
)
_ADVANCE = Verb(
    name="advance",
    command="Advance",
    help="Raise the share of a release that waits for a person.",
    usage="Raise the share of release NAME to its next step.",
    label="Raise the share",
    tone="main",
)
_PROMOTE = Verb(
    name="promote",
    command="Promote",
    help="Promote a canary that has baked.",
    usage="Make the canary of release NAME stable; never by who proposed it.",
    label="Promote",
    tone="main",
    confirm=Confirmation(
        question="Make the canary of {name} stable, for everybody?",
        title="Promote?",
        text="Everybody gets the version; then nobody is in the share any more.",
        yes="Promote",
    ),
)
_PAUSE = Verb(
    name="pause",
    command="Pause",
    help="Pause a release; its share stops rising.",
    usage="Pause release NAME: its share stops rising, but checks can still revert it.",
    label="Pause",
    takes_reason=True,
    restrains=True,
)
_RESUME = Verb(
    name="resume",
    command="Resume",
    help="Resume a paused release.",
    usage="Resume release NAME after a pause.",
    label="Resume",
    tone="main",
)
_ABORT = Verb(
    name="abort",
    command="Abort",
    help="Abort a canary and return everybody to stable.",
    usage="Abort the canary of release NAME and return everybody to the stable version.",
    label="Abort",
    tone="danger",
    confirm=Confirmation(
        question="Abort the canary of {name} and return everybody to the stable version?",
        title="Abort this canary?",
        text="Nobody is in the share any more, and the stable version is deployed alone.",
        yes="Abort",
    ),
    takes_reason=True,
    restrains=True,
)

VERBS: Mapping[str, Verb] = {
    verb.name: verb for verb in (_APPROVE, _REJECT, _ADVANCE, _PROMOTE, _PAUSE, _RESUME, _ABORT)
}
"""In the order in which people see them."""
