"""The demo's own failure."""

from fairlead import errors


class StoryFailed(errors.FairleadError):
    """The demo's story did not go as told."""

    exit_code = 9

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the demo did not go as planned: {message}",
            hint="a busy machine may be slower than the demo's checks allow; run it again",
        )
