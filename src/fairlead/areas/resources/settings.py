"""Where resources are, and as whom they are asked for."""

from dataclasses import dataclass

from fairlead.settings import setting


@dataclass(frozen=True, slots=True)
class ResourcesSettings:
    """The API of a cloud."""

    resources_cloud: str = setting(
        "public",
        "Azure's cloud: public, usgovernment or china; it says both URLs below. Or none: any other"
        " API with create, read, update and delete.",
    )
    resources_api_url: str = setting(
        "", "The API that resources are in, if it is none of those, such as another's or a proxy."
    )
    resources_login_url: str = setting("", "Who gives out tokens, if it is none of those.")
    resources_token_file: str = setting(
        "", "File with a bearer token for it, read at every call, so that it may be rotated."
    )
    resources_token_header: str = setting(
        "Authorization", "The header for it, where an API of no cloud takes another."
    )
    resources_tenant: str = setting("", "Tenant of an app registration, instead of a token.")
    resources_client_id: str = setting("", "Its client id.")
    resources_client_secret_file: str = setting("", "File with its secret.")
    resources_federated_token_file: str = setting(
        "", "Instead of that, file with a token of a cluster's own issuer (workload identity)."
    )
    resources_managed_identity: str = setting(
        "", "URL of a machine's metadata service, for its own identity: http://169.254.169.254."
    )
    resources_hooks_file: str = setting(
        "", "File of rules by which types differ, and of joins (JSON); packages may bring more."
    )
    resources_push_secret_file: str = setting(
        "", "File with the secret that Event Grid's web-hook shows as code=… in its URL."
    )
    resources_push_jwks_file: str = setting(
        "", "File with Entra ID's keys (a JWKS), for a web-hook that shows a token."
    )
    resources_push_issuer: str = setting("", "Who must have made such a token.")
    resources_push_audience: str = setting("", "Whom it must be for.")
    resources_reads_per_hour: int = setting(
        12_000, "Reads of one subscription, by all workers on a store together; 0: no limit."
    )
    resources_writes_per_hour: int = setting(1_200, "Writes, likewise.")
    resources_secrets: str = setting(
        "", "Folder of the secrets that specs name: a file each, with one line."
    )
    resources_key_file: str = setting(
        "",
        "File with the key by which secrets are compared, the same for all workers on a store;"
        " by default one is made in the state folder.",
    )
    resources_catalogue: str = setting(
        "",
        "What fairlead resources ingest wrote, for an operator; by default that of its state"
        " folder.",
    )
    resources_owner: str = setting(
        "",
        "What resources of a cluster's objects stand in that name no owner: the id of a resource"
        " group; {namespace} stands for the object's.",
    )
    resources_within: str = setting(
        "",
        "How ids of objects' resources must begin, one of these with commas between; {namespace}"
        " stands for the object's. Where it is empty, all that we may change is theirs.",
    )
    resources_kinds: str = setting(
        "",
        "Types that have a kind of their own beside CloudResource, as TYPE@VERSION with commas"
        " between: fairlead resources crd prints what installs each.",
    )
