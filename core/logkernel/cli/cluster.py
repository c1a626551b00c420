"""`logkernel cluster info|brokers|log-dirs|features|quorum|reassignments|elect`; ACLs, quotas and users: `access`."""

from __future__ import annotations

from typing import Any

import click

from logkernel.cli.connection import ConnectionOptions, check_brokers, connected, iso, pairs, sets_otherwise
from logkernel.cli.output import put_json, put_table
from logkernel.cli.topics import named_partitions
from logkernel.cli.visible import say_if_empty
from logkernel.errors import ConfigError
from logkernel.vocabulary import TopicPartition


@click.command
@connected
def info(connection: ConnectionOptions, as_json: bool) -> None:
    """Print the cluster's id, its controller, and the numbers of brokers, topics, partitions and groups."""
    with connection.admin() as admin:
        cluster = admin.describe_cluster()
        topics = admin.list_topics(internal=True)
        groups = admin.list_groups()
        say_if_empty(topics, admin, "topic")
    row = {
        "clusterId": cluster.id,
        "controller": cluster.controller,
        "brokers": len(cluster.brokers),
        "topics": len(topics),
        "partitions": sum(topic.partitions for topic in topics.values()),
        "groups": len(groups),
    }
    if as_json:
        put_json(row)
    else:
        for name, value in row.items():
            click.echo(f"{name:<11} {value}")


@click.command
@click.option("--fenced", is_flag=True, help="Include fenced brokers: registered, but not serving.")
@connected
def brokers(fenced: bool, connection: ConnectionOptions, as_json: bool) -> None:
    """List the brokers."""
    with connection.admin() as admin:
        cluster = admin.describe_cluster(include_fenced=fenced)
    rows = [
        {"id": row.id, "host": row.host, "port": row.port, "rack": row.rack, "fenced": row.fenced,
         "controller": row.id == cluster.controller}
        for row in cluster.brokers
    ]  # fmt: skip
    if as_json:
        for row in rows:
            put_json(row)
    else:
        cells = [
            (f"{row['id']}{'*' if row['controller'] else ''}", row["host"], row["port"], row["rack"],
             "fenced" if row["fenced"] else "active")
            for row in rows
        ]  # fmt: skip
        put_table(("ID", "HOST", "PORT", "RACK", "STATE"), cells)


@click.command("log-dirs")
@click.option("--broker", "brokers", type=int, multiple=True, help="Only directories of this broker id; repeatable.")
@click.option("-t", "--topic", "topics", multiple=True, help="Only replicas of this topic; repeatable.")
@connected
def log_dirs(brokers: tuple[int, ...], topics: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> int:
    """Describe the log directories and their replicas. Exit code 1 if one has failed."""
    with connection.admin() as admin:
        check_brokers(admin, brokers)
        found = admin.describe_log_dirs(brokers or None, topics or None)
    bad, rows = False, []
    for broker, folders in found.items():
        for folder in folders.values():
            bad = bad or folder.error is not None
            if as_json:
                put_json(_directory(broker, folder))
                continue
            state = "online" if folder.error is None else f"FAILED: {folder.error}"
            size = sum(replica.size_bytes for replica in folder.replicas.values())
            future = sum(replica.future for replica in folder.replicas.values())
            rows.append((broker, folder.path, state, len(folder.replicas), future, size, folder.usable_bytes))
    if not as_json:
        put_table(("BROKER", "DIRECTORY", "STATE", "REPLICAS", "MOVING", "BYTES", "USABLE-BYTES"), rows)
    return int(bad)


def _directory(broker: int, folder: Any) -> dict[str, Any]:
    return {
        "broker": broker,
        "directory": folder.path,
        "error": None if folder.error is None else str(folder.error),
        "totalBytes": folder.total_bytes,
        "usableBytes": folder.usable_bytes,
        "replicas": [
            {"topic": name.topic, "partition": name.partition, "size": replica.size_bytes, "lag": replica.offset_lag,
             "future": replica.future}
            for name, replica in sorted(folder.replicas.items())
        ],
    }  # fmt: skip


@click.command
@click.option("--set", "levels", metavar="NAME=LEVEL", multiple=True, help="Set a feature level; 0 disables it.")
@click.option(
    "--how",
    type=click.Choice(["upgrade", "safe-downgrade", "unsafe-downgrade"]),
    default="upgrade",
    show_default=True,
    help="upgrade raises levels; safe-downgrade lowers them if no data is lost; unsafe-downgrade always lowers them.",
)
@click.option("--dry-run", is_flag=True, help="Validate the change without making it.")
@connected
@sets_otherwise
def features(levels: tuple[str, ...], how: str, dry_run: bool, connection: ConnectionOptions, as_json: bool) -> None:
    """List features and their levels, or set levels."""
    given = pairs(levels, "NAME=LEVEL")
    for name, level in given.items():
        if not level.isdigit():
            raise click.UsageError(f"{name}={level}: a level is a whole number; write e.g. {name}=1")
    with connection.admin(changes=bool(given)) as admin:
        if given:
            wanted = {name: int(level) for name, level in given.items()}
            admin.update_features(wanted, upgrade_type=how, validate_only=dry_run)
        found = admin.describe_features()
    if as_json:
        for row in found.values():
            put_json({"feature": row.name, "min": row.min_level, "max": row.max_level, "level": row.level})
    else:
        rows = [(row.name, row.min_level, row.max_level, row.level) for row in found.values()]
        put_table(("FEATURE", "MIN", "MAX", "LEVEL"), rows)


@click.command
@connected
def quorum(connection: ConnectionOptions, as_json: bool) -> None:
    """Describe the metadata quorum. Only KRaft clusters have one; logkernel clusters do not."""
    with connection.admin() as admin:
        found = admin.describe_quorum()
    rows = [("leader" if row.id == found.leader else "voter", row) for row in found.voters]
    rows += [("observer", row) for row in found.observers]
    if as_json:
        put_json(
            {
                "leader": found.leader,
                "leaderEpoch": found.leader_epoch,
                "highWatermark": found.high_watermark,
                "replicas": [{"id": row.id, "role": role, "logEndOffset": row.log_end_offset} for role, row in rows],
            }
        )
        return
    click.echo(f"leader {found.leader}, epoch {found.leader_epoch}, high watermark {found.high_watermark}")
    cells = [(row.id, role, row.log_end_offset, iso(row.last_caught_up_ms)) for role, row in rows]
    put_table(("ID", "ROLE", "LOG-END-OFFSET", "CAUGHT-UP"), cells)


@click.command
@click.argument("topics", metavar="TOPIC[:PARTITION,…]…", nargs=-1)
@click.option(
    "--election",
    type=click.Choice(["preferred", "unclean"]),
    default="preferred",
    show_default=True,
    help="preferred: the first replica of the assignment; unclean: any live replica, which may lose records.",
)
@connected
def elect(topics: tuple[str, ...], election: str, connection: ConnectionOptions, as_json: bool) -> None:
    """Elect leaders of the named partitions, or of all."""
    with connection.admin(changes=True) as admin:
        found = admin.elect_leaders(named_partitions(admin, topics) if topics else None, election=election)
    if as_json:
        for name, elected in found.items():
            put_json({"topic": name.topic, "partition": name.partition, "elected": elected})
    else:
        rows = [(str(name), "elected" if elected else "already the leader") for name, elected in found.items()]
        put_table(("PARTITION", "RESULT"), rows)


@click.command
@click.option(
    "--set", "given", metavar="TOPIC-PARTITION=BROKER,…", multiple=True, help="Move a partition to these brokers."
)
@click.option("--cancel", metavar="TOPIC-PARTITION", multiple=True, help="Cancel the reassignment of a partition.")
@connected
@sets_otherwise
def reassignments(
    given: tuple[str, ...], cancel: tuple[str, ...], connection: ConnectionOptions, as_json: bool
) -> None:
    """List the reassignments in progress, after starting or canceling the named ones."""
    wanted: dict[tuple[str, int], list[int] | None] = {}
    for text, brokers in pairs(given, "TOPIC-PARTITION=BROKER,…").items():
        if not all(part.isdigit() for part in brokers.split(",")):
            raise click.UsageError(f"{text}={brokers}: not broker ids; write e.g. {text}=1,2")
        wanted[_partition(text)] = [int(part) for part in brokers.split(",")]
    wanted |= {_partition(text): None for text in cancel}
    with connection.admin(changes=bool(wanted)) as admin:
        if wanted:
            admin.alter_partition_reassignments(wanted)
        found = admin.list_partition_reassignments()
    for name, row in found.items():
        if as_json:
            document = {"replicas": row.replicas, "adding": row.adding, "removing": row.removing}
            put_json({"topic": name.topic, "partition": name.partition, **document})
        else:
            click.echo(f"{name}: replicas {row.replicas}, adding {row.adding}, removing {row.removing}")
    if not found and not as_json:
        click.echo("No reassignment is in progress.")


def _partition(text: str) -> TopicPartition:
    topic, dash, index = text.rpartition("-")
    if not dash or not index.isdigit():
        raise ConfigError(f"{text!r} is not of the form TOPIC-PARTITION; write e.g. orders-0")
    return TopicPartition(topic, int(index))
