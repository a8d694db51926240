"""Settings come from the environment, each explained; a wrong one is refused by name."""

import dataclasses
from pathlib import Path

import pytest

from fairlead import errors, settings


def test_nothing_set_gives_the_defaults() -> None:
    assert settings.from_environment({}) == settings.Settings()


def test_each_kind_of_value_is_read() -> None:
    found = settings.from_environment(
        {
            "FAIRLEAD_STATE_DIR": "/var/lib/fairlead",
            "FAIRLEAD_LEASE_SECONDS": "2.5",
            "FAIRLEAD_IN_FLIGHT": "7",
            "FAIRLEAD_LOG_LEVEL": "debug",
            "FAIRLEAD_DATABASE_URL": "postgresql://somebody@db.example/fairlead",
        }
    )

    assert found.store.state_dir == Path("/var/lib/fairlead")
    assert found.store.database_url.endswith("/fairlead")
    assert (found.engine.lease_seconds, found.engine.in_flight) == (2.5, 7)
    assert found.log.log_level == "debug"


def test_other_programs_settings_are_none_of_ours() -> None:
    others = {"PATH": "/bin", "FAIRLEAD_TEST_POSTGRES_URL": "x", "FAIRLEAD_CACHE_DIR": "y"}

    assert settings.from_environment(others) == settings.Settings()


def test_an_unknown_setting_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(errors.Rejected, match="unknown setting: FAIRLEAD_LEASE_SECOND") as refused:
        settings.from_environment({"FAIRLEAD_LEASE_SECOND": "1"})

    assert refused.value.hint == "did you mean FAIRLEAD_LEASE_SECONDS?"


def test_an_unknown_setting_like_no_other_is_refused_with_the_list() -> None:
    with pytest.raises(errors.Rejected) as refused:
        settings.from_environment({"FAIRLEAD_" + "Q" * 40: "1"})

    assert "settings.md" in refused.value.hint


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("FAIRLEAD_LEASE_SECONDS", "soon"),
        ("FAIRLEAD_LEASE_SECONDS", "0"),
        ("FAIRLEAD_LEASE_SECONDS", "-1"),
        ("FAIRLEAD_LEASE_SECONDS", "nan"),
        ("FAIRLEAD_LEASE_SECONDS", "inf"),
        ("FAIRLEAD_POLL_SECONDS", "1e300"),
        ("FAIRLEAD_POLL_SECONDS", ""),
        ("FAIRLEAD_DRAIN_SECONDS", "inf"),
        ("FAIRLEAD_RETENTION_DAYS", "1000000"),
        ("FAIRLEAD_COMMAND_DAYS", "1000000"),
        ("FAIRLEAD_COMMAND_DAYS", "0"),
        ("FAIRLEAD_IN_FLIGHT", "1.5"),
        ("FAIRLEAD_IN_FLIGHT", "0"),
        ("FAIRLEAD_LOG_LEVEL", "loud"),
        ("FAIRLEAD_LOG_FORMAT", "xml"),
        ("FAIRLEAD_DATABASE_URL", "mysql://somewhere/db"),
    ],
)
def test_a_malformed_value_is_refused_by_name_with_a_hint(variable: str, text: str) -> None:
    with pytest.raises(errors.Rejected, match=variable) as refused:
        settings.from_environment({variable: text})

    assert refused.value.hint


def test_a_malformed_secret_is_not_shown() -> None:
    with pytest.raises(errors.Rejected) as refused:
        settings.from_environment({"FAIRLEAD_DATABASE_URL": "mysql://me:hunter2@somewhere/db"})

    assert "hunter2" not in refused.value.message + refused.value.hint


def test_every_setting_is_described_and_named_once() -> None:
    found = settings.described()

    assert len({each.variable for each in found}) == len(found)
    assert all(each.doc.endswith(".") for each in found)
    assert {each.name for each in found if each.secret} == {"database_url", "token"}


def test_no_setting_can_be_changed_afterwards() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.Settings().engine.in_flight = 5  # type: ignore[misc]  # the point of the test
