"""What a server does while it starts."""

import gc

import pytest

from fairlead.cli import lifecycle


def test_garbage_is_sought_once_it_is_ready_but_not_in_what_was_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with lifecycle.starting():
        before = gc.isenabled()
        lifecycle.ready("fairlead is up")
        after, frozen = gc.isenabled(), gc.get_freeze_count()

    assert (before, after) == (False, True)
    assert frozen > 0
    assert gc.get_freeze_count() == 0
    assert capsys.readouterr().err == "fairlead is up\n"


def test_garbage_is_sought_again_where_a_start_fails() -> None:
    with pytest.raises(OSError, match="taken"), lifecycle.starting():
        raise OSError("taken")

    assert gc.isenabled()
