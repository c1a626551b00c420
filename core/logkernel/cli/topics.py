"""`logkernel topic create|list|describe|delete|alter|trim`; `compact` and `expire` are in `control`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from logkernel.cli.connection import ConnectionOptions, connected, makes_data, pairs, partitions
from logkernel.cli.output import put_json, put_table
from logkernel.cli.partition_health import Ends, FollowerStatus, followers, lags, log_ends, min_isrs, state_of
from logkernel.cli.topic_results import results_of
from logkernel.cli.visible import say_if_empty
from logkernel.cli.watching import watch, watch_option
from logkernel.errors import TopicAlreadyExists, UnknownTopicOrPartition
from logkernel.vocabulary import TopicPartition, format_id

if TYPE_CHECKING:
    from rich.console import RenderableType

    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.configs import ConfigEntry
    from logkernel.client.admin.topics import PartitionDescription, TopicDescription

_config = click.option(
    "-c", "--config", "config", metavar="NAME=VALUE", multiple=True, help="Set a topic setting; repeatable."
)


@click.command
@click.argument("names", nargs=-1, required=True)
@click.option(
    "-p",
    "--partitions",
    "count",
    type=int,
    default=-1,
    help="Number of partitions.  [default: the broker's num.partitions]",
)
@click.option(
    "-r",
    "--replication-factor",
    "factor",
    type=int,
    default=-1,
    help="Number of replicas.  [default: the broker's default.replication.factor]",
)
@_config
@click.option("--if-not-exists", is_flag=True, help="Succeed if the topic already exists.")
@click.option("--dry-run", is_flag=True, help="Validate the request without creating anything.")
@connected
@makes_data
def create(
    names: tuple[str, ...], count: int, factor: int, config: tuple[str, ...], if_not_exists: bool, dry_run: bool,
    connection: ConnectionOptions, as_json: bool,
) -> int:  # fmt: skip
    """Create topics NAMES."""
    from logkernel.client.admin.topics import NewTopic

    wanted = [NewTopic(name, count, factor, pairs(config)) for name in names]
    with connection.admin(changes=True) as admin:
        results = results_of(lambda: admin.create_topics(wanted, validate_only=dry_run), names)
    bad = False
    for name, result in results.items():
        row: dict[str, Any] = {"topic": name}
        if isinstance(result, TopicAlreadyExists) and if_not_exists:
            row["created"] = False
        elif isinstance(result, Exception):
            bad = True
            complain(name, result)
            continue
        else:
            row["created"] = not dry_run
            row |= {"topicId": format_id(result.id), "partitions": result.partitions}
        if as_json:
            put_json(row)
        elif row["created"]:
            click.echo(f"Created topic {name}.")
        elif dry_run:
            click.echo(f"Topic {name} can be created.")
    return int(bad)


@click.command("list")
@click.option("--internal", is_flag=True, help="Include internal topics, which hold the state of services.")
@click.option("-q", "--names", "only_names", is_flag=True, help="Print only names, one a line.")
@connected
def list_(internal: bool, only_names: bool, connection: ConnectionOptions, as_json: bool) -> None:
    """List all topics."""
    with connection.admin() as admin:
        found = admin.list_topics(internal=internal)
        say_if_empty(found, admin, "topic")
    if as_json:
        for row in found.values():
            put_json(
                {
                    "topic": row.name,
                    "topicId": format_id(row.id),
                    "partitions": row.partitions,
                    "internal": row.internal,
                }
            )
    elif only_names:
        for name in found:
            click.echo(name)
    else:
        put_table(
            ("NAME", "PARTITIONS", "TOPIC-ID"),
            [(row.name, row.partitions, format_id(row.id)) for row in found.values()],
        )


@click.command
@click.argument("names", nargs=-1)
@click.option("--internal", is_flag=True, help="Include internal topics, if no NAMES are given.")
@watch_option
@connected
def describe(
    names: tuple[str, ...], internal: bool, every_s: float | None, connection: ConnectionOptions, as_json: bool
) -> int:
    """Describe topics NAMES, or all, in the format of kafka-topics.sh.

    Of partitions with followers it also shows the Lag of each, in records (`-` where a broker does not answer), and
    their State: ok, under-replicated, under-min-isr or offline.
    """
    with connection.admins() as (admin, hasty):
        if every_s is not None:
            return watch(
                every_s, lambda: _look(admin, hasty, names, internal), _shown, _documents,
                lambda found: int(bool(found.failed)), as_json=as_json,
            )  # fmt: skip
        found = _look(admin, hasty, names, internal)
        say_if_empty(names or found.topics, admin, "topic")
    if as_json:
        for row in _documents(found):
            put_json(row)
    else:
        for line in _lines(found):
            click.echo(line)
    for name, error in found.failed.items():
        complain(name, error)
    return int(bool(found.failed))


@frozen
class _Described:
    topics: list[TopicDescription]
    configs: dict[str, list[ConfigEntry]]
    min_isrs: dict[str, int]
    ends: Ends
    failed: dict[str, Exception]

    def health(self, topic: str, part: PartitionDescription) -> tuple[str | None, tuple[FollowerStatus, ...]]:
        """What a partition lacks, and the lag of each follower."""
        name = TopicPartition(topic, part.partition)
        return state_of(part, self.min_isrs.get(topic, 1)), followers(name, part, self.ends)


def _look(admin: Admin, hasty: Admin, names: Sequence[str], internal: bool) -> _Described:
    """`hasty` asks single brokers, of which one may hang."""
    wanted = list(names) or list(admin.list_topics(internal=internal))
    results = results_of(lambda: admin.describe_topics(wanted), wanted) if wanted else {}
    found = {name: results[name] for name in wanted if not isinstance(results[name], Exception)}
    parts = [
        (TopicPartition(topic.name, part.partition), part)
        for topic in found.values()
        for part in topic.partitions
        if len(part.replicas) > 1
    ]
    alive = [broker.id for broker in admin.describe_cluster().brokers] if parts else []
    return _Described(
        list(found.values()),
        _configs(admin, list(found)),
        min_isrs(admin, sorted({name.topic for name, _ in parts})),
        log_ends(hasty, parts, alive),
        {name: results[name] for name in wanted if name not in found},
    )


def _lines(found: _Described) -> Iterator[str]:
    for topic in found.topics:
        yield from _text(topic, found)


def _documents(found: _Described) -> list[dict[str, Any]]:
    return [_document(topic, found) for topic in found.topics]


def _shown(found: _Described) -> RenderableType:
    from rich.text import Text

    return Text("\n".join([*_lines(found), *(f"{name}: {error}" for name, error in found.failed.items())]))


def _configs(admin: Admin, names: list[str]) -> dict[str, list[ConfigEntry]]:
    """The settings of each topic that differ from the default, in the broker's order."""
    if not names:
        return {}
    found = admin.describe_configs([("topic", name) for name in names])
    return {key.name: [entry for entry in rows.values() if not entry.is_default] for key, rows in found.items()}


def _text(topic: TopicDescription, found: _Described) -> Iterator[str]:
    settings = ",".join(f"{entry.name}={entry.value}" for entry in found.configs[topic.name])
    head = {
        "Topic": topic.name,
        "TopicId": format_id(topic.id),
        "PartitionCount": len(topic.partitions),
        "ReplicationFactor": topic.replication_factor,
        "Configs": settings,
    }
    if not topic.id.int:
        del head["TopicId"]
    yield "\t".join(f"{name}: {value}" for name, value in head.items())
    for part in topic.partitions:
        columns = _columns(topic.name, part)
        if len(part.replicas) > 1:
            state, behind = found.health(topic.name, part)
            columns.update({"Lag": lags(behind), "State": state or "ok"})
        yield "\t" + "\t".join(f"{name}: {value}" for name, value in columns.items())


def _columns(topic: str, part: PartitionDescription) -> dict[str, Any]:
    return {
        "Topic": topic,
        "Partition": part.partition,
        "Leader": part.leader if part.leader >= 0 else "none",
        "Replicas": _ids(part.replicas),
        "Isr": _ids(part.isr),
        "Elr": "N/A" if part.elr is None else _ids(part.elr),
        "LastKnownElr": "N/A" if part.last_known_elr is None else _ids(part.last_known_elr),
    }


def _health_document(found: _Described, topic: str, part: PartitionDescription) -> dict[str, Any]:
    state, behind = found.health(topic, part)
    return {"state": state or "ok", "followers": [{"id": one.id, "lag": one.lag} for one in behind]}


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))


def _document(topic: TopicDescription, found: _Described) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topicId": format_id(topic.id),
        "internal": topic.internal,
        "partitionCount": len(topic.partitions),
        "replicationFactor": topic.replication_factor,
        "configs": {entry.name: entry.value for entry in found.configs[topic.name]},
        "partitions": [
            {
                "partition": part.partition,
                "leader": part.leader,
                "leaderEpoch": part.leader_epoch,
                "replicas": part.replicas,
                "isr": part.isr,
                "elr": part.elr,
                "lastKnownElr": part.last_known_elr,
                "offline": part.offline,
                **_health_document(found, topic.name, part),
            }
            for part in topic.partitions
        ],
    }


@click.command
@click.argument("names", nargs=-1, required=True)
@click.option("--if-exists", is_flag=True, help="Succeed if the topic does not exist.")
@connected
def delete(names: tuple[str, ...], if_exists: bool, connection: ConnectionOptions, as_json: bool) -> int:
    """Delete topics NAMES and their records."""
    with connection.admin(changes=True) as admin:
        results = results_of(lambda: admin.delete_topics(names), names)
    bad = False
    for name, result in results.items():
        gone = not isinstance(result, Exception)
        if not gone and not (if_exists and isinstance(result, UnknownTopicOrPartition)):
            bad = True
            complain(name, result)
        elif as_json:
            put_json({"topic": name, "deleted": gone})
        elif gone:
            click.echo(f"Deleted topic {name}.")
    return int(bad)


@click.command
@click.argument("name")
@click.option("-p", "--partitions", "count", type=int, help="Increase the number of partitions to this total.")
@_config
@click.option("--unset", metavar="NAME", multiple=True, help="Reset a topic setting to its default; repeatable.")
@connected
def alter(
    name: str,
    count: int | None,
    config: tuple[str, ...],
    unset: tuple[str, ...],
    connection: ConnectionOptions,
    as_json: bool,
) -> None:
    """Add partitions to topic NAME, or change its settings."""
    changes: dict[str, str | None] = {**pairs(config), **dict.fromkeys(unset)}
    if count is None and not changes:
        raise click.UsageError("nothing to alter; give --partitions, --config or --unset")
    with connection.admin(changes=True) as admin:
        if count is not None:
            admin.create_partitions({name: count})
        if changes:
            admin.alter_configs({("topic", name): changes})
    if as_json:
        put_json({"topic": name, "partitions": count, "configs": changes})
    else:
        click.echo(f"Altered topic {name}.")


@click.command
@click.argument("topics", metavar="TOPIC[:PARTITION,…]", nargs=-1, required=True)
@click.option("--before", required=True, metavar="OFFSET|end", help="The first offset to keep; end keeps none.")
@connected
def trim(topics: tuple[str, ...], before: str, connection: ConnectionOptions, as_json: bool) -> None:
    """Delete the records of partitions before an offset."""
    if before != "end" and not before.isdigit():
        raise click.UsageError(f"--before {before!r}: not an offset; give a number, or end")
    offset = -1 if before == "end" else int(before)
    with connection.admin(changes=True) as admin:
        wanted = dict.fromkeys(named_partitions(admin, topics), offset)
        found = admin.delete_records(wanted)
    if as_json:
        for name, first in found.items():
            put_json({"topic": name.topic, "partition": name.partition, "logStartOffset": first})
    else:
        rows = [(name.topic, name.partition, first) for name, first in found.items()]
        put_table(("TOPIC", "PARTITION", "LOG-START-OFFSET"), rows)


# ---------------------------------------------------------------- shared by commands


def named_partitions(admin: Admin, given: tuple[str, ...]) -> list[tuple[str, int]]:
    """The partitions named by TOPIC[:PARTITION,…] arguments."""
    found: list[tuple[str, int]] = []
    for text in given:
        topic, indexes = partitions(text)
        if indexes is None:
            rows = admin.describe_topics(topic)[topic].partitions
            indexes = [row.partition for row in rows]
        found += [(topic, index) for index in indexes]
    return list(dict.fromkeys(found))


def complain(name: object, error: Exception) -> None:
    text = str(error).removeprefix(f"{name}: ")
    click.echo(f"logkernel: {name}: {type(error).__name__}: {text}", err=True)
