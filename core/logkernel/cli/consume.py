"""`logkernel consume TOPIC…`: print records as lines."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from logkernel.cli import formats
from logkernel.cli.connection import ConnectionOptions, connected, time_ms
from logkernel.cli.output import put_json
from logkernel.cli.parameters import IntRange
from logkernel.client.cluster.permissions import all_explained
from logkernel.errors import ConfigError, KafkaError, NetworkException, no_partition
from logkernel.inspect.row_bytes import bytes_field
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.client.consumer.consumer import Consumer

POLL_S: Final = 0.2
BEGINNING: Final = frozenset({"beginning", "earliest", "start"})
END: Final = frozenset({"end", "latest"})
STORED: Final = "stored"


@click.command
@click.argument("topics", metavar="TOPIC…", nargs=-1, required=True)
@click.option(
    "-o",
    "--offset",
    metavar="WHERE",
    help="Where to start: beginning, end, stored, an offset, -N (N records before the end), or @TIME (ms since 1970,"
    " or ISO 8601).  [default: beginning; with --group: stored]",
)
@click.option(
    "-p", "--partition", "indexes", type=IntRange(0), multiple=True, help="Read only this partition; repeatable."
)
@click.option("-n", "--count", type=IntRange(1), help="Stop after this many records.")
@click.option("-e", "--exit", "ends", is_flag=True, help="Stop at the end offsets seen at startup.")
@click.option("-g", "--group", help="Join this group, and commit offsets.")
@click.option(
    "-f",
    "--format",
    "form",
    metavar="FORMAT",
    default=r"%v\n",
    help=r"Output format of a record, e.g. '%p %o %k %v\n'.  [default: %v\n]",
)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_committed",
    show_default=True,
    help="read_uncommitted: print records of open and aborted transactions, too.",
)
@connected
def consume(topics: tuple[str, ...], connection: ConnectionOptions, as_json: bool, **how: Any) -> int:
    """Print the records of TOPICS, and wait for more until --count, --exit or Ctrl-C.

    Exit code 1 if a partition could not be read for --timeout.
    """
    put = _put_json if as_json else _put(formats.renderer(how["form"]))
    given: dict[str, Any] = {
        "isolation_level": how["isolation"],
        "allow_auto_create_topics": False,
        "default_api_timeout_ms": int(connection.timeout_s * 1000),
        **connection.settings.own("consumer"),
    }
    group, where = how["group"], how["offset"]
    if group is not None and how["indexes"]:
        raise click.UsageError(
            "--partition and --group exclude each other, as the group assigns partitions; give one of them"
        )
    if group is not None:
        given.setdefault("auto_offset_reset", _reset(where))
    with connection.log(changes=group is not None) as log, log.consumer(group=group, **given) as consumer:
        patience = _Patience(consumer, connection.timeout_s)
        with log.admin(default_api_timeout_ms=int(connection.timeout_s * 1000)) as admin:
            try:
                admin.describe_topics(topics)  # a consumer would wait for a topic that is not there
            except KafkaError as error:
                raise all_explained(error, "Fetch") from None
        try:
            if group is not None:
                consumer.subscribe(topics)
                _copy_group(consumer, put, how["count"], how["ends"], patience)
            else:
                wanted = _assigned(consumer, topics, how["indexes"])
                ends = consumer.end_offsets(wanted)
                _begin(consumer, wanted, ends, where or "beginning")
                _copy(consumer, put, how["count"], ends if how["ends"] else None, patience)
        except KeyboardInterrupt:
            pass
        finally:
            sys.stdout.flush()
    return 0


def _reset(where: str | None) -> str:
    if where is None or where == STORED or where in BEGINNING:
        return "earliest"
    if where in END:
        return "latest"
    raise click.UsageError(
        f"--offset {where!r} cannot be used with --group; give beginning, end or stored, or use"
        f" `logkernel group reset-offsets`"
    )


def _assigned(consumer: Consumer, topics: tuple[str, ...], indexes: tuple[int, ...]) -> list[TopicPartition]:
    wanted = []
    for topic in topics:
        there = consumer.partitions_for(topic)
        missing = [index for index in indexes if index not in there]
        if missing:
            raise ConfigError(no_partition(topic, missing[0], len(there)))
        wanted += [TopicPartition(topic, index) for index in indexes or there]
    consumer.assign(wanted)
    return wanted


def _begin(consumer: Consumer, wanted: list[TopicPartition], ends: dict[TopicPartition, int], where: str) -> None:
    if where in BEGINNING or where == STORED:
        offsets = consumer.beginning_offsets(wanted)
    elif where in END:
        offsets = ends
    elif where.startswith("@"):
        found = consumer.offsets_for_times(dict.fromkeys(wanted, time_ms(where[1:])))
        offsets = {name: ends[name] if row is None else row.offset for name, row in found.items()}
    elif where.lstrip("-").isdigit():
        number = int(where)
        first = consumer.beginning_offsets(wanted)
        offsets = {name: max(first[name], ends[name] + number) if number < 0 else number for name in wanted}
    else:
        raise click.UsageError(f"--offset {where!r}: not a position; give beginning, end, stored, N, -N or @TIME")
    for name, offset in offsets.items():
        consumer.seek(name, offset)


class _Patience:
    """Ends the command when a partition cannot be read for too long: the consumer itself tries for ever."""

    def __init__(self, consumer: Consumer, timeout_s: float) -> None:
        self._consumer = consumer
        self._timeout_s = timeout_s
        self._since_s: dict[TopicPartition, float] = {}

    def check(self) -> None:
        """Raise the error of a partition that has failed for the whole time."""
        now_s, failing = time.monotonic(), self._consumer.failing
        self._since_s = {name: self._since_s.get(name, now_s) for name in failing}
        for name, since_s in self._since_s.items():
            if now_s - since_s >= self._timeout_s:
                error = failing[name]
                kind = type(error) if isinstance(error, KafkaError) else NetworkException
                told = str(error).removeprefix(f"{name}: ")
                raise kind(f"{name} could not be read for {self._timeout_s:g} s (--timeout): {told}") from error


def _copy(
    consumer: Consumer, put: Any, count: int | None, ends: dict[TopicPartition, int] | None, patience: _Patience
) -> None:
    left = count
    while left is None or left > 0:
        if ends is not None:
            for name in [name for name, end in ends.items() if consumer.position(name) >= end]:
                del ends[name]
                consumer.pause(name)
            if not ends:
                return
        for row in consumer.poll(POLL_S, left):
            if ends is not None and row.offset >= ends.get(TopicPartition(row.topic, row.partition), 0):
                continue
            put(row)
            left = None if left is None else left - 1
        sys.stdout.flush()
        patience.check()


def _copy_group(consumer: Consumer, put: Any, count: int | None, ends: bool, patience: _Patience) -> None:
    left, quiet_s = count, None
    while left is None or left > 0:
        rows = consumer.poll(POLL_S, left)
        for row in rows:
            put(row)
        sys.stdout.flush()
        patience.check()
        left = None if left is None else left - len(rows)
        if not ends or rows:
            quiet_s = None
            continue
        lags = consumer.lag
        if consumer.assignment() and all(lag == 0 for lag in lags.values()):
            quiet_s = quiet_s or time.monotonic()
            if time.monotonic() - quiet_s > POLL_S:
                return


# ---------------------------------------------------------------- out


def _put(render: formats.Render) -> Any:
    write = sys.stdout.buffer.write

    def put(row: Any) -> None:
        write(render(row))

    return put


def _put_json(row: Any) -> None:
    put_json(
        {
            "topic": row.topic,
            "partition": row.partition,
            "offset": row.offset,
            "timestamp": row.timestamp_ms,
            **bytes_field("key", row.key),
            **bytes_field("value", row.value),
            "headers": [{"name": name, **bytes_field("value", value)} for name, value in row.headers],
        }
    )
