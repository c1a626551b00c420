"""The table of commands. A row holds a name, the import path of its click command, and a line of help. A command's
module is imported when the command is called, so `--help`, completion and each command load only what they use.

Shell completion is click's: `eval "$(logkernel completion bash)"` (or zsh, fish).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from logkernel import __version__
from logkernel.errors import KafkaError, LogkernelError, SslAuthenticationException

Table = Mapping[str, tuple[str, str]]

COMMANDS: Final[Table] = {
    "serve": ("logkernel.cli.app:serve", "Run a broker for Kafka clients."),
    "status": ("logkernel.cli.control:status", "Show the health of a running broker."),
    "topic": ("logkernel.cli.app:topic", "Create, list, describe, alter, delete, trim, compact or expire topics."),
    "produce": ("logkernel.cli.produce:produce", "Write lines to a topic, one record a line."),
    "consume": ("logkernel.cli.consume:consume", "Print the records of topics."),
    "group": ("logkernel.cli.app:group", "List, describe or delete groups; manage their offsets and members."),
    "config": ("logkernel.cli.app:config", "List, get, set or unset settings of topics, brokers, loggers and groups."),
    "offsets": ("logkernel.cli.offsets:offsets", "Print the first and last offsets of partitions, or those at a time."),
    "txn": ("logkernel.cli.app:txn", "List, describe, abort or fence transactions; find hanging ones."),
    "cluster": ("logkernel.cli.app:cluster", "Manage brokers, log directories, features, ACLs, quotas and users."),
    "query": ("logkernel.cli.query:query", "Run SQL on the topics of a data directory or a cluster."),
    "pipeline": ("logkernel.cli.app:pipeline", "Run or check jobs between logs and tables, on Spark."),
    "dump": ("logkernel.cli.dump:dump", "Print the contents of segments, indexes, snapshots and checkpoints."),
    "check": ("logkernel.cli.check:check", "Verify a data directory that no broker uses; change nothing."),
    "perf": ("logkernel.cli.app:perf", "Measure throughput and latency."),
    "repair": (
        "logkernel.cli.repair:repair",
        "Recover a data directory that no broker uses; show the plan and ask first.",
    ),
    "plugin": ("logkernel.cli.app:plugin", "List, describe, check or begin plugins."),
    "simulate": ("logkernel.cli.simulate:simulate", "Simulate clusters under faults, from seeds; replay a seed."),
    "test-server": ("logkernel.cli.test_server:test_server", "Run a broker for tests, with a control port over HTTP."),
    "schema-registry": ("logkernel.cli.schema_registry:schema_registry", "Run a schema registry for tests, over HTTP."),
    "history": ("logkernel.cli.app:history", "Judge what clients recorded of a cluster."),
    "completion": ("logkernel.cli.completion:completion", "Print the completion script for a shell."),
}
TOPIC_COMMANDS: Final[Table] = {
    "create": ("logkernel.cli.topics:create", "Create topics."),
    "list": ("logkernel.cli.topics:list_", "List all topics."),
    "describe": ("logkernel.cli.topics:describe", "Describe topics, in the format of kafka-topics.sh."),
    "delete": ("logkernel.cli.topics:delete", "Delete topics and their records."),
    "alter": ("logkernel.cli.topics:alter", "Add partitions to a topic, or change its settings."),
    "trim": ("logkernel.cli.topics:trim", "Delete the records before an offset."),
    "compact": ("logkernel.cli.control:compact", "Compact a topic now, and print the result."),
    "expire": ("logkernel.cli.control:expire", "Apply a topic's retention now, and print the result."),
}
PERF_COMMANDS: Final[Table] = {
    "produce": ("logkernel.cli.perf:produce", "Measure a producer, as kafka-producer-perf-test.sh does."),
    "consume": ("logkernel.cli.perf:consume", "Measure a consumer, as kafka-consumer-perf-test.sh does."),
    "latency": ("logkernel.cli.perf:latency", "Measure one record at a time, as kafka-e2e-latency.sh does."),
    "sweep": (
        "logkernel.cli.perf:sweep",
        "Draw throughput against producers, consumers, partitions, sizes and replicas.",
    ),
}
PIPELINE_COMMANDS: Final[Table] = {
    "run": ("logkernel.cli.pipeline:run", "Run the steps of a pipeline."),
    "check": ("logkernel.cli.pipeline:check", "Print what a pipeline would do; run nothing."),
}
GROUP_COMMANDS: Final[Table] = {
    "list": ("logkernel.cli.groups:list_", "List all groups."),
    "describe": ("logkernel.cli.groups:describe", "Describe groups: offsets and lag, members, or state."),
    "delete": ("logkernel.cli.groups:delete", "Delete groups without members."),
    "reset-offsets": ("logkernel.cli.groups:reset_offsets", "Reset the offsets of a group."),
    "delete-offsets": ("logkernel.cli.groups:delete_offsets", "Delete offsets of a group."),
    "remove-members": ("logkernel.cli.groups:remove_members", "Remove members from a group."),
}
CONFIG_COMMANDS: Final[Table] = {
    "list": ("logkernel.cli.configs:list_", "List settings, or the resources that have settings."),
    "get": ("logkernel.cli.configs:get", "Print the values of settings."),
    "set": ("logkernel.cli.configs:set_", "Set settings."),
    "unset": ("logkernel.cli.configs:unset", "Reset settings to their defaults."),
}
TXN_COMMANDS: Final[Table] = {
    "list": ("logkernel.cli.txn:list_", "List transactional ids."),
    "describe": ("logkernel.cli.txn:describe", "Describe transactional ids."),
    "producers": ("logkernel.cli.txn:producers", "Print the producers known to partitions."),
    "find-hanging": ("logkernel.cli.txn:find_hanging", "Find transactions without a coordinator to end them."),
    "abort": ("logkernel.cli.txn:abort", "Abort a hanging transaction."),
    "fence": ("logkernel.cli.txn:fence", "Fence producers by their transactional ids."),
}
CLUSTER_COMMANDS: Final[Table] = {
    "info": ("logkernel.cli.cluster:info", "Print the cluster's id, controller and counts."),
    "brokers": ("logkernel.cli.cluster:brokers", "List the brokers."),
    "status": ("logkernel.cli.cluster_status:status", "Show brokers and the partitions that lack replicas; watch."),
    "check": ("logkernel.cli.cluster_check:check", "Compare what brokers say with what the cluster has decided."),
    "log-dirs": ("logkernel.cli.cluster:log_dirs", "Describe the log directories."),
    "features": ("logkernel.cli.cluster:features", "List features and their levels, or set levels."),
    "quorum": ("logkernel.cli.cluster:quorum", "Describe the metadata quorum."),
    "elect": ("logkernel.cli.cluster:elect", "Elect partition leaders."),
    "reassignments": ("logkernel.cli.cluster:reassignments", "List, start or cancel partition reassignments."),
    "acl": ("logkernel.cli.acl:acl", "Add, remove or list ACLs, with the options of kafka-acls."),
    "acls": ("logkernel.cli.access:acls", "List, add or remove ACLs."),
    "quotas": ("logkernel.cli.access:quotas", "List, set or unset client quotas."),
    "users": ("logkernel.cli.access:users", "List, set or delete SCRAM users."),
    "token": ("logkernel.cli.token:token", "Create, renew, expire or list delegation tokens."),
}

PLUGIN_COMMANDS: Final[Table] = {
    "list": ("logkernel.cli.plugins:list_", "List what the installed plugins provide."),
    "info": ("logkernel.cli.plugins:info", "Describe a plugin: its origin, names, settings and hooks."),
    "check": ("logkernel.cli.plugin_check:check", "Check that a plugin keeps its contract."),
    "new": ("logkernel.cli.plugin_new:new", "Write the project of a new plugin, with its tests."),
}
HISTORY_COMMANDS: Final[Table] = {
    "check": ("logkernel.cli.history:check", "Check a history for lost, doubled and reordered records."),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

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
    """Manage topics of a cluster or of a data directory."""


@click.group(cls=LazyGroup, table=GROUP_COMMANDS)
def group() -> None:
    """Manage groups of every type: classic, consumer, share."""


@click.group(cls=LazyGroup, table=CONFIG_COMMANDS)
def config() -> None:
    """Manage settings of topics, brokers, broker loggers, groups and client metrics subscriptions."""


@click.group(cls=LazyGroup, table=TXN_COMMANDS)
def txn() -> None:
    """Manage transactions."""


@click.group(cls=LazyGroup, table=CLUSTER_COMMANDS)
def cluster() -> None:
    """Inspect and manage the cluster."""


@click.group(cls=LazyGroup, table=PIPELINE_COMMANDS)
def pipeline() -> None:
    """Run jobs between logs and tables on Spark, as a YAML file describes them."""


@click.group(cls=LazyGroup, table=PERF_COMMANDS)
def perf() -> None:
    """Measure a logkernel or Apache Kafka cluster, or a log in this process."""


@click.group(cls=LazyGroup, table=PLUGIN_COMMANDS)
def plugin() -> None:
    """Inspect, check and begin plugins."""


@click.group(cls=LazyGroup, table=HISTORY_COMMANDS)
def history() -> None:
    """Judge what clients recorded of a cluster."""


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: Sequence[str]) -> int:
    """Run a broker for Kafka clients."""
    from logkernel.cli.serve import serve as run_broker

    return run_broker(arguments)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. Every error a user can cause is one line on stderr, no traceback."""
    try:
        code = app.main(arguments, prog_name="logkernel", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return 2
    except click.Abort:
        print("logkernel: aborted", file=sys.stderr)
        return 1
    except (KafkaError, SslAuthenticationException) as error:
        print(f"logkernel: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except (LogkernelError, OSError) as error:
        print(f"logkernel: {error}", file=sys.stderr)
        return 2
    return code if isinstance(code, int) else 0


def _reader_gone() -> int:
    """The reader of our pipe has closed it, as in `logkernel dump … | head`. Write nothing more, not even at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
