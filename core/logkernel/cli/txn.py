"""`logkernel txn list|describe|producers|find-hanging|abort|fence`."""

from __future__ import annotations

import time

import click

from logkernel.cli.connection import ConnectionOptions, connected, iso
from logkernel.cli.output import put_json, put_table
from logkernel.cli.parameters import AnyCase, IntRange
from logkernel.cli.topics import named_partitions
from logkernel.cli.visible import say_if_empty
from logkernel.errors import ConfigError

NONE = "None"
STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead",
)  # fmt: skip


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@click.command("list")
@click.option(
    "--state",
    "states",
    type=AnyCase(STATES),
    multiple=True,
    help="Only transactions in this state; repeatable.",
)
@click.option(
    "--producer-id", "producer_ids", type=int, multiple=True, help="Only transactions of this producer id; repeatable."
)
@click.option("--longer-than", type=IntRange(0), metavar="MS", help="Only transactions that have run longer than this.")
@click.option("--pattern", help="Only transactional ids that this RE2 pattern matches as a whole.")
@connected
def list_(
    states: tuple[str, ...], producer_ids: tuple[int, ...], longer_than: int | None, pattern: str | None,
    connection: ConnectionOptions, as_json: bool,
) -> None:  # fmt: skip
    """List transactional ids."""
    with connection.admin() as admin:
        found = admin.list_transactions(
            states=states,
            producer_ids=producer_ids,
            running_longer_than_ms=-1 if longer_than is None else longer_than,
            pattern=pattern,
        )
        say_if_empty(found, admin, "transactional-id")
    if as_json:
        for row in found.values():
            put_json({"transactionalId": row.id, "producerId": row.producer_id, "state": row.state})
    else:
        rows = [(row.id, row.producer_id, row.state) for row in found.values()]
        put_table(("TransactionalId", "ProducerId", "TransactionState"), rows)


@click.command
@click.argument("ids", nargs=-1, required=True)
@connected
def describe(ids: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """Describe the transactions of transactional IDS."""
    with connection.admin() as admin:
        found = admin.describe_transactions(ids)
    if as_json:
        for row in found.values():
            put_json(
                {
                    "transactionalId": row.id,
                    "coordinator": row.coordinator,
                    "producerId": row.producer_id,
                    "producerEpoch": row.producer_epoch,
                    "state": row.state,
                    "timeoutMs": row.timeout_ms,
                    "startedMs": row.started_ms,
                    "partitions": [str(name) for name in row.partitions],
                }
            )
        return
    now_ms = _now_ms()
    columns = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    rows = [
        (
            row.coordinator,
            row.id,
            row.producer_id,
            row.producer_epoch,
            row.state,
            row.timeout_ms,
            NONE if row.started_ms < 0 else row.started_ms,
            NONE if row.started_ms < 0 else max(0, now_ms - row.started_ms),
            ",".join(map(str, row.partitions)),
        )
        for row in found.values()
    ]
    put_table(columns, rows)


@click.command
@click.argument("topics", metavar="TOPIC[:PARTITION,…]…", nargs=-1, required=True)
@connected
def producers(topics: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """Print the producers known to partitions, and their open transactions."""
    with connection.admin() as admin:
        found = admin.describe_producers(named_partitions(admin, topics))
    rows = [(name, row) for name, producers in found.items() for row in producers]
    if as_json:
        for name, row in rows:
            put_json(
                {
                    "topic": name.topic,
                    "partition": name.partition,
                    "producerId": row.producer_id,
                    "producerEpoch": row.epoch,
                    "lastSequence": row.last_sequence,
                    "lastTimestamp": row.last_timestamp_ms,
                    "coordinatorEpoch": row.coordinator_epoch,
                    "transactionStartOffset": None if row.transaction_start < 0 else row.transaction_start,
                }
            )
        return
    columns = ("TopicPartition", "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence",
               "LastTimestamp", "CurrentTransactionStartOffset")  # fmt: skip
    cells = [
        (
            str(name),
            row.producer_id,
            row.epoch,
            row.coordinator_epoch,
            row.last_sequence,
            row.last_timestamp_ms,
            NONE if row.transaction_start < 0 else row.transaction_start,
        )
        for name, row in rows
    ]
    put_table(columns, cells)


@click.command("find-hanging")
@click.argument("topics", metavar="TOPIC[:PARTITION,…]…", nargs=-1)
@click.option("--longest", type=IntRange(0), metavar="MS", default=900_000, show_default=True,
              help="Examine transactions open for longer; give the brokers' transaction.max.timeout.ms.")  # fmt: skip
@connected
def find_hanging(topics: tuple[str, ...], longest: int, connection: ConnectionOptions, as_json: bool) -> int:
    """Find open transactions without a coordinator to end them, in TOPICS or in all topics.

    Exit code 1 if there is one; end it with `txn abort`.
    """
    with connection.admin() as admin:
        named = topics or tuple(admin.list_topics(internal=True))
        say_if_empty(named, admin, "topic")
        names = named_partitions(admin, named)
        found = admin.find_hanging_transactions(names, _now_ms(), longest_ms=longest) if names else []
    if as_json:
        for row in found:
            put_json(
                {
                    "topic": row.partition.topic,
                    "partition": row.partition.partition,
                    "transactionalId": row.transactional_id,
                    "producerId": row.producer.producer_id,
                    "producerEpoch": row.producer.epoch,
                    "startOffset": row.producer.transaction_start,
                    "lastTimestamp": row.producer.last_timestamp_ms,
                }
            )
    elif not found:
        click.echo("No hanging transactions.")
    else:
        columns = (
            "Topic",
            "Partition",
            "TransactionalId",
            "ProducerId",
            "ProducerEpoch",
            "StartOffset",
            "LastTimestamp",
        )
        rows = [
            (
                row.partition.topic,
                row.partition.partition,
                row.transactional_id or NONE,
                row.producer.producer_id,
                row.producer.epoch,
                row.producer.transaction_start,
                iso(row.producer.last_timestamp_ms),
            )
            for row in found
        ]
        put_table(columns, rows)
    return int(bool(found))


@click.command
@click.argument("topic")
@click.argument("partition", type=IntRange(0))
@click.option(
    "--start-offset",
    type=IntRange(0),
    required=True,
    help="The first offset of the transaction in the partition.",
)
@connected
def abort(topic: str, partition: int, start_offset: int, connection: ConnectionOptions, as_json: bool) -> None:
    """Abort the open transaction that starts at an offset of a partition, as `txn find-hanging` prints it."""
    with connection.admin(changes=True) as admin:
        rows = [row for found in admin.describe_producers((topic, partition)).values() for row in found]
        producer = next((row for row in rows if row.transaction_start == start_offset), None)
        if producer is None:
            raise ConfigError(
                f"no open transaction of {topic}-{partition} starts at offset {start_offset};"
                f" `logkernel txn producers {topic}:{partition}` prints the start offsets"
            )
        admin.abort_transaction((topic, partition), producer.producer_id, producer.epoch, producer.coordinator_epoch)
    if as_json:
        put_json({"topic": topic, "partition": partition, "producerId": producer.producer_id, "aborted": True})
    else:
        click.echo(f"Aborted the transaction of producer {producer.producer_id} on {topic}-{partition}.")


@click.command
@click.argument("ids", nargs=-1, required=True)
@connected
def fence(ids: tuple[str, ...], connection: ConnectionOptions, as_json: bool) -> None:
    """Fence the producers of transactional IDS: abort their open transactions and refuse what they send."""
    with connection.admin(changes=True) as admin:
        found = admin.fence_producers(ids)
    for name, row in found.items():
        if as_json:
            put_json({"transactionalId": name, "producerId": row.producer_id, "producerEpoch": row.epoch})
        else:
            click.echo(f"Fenced {name}: producer {row.producer_id} is at epoch {row.epoch}.")
