"""Why something failed, as a row keeps it."""

from fairlead.engine import failures


class Mute(Exception):
    """An error that cannot tell itself."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def test_an_error_is_told_by_its_kind_and_words_as_far_as_they_fit() -> None:
    assert failures.describe(OSError("no road")) == "OSError: no road"
    assert failures.describe(TimeoutError()) == "timed out"
    assert failures.describe(Mute()) == "Mute: no words"
    assert failures.describe(OSError("half \udc80 and \x00")) == "OSError: half ? and "
    assert len(failures.describe(OSError("x" * 9000))) == failures.MAX_ERROR
