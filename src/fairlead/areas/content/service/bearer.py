"""Who asks for content, by a signed token."""

from dataclasses import dataclass
from pathlib import Path

from fairlead import errors
from fairlead.access import bearer
from fairlead.areas.content.service import gateway
from fairlead.areas.content.service.catalogue import AUTHORIZATION, HeaderMap, Identity, Refusal
from fairlead.areas.content.service.gateway import INVALID, MISSING
from fairlead.areas.content.settings import ContentSettings


@dataclass
class Bearers(bearer.Bearers):
    """Tells who sent a request by its token."""

    def identify(self, headers: HeaderMap) -> str | Refusal:
        """The claim that says who asks; a Refusal where no token of ours comes along."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return MISSING
        return self.who(token) or INVALID


def identity(chosen: ContentSettings) -> Identity | None:
    """By a token, or by what a gateway says; None where the settings name neither."""
    if chosen.content_jwks_file and chosen.content_gateway_claim:
        raise errors.Rejected(
            "both a token and a gateway say who asks",
            hint="unset FAIRLEAD_CONTENT_JWKS_FILE or FAIRLEAD_CONTENT_GATEWAY_CLAIM",
        )
    if chosen.content_gateway_claim:
        return gateway.identity(chosen.content_gateway_claim)
    if not chosen.content_jwks_file:
        return None
    trusted = bearer.Issuer(
        Path(chosen.content_jwks_file).expanduser(),
        chosen.content_jwt_issuer,
        chosen.content_jwt_audience,
        chosen.content_jwt_claim,
    )
    return Identity(AUTHORIZATION, Bearers(trusted).identify)
