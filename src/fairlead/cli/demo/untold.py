"""The demo's own failure."""

from fairlead import errors


class Untold(errors.FairleadError):
    """The demo's story did not go as told."""

    exit_code = 9

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(
            f"the story did not go as told: {message}",
            hint=hint or "run it again with --keep DIR and look at the files there",
        )
