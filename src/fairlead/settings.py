"""How a setting is declared and read, and the groups of the core; each field says what it is for.

Settings come from the environment: FAIRLEAD_ and the field's name in capitals. Only bootstrap
reads it; everything else is handed a group. An area declares a group of its own beside its code,
with `setting`, and finds it by `Settings.of`. docs/reference/settings.md is made from all groups.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fairlead import errors
from fairlead.values import nearest

PREFIX = "FAIRLEAD_"
G = TypeVar("G")
_STATE = Path("~/.local/state/fairlead")
# Read by the test rig and the cluster tools, not by the program.
_NOT_OURS = ("FAIRLEAD_TEST_", "FAIRLEAD_CACHE", "FAIRLEAD_BENCH_")


def setting(default: Any, doc: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"doc": doc, "secret": secret})


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where everything is kept."""

    state_dir: Path = setting(_STATE, "Folder of the embedded database and of local files.")
    database_url: str = setting(
        "",
        "A postgresql:// URL for the shared store; empty means SQLite in the state folder.",
        secret=True,
    )

    @property
    def database_file(self) -> Path:
        """The embedded database, where no shared store is named."""
        return self.state_dir.expanduser() / "fairlead.db"


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Where the page and the API answer."""

    listen: str = setting(
        "127.0.0.1:8600",
        "Address and port; any address but loopback is refused until a token exists.",
    )
    health_listen: str = setting(
        "",
        "Address and port for /healthz and /readyz alone, so that a flood of connections to the"
        " page does not hide them; empty means only where the page is.",
    )
    server: str = setting(
        "", "URL of a running control plane, for commands that ask it instead of the store."
    )
    token: str = setting("", "API token that commands send to that server.", secret=True)
    session_hours: float = setting(12.0, "How long a browser stays signed in to the page.")
    cookies: str = setting(
        "auto",
        "`https` sends the page's cookie over HTTPS only, for a proxy in front that speaks it;"
        " `auto` does so where the request itself came by HTTPS.",
    )


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How patient and how busy a worker is."""

    lease_seconds: float = setting(
        15.0, "How long a silent worker keeps its work before others take it over."
    )
    poll_seconds: float = setting(
        1.0, "How often a worker polls for work of others, besides notifications."
    )
    drain_seconds: float = setting(
        10.0, "How long a stopping worker lets effects finish that are being performed."
    )
    in_flight: int = setting(
        1024,
        "Effects that one worker performs at the same time. Half of the places are shared out"
        " between the kinds of effects, so that one which hangs cannot take them all.",
    )
    worker_listen: str = setting(
        "", "Address and port of a worker's /healthz, /readyz and /metrics; empty serves none."
    )
    retention_days: float = setting(
        0.0,
        "Streams that ended and events older than this go to files in the archive folder, and old"
        " command ids are forgotten; 0 keeps everything.",
    )
    command_days: float = setting(
        30.0,
        "For so long a command that is sent twice is recognised by its id, where retention is on.",
    )
    archive_dir: str = setting("", "The archive folder; empty means `archive` in the state folder.")


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What the Kubernetes operator reconciles, and its name there."""

    operator_namespace: str = setting(
        "", "The one namespace the operator reconciles; empty means all of them."
    )
    operator_shard: str = setting(
        "0/1", "INDEX/COUNT: this operator's part of all namespaces, counted from 0."
    )
    operator_cluster: str = setting(
        "",
        "Name of the cluster: its streams are in the queue `kubernetes@NAME`. Empty means the UID"
        " of its namespace kube-system.",
    )
    operator_lease: str = setting(
        "fairlead-operator", "Name of the Lease by which operators elect their leader."
    )
    operator_listen: str = setting(
        "127.0.0.1:8601", "Address and port of the operator's /healthz, /readyz and /metrics."
    )
    operator_webhooks_listen: str = setting(
        "", "Address and port where the API server has objects reviewed; empty reviews none."
    )
    operator_webhooks_name: str = setting(
        "fairlead-operator",
        "Name of the webhook configuration; its Secret has `-webhook` after it.",
    )
    operator_secrets: str = setting(
        "read", "Whether a changed Secret starts a run: `read`, or `ignored` and never read."
    )
    operator_hosts: str = setting(
        "",
        "Hosts that a canary's VirtualService may claim in the mesh beside Services of its own"
        " namespace, by commas, such as `shop.example.com,*.test`; `*` lets it claim any.",
    )
    operator_gateways: str = setting(
        "",
        "Istio gateways of other namespaces that a canary's VirtualService may name, by commas:"
        " `NAMESPACE/NAME`, or `NAMESPACE/*` for all there.",
    )
    operator_services: str = setting(
        "ClusterIP",
        "Types that a canary's own Service may have, by commas: `ClusterIP`, `NodePort`,"
        " `LoadBalancer`, `ExternalName`; and `externalIPs` where it may have those.",
    )
    operator_exports: str = setting(
        "",
        "Namespaces that a canary's VirtualService may name in `exportTo` beside its own, by"
        " commas; `*` lets it name any. Without `exportTo` the mesh's own default holds.",
    )


@dataclass(frozen=True, slots=True)
class MeasureSettings:
    """Where a rollout's metrics come from, and which web addresses it may call."""

    prometheus_url: str = setting(
        "", "The Prometheus that checks ask; empty means that there is none."
    )
    prometheus_token_file: str = setting(
        "", "File of the token for Prometheus, read for each query."
    )
    prometheus_username: str = setting("", "User name there, where it needs a password.")
    prometheus_password_file: str = setting("", "File of that password, read for each query.")
    prometheus_ca_file: str = setting(
        "", "Certificates to trust there, instead of those of the system."
    )
    prometheus_seconds: float = setting(5.0, "How long one query may take, at most 20.")
    prometheus_tick_seconds: float = setting(
        5.0, "For so long an answer serves everybody who asks the same."
    )
    prometheus_servers: str = setting(
        "", "TOML file of further Prometheus servers that checks may choose by name."
    )
    hooks_hosts: str = setting(
        "",
        "Hosts that checks may call as gates and web numbers, with commas between them:"
        " gate.example, *.shop.example:8443, http://127.0.0.1:9000. Empty means none.",
    )
    hooks_secret_file: str = setting(
        "", "File of the secret that signs what we send; the first of several lines is the newest."
    )
    hooks_ca_file: str = setting("", "Certificates to trust there, instead of those of the system.")
    hooks_seconds: float = setting(
        10.0, "How long a gate, a web number or a receiver of news may take, at most 20."
    )
    hooks_news_url: str = setting("", "Where news of rollouts are posted; empty means nowhere.")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Logs, metrics and traces."""

    log_level: str = setting("info", "One of debug, info, warning, error.")
    log_format: str = setting("auto", "json, text, or auto: text on a terminal, else json.")
    otlp_endpoint: str = setting(
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
    areas: tuple[object, ...] = ()
    """The groups of areas, one of each type."""

    def of(self, group: type[G]) -> G:
        """An area's own group; with its defaults where nothing was read."""
        found = next((each for each in self.areas if isinstance(each, group)), None)
        return group() if found is None else found


@dataclass(frozen=True, slots=True)
class Described:
    """One setting as the reference page and the errors show it."""

    group: type
    name: str
    variable: str
    default: Any
    doc: str
    secret: bool


def described(areas: Sequence[type] = ()) -> list[Described]:
    """Every setting there is, of the core and of these areas' groups."""
    return [
        Described(
            group,
            each.name,
            PREFIX + each.name.upper(),
            each.default,
            each.metadata["doc"],
            each.metadata["secret"],
        )
        for group in (*_core().values(), *areas)
        for each in dataclasses.fields(group)
    ]


def from_environment(environment: Mapping[str, str], areas: Sequence[type] = ()) -> Settings:
    """The settings that an environment asks for; Rejected where one is unknown or malformed."""
    known = {each.variable: each for each in described(areas)}
    values: dict[type, dict[str, Any]] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable.startswith(_NOT_OURS):
            continue
        asked = known.get(variable)
        if asked is None:
            raise _unknown(variable, list(known))
        values.setdefault(asked.group, {})[asked.name] = _parse(asked, text)
    core = {name: group(**values.get(group, {})) for name, group in _core().items()}
    settings = Settings(**core, areas=tuple(group(**values.get(group, {})) for group in areas))
    _check(settings)
    return settings


def _core() -> dict[str, Any]:
    """The groups of the core by the field that holds them."""
    return {
        each.name: each.type for each in dataclasses.fields(Settings) if isinstance(each.type, type)
    }


def _parse(asked: Described, text: str) -> Any:
    kinds: dict[type, Callable[[str], Any]] = {float: float, int: int, Path: Path, str: str}
    parse = next(parse for kind, parse in kinds.items() if isinstance(asked.default, kind))
    try:
        return parse(text)
    except ValueError as error:
        shown = "(not shown)" if asked.secret else text[:80]
        raise errors.Rejected(
            f"malformed setting {asked.variable}: {shown}",
            hint=f"it takes a {type(asked.default).__name__}, such as {asked.default}",
        ) from error


def _check(settings: Settings) -> None:
    positive = {
        "FAIRLEAD_LEASE_SECONDS": settings.engine.lease_seconds,
        "FAIRLEAD_POLL_SECONDS": settings.engine.poll_seconds,
        "FAIRLEAD_IN_FLIGHT": settings.engine.in_flight,
        "FAIRLEAD_COMMAND_DAYS": settings.engine.command_days,
        "FAIRLEAD_SESSION_HOURS": settings.web.session_hours,
    }
    for variable, value in positive.items():
        if not 0 < value <= _MOST:
            raise errors.Rejected(
                f"{variable} must be above zero and at most {_MOST}: {value}", hint="unset it"
            )
    for variable, value, most in (
        ("FAIRLEAD_RETENTION_DAYS", settings.engine.retention_days, _MOST_DAYS),
        ("FAIRLEAD_COMMAND_DAYS", settings.engine.command_days, _MOST_DAYS),
        ("FAIRLEAD_DRAIN_SECONDS", settings.engine.drain_seconds, _MOST),
    ):
        if not 0 <= value <= most:
            raise errors.Rejected(f"{variable} outside 0 to {most}: {value}", hint="unset it")
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
    _check_choice("FAIRLEAD_COOKIES", settings.web.cookies, ("auto", "https"))
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
_MOST_DAYS = 36_500
"""A hundred years: what lies further back is before the calendar."""

_MOST_ANSWER_SECONDS = 20
_LEVELS = ("debug", "info", "warning", "error")


def _check_choice(variable: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise errors.Rejected(
            f"malformed setting {variable}: {value[:80]}", hint=f"use one of: {', '.join(choices)}"
        )


def _unknown(variable: str, known: list[str]) -> errors.Rejected:
    near = nearest(variable, known)
    hint = f"did you mean {near}?" if near else "docs/reference/settings.md lists them all"
    return errors.Rejected(f"unknown setting: {variable}", hint=hint)
