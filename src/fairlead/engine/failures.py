"""Why something failed, as a row keeps it."""

MAX_ERROR = 2000


def describe(error: BaseException) -> str:
    """An error as a row keeps it: its kind and words, no more than fits."""
    if isinstance(error, TimeoutError):
        return "timed out"
    text = f"{type(error).__name__}: {_words(error)}".replace("\x00", "")[:MAX_ERROR]
    # Half a character, as paths and foreign bytes may carry, can be stored nowhere.
    return text.encode(errors="replace").decode()


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that cannot even tell itself still has its name
        return "no words"
