"""The table of commands. A row is a name, where its click command lives, and a line of help; nothing is imported
before it is called, so that `--help`, completion and every command cost what they use.

Shell completion is click's: `eval "$(_LOGKERNEL_COMPLETE=bash_source logkernel)"` (or `zsh_source`, `fish_source`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from logkernel import __version__
from logkernel.errors import LogkernelError

Table = Mapping[str, tuple[str, str]]

COMMANDS: Final[Table] = {
    "serve": ("logkernel.cli.app:serve", "Run a broker that Kafka clients talk to."),
    "status": ("logkernel.cli.control:status", "Ask a running broker how it is."),
    "topic": ("logkernel.cli.app:topic", "Topics of a running broker: compact, expire."),
    "query": ("logkernel.cli.query:query", "SQL on topics, of a data directory or a cluster."),
    "dump": ("logkernel.cli.dump:dump", "Print what segments, indexes, snapshots and checkpoints hold."),
    "check": ("logkernel.cli.check:check", "Verify a data directory that no broker uses; writes nothing."),
    "repair": ("logkernel.cli.repair:repair", "Recover a data directory that no broker uses; says first what it does."),
}
TOPIC_COMMANDS: Final[Table] = {
    "compact": ("logkernel.cli.control:compact", "Compact a topic now; waits, and says what was done."),
    "expire": ("logkernel.cli.control:expire", "Apply a topic's retention now; waits, and says what was done."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def __init__(self, *args: Any, table: Table, **options: Any) -> None:
        super().__init__(*args, **options)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = self._table.get(cmd_name)
        if row is None:
            return None
        module, name = row[0].split(":")
        found: click.Command = getattr(import_module(module), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._table:
            import difflib

            near = difflib.get_close_matches(args[0], self._table, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])


HELP: Final = {"help_option_names": ["-h", "--help"]}


@click.group(cls=LazyGroup, table=COMMANDS, context_settings=HELP)
@click.version_option(__version__, message="logkernel %(version)s")
def app() -> None:
    """The commit log as a Python microkernel."""


@click.group(cls=LazyGroup, table=TOPIC_COMMANDS)
def topic() -> None:
    """Topics of a running broker."""


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: Sequence[str]) -> int:
    """Run a broker that Kafka clients talk to."""
    from logkernel.cli.serve import serve as run_broker

    return run_broker(arguments)


def run(arguments: Sequence[str]) -> int:
    """Parse and carry out; whatever a user can meet is one line on stderr, without a traceback."""
    try:
        code = app.main(arguments, prog_name="logkernel", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        print("logkernel: aborted", file=sys.stderr)
        return 1
    except (LogkernelError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return _reader_gone()
        print(f"logkernel: {error}", file=sys.stderr)
        return 2
    return code if isinstance(code, int) else 0


def _reader_gone() -> int:
    """`logkernel dump … | head`: the reader has enough. Nothing more may be written, not even at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
