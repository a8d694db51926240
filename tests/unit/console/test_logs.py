"""Log lines say what happened, and no secret of an address."""

import json

import pytest
import structlog

from fairlead import settings
from fairlead.console import logs


def test_a_log_line_has_no_token_of_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    logs.configure(settings.LogSettings(log_format="json"))
    try:
        structlog.get_logger("test").info("called", url="https://gate.example/?token=hunter2&a=1")
    finally:
        structlog.configure(**before)

    line = json.loads(capsys.readouterr().err)
    assert line["url"] == "https://gate.example/?token=…&a=1"


def test_a_process_without_a_standard_error_logs_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has none where it was closed at the start, as by `2>&-`."""
    before = structlog.get_config()
    monkeypatch.setattr("sys.stderr", None)
    try:
        logs.configure_server(settings.LogSettings())
        structlog.get_logger("test").warning("called")
    finally:
        structlog.configure(**before)
