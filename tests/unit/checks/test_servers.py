"""Which Prometheus is asked, by whom, and from where it is known."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.checks import servers
from fairlead.checks.servers import USUAL
from fairlead.settings import MeasureSettings

FILE = """
[payments]
url = "https://prometheus.payments:9090"
token-file = "/run/secrets/payments"
ca-file = "/run/ca.pem"
seconds = 2.5
rollouts = ["payments/*", "shop"]
"""


def test_the_usual_one_comes_from_settings() -> None:
    chosen = MeasureSettings(
        prometheus_url="http://prometheus:9090",
        prometheus_username="reader",
        prometheus_password_file="/run/password",  # noqa: S106 - a path
        prometheus_seconds=3.0,
    )

    access = servers.from_settings(chosen).known[USUAL].access

    assert (access.url, access.username) == ("http://prometheus:9090", "reader")
    assert (access.password_file, access.token_file) == (Path("/run/password"), None)
    assert access.timeout_seconds == 3.0


def test_others_come_from_a_file_by_name_and_serve_whom_it_says(tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(FILE)

    found = servers.from_settings(MeasureSettings(prometheus_servers=str(file)))

    payments = found.known["payments"]
    assert payments.access.token_file == Path("/run/secrets/payments")
    assert payments.access.timeout_seconds == 2.5
    for rollout, serves in (("payments/api", True), ("shop", True), ("shop/payments", False)):
        assert payments.serves(rollout) is serves
    assert USUAL not in found.known


def test_who_may_not_ask_does_not_learn_what_there_is(tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(FILE)
    found = servers.Servers(servers.read(file))

    def told(name: str) -> str:
        with pytest.raises(errors.Rejected) as raised:
            found.of(name, "team/shop")
        return raised.value.message

    assert told("payments").replace("payments", "nobody") == told("nobody")


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "[a]\nurl = 7",
        "[a]\nuri = 'http://a'",
        "[a]\ntoken-file = 'x'",
        "url = 'http://a'",
        "[a]\nurl = 'file:///etc/passwd'",
        "[a]\nurl = 'http://a'\nseconds = 0",
        "[a]\nurl = 'http://a'\nseconds = 100",
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(text)

    with pytest.raises(errors.Rejected):
        servers.read(file)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(errors.Rejected, match="cannot be read"):
        servers.read(tmp_path / "none.toml")


def test_a_server_outside_of_its_block_is_not_asked() -> None:
    found = servers.from_settings(MeasureSettings(prometheus_url="http://127.0.0.1:1"))

    with pytest.raises(errors.Unavailable, match="not open"):
        found.of(USUAL, "shop")
