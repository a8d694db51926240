"""What Envoy reads: the bootstrap, once, and the clusters and routes of a table."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.clients.envoy.table import (
    ByCookie,
    ByHeader,
    CookieIs,
    HeaderIs,
    Rule,
    Site,
    Table,
    Version,
    stat_name,
)

Json = dict[str, Any]

HOST = "127.0.0.1"
STAT_PREFIX = "traffic"
ROUTES = "routes"
# Relative to Envoy's working folder: a socket's whole path may hold only 107 bytes.
ADMIN_SOCKET = "admin.sock"
CLUSTERS_FILE = "xds/clusters/clusters.json"
ROUTES_FILE = "xds/routes/routes.json"

_TYPES = "type.googleapis.com/envoy"
_MANAGER = f"{_TYPES}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = f"{_TYPES}.extensions.filters.http.router.v3.Router"
_LUA = f"{_TYPES}.extensions.filters.http.lua.v3.Lua"
_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CONNECTIONS = f"{_TYPES}.extensions.resource_monitors.downstream_connections.v3"
_ADMIN = "fairlead_admin"
# Steps of about a third, so that a version three times slower is three buckets away.
_BUCKETS_MS = [
    *(1, 2, 3, 4, 5, 7, 10, 13, 17, 23, 30, 40, 55, 75, 100, 130, 170, 230, 300, 400, 550, 750),
    *(1000, 1300, 1700, 2300, 3000, 4000, 5500, 7500, 10000, 15000, 30000, 60000, 300000),
]
# Histograms are brought together at each flush; counters are always up to date.
_FLUSH = "0.5s"
# Shorter than the idle time of common servers: one that closes a connection at the moment
# when Envoy sends on it would cost a request.
_IDLE = "1s"
_MANY = 50_000
_REQUEST_ID = "x-request-id"


# A browser sends a cookie to every port of its host. Those of the control plane's page are
# taken out here, so that no workload can use them; other cookies stay as they are.
_STRIP_COOKIES = """
local function ours(cookie)
  local name = string.match(cookie, "^%%s*([^=;]*)")
  return string.sub(name, 1, %(length)d) == "%(prefix)s"
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local kept, found = {}, false
  for index = 0, headers:getNumValues("cookie") - 1 do
    for cookie in string.gmatch(headers:getAtIndex("cookie", index), "[^;]+") do
      if ours(cookie) then
        found = true
      else
        kept[#kept + 1] = string.match(cookie, "^%%s*(.-)%%s*$")
      end
    end
  end
  if found then
    headers:remove("cookie")
    if #kept > 0 then
      headers:add("cookie", table.concat(kept, "; "))
    end
  end
end
"""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where Envoy takes requests, and where Prometheus may read its numbers."""

    port: int
    metrics_port: int | None = None
    private_cookies: str = ""
    """Cookies whose names begin so are not handed on; empty: all are."""


def bootstrap(listen: Listen) -> Json:
    """Envoy's own file; a change of it needs a new Envoy."""
    listeners = [_listener("traffic", listen.port, _traffic_manager(listen.private_cookies))]
    if listen.metrics_port is not None:
        listeners.append(_listener("metrics", listen.metrics_port, _metrics_manager()))
    return {
        "node": {"id": "fairlead", "cluster": "fairlead"},
        "admin": {"address": {"pipe": {"path": ADMIN_SOCKET, "mode": 0o600}}},
        "stats_flush_interval": _FLUSH,
        "stats_config": {
            "histogram_bucket_settings": [
                {"match": {"prefix": "cluster."}, "buckets": _BUCKETS_MS},
            ]
        },
        "overload_manager": {
            "resource_monitors": [
                {
                    "name": "envoy.resource_monitors.global_downstream_max_connections",
                    "typed_config": {
                        "@type": f"{_CONNECTIONS}.DownstreamConnectionsConfig",
                        "max_active_downstream_connections": _MANY,
                    },
                }
            ]
        },
        "dynamic_resources": {"cds_config": _file_source(CLUSTERS_FILE)},
        "static_resources": {"listeners": listeners, "clusters": [_admin_cluster()]},
    }


def clusters(table: Table) -> list[Json]:
    return [_cluster(version) for version in table.versions]


def routes(table: Table) -> list[Json]:
    return [
        {
            "@type": f"{_TYPES}.config.route.v3.RouteConfiguration",
            "name": ROUTES,
            # Without it Envoy takes a route to nowhere and answers 503.
            "validate_clusters": True,
            "virtual_hosts": [_virtual_host(site) for site in table.sites],
        }
    ]


def _file_source(path: str) -> Json:
    folder = path.rpartition("/")[0]
    return {
        "resource_api_version": "V3",
        "path_config_source": {"path": path, "watched_directory": {"path": folder}},
    }


def _listener(name: str, port: int, manager: Json) -> Json:
    return {
        "name": name,
        "address": {"socket_address": {"address": HOST, "port_value": port}},
        # With it a second Envoy could bind the same port, and the two would share requests.
        "enable_reuse_port": False,
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }


def _traffic_manager(private_cookies: str) -> Json:
    return {
        **_manager(STAT_PREFIX, _stripping(private_cookies) if private_cookies else []),
        "rds": {"route_config_name": ROUTES, "config_source": _file_source(ROUTES_FILE)},
        "use_remote_address": True,
        "normalize_path": True,
        "strip_any_host_port": True,
        "upgrade_configs": [{"upgrade_type": "websocket"}],
    }


def _metrics_manager() -> Json:
    """Only the numbers: the admin interface behind it can stop Envoy."""
    route = {"match": {"path": "/stats/prometheus"}, "route": {"cluster": _ADMIN}}
    host = {"name": "metrics", "domains": ["*"], "routes": [route]}
    return {**_manager("metrics"), "route_config": {"name": "metrics", "virtual_hosts": [host]}}


def _manager(prefix: str, filters: Sequence[Json] = ()) -> Json:
    return {
        "@type": _MANAGER,
        "stat_prefix": prefix,
        "http_filters": [*filters, {"name": "router", "typed_config": {"@type": _ROUTER}}],
    }


def _stripping(prefix: str) -> list[Json]:
    code = _STRIP_COOKIES % {"prefix": prefix, "length": len(prefix)}
    script = {"@type": _LUA, "default_source_code": {"inline_string": code}}
    return [{"name": "strip_cookies", "typed_config": script}]


def _admin_cluster() -> Json:
    return _endpoints(_ADMIN, [{"pipe": {"path": ADMIN_SOCKET}}])


def _endpoints(name: str, addresses: list[Json]) -> Json:
    hosts = [{"endpoint": {"address": address}} for address in addresses]
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": hosts}]},
    }


def _cluster(version: Version) -> Json:
    addresses = [
        {"socket_address": {"address": HOST, "port_value": port}} for port in version.ports
    ]
    http = {
        "@type": f"type.googleapis.com/{_OPTIONS}",
        "common_http_protocol_options": {"idle_timeout": _IDLE},
        "explicit_http_config": {"http_protocol_options": {}},
    }
    most = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests"), _MANY)
    cluster = {
        "@type": f"{_TYPES}.config.cluster.v3.Cluster",
        **_endpoints(version.name, addresses),
        "alt_stat_name": stat_name(version.name),
        "typed_extension_protocol_options": {_OPTIONS: http},
        "circuit_breakers": {"thresholds": [most]},
    }
    if version.health_path is not None:
        cluster["health_checks"] = [
            {
                "timeout": "1s",
                "interval": "1s",
                "no_traffic_interval": "1s",
                "unhealthy_threshold": 3,
                "healthy_threshold": 1,
                "http_health_check": {"path": version.health_path},
            }
        ]
    return cluster


def _virtual_host(site: Site) -> Json:
    return {
        "name": site.name,
        "domains": list(site.domains),
        "routes": [route for rule in site.rules for route in _routes(rule)],
    }


def _routes(rule: Rule) -> Iterator[Json]:
    headers = [_header(each) for each in rule.match]
    match rule.affinity:
        case None:
            yield _route(rule, headers, {})
        case ByHeader(name):
            yield _route(rule, headers, _hashed({"header": {"header_name": name}}))
        case ByCookie(name, max_age_seconds):
            known = {"name": "cookie", "string_match": _cookie(name, ".+")}
            yield _route(rule, [*headers, known], _hashed({"cookie": {"name": name}}))
            # A newcomer is placed by the random id of the request and gets the same value as
            # a cookie; both are hashed alike, so the next request comes to the same version.
            # (Envoy makes cookies itself only when it picks a host, which is too late here.)
            newcomer = _route(rule, headers, _hashed({"header": {"header_name": _REQUEST_ID}}))
            value = f"{name}=%REQ({_REQUEST_ID})%; Max-Age={max_age_seconds}; Path=/"
            header = {"key": "set-cookie", "value": f"{value}; HttpOnly; SameSite=Lax"}
            yield {**newcomer, "response_headers_to_add": [{"header": header}]}


def _hashed(policy: Json) -> Json:
    return {"hash_policy": [policy]}


def _route(rule: Rule, headers: list[Json], affinity: Json) -> Json:
    return {
        "match": {"prefix": rule.prefix, **({"headers": headers} if headers else {})},
        "route": {
            "weighted_clusters": {
                "clusters": [
                    {"name": weight.version, "weight": weight.percent} for weight in rule.weights
                ],
                **({"use_hash_policy": True} if affinity else {}),
            },
            "timeout": f"{rule.timeout_seconds:g}s",
            # Only what no version has begun to work on is tried again.
            "retry_policy": {
                "retry_on": "connect-failure,refused-stream,reset-before-request",
                "num_retries": 2,
            },
            **_mirror(rule),
            **affinity,
        },
    }


def _header(match: HeaderIs | CookieIs) -> Json:
    match match:
        case HeaderIs(name, value, regex=False):
            fits: Json = {"exact": value}
        case HeaderIs(name, value, regex=True):
            fits = {"safe_regex": {"regex": value}}
        case CookieIs(name, value, regex):
            fits, name = _cookie(name, f"({value})" if regex else re.escape(value)), "cookie"
    return {"name": name, "string_match": fits}


def _cookie(name: str, value: str) -> Json:
    """All cookies of a request stand in one header, parted by semicolons."""
    return {"safe_regex": {"regex": f"(.*;)?[ ]*{re.escape(name)}={value}[ ]*(;.*)?"}}


def _mirror(rule: Rule) -> Json:
    if rule.mirror is None:
        return {}
    part = {"default_value": {"numerator": rule.mirror.percent, "denominator": "HUNDRED"}}
    policy = {"cluster": rule.mirror.version, "runtime_fraction": part}
    return {"request_mirror_policies": [policy]}
