"""The limit: the statements of one transition on our own tables, sent without any engine.

Five of them: load state, write state, event, command id, effect. They are the engine's own
queries where these take single rows; payloads are as large as those of a walk.
"""

from typing import NamedTuple

NOW = 1_800_000_000_000
FENCE = 1
# As long as a digest of ours.
DIGEST = "0" * 32


class Stream(NamedTuple):
    """A stream as the raw loop remembers it."""

    id: int
    name: str


def streams(count: int) -> list[Stream]:
    return [Stream(number, f"walk/raw-{number}") for number in range(1, count + 1)]


def state(step: int) -> str:
    return f'{{"owner":"bench","steps":10,"taken":{step}}}'


def first_rows(kept: list[Stream]) -> list[tuple[object, ...]]:
    return [
        (each.id, each.name, "walk", 0, "Afoot", 1, state(0), None, "", NOW, NOW) for each in kept
    ]


def state_row(stream: Stream, seq: int) -> tuple[object, ...]:
    return (seq, "Afoot", 1, state(seq), None, NOW, stream.id, seq - 1)


def event_row(stream: Stream, seq: int) -> tuple[object, ...]:
    cause = f"effect {stream.id}.{seq}.0"
    return (stream.id, seq, "Stepped", 1, f'{{"step":{seq}}}', cause, NOW)


def command_row(stream: Stream, seq: int) -> tuple[object, ...]:
    return (f"{stream.name} {seq}", stream.id, DIGEST, seq, seq, NOW)


def effect_row(stream: Stream, seq: int) -> tuple[object, ...]:
    return (stream.id, seq, 0, "Step", 1, f'{{"step":{seq}}}', False, FENCE, NOW, "", "", "walk")
