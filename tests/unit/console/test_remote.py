"""Reading through a control plane: what is asked, what is shown, what is refused."""

import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from fairlead import errors
from fairlead.console import remote
from fairlead.engine import messages, visibility
from tests.unit.cli.conftest import Run

STREAM = {
    "number": 7,
    "name": "trip/a-1",
    "machine": "trip",
    "version": 2,
    "state": "Driving",
    "data": {"driven": 1},
    "created_at": "2026-01-02T03:04:05Z",
    "updated_at": "2026-01-02T03:04:06.500Z",
    "ended_at": None,
}


def event(seq: int) -> dict[str, Any]:
    return {
        "stream": "trip/a-1",
        "seq": seq,
        "type": "LegDriven",
        "version": 1,
        "data": {"leg": seq},
        "cause": "effect 7.1.0",
        "at": "2026-01-02T03:04:06.500Z",
        "place": f"0.{seq}",
    }


EFFECT = {
    "queue": "local@here",
    "id": "7.2.0",
    "stream": "trip/a-1",
    "type": "DriveLeg",
    "data": {"leg": 2},
    "attempts": 12,
    "due_at": "2026-01-02T03:04:05Z",
    "held": False,
    "dead_at": "2026-01-02T03:04:05Z",
    "error": "closed",
}


@dataclass
class Plane:
    """A control plane that answers from a list and remembers what it was asked."""

    url: str = ""
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    posted: list[tuple[str, bytes]] = field(default_factory=list)

    def says(self, path: str, body: Any, status: int = 200) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[f"/api/v1{path}"] = (status, data)


class _Answers(http.server.BaseHTTPRequestHandler):
    plane: ClassVar[Plane]

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.plane.posted.append((self.path, self.rfile.read(length)))
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.plane.asked.append((parts.path, parse_qs(parts.query)))
        self.plane.tokens.append(self.headers["Authorization"])
        usual = self.plane.answers.get(parts.path, (404, b"<html>"))
        status, body = self.plane.answers.get(self.path, usual)
        self.send_response(status)
        if status in (301, 302):
            self.send_header("Location", f"{self.plane.url}/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        pass


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plane]:
    made = Plane()

    class Answers(_Answers):
        plane = made

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("FAIRLEAD_SERVER", made.url)
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
def source(plane: Plane) -> remote.ServerSource:
    return remote.ServerSource(remote.parse_server(plane.url, ""))


def test_get_shows_what_the_server_says(run: Run, plane: Plane) -> None:
    plane.says("/streams/trip/a-1", STREAM)

    ran = run("get", "trip/a-1", "-o", "json")

    assert ran.code == 0
    shown = json.loads(ran.out)
    told = {"updated_at": "2026-01-02T03:04:06.500000Z", "queue": "", "kept_from": 1}
    assert shown == {**STREAM, **told}
    assert list(shown) == [*STREAM, "queue", "kept_from"]


def test_pages_are_read_until_the_limit(plane: Plane, source: remote.ServerSource) -> None:
    plane.says("/streams", {"items": [STREAM] * 500, "next": "7"})

    found = source.streams(visibility.StreamFilter(machine="trip", ended=False, limit=700))

    assert len(found) == 1000
    assert found[0].name == "trip/a-1"
    assert plane.asked == [
        ("/api/v1/streams", {"machine": ["trip"], "ended": ["false"], "limit": ["500"]}),
        (
            "/api/v1/streams",
            {"machine": ["trip"], "ended": ["false"], "limit": ["200"], "before": ["7"]},
        ),
    ]


def test_a_filter_goes_to_the_server_as_it_was_typed(run: Run, plane: Plane) -> None:
    plane.says("/streams", {"items": [], "next": None})
    plane.says("/rollouts", {"items": [], "next": None})

    run("get", "trip", "--where", "newer=1", "--where", "x in (a, b)")
    run("get", "rollouts", "--where", "phase=Paused")

    asked = [(path, words.get("where")) for path, words in plane.asked]
    assert asked == [
        ("/api/v1/streams", ["newer=1 and x in (a, b)"]),
        ("/api/v1/rollouts", ["phase=Paused"]),
    ]


def test_events_are_read_page_by_page(run: Run, plane: Plane, source: remote.ServerSource) -> None:
    plane.says("/streams/trip/a-1/events", {"items": [event(1), event(2)], "next": None})

    found = source.events(messages.stream_name("trip", "a-1"), 0, 9)

    assert [each.seq for each in found] == [1, 2]
    assert found[1].place == visibility.Place(0, 2)


def test_a_live_feed_goes_on_where_its_line_broke(
    plane: Plane, source: remote.ServerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_PAUSE", 0.0)
    lines = (f"id: 0.{seq}\ndata: {json.dumps(event(seq))}\n\n" for seq in (4, 5))
    plane.says("/feed/live", b": connected\n\n" + "".join(lines).encode())

    live = source.live(None, messages.stream_name("trip", "a-1"))
    seen = [next(live).seq for _ in range(3)]

    assert seen == [4, 5, 4]
    assert [asked for _, asked in plane.asked] == [
        {"stream": ["trip/a-1"]},
        {"stream": ["trip/a-1"], "after": ["0.5"]},
    ]


def test_the_token_is_shown_to_the_server(plane: Plane) -> None:
    plane.says("/streams/trip/a-1", STREAM)
    source = remote.ServerSource(remote.parse_server(plane.url, "secret"))

    source.stream(messages.stream_name("trip", "a-1"))

    assert plane.tokens == ["Bearer secret"]


def test_a_redirect_takes_no_token_along(plane: Plane) -> None:
    plane.says("/streams/trip/a-1", b"", status=302)
    source = remote.ServerSource(remote.parse_server(plane.url, "secret"))

    with pytest.raises(errors.Unavailable, match="answered 302"):
        source.stream(messages.stream_name("trip", "a-1"))

    assert len(plane.asked) == 1


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (400, errors.Rejected),
        (401, errors.Unauthorised),
        (403, errors.Unauthorised),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
    ],
)
def test_the_server_s_error_is_ours(
    run: Run, plane: Plane, status: int, fate: type[errors.FairleadError]
) -> None:
    told = {"error": {"message": "no such stream: trip/x", "hint": "look around", "code": "x"}}
    plane.says("/streams/trip/x", told, status)

    ran = run("get", "trip/x")

    assert ran.code == fate.exit_code
    assert ran.err == "error: no such stream: trip/x\nhint: look around\n"


def test_mistakes_that_the_server_found_are_told_one_by_one(
    plane: Plane, source: remote.ServerSource
) -> None:
    problems = [{"path": "name", "message": "missing", "hint": "add it"}] * 2
    plane.says("/workloads", {"error": {"problems": problems}}, 400)

    with pytest.raises(errors.Invalid) as caught:
        source.post(dict[str, Any], "/workloads", {})

    assert caught.value.problems == (errors.Problem("name", "missing", "add it"),) * 2


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"items": 3}', b'{"items": [{}]}'])
def test_an_answer_that_makes_no_sense_is_told(run: Run, plane: Plane, body: bytes) -> None:
    plane.says("/streams", body)

    ran = run("get")

    assert ran.code == errors.Unavailable.exit_code
    assert ran.err.startswith("error: the server sent an invalid answer: ")


def test_nobody_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_SERVER", "http://127.0.0.1:1")

    for arguments in (["get"], ["watch"]):
        ran = run(*arguments)

        assert ran.code == errors.Unavailable.exit_code
        assert "hint: check FAIRLEAD_SERVER" in ran.err


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8600", "ftp://host", "http://", "http://a:b@host", "http://host:port"]
)
def test_a_malformed_server_is_refused(url: str) -> None:
    with pytest.raises(errors.Rejected, match="FAIRLEAD_SERVER"):
        remote.parse_server(url, "")


@pytest.mark.parametrize("url", ["https://far.example", "http://127.0.0.1:1", "http://[::1]:1"])
def test_a_token_goes_encrypted_or_within_this_machine(url: str) -> None:
    assert remote.parse_server(url, "secret").url == url


@pytest.mark.parametrize("url", ["http://far.example", "http://10.0.0.1"])
def test_a_token_does_not_go_in_the_open(url: str) -> None:
    with pytest.raises(errors.Rejected, match="refusing to send a token"):
        remote.parse_server(url, "secret")


def test_a_token_with_a_line_break_is_refused_and_not_shown() -> None:
    with pytest.raises(errors.Rejected, match="not shown") as caught:
        remote.parse_server("https://far.example", "sec\r\nret")

    assert "sec" not in caught.value.message.removesuffix("(not shown)").lower().split("token")[1]


def test_dead_effects_are_listed_and_retried_there(run: Run, plane: Plane) -> None:
    plane.says("/effects", {"items": [EFFECT], "next": None})
    plane.says("/effects/7.2.0/retry", b"", 204)

    listed = run("outbox", "list", "--dead", "--stream", "trip/a-1", "-o", "json")
    one = run("outbox", "retry", "7.2.0")
    everything = run("outbox", "retry", "--all-dead")

    (shown,) = json.loads(listed.out)
    assert shown == EFFECT
    assert plane.asked[0][1] == {"dead": ["true"], "stream": ["trip/a-1"], "limit": ["100"]}
    assert (one.err, everything.err) == ("retried: 1\n", "retried: 1\n")
    assert plane.posted == [("/api/v1/effects/7.2.0/retry", b"")] * 2


def test_all_pages_of_effects_are_taken(run: Run, plane: Plane) -> None:
    plane.says("/effects", {"items": [EFFECT], "next": "7.2.0"})
    second = EFFECT | {"id": "7.3.0"}
    plane.says("/effects?dead=true&after=7.2.0&limit=500", {"items": [second], "next": None})
    for effect in ("7.2.0", "7.3.0"):
        plane.says(f"/effects/{effect}/retry", b"", 204)

    everything = run("outbox", "retry", "--all-dead")

    assert everything.err == "retried: 2\n"
    assert [path for path, _ in plane.posted] == [
        "/api/v1/effects/7.2.0/retry",
        "/api/v1/effects/7.3.0/retry",
    ]


def test_a_dead_effect_is_discarded_there(run: Run, plane: Plane) -> None:
    plane.says("/effects/7.2.0/discard", b"", 204)

    assert run("outbox", "discard", "7.2.0", "--yes").code == 0
    assert plane.posted == [("/api/v1/effects/7.2.0/discard", b"")]


def test_a_command_is_submitted_there(run: Run, plane: Plane) -> None:
    receipt = {"stream": "depot/a", "events": 2, "first": 1, "last": 2, "duplicate": False}
    plane.says("/streams/depot/a/commands", receipt)

    ran = run("submit", "depot/a", "Order", '{"trips": 1}', "--id", "mine")

    assert ran.out == "depot/a  mine  events 1 to 2\n"
    ((path, body),) = plane.posted
    assert path == "/api/v1/streams/depot/a/commands"
    assert json.loads(body) == {"type": "Order", "data": {"trips": 1}, "id": "mine"}


SUMMARY = {
    "name": "shops/web/1", "title": "shops/web", "phase": "Paused", "sentence": "10 % since 12:00",
    "stable": "v1", "primary": "v1", "canary": "v2", "primary_weight": 90, "canary_weight": 10,
    "step": 1, "steps": 3, "since": "2026-01-02T03:04:05Z", "updated": "2026-01-02T03:04:05Z",
    "outcome": "", "why": "lunch",
}  # fmt: skip
DETAIL = {
    "rollout": SUMMARY, "run": None, "plan": [], "checks": [], "verbs": ["resume"], "kept": [],
    "runs": [],
}  # fmt: skip


def test_rollouts_are_asked_of_the_server(run: Run, plane: Plane) -> None:
    plane.says("/rollouts", {"items": [SUMMARY], "next": None})
    plane.says("/rollouts/shops/web", DETAIL)

    every = run("get", "rollouts")
    one = run("get", "rollout", "shops/web")

    assert "shops/web  Paused" in every.out
    assert "resume" in one.out


def test_verbs_go_to_the_server_under_an_id(run: Run, plane: Plane) -> None:
    receipt = {"stream": "rollout/shops/web/1", "first": 7, "last": 7, "duplicate": False}
    plane.says("/rollouts/shops/web/abort", {"receipt": receipt, "rollout": SUMMARY})
    plane.says("/rollouts/shops/web/1", DETAIL)

    said = run("abort", "rollout/shops/web", "--why", "empty baskets", "--id", "a1")

    ((path, body),) = plane.posted
    assert (said.code, said.err.strip()) == (0, "taken")
    assert path == "/api/v1/rollouts/shops/web/abort"
    assert json.loads(body) == {"why": "empty baskets", "revision": "", "id": "a1"}


def test_a_refusal_of_the_server_is_told_as_it_came(run: Run, plane: Plane) -> None:
    wrong = {
        "message": "no rollout in progress",
        "hint": "roll back to a revision",
        "code": "conflict",
    }
    plane.says("/rollouts/shop/abort", {"error": wrong}, 409)

    said = run("abort", "rollout/shop")

    assert said.code == 6
    assert "error: no rollout in progress\nhint: roll back to a revision" in said.err


def test_queues_are_listed_and_a_stream_is_moved_there(run: Run, plane: Plane) -> None:
    queue = {
        "name": "kubernetes@prod",
        "waiting": 2,
        "oldest": "2030-01-01T00:00:00Z",
        "workers": [],
        "unserved": ["trip DriveLeg"],
        "unserved_since": "2030-01-01T00:00:00Z",
        "problem": None,
    }
    plane.says("/queues", [queue])
    moved = {"stream": "trip/a-1", "queue": "local@here", "effects": 3}
    plane.says("/streams/trip/a-1/queue", moved)

    listed = run("queues", "list", "-o", "json")
    ran = run("queues", "move", "trip/a-1", "local@here")

    (shown,) = json.loads(listed.out)
    assert shown == queue
    assert ran.err == "moved: trip/a-1 to local@here, effects that go along: 3\n"
    assert plane.posted == [("/api/v1/streams/trip/a-1/queue", b'{"queue":"local@here"}')]


QUEUE = {"name": "kubernetes@prod", "waiting": 1, "oldest": None, "workers": []}


@pytest.mark.parametrize(
    ("queues", "status", "said"),
    [
        (
            [{**QUEUE, "unserved": ["trip Go"], "unserved_since": "2020-01-01T00:00:00Z"}],
            200,
            "no worker serves kubernetes@prod since 2020-01-01 00:00:00 UTC",
        ),
        ([{**QUEUE, "unserved": [], "unserved_since": None}], 200, ""),
        ({"error": {"message": "one project only", "hint": "none", "code": "forbidden"}}, 403, ""),
    ],
    ids=["nobody is there", "somebody is", "a scope hides queues"],
)
def test_a_stream_says_why_it_waits(
    run: Run, plane: Plane, queues: object, status: int, said: str
) -> None:
    plane.says("/streams/trip/a-1", {**STREAM, "queue": "kubernetes@prod", "ended_at": None})
    plane.says("/queues", queues, status)

    ran = run("get", "trip/a-1")

    lines = dict(line.split(maxsplit=1) for line in ran.out.splitlines())
    assert lines["queue"] == "kubernetes@prod"
    assert lines.get("waiting", "") == said
