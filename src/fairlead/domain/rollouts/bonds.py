"""What rollouts say to the machines that bind them: the limiter of a namespace, and a group."""

from dataclasses import dataclass

from fairlead.engine.messages import StreamName, stream_name


@dataclass(frozen=True, slots=True)
class Claim:
    """Command to a limiter: let this rollout begin when there is room."""

    rollout: str
    cap: int


@dataclass(frozen=True, slots=True)
class Release:
    """Command to a limiter: this rollout is over, or no longer wants to begin."""

    rollout: str


@dataclass(frozen=True, slots=True)
class Arrive:
    """Command to a group: this member waits at a gate."""

    member: str
    gate: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Command to a group: this member goes home."""

    member: str
    why: str
    members: tuple[str, ...]


def rollout_stream(name: str) -> StreamName:
    return stream_name("rollout", name)


def limiter_stream(name: str) -> StreamName:
    return stream_name("limiter", name)


def group_stream(name: str) -> StreamName:
    return stream_name("group", name)
