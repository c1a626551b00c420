"""`logkernel completion bash|zsh|fish`: print the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell. To use it in bash: `eval "$(logkernel completion bash)"`."""
    from logkernel.cli.app import app

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click completes nothing in {shell}")
    click.echo(kind(app, {}, "logkernel", "_LOGKERNEL_COMPLETE").source())
