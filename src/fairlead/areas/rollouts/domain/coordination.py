"""What rollouts send to other machines: a limiter, a group, and the step of a plan."""

from dataclasses import dataclass

from fairlead.engine.messages import Send, StreamName, parse_stream, stream_name

FULL = "full"
KEEP = "keep"
"""The gates of a group: before all traffic moves, and before the old version is given up."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Command to a limiter: let this rollout begin when there is room."""

    rollout: str
    cap: int


@dataclass(frozen=True, slots=True)
class Release:
    """Command to a limiter: this rollout is over, or gives its place in the queue up."""

    rollout: str


@dataclass(frozen=True, slots=True)
class Join:
    """Command to a group: this member is under way, so it is waited for."""

    member: str
    rollout: str = ""
    """How its rollout is called, where that is not the member's name."""

    kept: bool = False
    """It has passed the first gate already, with a group that may have forgotten it."""


@dataclass(frozen=True, slots=True)
class Arrive:
    """Command to a group: this member waits at a gate."""

    member: str
    gate: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Excuse:
    """Command to a group: this member goes on alone; nobody is to wait for it."""

    member: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Command to a group: this member rolls back, and its party with it."""

    member: str
    why: str


@dataclass(frozen=True, slots=True)
class ReportVersion:
    """Command to the step that follows: the version it asked for has come to its end."""

    succeeded: bool
    reason: str


def rollout_stream(name: str) -> StreamName:
    return stream_name("rollout", name)


def key_of(stream: StreamName) -> str:
    """What a stream of ours is called by: the one name that effects are performed under."""
    return stream.partition("/")[2]


def limiter_stream(name: str) -> StreamName:
    return stream_name("limiter", name)


def group_stream(name: str) -> StreamName:
    return stream_name("group", name)


def to_limiter(name: str, command: Claim | Release) -> Send:
    return Send(limiter_stream(name), command, queue=_NONE)


def to_group(name: str, command: Join | Arrive | Excuse | Leave) -> Send:
    return Send(group_stream(name), command, queue=_NONE)


def to_follower(stream: str, command: ReportVersion) -> Send:
    return Send(parse_stream(stream), command)


# They bind rollouts of several queues, ask nothing of the world, and so belong to none.
_NONE = ""
