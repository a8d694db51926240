"""`fairlead template`: the infrastructure that an application asks for; it touches nothing."""

import click

from fairlead.areas.deployments.commands import spec_files
from fairlead.areas.deployments.specs import build
from fairlead.console import printing


@click.command(short_help="Print the CloudFormation template of an application.")
@click.option("--app", required=True, metavar="FILE", help="The application.")
@click.option("--env", required=True, metavar="FILE", help="The environment.")
@click.option("--cluster", metavar="FILE", help="The cluster that it is in.")
def template(app: str, env: str, cluster: str | None) -> None:
    """Print the CloudFormation template of an application in an environment.

    The same files give the same bytes, whoever asks and whenever. Without --cluster, words in
    capitals stand where its names would.
    """
    read = spec_files.read(app, env, cluster)
    if read.cluster is None:
        printing.talk("no cluster was named: words in capitals stand for its names")
    with read.app_text.placed():
        text = build.template_text(read.app, read.environment, read.cluster)
    click.echo(text, nl=False)
