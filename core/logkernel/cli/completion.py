"""`logkernel completion bash|zsh|fish`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL: `eval "$(logkernel completion bash)"`, or put it where the shell looks."""
    from logkernel.cli.app import app

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click completes nothing in {shell}")
    click.echo(kind(app, {}, "logkernel", "_LOGKERNEL_COMPLETE").source())
