"""What a spec takes from elsewhere: `adminPassword: {fromSecret: web-admin}`, and outputs.

What is stored and shown has the name only; the value is put in where a request is made. An output
is a value that another resource shows: `{fromOutput: {type: …, id: …, path: …}}`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from fairlead.areas.resources.domain.model import Json, Model, Path, Place, written
from fairlead.errors import Problem

NAME = "fromSecret"
OUTPUT = "fromOutput"
_WORDS = ("type", "id", "path")


class Output(NamedTuple):
    """A value of another resource."""

    type: str
    id: str
    path: str


def name_of(value: Any) -> str | None:
    """None where the value is no reference."""
    name = value[NAME] if isinstance(value, dict) and set(value) == {NAME} else None
    return name if isinstance(name, str) else None


def output_of(value: Any) -> Output | None:
    """None where the value is no reference to one."""
    said = value[OUTPUT] if isinstance(value, dict) and set(value) == {OUTPUT} else None
    if not isinstance(said, dict) or set(said) != {*_WORDS}:
        return None
    return Output(*(str(said[word]) for word in _WORDS))


def is_one(value: Any) -> bool:
    """Whether the value stands elsewhere."""
    return name_of(value) is not None or output_of(value) is not None


def outputs(value: Any) -> Iterator[Output]:
    """All that are named in a spec."""
    found = output_of(value)
    if found is not None:
        yield found
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from outputs(each)


def names(value: Any) -> Iterator[str]:
    """Of all secrets in a spec."""
    name = name_of(value)
    if name is not None:
        yield name
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from names(each)


def brought(value: Any, known: Mapping[Output, Any]) -> Any:
    """With outputs in the places of their references."""
    found = output_of(value)
    if found is not None:
        return known[found]
    if isinstance(value, list):
        return [brought(each, known) for each in value]
    if isinstance(value, dict):
        return {name: brought(each, known) for name, each in value.items()}
    return value


def completed(spec: Json, secret: Callable[[str], str], known: Mapping[Output, Any]) -> Json:
    """With all that it takes from elsewhere.

    Secrets first: an output is somebody else's word, and one that looks like the name of a secret
    must not become it.
    """
    whole: Json = brought(resolved(spec, secret), known)
    return whole


def without(value: Any) -> Any:
    """A spec less what it names by a secret."""
    if not isinstance(value, dict):
        return value
    return {name: without(each) for name, each in value.items() if name_of(each) is None}


def resolved(spec: Json, secret: Callable[[str], str]) -> Json:
    """With the values in the places of their names."""
    return {name: _resolved(value, secret) for name, value in spec.items()}


def problems(model: Model, spec: Json) -> Iterator[Problem]:
    """Secrets written out, and names where a value would be shown to whoever reads the resource."""
    yield from _problems(model, Place(), (), spec)


def _resolved(value: Any, secret: Callable[[str], str]) -> Any:
    name = name_of(value)
    if name is not None:
        return secret(name)
    if isinstance(value, list):
        return [_resolved(each, secret) for each in value]
    return resolved(value, secret) if isinstance(value, dict) else value


def _problems(model: Model, place: Place, path: Path, value: Any) -> Iterator[Problem]:
    is_secret = place.said is not None and place.said.secret
    if name_of(value) is not None:
        if not is_secret:
            yield Problem(
                written(path),
                "no secret by its description",
                "write the value; only secrets are taken from elsewhere",
            )
    elif output_of(value) is not None:
        return
    elif is_secret and not isinstance(value, dict | list) and value is not None:
        hint = f"put it into a file of the folder of secrets, and write {{{NAME}: FILE}}"
        yield Problem(written(path), "a secret that is written out", hint)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _problems(model, model.inside(place, name) or place, (*path, name), each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _problems(model, model.item(place), (*path, str(number)), each)
