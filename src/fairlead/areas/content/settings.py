"""Where content is served, and who says which share of the population gets the canary."""

from dataclasses import dataclass

from fairlead.settings import setting


@dataclass(frozen=True, slots=True)
class ContentSettings:
    """The service of versioned content."""

    content_listen: str = setting("127.0.0.1:8000", "Address and port of `fairlead content serve`.")
    content_commits: str = setting(
        "",
        "Commits that the tags of versions must have, parted by spaces: `1.0.2=5f1d0c5a…`; a"
        " release sets those that were approved.",
    )
    content_share_file: str = setting(
        "",
        'File of the canary\'s share, such as `{"salt": "1.0.2", "share": "12.5"}`, read again when'
        " it changes; empty means that nobody gets the canary, unless Unleash says so.",
    )
    content_unleash_url: str = setting(
        "", "Unleash's API, such as https://unleash.example/api; empty means that there is none."
    )
    content_unleash_token: str = setting("", "Token of a backend client there.", secret=True)
    content_unleash_app: str = setting("fairlead", "Name of this application there.")
    content_unleash_toggle: str = setting(
        "", "The flag that lets somebody into the canary; empty means the content's name."
    )
    content_unleash_seconds: float = setting(
        10.0, "How long a start waits for Unleash before it goes by what was last known."
    )
    content_unleash_poll_seconds: float = setting(15.0, "How often Unleash is asked.")
    content_unleash_file: str = setting(
        "", "File that keeps what Unleash said last, for a start without it; empty keeps nothing."
    )
    content_jwks_file: str = setting(
        "",
        "Keys (a JWKS) of the tokens that content is asked for with; empty means that none is"
        " needed. Then the token says who asks, and made-up ids get nobody into the canary.",
    )
    content_jwt_issuer: str = setting("", "Issuer that a token must have; empty means any.")
    content_jwt_audience: str = setting("", "Audience that a token must have; empty means any.")
    content_jwt_claim: str = setting("sub", "Claim of a token that says who asks.")
    content_gateway_claim: str = setting(
        "",
        "Field of the header `x-rh-identity` that says who asks, such as"
        " identity.system.cluster_id; empty means that the header is not read. It has no signature:"
        " only where every request comes through a gateway that sets it.",
    )
    content_drain_seconds: float = setting(
        5.0, "How long a stopping service answers on while it says that it is not ready."
    )
    content_unleash_admin_token: str = setting(
        "", "Token of Unleash's admin API, by which releases set the share of a flag.", secret=True
    )
    content_kubeconfig: str = setting(
        "",
        "Kubeconfig by which releases change Deployments; empty means the account of this pod.",
    )
    content_git_url: str = setting(
        "",
        "Git repository (https) that holds the two variables of contents which somebody else"
        " deploys from there; releases push to it.",
    )
    content_git_token_file: str = setting("", "File with a token that may push to it.")
    content_git_requests: str = setting(
        "",
        "Kind of its host (`github`, `gitlab`, `gitea`): then releases open a pull request there,"
        " and wait until somebody merges it; empty means that they push to the branch itself.",
    )
