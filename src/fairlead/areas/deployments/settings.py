"""Where deployments are performed, which hosts may trigger them, and who we are there."""

from dataclasses import dataclass

from fairlead.settings import setting


@dataclass(frozen=True, slots=True)
class DeploymentSettings:
    """Deployments to AWS, and what triggers deployments."""

    aws_bucket: str = setting(
        "", "Bucket of templates and migrations; empty means that nothing is deployed to AWS here."
    )
    aws_queue: str = setting(
        "default", "Deployments to AWS are performed by whoever serves the queue `aws@` and this."
    )
    aws_endpoint: str = setting("", "Another address than AWS's own, for all of its services.")
    aws_seconds: float = setting(20.0, "How long one answer of AWS may take.")
    aws_scratch_url: str = setting(
        "",
        "A PostgreSQL server on which migrations are evaluated; empty means the target's own.",
        secret=True,
    )
    aws_pg_dump: str = setting(
        "", "The pg_dump that copies schemas for evaluations; empty means one of the PATH."
    )
    aws_events_queue: str = setting(
        "",
        "URL of an SQS queue that EventBridge tells changes of stacks; empty: they are asked for.",
    )
    deployments_postgres_url: str = setting(
        "",
        "A PostgreSQL server, with its administrator, for databases of deployments to this machine;"
        " empty: there are none.",
        secret=True,
    )
    deployments_github_url: str = setting(
        "https://api.github.com", "GitHub's API; an enterprise server has it at /api/v3."
    )
    deployments_github_secret_file: str = setting(
        "", "File of the secret of GitHub's webhook, two lines while it is rotated; empty: none."
    )
    deployments_github_token_file: str = setting(
        "", "File of a token that reads contents and writes commit statuses."
    )
    deployments_github_app_id: str = setting(
        "", "Id of a GitHub App, in place of a token: then check runs are written."
    )
    deployments_github_app_key_file: str = setting("", "File of that App's private key, PEM.")
    deployments_gitlab_url: str = setting("https://gitlab.com", "Where GitLab's repositories are.")
    deployments_gitlab_secret_file: str = setting(
        "", "File of the secret token of GitLab's webhook; empty: none."
    )
    deployments_gitlab_token_file: str = setting(
        "", "File of a token that reads repositories and writes commit statuses."
    )
    deployments_gitea_url: str = setting("", "Where Gitea's repositories are.")
    deployments_gitea_secret_file: str = setting(
        "", "File of the secret of Gitea's webhook; empty: none."
    )
    deployments_gitea_token_file: str = setting(
        "", "File of a token that reads repositories and writes commit statuses."
    )
