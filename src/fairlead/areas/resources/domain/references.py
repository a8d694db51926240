"""Secrets of a spec by their names: `adminPassword: {fromSecret: web-admin}`.

What is stored and shown has the name only; the value is put in where a request is made.
"""

from collections.abc import Callable, Iterator
from typing import Any

from fairlead.areas.resources.domain.model import Json, Model, Path, Place, written
from fairlead.errors import Problem

NAME = "fromSecret"


def name_of(value: Any) -> str | None:
    """None where the value is no reference."""
    name = value[NAME] if isinstance(value, dict) and set(value) == {NAME} else None
    return name if isinstance(name, str) else None


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
    elif is_secret and not isinstance(value, dict | list) and value is not None:
        hint = f"put it into a file of the folder of secrets, and write {{{NAME}: FILE}}"
        yield Problem(written(path), "a secret that is written out", hint)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _problems(model, model.inside(place, name) or place, (*path, name), each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _problems(model, model.item(place), (*path, str(number)), each)
