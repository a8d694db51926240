"""Which API is asked, as whom, and by which key secrets are compared."""

import os
import stat
from pathlib import Path

import pytest

from fairlead import bootstrap, errors
from fairlead.areas.resources import host
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import ErrorClass, Failure
from fairlead.areas.resources.finding import Shown
from fairlead.clients.arm.identity import ClientSecret, FileToken, ManagedIdentity
from fairlead.clients.arm.rest import Rest
from fairlead.settings import Settings

APP = {
    "FAIRLEAD_RESOURCES_TENANT": "tenant",
    "FAIRLEAD_RESOURCES_CLIENT_ID": "app",
    "FAIRLEAD_RESOURCES_CLIENT_SECRET_FILE": "/run/secret",
}


def settings(folder: Path, **given: str) -> Settings:
    return bootstrap.installation().settings({"FAIRLEAD_STATE_DIR": str(folder), **given})


@pytest.mark.parametrize(
    ("cloud", "api", "login"),
    [
        ("public", "https://management.azure.com", "https://login.microsoftonline.com"),
        (
            "usgovernment",
            "https://management.usgovcloudapi.net",
            "https://login.microsoftonline.us",
        ),
        ("china", "https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn"),
    ],
)
def test_a_cloud_says_both_urls_and_the_scope(
    cloud: str, api: str, login: str, tmp_path: Path
) -> None:
    made = host.host(settings(tmp_path, FAIRLEAD_RESOURCES_CLOUD=cloud, **APP))

    assert isinstance(made.arm.credential, ClientSecret)
    signed = made.arm.credential.application
    assert (made.arm.url, signed.login_url, signed.scope) == (api, login, f"{api}/.default")


def test_another_api_and_a_token_are_taken_as_they_are_said(tmp_path: Path) -> None:
    url, token = "https://api.example:8443/", {"FAIRLEAD_RESOURCES_TOKEN_FILE": "/run/token"}
    made = host.host(settings(tmp_path, FAIRLEAD_RESOURCES_API_URL=url, **token, **APP))

    assert made.arm.credential == FileToken(Path("/run/token"))
    assert made.arm.url == "https://api.example:8443"
    assert made.queue == "resources@api.example:8443"


@pytest.mark.parametrize("missing", APP)
def test_half_of_an_application_is_nobody(missing: str, tmp_path: Path) -> None:
    given = {name: value for name, value in APP.items() if name != missing}

    with pytest.raises(errors.Rejected, match="nobody to ask") as told:
        host.host(settings(tmp_path, **given))

    assert "FAIRLEAD_RESOURCES_TOKEN_FILE" in told.value.hint


def test_an_unknown_cloud_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(errors.Rejected, match="no such cloud: moon") as told:
        host.host(settings(tmp_path, FAIRLEAD_RESOURCES_CLOUD="moon", **APP))

    assert told.value.hint == "use public, usgovernment, china, none"


async def test_a_process_performs_resources_only_where_somebody_is_named(tmp_path: Path) -> None:
    assert host.platform(settings(tmp_path)) is None
    platform = host.platform(settings(tmp_path, **APP))

    assert platform is not None
    assert [*platform.queues] == ["resources@management.azure.com"]


def test_a_key_is_made_once_and_read_by_nobody_else(tmp_path: Path) -> None:
    first, second = (host.seal(settings(tmp_path / "a")) for _ in range(2))
    other = host.seal(settings(tmp_path / "b"))

    assert first == second
    assert len(first.key) == 32
    assert first != other
    (file,) = (tmp_path / "a" / "resources").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_that_several_workers_share_comes_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("shared\n")
    given = {"FAIRLEAD_RESOURCES_KEY_FILE": str(tmp_path / "key")}

    assert host.seal(settings(tmp_path / "a", **given)).key == b"shared"
    assert not (tmp_path / "a").exists()


def test_secrets_are_files_of_one_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "admin").write_text("hunter2\n")
    (tmp_path / "out").write_text("other\n")
    secret = host.Secrets(str(tmp_path / "in"))

    assert secret("admin") == "hunter2"
    with pytest.raises(errors.NotFound, match="no such secret: web"):
        secret("web")
    with pytest.raises(errors.NotFound, match="no folder"):
        host.Secrets("")("admin")
    for name in ("../out", "/etc/passwd", ".admin", "", f"a{os.sep}b"):
        with pytest.raises(errors.Rejected, match="not the name of a secret"):
            secret(name)


@pytest.mark.parametrize(
    ("kind", "fate"),
    [
        (ErrorClass.REFUSED, errors.Rejected),
        (ErrorClass.CREDENTIALS, errors.Rejected),
        (ErrorClass.THROTTLED, errors.Unavailable),
        (ErrorClass.TRANSIENT, errors.Unavailable),
    ],
)
def test_what_is_no_answer_is_told_by_its_fate(
    kind: ErrorClass, fate: type[errors.FairleadError]
) -> None:
    with pytest.raises(fate, match="/sets/a: no"):
        host.shown(Failure(kind, "no"), "/sets/a")


def test_what_is_not_there_is_none() -> None:
    assert host.shown(Shown(None), "/sets/a") is None
    assert host.shown(Shown({"name": "a"}), "/sets/a") == {"name": "a"}


def test_an_api_of_no_cloud_needs_a_url_and_a_token(tmp_path: Path) -> None:
    none, url = (
        {"FAIRLEAD_RESOURCES_CLOUD": "none"},
        {"FAIRLEAD_RESOURCES_API_URL": "https://a.b/v1"},
    )
    token = {"FAIRLEAD_RESOURCES_TOKEN_FILE": "/run/token"}

    for half in (url, token):
        with pytest.raises(errors.Rejected, match="of no cloud"):
            host.host(settings(tmp_path, **none, **half))
    made = host.host(settings(tmp_path, **none, **url, **token))

    assert isinstance(made.arm, Rest)
    assert (made.arm.url, made.queue) == ("https://a.b/v1", "resources@a.b-v1")


async def test_without_an_engine_nothing_is_begun() -> None:
    with pytest.raises(errors.Unavailable):
        await host.Begun()(stream("/robots/{welder}"), 1)


def test_a_pod_and_a_machine_have_identities_of_their_own(tmp_path: Path) -> None:
    given = {name: value for name, value in APP.items() if "SECRET" not in name}
    file = {"FAIRLEAD_RESOURCES_FEDERATED_TOKEN_FILE": "/run/pod"}
    pod = host.host(settings(tmp_path, **given, **file))
    url = "http://169.254.169.254"
    machine = host.host(settings(tmp_path, FAIRLEAD_RESOURCES_MANAGED_IDENTITY=url))

    assert isinstance(pod.arm.credential, ClientSecret)
    signed = pod.arm.credential.application
    assert (signed.secret_file, signed.is_assertion) == (Path("/run/pod"), True)
    assert isinstance(machine.arm.credential, ManagedIdentity)
    assert machine.arm.credential.resource == "https://management.azure.com"
    assert host.platform(settings(tmp_path, FAIRLEAD_RESOURCES_MANAGED_IDENTITY=url)) is not None
