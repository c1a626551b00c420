"""`logkernel cluster status`: who is there, and which partitions are not as they should be."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from logkernel.cli.connection import ConnectionOptions, connected
from logkernel.cli.output import console, put, put_json, table
from logkernel.cli.parameters import FloatRange
from logkernel.cli.topics import results_of
from logkernel.config.listeners import address
from logkernel.errors import KafkaError
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from rich.console import RenderableType

    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.topics import PartitionDescription

MIN_ISR = "min.insync.replicas"
OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "under-min-isr", "under-replicated"
ILL = (OFFLINE, UNDER_MIN_ISR)
"""States of a partition that clients suffer from."""
NONE = "-"
HASTY_MS = 2_000
"""How long a broker may take to answer; one that hangs takes longer."""


@frozen
class BrokerStatus:
    """A broker that is alive, or one that is not and still holds replicas: without `address`."""

    id: int
    address: str | None
    is_controller: bool
    leads: int
    replicas: int


@frozen
class FollowerStatus:
    """How far a follower is behind; None where that is not known.

    `lag`: the records up to the watermark that it lacks, as its broker reports them. `bytes_behind`: how much larger
    the leader's log is.
    """

    id: int
    lag: int | None
    bytes_behind: int | None


@frozen
class PartitionStatus:
    """A partition that lacks something. `leader` is -1 without one."""

    name: TopicPartition
    state: str
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_isr: int
    followers: tuple[FollowerStatus, ...]


@frozen
class ClusterStatus:
    cluster_id: str
    controller: int
    partitions: int
    """How many there are in all."""
    brokers: tuple[BrokerStatus, ...]
    lacking: tuple[PartitionStatus, ...]

    def count(self, *states: str) -> int:
        return sum(row.state in states for row in self.lacking)

    @property
    def exit_code(self) -> int:
        return int(self.count(*ILL) > 0)


def state_of(part: PartitionDescription, min_isr: int) -> str | None:
    """The worst that can be said of a partition, None if all of it is in sync."""
    if part.leader < 0:
        return OFFLINE
    if len(part.isr) < min_isr:
        return UNDER_MIN_ISR
    return UNDER_REPLICATED if len(part.isr) < len(part.replicas) else None


# ---------------------------------------------------------------- asking


def look(admin: Admin, hasty: Admin) -> ClusterStatus:
    """Ask the cluster; single brokers, of which one may hang, by `hasty`. Topics that are deleted meanwhile are left
    out."""
    cluster = admin.describe_cluster()
    names = list(admin.list_topics(internal=True))
    topics = _found(results_of(lambda: admin.describe_topics(names), names)) if names else {}
    resources = [("topic", name) for name in topics]
    asked = results_of(lambda: admin.describe_configs(resources, names=[MIN_ISR]), resources) if resources else {}
    configs = _found(asked)
    min_isrs = {key.name: int(rows[MIN_ISR].value or 1) for key, rows in configs.items() if MIN_ISR in rows}
    parts = [(TopicPartition(name, part.partition), part) for name, row in topics.items() for part in row.partitions]
    lacking = [
        (name, state, part)
        for name, part in parts
        if (state := state_of(part, min_isrs.get(name.topic, 1))) is not None
    ]
    alive = {broker.id: address(broker.host, broker.port) for broker in cluster.brokers}
    replicas = _replicas(hasty, alive, lacking)
    holders = {node for _, part in parts for node in part.replicas}
    return ClusterStatus(
        cluster.id,
        cluster.controller,
        len(parts),
        tuple(
            BrokerStatus(
                node, alive.get(node), node == cluster.controller,
                sum(part.leader == node for _, part in parts), sum(node in part.replicas for _, part in parts),
            )
            for node in sorted(holders | set(alive))
        ),
        tuple(
            PartitionStatus(
                name, state, part.leader, part.leader_epoch, part.replicas, part.isr, min_isrs.get(name.topic, 1),
                tuple(followers(name, part, replicas)),
            )
            for name, state, part in sorted(lacking, key=lambda row: row[0])
        ),
    )  # fmt: skip


def _found(results: dict[Any, Any]) -> dict[Any, Any]:
    return {key: row for key, row in results.items() if not isinstance(row, Exception)}


def _replicas(
    admin: Admin, alive: Iterable[int], lacking: Sequence[tuple[TopicPartition, str, PartitionDescription]]
) -> dict[tuple[int, TopicPartition], tuple[int, int]]:
    """(broker, partition) → lag and bytes, of partitions that lack something, from the brokers that answer."""
    found: dict[tuple[int, TopicPartition], tuple[int, int]] = {}
    topics = sorted({name.topic for name, _, _ in lacking})
    for node in sorted(set(alive) & {node for _, _, part in lacking for node in part.replicas}):
        try:
            folders = admin.describe_log_dirs([node], topics)[node]
        except KafkaError:  # it hangs or has just gone: then its lag is not known
            continue
        for folder in folders.values():
            for name, replica in folder.replicas.items():
                if not replica.future:
                    found[node, name] = (replica.offset_lag, replica.size_bytes)
    return found


def followers(
    name: TopicPartition, part: PartitionDescription, replicas: Mapping[tuple[int, TopicPartition], tuple[int, int]]
) -> Iterator[FollowerStatus]:
    """How far each follower is behind; `replicas` has the lag and the bytes of those that are known."""
    _, led = replicas.get((part.leader, name), (0, None))
    for node in part.replicas:
        if node == part.leader:
            continue
        lag, held = replicas.get((node, name), (None, None))
        yield FollowerStatus(node, lag, None if led is None or held is None else max(0, led - held))


# ---------------------------------------------------------------- showing


def document(status: ClusterStatus) -> dict[str, Any]:
    return {
        "clusterId": status.cluster_id,
        "controller": status.controller,
        "partitions": status.partitions,
        "offline": status.count(OFFLINE),
        "underMinIsr": status.count(UNDER_MIN_ISR),
        "underReplicated": status.count(UNDER_REPLICATED),
        "brokers": [
            {"id": row.id, "address": row.address, "controller": row.is_controller, "leads": row.leads,
             "replicas": row.replicas}
            for row in status.brokers
        ],
        "lacking": [
            {"topic": row.name.topic, "partition": row.name.partition, "state": row.state, "leader": row.leader,
             "leaderEpoch": row.leader_epoch, "replicas": row.replicas, "isr": row.isr, "minIsr": row.min_isr,
             "followers": [
                 {"id": one.id, "lag": one.lag, "bytesBehind": one.bytes_behind} for one in row.followers
             ]}
            for row in status.lacking
        ],
    }  # fmt: skip


def shown(status: ClusterStatus) -> RenderableType:
    """The status as text."""
    from rich.console import Group
    from rich.text import Text

    brokers = [
        (f"{row.id}{'*' if row.is_controller else ''}", row.address or "down", row.leads, row.replicas)
        for row in status.brokers
    ]
    counts = ", ".join(f"{status.count(state)} {state}" for state in (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED))
    parts: list[RenderableType] = [
        table(("BROKER", "ADDRESS", "LEADS", "REPLICAS"), brokers),
        Text(f"{status.partitions} partitions: {counts}"),
    ]
    if status.lacking:
        rows = [
            (
                str(row.name), row.state, row.leader if row.leader >= 0 else NONE, row.leader_epoch,
                _joined(row.replicas), _joined(row.isr),
                _joined(f"{one.id}:{_known(one.lag)}" for one in row.followers),
                _joined(f"{one.id}:{_known(one.bytes_behind)}" for one in row.followers),
            )
            for row in status.lacking
        ]  # fmt: skip
        columns = ("PARTITION", "STATE", "LEADER", "EPOCH", "REPLICAS", "ISR", "LAG", "BYTES-BEHIND")
        parts.append(table(columns, rows))
    return Group(*parts)


def _joined(values: Iterable[object]) -> str:
    return ",".join(map(str, values)) or NONE


def _known(value: int | None) -> str:
    return NONE if value is None else str(value)


# ---------------------------------------------------------------- the command


@click.command
@click.option(
    "--watch", "every_s", metavar="SECONDS", type=FloatRange(0.1), help="Look again this often, until Ctrl-C."
)
@connected
def status(every_s: float | None, connection: ConnectionOptions, as_json: bool) -> int:
    """Show the brokers, and the partitions that are offline, under min.insync.replicas or under-replicated.

    An asterisk marks the controller. LAG and BYTES-BEHIND are of each follower, where it answers. Exit code 1 if a
    partition is offline or under min.insync.replicas.
    """
    with _admins(connection) as (admin, hasty):
        if every_s is None:
            found = look(admin, hasty)
            if as_json:
                put_json(document(found))
            else:
                put(shown(found))
            return found.exit_code
        return _watch(admin, hasty, every_s, as_json)


@contextlib.contextmanager
def _admins(connection: ConnectionOptions) -> Iterator[tuple[Admin, Admin]]:
    """A patient client, which asks another broker where one hangs, and one that soon gives up."""
    patient_ms = int(connection.timeout_s * 1000)
    hasty_ms = min(HASTY_MS, patient_ms)
    with (
        connection.log() as log,
        log.admin(default_api_timeout_ms=patient_ms, request_timeout_ms=hasty_ms) as admin,
        log.admin(default_api_timeout_ms=hasty_ms, request_timeout_ms=hasty_ms) as hasty,
    ):
        yield admin, hasty


def _watch(admin: Admin, hasty: Admin, every_s: float, as_json: bool) -> int:
    """Show the status again and again; what fails meanwhile is shown, and tried again. Returns the last exit code."""
    from rich.live import Live
    from rich.text import Text

    out, code = console(), 0
    live = Live(console=out, auto_refresh=False) if out.is_terminal and not as_json else None
    try:
        if live is not None:
            live.start()
        while True:
            try:
                found = look(admin, hasty)
            except KafkaError as error:
                code, text = 1, f"logkernel: {type(error).__name__}: {error}"
                if live is not None:
                    live.update(Text(text), refresh=True)
                else:
                    print(text, file=sys.stderr)
            else:
                code = found.exit_code
                if live is not None:
                    live.update(shown(found), refresh=True)
                elif as_json:
                    put_json(document(found))
                else:
                    put(shown(found))
            sys.stdout.flush()
            time.sleep(every_s)
    except KeyboardInterrupt:
        return code
    finally:
        if live is not None:
            live.stop()
