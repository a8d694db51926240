"""Every setting of Fairlead, in frozen groups; each field says what it is for.

Settings come from the environment: FAIRLEAD_ and the field's name in capitals. Only
bootstrap reads it; everything else is handed a group. docs/reference/settings.md is made
from this file.
"""

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead import errors

PREFIX = "FAIRLEAD_"
_STATE = Path("~/.local/state/fairlead")
# Read by the test rig and the cluster tools, not by the program.
_NOT_OURS = ("FAIRLEAD_TEST_", "FAIRLEAD_CACHE", "FAIRLEAD_BENCH_")


def _setting(default: Any, doc: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"doc": doc, "secret": secret})


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where everything is kept."""

    state_dir: Path = _setting(_STATE, "Folder of the embedded database and of local files.")
    database_url: str = _setting(
        "",
        "A postgresql:// URL for the shared store; empty means SQLite in the state folder.",
        secret=True,
    )


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Where the page and the API answer."""

    listen: str = _setting(
        "127.0.0.1:8600",
        "Address and port; any address but loopback is refused until a token exists.",
    )
    server: str = _setting(
        "", "URL of a running control plane, for commands that ask it instead of the store."
    )
    token: str = _setting("", "API token that commands send to that server.", secret=True)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How patient and how busy a worker is."""

    lease_seconds: float = _setting(
        15.0, "How long a silent worker keeps its work before others take it over."
    )
    poll_seconds: float = _setting(
        1.0, "How often a worker looks for what others left, besides being told."
    )
    drain_seconds: float = _setting(
        10.0, "How long a stopping worker lets effects finish that are being performed."
    )
    in_flight: int = _setting(1024, "Effects that one worker performs at the same time.")


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What the Kubernetes operator looks after, and how it is known there."""

    operator_namespace: str = _setting(
        "", "The one namespace the operator looks after; empty means all of them."
    )
    operator_shard: str = _setting(
        "0/1", "INDEX/COUNT: this operator's part of all namespaces, counted from 0."
    )
    operator_lease: str = _setting(
        "fairlead-operator", "Name of the Lease by which operators elect their leader."
    )
    operator_listen: str = _setting(
        "127.0.0.1:8601", "Address and port of the operator's /healthz, /readyz and /metrics."
    )
    operator_webhooks_listen: str = _setting(
        "", "Address and port where the API server has objects reviewed; empty reviews none."
    )
    operator_webhooks_name: str = _setting(
        "fairlead-operator",
        "Name of the webhook configuration; its Secret has `-webhook` after it.",
    )
    operator_secrets: str = _setting(
        "read", "Whether a changed Secret starts a run: `read`, or `ignored` and never read."
    )


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """Where a rollout's numbers come from, and who is asked and told over the web."""

    prometheus_url: str = _setting(
        "", "The Prometheus that checks ask; empty means that there is none."
    )
    prometheus_token_file: str = _setting(
        "", "File of the token that Prometheus wants, read for each query."
    )
    prometheus_username: str = _setting("", "Who we are there, where a password is wanted.")
    prometheus_password_file: str = _setting("", "File of that password, read for each query.")
    prometheus_ca_file: str = _setting(
        "", "Certificates to trust there, instead of those of the system."
    )
    prometheus_seconds: float = _setting(5.0, "How long one query may take, at most 20.")
    prometheus_tick_seconds: float = _setting(
        5.0, "For so long an answer serves everybody who asks the same."
    )
    prometheus_servers: str = _setting(
        "", "TOML file of further Prometheus servers that checks may choose by name."
    )
    hooks_hosts: str = _setting(
        "",
        "Hosts that checks may call as gates and web numbers, with commas between them:"
        " gate.example, *.shop.example:8443, http://127.0.0.1:9000. Empty means none.",
    )
    hooks_secret_file: str = _setting(
        "", "File of the secret that signs what we send; the first of several lines is the newest."
    )
    hooks_ca_file: str = _setting(
        "", "Certificates to trust there, instead of those of the system."
    )
    hooks_seconds: float = _setting(
        10.0, "How long a gate, a web number or a receiver of news may take, at most 20."
    )
    hooks_news_url: str = _setting("", "Where news of rollouts are posted; empty means nowhere.")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is told about the work."""

    log_level: str = _setting("info", "One of debug, info, warning, error.")
    log_format: str = _setting("auto", "json, text, or auto: text on a terminal, else json.")
    otlp_endpoint: str = _setting(
        "", "OpenTelemetry collector (HTTP) that gets spans; empty sends none."
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All groups together."""

    store: StoreSettings = field(default_factory=StoreSettings)
    web: WebSettings = field(default_factory=WebSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    operator: OperatorSettings = field(default_factory=OperatorSettings)
    measures: MeasureSettings = field(default_factory=MeasureSettings)
    log: LogSettings = field(default_factory=LogSettings)


@dataclass(frozen=True, slots=True)
class Described:
    """One setting as the reference page and the errors show it."""

    group: str
    name: str
    variable: str
    default: Any
    doc: str
    secret: bool


def described() -> list[Described]:
    """Every setting there is."""
    return [
        Described(
            group.name,
            each.name,
            PREFIX + each.name.upper(),
            each.default,
            each.metadata["doc"],
            each.metadata["secret"],
        )
        for group in dataclasses.fields(Settings)
        for each in dataclasses.fields(_group_type(group))
    ]


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings that an environment asks for; Rejected where one is unknown or malformed."""
    known = {each.variable: each for each in described()}
    values: dict[str, dict[str, Any]] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable.startswith(_NOT_OURS):
            continue
        setting = known.get(variable)
        if setting is None:
            raise _unknown(variable, list(known))
        values.setdefault(setting.group, {})[setting.name] = _parse(setting, text)
    groups = {
        group.name: _group_type(group)(**values.get(group.name, {}))
        for group in dataclasses.fields(Settings)
    }
    settings = Settings(**groups)
    _check(settings)
    return settings


def _group_type(group: "dataclasses.Field[Any]") -> Any:
    assert isinstance(group.type, type)
    return group.type


def _parse(setting: Described, text: str) -> Any:
    kinds: dict[type, Callable[[str], Any]] = {float: float, int: int, Path: Path, str: str}
    parse = next(parse for kind, parse in kinds.items() if isinstance(setting.default, kind))
    try:
        return parse(text)
    except ValueError as error:
        shown = "(not shown)" if setting.secret else text[:80]
        raise errors.Rejected(
            f"malformed setting {setting.variable}: {shown}",
            hint=f"it takes a {type(setting.default).__name__}, such as {setting.default}",
        ) from error


def _check(settings: Settings) -> None:
    positive = {
        "FAIRLEAD_LEASE_SECONDS": settings.engine.lease_seconds,
        "FAIRLEAD_POLL_SECONDS": settings.engine.poll_seconds,
        "FAIRLEAD_IN_FLIGHT": settings.engine.in_flight,
    }
    for variable, value in positive.items():
        if not 0 < value <= _MOST:
            raise errors.Rejected(
                f"{variable} must be above zero and at most {_MOST}: {value}", hint="unset it"
            )
    measures = settings.measures
    for variable, value in (
        ("FAIRLEAD_PROMETHEUS_SECONDS", measures.prometheus_seconds),
        ("FAIRLEAD_PROMETHEUS_TICK_SECONDS", measures.prometheus_tick_seconds),
        ("FAIRLEAD_HOOKS_SECONDS", measures.hooks_seconds),
    ):
        # A round of checks is lost if it takes longer than its effect may.
        if not 0 < value <= _MOST_ANSWER_SECONDS:
            raise errors.Rejected(
                f"{variable} must be above zero and at most {_MOST_ANSWER_SECONDS}: {value}",
                hint="unset it",
            )
    _check_choice("FAIRLEAD_LOG_LEVEL", settings.log.log_level, _LEVELS)
    _check_choice("FAIRLEAD_LOG_FORMAT", settings.log.log_format, ("auto", "json", "text"))
    _check_choice(
        "FAIRLEAD_OPERATOR_SECRETS", settings.operator.operator_secrets, ("read", "ignored")
    )
    url = settings.store.database_url
    if url and not url.startswith(("postgresql://", "postgres://")):
        raise errors.Rejected(
            "malformed setting FAIRLEAD_DATABASE_URL: not a postgresql:// URL",
            hint="use postgresql://user@host/database, or unset it for SQLite",
        )


_MOST = 1_000_000
_MOST_ANSWER_SECONDS = 20
_LEVELS = ("debug", "info", "warning", "error")


def _check_choice(variable: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise errors.Rejected(
            f"malformed setting {variable}: {value[:80]}", hint=f"use one of: {', '.join(choices)}"
        )


def _unknown(variable: str, known: list[str]) -> errors.Rejected:
    near = difflib.get_close_matches(variable, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "docs/reference/settings.md lists them all"
    return errors.Rejected(f"unknown setting: {variable}", hint=hint)
