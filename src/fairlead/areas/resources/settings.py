"""Where resources are, and as whom they are asked for."""

from dataclasses import dataclass

from fairlead.settings import setting


@dataclass(frozen=True, slots=True)
class ResourcesSettings:
    """The API of a cloud."""

    resources_api_url: str = setting(
        "https://management.azure.com", "The API that resources are read from."
    )
    resources_token_file: str = setting(
        "", "File with a bearer token for it, read at every call, so that it may be rotated."
    )
