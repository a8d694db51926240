"""Where the API server is and who we are: kubeconfig, pod, plug-in, issuer, and no secret told."""

# ruff: noqa: S105, S106  every token here is made up, and looked for in what we print

import base64
import contextlib
import json
import stat
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
from aiohttp import web

from fairlead.errors import FairleadError, Rejected, Unauthorised, Unavailable
from fairlead.kubernetes.client import config, credentials, oidc
from tests.fakes.kubernetes.hand_clock import START, HandClock

SECRET = "s3cr3t-token"
HOME = {"server": "https://127.0.0.1:6443", "certificate-authority-data": "Y2E="}


def write(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    document = {
        "current-context": "main",
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}
        ],
        "clusters": [{"name": "c", "cluster": {**HOME, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def load(*paths: Path, clock: HandClock | None = None, context: str = "") -> config.Connection:
    used = (clock or HandClock()).clock()
    return config.from_kubeconfig(paths, {"PATH": "/usr/bin:/bin"}, used, context)


async def test_a_token_user(tmp_path: Path) -> None:
    connection = load(write(tmp_path / "config", {"token": SECRET}))

    identity = await connection.credentials.current()

    assert identity.headers() == {"Authorization": f"Bearer {SECRET}"}
    assert (connection.server, connection.namespace) == ("https://127.0.0.1:6443", "shop")
    assert connection.ca == b"ca"


async def test_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "my.crt").write_bytes(b"chain")
    (tmp_path / "my.key").write_bytes(b"key")
    user = {"client-certificate": "my.crt", "client-key": "my.key"}

    connection = load(write(tmp_path / "config", user))

    identity = await connection.credentials.current()
    assert identity.certificate == credentials.Certificate(b"chain", b"key")


async def test_a_token_file_is_read_again_as_it_rotates(tmp_path: Path) -> None:
    clock = HandClock()
    token = tmp_path / "token"
    token.write_text("first\n")
    source = load(write(tmp_path / "config", {"tokenFile": "token"}), clock=clock).credentials

    first = await source.current()
    token.write_text("second")
    still_first = await source.current()
    await clock.advance(61)
    second = await source.current()

    assert (first.token, still_first.token, second.token) == ("first", "first", "second")


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    source = credentials.TokenFile(token, HandClock().clock())
    first = await source.current()

    unchanged = source.refused(first)
    token.write_text("second")

    assert not unchanged
    assert source.refused(first)
    assert (await source.current()).token == "second"


async def test_inside_a_pod(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text("pod-ca")
    (tmp_path / "namespace").write_text("fairlead")
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    connection = config.in_cluster(env, HandClock().clock(), tmp_path)

    assert connection.server == "https://[fd00::1]:443"
    assert connection.namespace == "fairlead"
    assert (await connection.credentials.current()).token == "pod-token"


def test_outside_a_pod_is_said(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="not inside a cluster"):
        config.in_cluster({}, HandClock().clock(), tmp_path)


def test_of_several_files_the_first_to_name_something_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "one", {"token": "one"}, server="https://one:1")
    second = write(tmp_path / "two", {"token": "two"}, server="https://two:2")

    connection = load(tmp_path / "missing", first, second)

    assert connection.server == "https://one:1"


@pytest.mark.parametrize(
    ("context", "user", "message"),
    [
        ("other", {}, r"not in /.*/config, contexts: other"),
        ("", {"username": "u", "password": SECRET}, r"no passwords: /.*/config: users\[u\]\.user"),
        ("", {"auth-provider": {"name": "gcp"}}, r"unknown auth-provider: .*\.name: gcp"),
        ("", {"exec": {"command": "x", "apiVersion": "v9"}}, "unknown version: v9"),
        ("", {"exec": {"apiVersion": "v1"}}, r"users\[u\]\.user\.exec\.command: missing"),
        ("", {"exec": ["x"]}, r"/config: users\[u\]\.user\.exec: not a mapping"),
        ("", {"exec": {"command": "x", "env": ["A=1"]}}, r"\.exec\.env: not a list of name"),
        ("", {"exec": {"command": "x", "interactiveMode": "Always"}}, "no terminal is here"),
        ("", {"client-certificate-data": "%%"}, r"user\.client-certificate-data: not base64"),
        ("", {"client-certificate-data": "YQ=="}, "a certificate and its key go together"),
        (
            "",
            {"client-certificate": "gone.crt"},
            r"cannot read: .*gone.crt, named by .*client-cert",
        ),
        ("", {"token": 5}, r"users\[u\]\.user\.token: not text"),
    ],
)
def test_what_cannot_work_is_refused(
    tmp_path: Path, context: str, user: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "config", user)

    with pytest.raises(Rejected, match=message) as refused:
        load(path, context=context)

    assert SECRET not in everything(refused.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"clusters": {}}, r"/config: kubeconfig\.clusters: not a list"),
        ({"clusters": [5]}, r"/config: clusters\[0\]: not a mapping"),
        ({"users": [{"user": {}}]}, r"/config: users\[0\]\.name: missing"),
        ({"current-context": 7}, r"kubeconfig\.current-context: not text"),
        ({"clusters": []}, r"not in /.*/config, clusters: c"),
        ({"clusters": [{"name": "c"}]}, r"/config: clusters\[c\]\.server: missing"),
        ({"current-context": ""}, r"no current-context: /.*/config"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_file_and_field(
    tmp_path: Path, document: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "config", {"token": SECRET})
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **document}))

    with pytest.raises(Rejected, match=message) as refused:
        load(path)

    assert refused.value.hint


def test_a_server_that_is_not_verified_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "config", {}, **{"insecure-skip-tls-verify": True})

    with structlog.testing.capture_logs() as told:
        connection = load(path)

    assert not connection.verify
    assert [(one["log_level"], one["event"]) for one in told] == [
        ("warning", "kubernetes.server_not_verified")
    ]
    assert "insecure-skip-tls-verify" in told[0]["because"]


def test_proxy_and_server_name_are_taken(tmp_path: Path) -> None:
    more = {"proxy-url": "http://proxy:3128", "tls-server-name": "kube.test"}

    connection = load(write(tmp_path / "config", {}, **more))

    assert (connection.proxy, connection.server_name) == ("http://proxy:3128", "kube.test")


def test_a_broken_file_does_not_spill_its_text(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(f"users:\n - token: {SECRET}\n  bad: [")

    with pytest.raises(Rejected, match="not YAML") as refused:
        load(path)

    assert SECRET not in everything(refused.value)


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {"as": "ann", "as-groups": ["ops", "dev"], "as-user-extra": {"why": ["drill"]}}

    connection = load(write(tmp_path / "config", user))

    assert connection.impersonate == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Extra-why", "drill"),
    )


def test_no_secret_in_repr(tmp_path: Path) -> None:
    key = base64.b64encode(SECRET.encode()).decode()
    user = {"token": SECRET, "client-certificate-data": key, "client-key-data": key}

    shown = repr(load(write(tmp_path / "config", user)))

    assert SECRET not in shown
    assert "s3cr3t" not in shown


def plugin(folder: Path, *lines: str) -> Path:
    path = folder / "plugin"
    counting = f"open({str(folder / 'runs')!r}, 'a').write('x')"
    head = f"#!{sys.executable}\nimport json, os, sys\n{counting}\n"
    path.write_text(head + "\n".join(lines))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def answer(**status: str) -> str:
    said = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    return f"print({json.dumps({**said, 'status': status})!r})"


def exec_user(**more: Any) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"command": "./plugin", "apiVersion": version, **more}}


async def test_an_exec_plug_in_runs_once_until_its_answer_ends(tmp_path: Path) -> None:
    clock = HandClock()
    ends = (START + timedelta(minutes=10)).isoformat().replace("+00:00", "Z")
    plugin(tmp_path, answer(token="from-plugin", expirationTimestamp=ends))
    source = load(write(tmp_path / "config", exec_user()), clock=clock).credentials

    tokens = [(await source.current()).token for _ in range(3)]
    runs_before = (tmp_path / "runs").read_text()
    await clock.advance(580)
    await source.current()

    assert tokens == ["from-plugin"] * 3
    assert runs_before == "x"
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plug_in_hears_of_the_cluster_and_gets_its_arguments(tmp_path: Path) -> None:
    said = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
    plugin(
        tmp_path,
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])",
        "token = '|'.join([info['spec']['cluster']['server'], os.environ['ROLE'], *sys.argv[1:]])",
        f'print(\'{said} "status": {{"token": "\' + token + \'"}}}}\')',
    )
    more = {
        "args": ["one two", "$HOME"],
        "env": [{"name": "ROLE", "value": "ops"}],
        "provideClusterInfo": True,
    }
    source = load(write(tmp_path / "config", exec_user(**more))).credentials

    token = (await source.current()).token

    assert token == "https://127.0.0.1:6443|ops|one two|$HOME"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (f"print({SECRET!r})", "not an ExecCredential"),
        (f"print({SECRET!r}); sys.exit(3)", "exit code 3: it says nothing"),
        ("print('log in\\nfirst', file=sys.stderr); sys.exit(3)", "exit code 3: log in first"),
        (answer(token=SECRET).replace("k8s.io/v1", "k8s.io/v1beta1"), "answered in version"),
    ],
)
async def test_a_failing_plug_in_is_told_without_its_words(
    tmp_path: Path, script: str, message: str
) -> None:
    plugin(tmp_path, script)
    source = load(write(tmp_path / "config", exec_user())).credentials

    with pytest.raises(Unauthorised, match=message) as refused:
        await source.current()

    assert SECRET not in everything(refused.value)


async def test_a_missing_plug_in_shows_the_install_hint(tmp_path: Path) -> None:
    path = write(tmp_path / "config", exec_user(installHint="get it from the team page"))

    with pytest.raises(Unauthorised, match="cannot run") as refused:
        await load(path).credentials.current()

    assert refused.value.hint == "get it from the team page"


async def test_a_refused_plug_in_token_is_asked_for_again(tmp_path: Path) -> None:
    plugin(tmp_path, answer(token="t"))
    source = load(write(tmp_path / "config", exec_user())).credentials
    first = await source.current()

    assert source.refused(first)
    await source.current()

    assert (tmp_path / "runs").read_text() == "xx"


def web_token(ends_in: float) -> str:
    claims = {"exp": START.timestamp() + ends_in}
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{body}.{ends_in}"


@contextlib.asynccontextmanager
async def issuer(*given: dict[str, Any]) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    asked: list[dict[str, str]] = []
    left = list(given)

    async def discover(request: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"http://{request.host}/token"})

    async def token(request: web.Request) -> web.Response:
        asked.append({name: str(value) for name, value in (await request.post()).items()})
        return web.json_response(left.pop(0) if left else {}, status=200 if left or given else 400)

    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", discover)
    app.router.add_post("/token", token)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}", asked
    finally:
        await runner.cleanup()


def oidc_user(url: str, token: str, refresh: str = "refresh-1") -> dict[str, Any]:
    settings = {
        "idp-issuer-url": url,
        "client-id": "fairlead",
        "client-secret": SECRET,
        "id-token": token,
        "refresh-token": refresh,
    }
    return {"auth-provider": {"name": "oidc", "config": settings}}


async def test_an_id_token_is_renewed_before_it_ends(tmp_path: Path) -> None:
    clock = HandClock()
    new = {"id_token": web_token(7200), "refresh_token": "refresh-2"}
    async with issuer(new) as (url, asked):
        source = load(
            write(tmp_path / "c", oidc_user(url, web_token(600))), clock=clock
        ).credentials
        first = await source.current()
        await clock.advance(590)
        second = await source.current()

    assert first.token == web_token(600)
    assert second.token == web_token(7200)
    assert asked[0]["refresh_token"] == "refresh-1"
    assert SECRET not in repr(source)


async def test_the_issuers_no_asks_for_a_login(tmp_path: Path) -> None:
    async with issuer() as (url, _):
        source = load(write(tmp_path / "c", oidc_user(url, ""))).credentials
        with pytest.raises(Unauthorised, match="no new id token") as refused:
            await source.current()

    assert SECRET not in everything(refused.value)


async def test_no_refresh_token_asks_for_a_login(tmp_path: Path) -> None:
    user = oidc_user("http://127.0.0.1:9", web_token(-1), refresh="")

    with pytest.raises(Unauthorised, match="no refresh token"):
        await load(write(tmp_path / "c", user)).credentials.current()


async def test_an_issuer_that_is_down_is_unavailable(tmp_path: Path) -> None:
    user = oidc_user("http://127.0.0.1:9", web_token(-1))

    with pytest.raises(Unavailable) as failed:
        await load(write(tmp_path / "c", user)).credentials.current()

    assert "refresh-1" not in everything(failed.value)


@pytest.mark.parametrize("token", ["", "opaque", "a.!!!.c", "a.e30.c"])
def test_a_token_without_an_end_is_taken_as_it_is(token: str) -> None:
    assert oidc.expiry(token) is None


def everything(error: FairleadError) -> str:
    """All that a log of this error would show."""
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None:
        chain.append(f"{current!r} {current} {getattr(current, 'hint', '')}")
        current = current.__cause__
    return "\n".join(chain)
