"""Requests to the application: what the original answered, and what is hostile."""

import base64
import json
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from fairlead.areas.content import description
from fairlead.areas.content.domain import edition
from fairlead.areas.content.domain.population import Channel, Population, parse_share
from fairlead.areas.content.service import gateway
from fairlead.areas.content.service.app import Service
from fairlead.areas.content.service.catalogue import AUTHORIZATION, Identity, Refusal, catalogue
from tests import contents

V1 = "/api/gathering/v1/gathering_rules"
PARSING = "Error during parsing param 'ocpVersion' with value"
V2 = "/api/gathering/v2/4.17.1/gathering_rules"
CLUSTER = {"user-agent": "insights-operator/4.17 cluster/f9fbc65a-52e6-4781-979d-1d5c6b124f9b"}
LIMITS: dict[str, Any] = {"name": "limits", "map": "map.json", "source": {"directory": "versions"}}


@dataclass(frozen=True, slots=True)
class Share:
    """A population that stands still."""

    population: Population
    degraded: str = ""

    def channel(self, identity: str) -> Channel:
        return self.population.channel(identity)


@dataclass(frozen=True, slots=True)
class Answered:
    """What was said, taken apart."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def service(
    canary: str | None = "1.0.2",
    share: str = "100",
    degraded: str = "",
    identity: Identity | None = None,
) -> Service:
    source = {"directory": "versions"}
    content = description.read({"name": "g", "kind": "gathering", "source": source}, Path())
    stable, other = (
        edition.load(each, contents.version_files(each), content.layouts) if each else None
        for each in ("1.0.1", canary)
    )
    assert stable is not None
    population = Population("1.0.2", parse_share(share))
    return Service(catalogue(content, stable, other, identity), Share(population, degraded))


def ask(app: Service, path: str, method: str = "GET", **headers: str) -> Answered:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    head, body = app.respond(method, path, given)
    assert head.isascii()
    first, *lines, last = head.decode().split("\r\n")
    assert last == ""
    assert all(line.isprintable() for line in lines)
    return Answered(int(first.split(" ")[1]), dict(line.split(": ", 1) for line in lines), body)


def version(answered: Answered) -> str:
    assert answered.status == 200
    found: str = json.loads(answered.body)["version"]
    return found


@pytest.mark.requirement("content 1")
@pytest.mark.parametrize("path", [V1, V2, "/api/gathering/gathering_rules"])
def test_without_a_canary_and_a_share_everybody_gets_stable(path: str) -> None:
    app = service(canary=None, share="0")

    assert {version(ask(app, path, **each)) for each in ({}, headers("a"), headers("b"))} == {
        "1.0.1"
    }


@pytest.mark.requirement("content 5")
def test_a_canary_with_a_share_of_zero_is_seen_by_nobody() -> None:
    app = service(share="0")

    assert {version(ask(app, V2, **headers(str(each)))) for each in range(200)} == {"1.0.1"}


@pytest.mark.requirement("content 6", "content 18")
def test_those_inside_the_share_get_the_canary_on_every_replica_and_nobody_else() -> None:
    ids = [f"cluster-{each}" for each in range(400)]
    replicas = [service(share="25"), service(share="25")]

    first, second = (
        {each for each in ids if version(ask(app, V1, **headers(each))) == "1.0.2"}
        for app in replicas
    )

    population = Population("1.0.2", parse_share("25"))
    assert first == second
    assert first == {each for each in ids if population.channel(each) is Channel.CANARY}
    assert first
    assert first != set(ids)


@pytest.mark.requirement("content 16")
def test_no_canary_at_a_share_above_zero_gives_stable_to_everybody() -> None:
    then = ask(service(canary=None, share="100"), V1, **headers("a"))

    assert (version(then), then.headers["fairlead-channel"]) == ("1.0.1", "stable")


@pytest.mark.requirement("content 19")
@pytest.mark.parametrize("agent", ["", "curl/8", "cluster/", "cluster/,x", "Cluster/a"])
def test_without_an_identity_everybody_gets_stable(agent: str) -> None:
    assert version(ask(service(), V1, user_agent=agent)) == "1.0.1"


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        (
            "/api/gathering/v2/vfake/gathering_rules",
            400,
            f"{PARSING} 'vfake'. Error: 'No Major.Minor.Patch elements found'",
        ),
        (
            "/api/gathering/v2/4.17.<b>/gathering_rules",
            400,
            f"{PARSING} '4.17.<b>'. Error: 'Invalid character(s) found in patch number \"<b>\"'",
        ),
        (
            "/api/gathering/v2/1.2.3/gathering_rules",
            404,
            "the given OCP version is lower than the first one in the cluster map",
        ),
    ],
)
def test_refusals_have_the_original_words(path: str, status: int, body: str) -> None:
    then = ask(service(), path)

    assert (then.status, json.loads(then.body)) == (status, {"status": body})
    assert then.headers["content-type"] == "application/json; charset=utf-8"
    assert then.body.startswith(b'{"status":"')
    assert then.body.endswith(b'"}\n')
    assert b"<" not in then.body


@pytest.mark.parametrize(
    ("asked", "file"),
    [
        ("4.0.0", 'conditional_gathering_rules":[]'),
        ("4.5.6", 'container_logs":[]'),
        ("4.17.0-0", "SamplesImagestreamImportFailing"),
        ("4.17.4", "SamplesImagestreamImportFailing"),
        ("4.17.5", "openshift-monitoring"),
        ("5.6.7+build", "openshift-monitoring"),
    ],
)
def test_a_version_gets_the_file_of_the_last_start_below_it(asked: str, file: str) -> None:
    assert file in ask(service(), f"/api/gathering/v2/{asked}/gathering_rules").body.decode()


def test_an_answer_that_a_client_has_is_not_sent_again() -> None:
    app = service()
    first = ask(app, V2, accept_encoding="gzip")

    again = ask(app, V2, accept_encoding="gzip", if_none_match=first.headers["etag"])
    other = ask(app, V2, if_none_match=first.headers["etag"], **headers("a"))

    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["vary"] == "Accept-Encoding, User-Agent"
    assert other.status == 200


def test_a_cache_in_between_hands_nobody_the_version_of_another() -> None:
    app, population = service(share="30"), Population("1.0.2", parse_share("30"))
    kept: dict[tuple[str, ...], Answered] = {}
    heeds_vary: dict[str, str] = {}
    for each in [f"cluster-{number}" for number in range(200)] * 2:
        sent = {"accept-encoding": "br", **headers(each)}
        sent = {name.replace("_", "-"): value for name, value in sent.items()}
        # The worst of caches: it does not heed `private`, and knows only Vary.
        first = ask(app, V2)
        names = [name.strip().lower() for name in first.headers["vary"].split(",")]
        key = (V2, *(sent.get(name, "") for name in names))
        found = kept.setdefault(key, ask(app, V2, **headers(each)))
        heeds_vary[each] = found.headers["fairlead-channel"]
        assert "private" in found.headers["cache-control"].split(", ")

    assert heeds_vary == {each: str(population.channel(each)) for each in heeds_vary}
    assert set(heeds_vary.values()) == {"stable", "canary"}


@pytest.mark.parametrize(
    ("path", "given", "status"),
    [
        ("/api/gathering/v2/nonsense/gathering_rules", {}, 400),
        ("/api/gathering/v2/3.0.0/gathering_rules", {}, 404),
        (V1, {"user_agent": "cluster/" + "x" * 10_000}, 431),
    ],
)
def test_no_cache_in_between_hands_a_refusal_of_one_channel_to_the_other(
    path: str, given: dict[str, str], status: int
) -> None:
    then = ask(service(), path, **given)

    assert then.status == status
    assert then.headers["cache-control"] == "private, no-cache"
    assert then.headers["vary"] == "User-Agent"


def test_head_is_get_without_a_body() -> None:
    app = service()

    head, whole = ask(app, V2, "HEAD"), ask(app, V2)

    assert (head.status, head.headers, head.body) == (200, whole.headers, b"")


@pytest.mark.parametrize(
    ("path", "location"),
    [
        (f"{V1}/", V1),
        (f"/{V1}", V1),
        ("/api/gathering/../gathering/v1/gathering_rules", V1),
        ("//evil.example/..", "/"),
        ("/api/gathering/openapi.json/", "/api/gathering/openapi.json"),
        ('/api//"x', "/api/%22x"),
    ],
)
def test_an_unclean_path_is_sent_where_the_original_router_sent_it(
    path: str, location: str
) -> None:
    then = ask(service(), path)

    assert (then.status, then.headers["location"]) == (301, location)
    assert then.body == f'<a href="{location}">Moved Permanently</a>.\n\n'.encode()


@pytest.mark.parametrize("path", ["/", "/api", "/api/gathering/v3/gathering_rules", f"{V1}.json"])
def test_what_is_no_route_is_not_found(path: str) -> None:
    then = ask(service(), path)

    assert (then.status, then.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize("path", [V1, V2, "/metrics", "/api/gathering/v2/openapi.json"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
def test_content_is_only_read(path: str, method: str) -> None:
    then = ask(service(), path, method)

    assert (then.status, then.headers["allow"], then.body) == (405, "GET, HEAD", b"")


def test_a_header_without_end_is_refused() -> None:
    assert ask(service(), V1, user_agent="cluster/" + "x" * 100_000).status == 431
    assert ask(limits(), "/content/limits/1.5.0", x_device="x" * 100_000).status == 431


def test_made_up_versions_and_headers_fill_no_memory() -> None:
    app, long = service(), "9" * 60_000
    ask(app, V2, **headers("a"))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    for number in range(300):
        path = f"/api/gathering/v2/1.0.{long}{number}/gathering_rules"
        assert ask(app, path, **headers("a")).status == 400
        assert ask(app, V2, accept_encoding=f"{long}{number}", **headers("a")).status == 200

    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 2_000_000


@pytest.mark.parametrize("part", ["", "/v1", "/v2"])
def test_the_api_describes_itself(part: str) -> None:
    then = ask(service(), f"/api/gathering{part}/openapi.json")

    assert set(json.loads(then.body)["paths"]) == {
        *("/api/gathering/gathering_rules", "/api/gathering/v1/gathering_rules"),
        "/api/gathering/v2/{version}/gathering_rules",
        *(f"/api/gathering{each}/openapi.json" for each in ("", "/v1", "/v2")),
    }


@pytest.mark.requirement("content 20")
def test_a_degraded_population_is_shown_and_serves_on() -> None:
    app = service(degraded="Unleash does not answer")

    assert json.loads(ask(app, "/readyz").body) == {
        "ready": True,
        "degraded": "Unleash does not answer",
        "stable": "1.0.1",
        "canary": "1.0.2",
    }
    assert b'fairlead_content_population_degraded{content="g"} 1' in ask(app, "/metrics").body


def test_while_it_drains_it_answers_but_is_not_ready() -> None:
    app = service()
    app.draining = True

    assert ask(app, "/readyz").status == 503
    assert ask(app, "/healthz").status == 200
    assert ask(app, V1).status == 200


def limits() -> Service:
    content = description.read({**LIMITS, "identity": "X-Device"}, Path())
    stable, canary = (
        edition.load(
            each,
            {
                "map.json": b'[["1.0.0", "a.json"]]',
                "a.json": json.dumps({"version": each, "most": 5}).encode(),
            },
            content.layouts,
        )
        for each in ("1", "2")
    )
    return Service(catalogue(content, stable, canary), Share(Population("s", parse_share("100"))))


def test_any_content_is_served_by_its_name_selector_and_identity() -> None:
    app = limits()

    assert ask(app, "/content/limits/1.5.0").body == b'{"version": "1", "most": 5}'
    assert ask(app, "/content/limits/1.5.0", x_device="d1").body == b'{"version": "2", "most": 5}'
    for path, status in (("0.1.0", 404), ("nonsense", 400)):
        refused = ask(app, f"/content/limits/{path}")
        assert refused.status == status
        # No client of this kind has ever heard of clusters.
        assert b"ocp" not in refused.body.lower()
        assert b"version" in refused.body
    assert ask(app, "/content/limits/openapi.json").status == 200
    assert ask(app, "/content/other/1.5.0").status == 404


def test_where_tokens_are_asked_for_an_id_that_was_made_up_gets_nobody_into_the_canary() -> None:
    known: dict[str | None, str] = {"Bearer good": "a"}
    refused = Refusal(401, "Missing auth token")
    by_token = Identity(AUTHORIZATION, lambda head: known.get(head.get("authorization"), refused))
    app = service(identity=by_token)

    then = ask(app, V1, **headers("a"))
    assert (then.status, json.loads(then.body)) == (401, {"status": "Missing auth token"})
    assert then.headers["www-authenticate"] == "Bearer"
    assert then.headers["vary"] == "Authorization"
    good = ask(app, V1, authorization="Bearer good")
    assert (version(good), good.headers["vary"]) == ("1.0.2", "Accept-Encoding, Authorization")
    described = json.loads(ask(app, "/api/gathering/openapi.json").body)
    assert "401" in described["paths"][V1]["get"]["responses"]
    assert ask(app, "/readyz").status == 200


def test_where_a_gateway_vouches_its_header_says_who_asks() -> None:
    app = service(identity=gateway.identity("identity.system.cluster_id"))
    words = {"identity": {"system": {"cluster_id": "a"}}}
    sent = {"x_rh_identity": base64.b64encode(json.dumps(words).encode()).decode()}

    assert version(ask(app, V1, **sent)) == "1.0.2"
    then = ask(app, V1, **headers("a"))
    assert (then.status, then.headers["vary"]) == (401, "X-Rh-Identity")
    assert "www-authenticate" not in then.headers
    described = json.loads(ask(app, "/api/gathering/openapi.json").body)
    assert described["components"]["securitySchemes"]["client"]["name"] == "X-Rh-Identity"
    assert [ask(app, path).status for path in ("/readyz", "/metrics")] == [200, 200]


@given(
    strategies.text().map(lambda each: f"/api/gathering/{each}") | strategies.text(),
    strategies.sampled_from(["GET", "HEAD", "POST"]),
    strategies.dictionaries(
        strategies.sampled_from(["user_agent", "accept_encoding", "if_none_match"]),
        strategies.text(max_size=200),
    ),
)
def test_whatever_is_asked_is_answered_once_and_never_as_a_fault(
    path: str, method: str, given: dict[str, str]
) -> None:
    assert ask(APP, path, method, **given).status in {200, 301, 304, 400, 404, 405, 431}


def headers(cluster: str) -> dict[str, str]:
    return {"user_agent": f"insights-operator/4.17 cluster/{cluster}"}


APP = service()
