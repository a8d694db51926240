"""Unleash's admin API, as far as a release needs it: the share of one flag."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote

import aiohttp

from fairlead import errors

_SECONDS = 8.0
_TRIES = 3
_PAUSE_SECONDS = 0.5
_PARAMETER = {
    "flexibleRollout": "rollout",
    "gradualRolloutUserId": "percentage",
}

_STICKY = frozenset({"default", "userId"})


class FlagName(Protocol):
    """Which flag is meant."""

    @property
    def name(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def environment(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Admin:
    """One Unleash, as its administrator."""

    url: str
    """Up to `/api`."""

    token: str = field(repr=False)

    async def set_rollout(self, flag: FlagName, percent: int) -> None:
        """Let this share in by the flag's one strategy, and read it back."""
        at = (
            f"/admin/projects/{quote(flag.project, safe='')}/features/{quote(flag.name, safe='')}"
            f"/environments/{quote(flag.environment, safe='')}"
        )
        found = await self._ask("GET", at)
        strategy, parameter = _strategy(flag, found, percent)
        if _share(strategy, parameter) != percent:
            operation = {"op": "replace", "path": f"/parameters/{parameter}", "value": f"{percent}"}
            await self._ask("PATCH", f"{at}/strategies/{quote(strategy['id'])}", [operation])
            strategy, parameter = _strategy(flag, await self._ask("GET", at), percent)
        if _share(strategy, parameter) != percent:
            raise errors.Unavailable(
                f"the flag {flag.name} still has another share: {_share(strategy, parameter)} %",
                hint="does anybody else change it?",
            )

    async def _ask(self, method: str, path: str, content: Any = None) -> Any:
        """Both requests may come twice; what passes by itself is asked for again."""
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._once(method, path, content)
            except errors.Unavailable:
                if attempt == _TRIES:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS * attempt)
        raise AssertionError

    async def _once(self, method: str, path: str, content: Any) -> Any:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        headers = {"Authorization": self.token}
        try:
            async with (
                aiohttp.ClientSession(headers=headers, timeout=timeout) as session,
                session.request(
                    method, f"{self.url.rstrip('/')}{path}", json=content, allow_redirects=False
                ) as answer,
            ):
                if answer.status == HTTPStatus.OK:
                    return await answer.json()
                raise _refusal(answer.status, path)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            # Never the address as it was given: it may hold a password.
            raise errors.Unavailable(
                f"Unleash does not answer: {type(error).__name__}", hint="it is asked again"
            ) from error


def _strategy(flag: FlagName, found: Any, percent: int) -> tuple[dict[str, Any], str]:
    """The one that has the share; Conflict where others let people in, too, or nobody does."""
    strategies = [each for each in found.get("strategies", ()) if not each.get("disabled")]
    if len(strategies) != 1 or strategies[0].get("name") not in _PARAMETER:
        raise errors.Conflict(
            f"the flag {flag.name} has {len(strategies)} strategies in {flag.environment}",
            hint="leave one gradual rollout there: any other lets people in whatever the share is",
        )
    if percent:
        _check_open(flag, found, strategies[0])
    return strategies[0], _PARAMETER[strategies[0]["name"]]


def _check_open(flag: FlagName, found: Any, strategy: dict[str, Any]) -> None:
    """Conflict where its share would not be that of all users, always the same ones."""
    parameters = strategy.get("parameters", {})
    sticky = parameters.get("stickiness") or "default"
    group = parameters.get("groupId") or flag.name
    at = f"the flag {flag.name} of {flag.environment}"
    if not found.get("enabled"):
        told = f"the flag {flag.name} is off in {flag.environment}"
        raise errors.Conflict(told, hint="turn it on in Unleash")
    if sticky not in _STICKY:
        hint = "set its stickiness to userId: others draw lots, or know nothing of our ids"
        raise errors.Conflict(f"{at} sticks to {sticky}", hint=hint)
    if group != flag.name:
        hint = "set its groupId to the flag's name: who gets what is told by that"
        raise errors.Conflict(f"{at} has the group {group[:80]}", hint=hint)
    if strategy.get("constraints") or strategy.get("segments"):
        hint = "take them off: the share would be one of fewer people than it says"
        raise errors.Conflict(f"{at} has constraints or segments", hint=hint)


def _share(strategy: dict[str, Any], parameter: str) -> int | None:
    text = str(strategy.get("parameters", {}).get(parameter, ""))
    return int(text) if text.isdecimal() else None


def _refusal(status: int, path: str) -> errors.FairleadError:
    told = f"Unleash answers {status}: {path}"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return errors.Rejected(told, hint="check FAIRLEAD_CONTENT_UNLEASH_ADMIN_TOKEN")
    if status == HTTPStatus.NOT_FOUND:
        return errors.Rejected(told, hint="make the flag in Unleash first")
    if status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS:
        return errors.Rejected(told, hint="does this Unleash have the admin API of version 5 on?")
    return errors.Unavailable(told, hint="it is asked again")
