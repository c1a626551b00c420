"""The table of commands. A row is a name, where its click command lives, and a line of help; nothing is imported
before it is called, so that `--help`, completion and every command cost what they use.

Shell completion is click's: `eval "$(logkernel completion bash)"` (or zsh, fish).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from logkernel import __version__
from logkernel.errors import KafkaError, LogkernelError

Table = Mapping[str, tuple[str, str]]

COMMANDS: Final[Table] = {
    "serve": ("logkernel.cli.app:serve", "Run a broker that Kafka clients talk to."),
    "status": ("logkernel.cli.control:status", "Ask a running broker how it is."),
    "topic": ("logkernel.cli.app:topic", "Topics: create, list, describe, delete, alter, trim, compact, expire."),
    "produce": ("logkernel.cli.produce:produce", "Write lines to a topic."),
    "consume": ("logkernel.cli.consume:consume", "Print the records of topics."),
    "group": ("logkernel.cli.app:group", "Groups: list, describe, delete, their offsets and members."),
    "config": ("logkernel.cli.app:config", "Settings of topics, brokers, groups: list, get, set, unset."),
    "offsets": ("logkernel.cli.offsets:offsets", "Print where partitions begin and end, or were at a time."),
    "txn": ("logkernel.cli.app:txn", "Transactions: list, describe, find those that hang, abort, fence."),
    "cluster": ("logkernel.cli.app:cluster", "Brokers, log directories, features, ACLs, quotas, users."),
    "query": ("logkernel.cli.query:query", "SQL on topics, of a data directory or a cluster."),
    "pipeline": ("logkernel.cli.app:pipeline", "Jobs between logs and tables, on Spark: run, check."),
    "dump": ("logkernel.cli.dump:dump", "Print what segments, indexes, snapshots and checkpoints hold."),
    "check": ("logkernel.cli.check:check", "Verify a data directory that no broker uses; writes nothing."),
    "perf": ("logkernel.cli.app:perf", "Measure throughput and latency: produce, consume, latency, sweep."),
    "repair": ("logkernel.cli.repair:repair", "Recover a data directory that no broker uses; says first what it does."),
    "completion": ("logkernel.cli.completion:completion", "Print the completion script of a shell."),
}
TOPIC_COMMANDS: Final[Table] = {
    "create": ("logkernel.cli.topics:create", "Make topics."),
    "list": ("logkernel.cli.topics:list_", "List all topics."),
    "describe": ("logkernel.cli.topics:describe", "Describe topics, in the columns of kafka-topics."),
    "delete": ("logkernel.cli.topics:delete", "Delete topics with their records."),
    "alter": ("logkernel.cli.topics:alter", "Give a topic more partitions or other settings."),
    "trim": ("logkernel.cli.topics:trim", "Delete records that lie before an offset."),
    "compact": ("logkernel.cli.control:compact", "Compact a topic now; waits, and says what was done."),
    "expire": ("logkernel.cli.control:expire", "Apply a topic's retention now; waits, and says what was done."),
}
PERF_COMMANDS: Final[Table] = {
    "produce": ("logkernel.cli.perf:produce", "Records a second, latencies, as kafka-producer-perf-test."),
    "consume": ("logkernel.cli.perf:consume", "Records a second, as kafka-consumer-perf-test."),
    "latency": ("logkernel.cli.perf:latency", "One record at a time: until it is acknowledged, until it is read."),
    "sweep": ("logkernel.cli.perf:sweep", "Curves of throughput: producers, consumers, partitions, sizes, replicas."),
}
PIPELINE_COMMANDS: Final[Table] = {
    "run": ("logkernel.cli.pipeline:run", "Run a pipeline's steps."),
    "check": ("logkernel.cli.pipeline:check", "Say what a pipeline would do; runs nothing."),
}
GROUP_COMMANDS: Final[Table] = {
    "list": ("logkernel.cli.groups:list_", "List all groups."),
    "describe": ("logkernel.cli.groups:describe", "Offsets and lag, members, state."),
    "delete": ("logkernel.cli.groups:delete", "Delete groups that have no members."),
    "reset-offsets": ("logkernel.cli.groups:reset_offsets", "Set where a group goes on reading."),
    "delete-offsets": ("logkernel.cli.groups:delete_offsets", "Let a group forget offsets."),
    "remove-members": ("logkernel.cli.groups:remove_members", "Take members out of a group."),
}
CONFIG_COMMANDS: Final[Table] = {
    "list": ("logkernel.cli.configs:list_", "List settings, or what has settings."),
    "get": ("logkernel.cli.configs:get", "Print the values of settings."),
    "set": ("logkernel.cli.configs:set_", "Set settings."),
    "unset": ("logkernel.cli.configs:unset", "Let settings go back to their defaults."),
}
TXN_COMMANDS: Final[Table] = {
    "list": ("logkernel.cli.txn:list_", "List transactional ids."),
    "describe": ("logkernel.cli.txn:describe", "Describe transactional ids."),
    "producers": ("logkernel.cli.txn:producers", "Print the producers that partitions know."),
    "find-hanging": ("logkernel.cli.txn:find_hanging", "Find transactions that nobody will end."),
    "abort": ("logkernel.cli.txn:abort", "Abort a transaction that hangs."),
    "fence": ("logkernel.cli.txn:fence", "Shut producers out by their transactional ids."),
}
CLUSTER_COMMANDS: Final[Table] = {
    "info": ("logkernel.cli.cluster:info", "Id, controller, and how much there is."),
    "brokers": ("logkernel.cli.cluster:brokers", "List the brokers."),
    "log-dirs": ("logkernel.cli.cluster:log_dirs", "Print what lies in the log directories."),
    "features": ("logkernel.cli.cluster:features", "List features and their levels, or set levels."),
    "quorum": ("logkernel.cli.cluster:quorum", "Describe the quorum of controllers."),
    "elect": ("logkernel.cli.cluster:elect", "Elect leaders anew."),
    "reassignments": ("logkernel.cli.cluster:reassignments", "List, begin, cancel reassignments."),
    "acls": ("logkernel.cli.access:acls", "Access rules: list, add, remove."),
    "quotas": ("logkernel.cli.access:quotas", "Client quotas: list, set, unset."),
    "users": ("logkernel.cli.access:users", "SCRAM users: list, set, delete."),
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
            from logkernel.config.nearest import nearest

            near = nearest(args[0], self._table)
            hint = f" Did you mean {near!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])


class _App(LazyGroup):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click itself would end with 1
            return _reader_gone()


HELP: Final = {"help_option_names": ["-h", "--help"]}


@click.group(cls=_App, table=COMMANDS, context_settings=HELP)
@click.version_option(__version__, message="logkernel %(version)s")
def app() -> None:
    """The commit log as a Python microkernel."""


@click.group(cls=LazyGroup, table=TOPIC_COMMANDS)
def topic() -> None:
    """Topics: of a cluster, of a folder, of a running broker."""


@click.group(cls=LazyGroup, table=GROUP_COMMANDS)
def group() -> None:
    """Groups of every kind: classic, consumer, share."""


@click.group(cls=LazyGroup, table=CONFIG_COMMANDS)
def config() -> None:
    """Settings of topics, brokers, broker loggers, groups and client metrics subscriptions."""


@click.group(cls=LazyGroup, table=TXN_COMMANDS)
def txn() -> None:
    """Transactions."""


@click.group(cls=LazyGroup, table=CLUSTER_COMMANDS)
def cluster() -> None:
    """The cluster as a whole."""


@click.group(cls=LazyGroup, table=PIPELINE_COMMANDS)
def pipeline() -> None:
    """Jobs between logs and tables that a YAML file describes, carried out by Spark."""


@click.group(cls=LazyGroup, table=PERF_COMMANDS)
def perf() -> None:
    """Measure a cluster, of ours or Apache Kafka, or a log in this process."""


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
    except KafkaError as error:
        print(f"logkernel: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except (LogkernelError, OSError) as error:
        print(f"logkernel: {error}", file=sys.stderr)
        return 2
    return code if isinstance(code, int) else 0


def _reader_gone() -> int:
    """`logkernel dump … | head`: the reader has enough. Nothing more may be written, not even at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
