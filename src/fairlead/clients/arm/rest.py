"""Any other API with create, read, update and delete: without Azure's words, else the same."""

from dataclasses import dataclass

from fairlead.clients.arm.client import Arm, Question

_USUAL = "Authorization"


@dataclass(slots=True)
class Rest(Arm):
    """Asks it; the version is in its URL, if anywhere."""

    token_header: str = _USUAL
    """Which says who asks; any but the usual one has the bare token."""

    def _query(self, question: Question) -> str:
        del question
        return ""

    def _authorisation(self, token: str) -> dict[str, str]:
        is_usual = self.token_header == _USUAL
        return {self.token_header: f"Bearer {token}" if is_usual else token}
