"""`fairlead completion SHELL`: the script that makes a shell complete our commands and names."""

import click
from click import shell_completion

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, kinds and names.

    \b
    bash:  source <(fairlead completion bash), in ~/.bashrc
    zsh:   source <(fairlead completion zsh), in ~/.zshrc after compinit
    fish:  fairlead completion fish > ~/.config/fish/completions/fairlead.fish

    Names are asked of the store or of FAIRLEAD_SERVER, for a second at most.
    """  # noqa: D301 - click reads the \b
    made = shell_completion.get_completion_class(shell)
    assert made is not None
    root = context.find_root().command
    click.echo(made(root, {}, "fairlead", "_FAIRLEAD_COMPLETE").source())
