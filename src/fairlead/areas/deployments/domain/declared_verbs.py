"""What people may ask of deployments, of stacks, and of what is stored for them."""

import dataclasses
from collections.abc import Mapping

from fairlead.values import Confirmation, Verb

_REMOVE = Verb(
    name="remove",
    command="Remove",
    help="Remove a stored cluster, environment, push target or schedule.",
    usage="Remove what is stored as NAME, such as environment/prod or push-target/prod/shop.\n\n"
    "What runs stays as it is, and so does the history. What something else names is not removed.",
    label="Remove",
    tone="danger",
    confirm=Confirmation(
        question="Remove {name}: nothing is deployed by it any more?",
        title="Remove this?",
        text="Nothing is deployed by it any more. What runs stays as it is.",
        yes="Remove",
    ),
    deletes=True,
)

_APPROVE = Verb(
    name="approve",
    command="Approve",
    help="Approve a deployment that waits for a person.",
    usage="Let deployment NAME go on, which waits for a person.",
    label="Approve",
    tone="main",
)
_ABORT = Verb(
    name="abort",
    command="Terminate",
    help="End a deployment.",
    usage="End deployment NAME. In the middle of its steps that breaks its stack.",
    label="Abort",
    tone="danger",
    confirm=Confirmation(
        question="End {name}? In the middle of its steps that breaks its stack.",
        title="End this deployment?",
        text="In the middle of its steps that breaks its stack: nobody knows what is half done.",
        yes="End it",
    ),
    takes_reason=True,
    restrains=True,
)
REFUSE = dataclasses.replace(
    _ABORT,
    label="Refuse",
    confirm=Confirmation(
        question="Refuse {name}?",
        title="Refuse this deployment?",
        text="It ends here. No step of it has changed what runs, so its stack goes on.",
        yes="Refuse it",
    ),
)
"""The same to whom a person is asked first: the page's other answer beside approve."""

_RETRY = Verb(
    name="retry",
    command="Retry",
    help="Run what failed on a broken stack once more.",
    usage="Run the deployment that broke stack NAME once more.",
    label="Retry",
    tone="main",
)
_FORCE_AVAILABLE = Verb(
    name="force-available",
    command="ForceAvailable",
    help="Say that a broken stack is whole again.",
    usage="Say that somebody mended stack NAME; its queue goes on. It takes a reason: --why.",
    label="Force available",
    tone="danger",
    confirm=Confirmation(
        question="Is {name} whole again? Its queue goes on.",
        title="Is this stack whole again?",
        text="Nothing is checked: the next deployment of its queue starts at once.",
        yes="Go on",
    ),
    takes_reason=True,
)

VERBS: Mapping[str, Verb] = {
    verb.name: verb for verb in (_APPROVE, _ABORT, _RETRY, _FORCE_AVAILABLE, _REMOVE)
}
OF_MACHINES: Mapping[str, tuple[str, ...]] = {
    "deployment": (_APPROVE.name, _ABORT.name),
    "stack": (_RETRY.name, _FORCE_AVAILABLE.name),
}
REMOVE = (_REMOVE.name,)
"""What can be asked of stored definitions."""
