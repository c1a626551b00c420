"""`logkernel cluster status`: who is there, and which partitions are not as they should be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from logkernel.cli.connection import ConnectionOptions, connected, coordinated
from logkernel.cli.output import put, put_json, table
from logkernel.cli.partition_health import (
    NONE,
    OFFLINE,
    UNDER_MIN_ISR,
    UNDER_REPLICATED,
    FollowerStatus,
    followers,
    lags,
    log_ends,
    min_isrs,
    state_of,
)
from logkernel.cli.topic_results import found_of, results_of
from logkernel.cli.visible import why_no_topic
from logkernel.cli.watching import watch, watch_option
from logkernel.config.listeners import address
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from rich.console import RenderableType

    from logkernel.client.admin.client import Admin
    from logkernel.contracts import SharedCoordination

ILL = (OFFLINE, UNDER_MIN_ISR)
"""States of a partition that clients suffer from."""


@frozen
class BrokerStatus:
    """A broker that is alive, or one that is not and still holds replicas: without `address`."""

    id: int
    address: str | None
    is_controller: bool
    leads: int
    replicas: int
    epoch: int | None = None
    """Of its session with the coordination; None without one, or where the coordination was not asked."""


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
    controller_epoch: int | None = None
    """None where the coordination was not asked."""
    unseen: str | None = None
    """What to say where this user sees no topic and may not describe each, so that nothing is known of partitions."""

    def count(self, *states: str) -> int:
        return sum(row.state in states for row in self.lacking)

    @property
    def exit_code(self) -> int:
        return int(self.count(*ILL) > 0 or self.unseen is not None)


# ---------------------------------------------------------------- asking


def look(admin: Admin, hasty: Admin, session: SharedCoordination | None = None) -> ClusterStatus:
    """Ask the cluster, and the coordination for sessions; single brokers, of which one may hang, by `hasty`. Topics
    that are deleted meanwhile are left out."""
    cluster = admin.describe_cluster(include_authorized_operations=True)
    names = list(admin.list_topics(internal=True))
    topics = found_of(results_of(lambda: admin.describe_topics(names), names)) if names else {}
    least = min_isrs(admin, topics)
    parts = [(TopicPartition(name, part.partition), part) for name, row in topics.items() for part in row.partitions]
    lacking = [
        (name, state, part) for name, part in parts if (state := state_of(part, least.get(name.topic, 1))) is not None
    ]
    alive = {broker.id: address(broker.host, broker.port) for broker in cluster.brokers}
    ends = log_ends(hasty, [(name, part) for name, _, part in lacking], alive)
    holders = {node for _, part in parts for node in part.replicas}
    epochs = {} if session is None else session.broker_epochs()
    return ClusterStatus(
        cluster.id,
        cluster.controller,
        len(parts),
        tuple(
            BrokerStatus(
                node, alive.get(node), node == cluster.controller,
                sum(part.leader == node for _, part in parts), sum(node in part.replicas for _, part in parts),
                epochs.get(node),
            )
            for node in sorted(holders | set(alive) | set(epochs))
        ),
        tuple(
            PartitionStatus(
                name, state, part.leader, part.leader_epoch, part.replicas, part.isr, least.get(name.topic, 1),
                followers(name, part, ends),
            )
            for name, state, part in sorted(lacking, key=lambda row: row[0])
        ),
        None if session is None else session.read_controller()[1],
        None if names else why_no_topic(cluster.authorized_operations, admin),
    )  # fmt: skip


# ---------------------------------------------------------------- showing


def document(status: ClusterStatus) -> dict[str, Any]:
    return {
        "clusterId": status.cluster_id,
        "controller": status.controller,
        "controllerEpoch": status.controller_epoch,
        "partitions": status.partitions,
        "offline": status.count(OFFLINE),
        "underMinIsr": status.count(UNDER_MIN_ISR),
        "underReplicated": status.count(UNDER_REPLICATED),
        "brokers": [
            {"id": row.id, "address": row.address, "controller": row.is_controller, "leads": row.leads,
             "replicas": row.replicas, "epoch": row.epoch}
            for row in status.brokers
        ],
        "lacking": [
            {"topic": row.name.topic, "partition": row.name.partition, "state": row.state, "leader": row.leader,
             "leaderEpoch": row.leader_epoch, "replicas": row.replicas, "isr": row.isr, "minIsr": row.min_isr,
             "followers": [
                 {"id": one.id, "lag": one.lag} for one in row.followers
             ]}
            for row in status.lacking
        ],
    }  # fmt: skip


def shown(status: ClusterStatus) -> RenderableType:
    """The status as text."""
    from rich.console import Group
    from rich.text import Text

    brokers: list[tuple[object, ...]] = [
        (f"{row.id}{'*' if row.is_controller else ''}", row.address or "down", row.leads, row.replicas)
        for row in status.brokers
    ]
    heads: tuple[str, ...] = ("BROKER", "ADDRESS", "LEADS", "REPLICAS")
    told = ""
    if status.controller_epoch is not None:
        brokers = [(*cells, row.epoch or "no session") for cells, row in zip(brokers, status.brokers, strict=True)]
        heads, told = (*heads, "EPOCH"), f"controller epoch {status.controller_epoch}, "
    counts = ", ".join(f"{status.count(state)} {state}" for state in (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED))
    parts: list[RenderableType] = [
        table(heads, brokers),
        Text(f"{told}{status.partitions} partitions: {counts}" if status.unseen is None else f"{told}{status.unseen}"),
    ]
    if status.lacking:
        rows = [
            (
                str(row.name), row.state, row.leader if row.leader >= 0 else NONE, row.leader_epoch,
                _joined(row.replicas), _joined(row.isr),
                lags(row.followers),
            )
            for row in status.lacking
        ]  # fmt: skip
        columns = ("PARTITION", "STATE", "LEADER", "EPOCH", "REPLICAS", "ISR", "LAG")
        parts.append(table(columns, rows))
    return Group(*parts)


def _joined(values: Iterable[object]) -> str:
    return ",".join(map(str, values)) or NONE


# ---------------------------------------------------------------- the command


@click.command
@watch_option
@coordinated("Also show the brokers' sessions and epochs in ZooKeeper, zookeeper://h1:2181,h2:2181/chroot.")
@connected
def status(
    every_s: float | None, coordination: str | None, config: str | None, connection: ConnectionOptions, as_json: bool
) -> int:
    """Show the brokers, and the partitions that are offline, under min.insync.replicas or under-replicated.

    An asterisk marks the controller. LAG is each follower's lag in records, where it is known. Exit code 1 if a
    partition is offline or under min.insync.replicas, or if you may describe no topic.
    """
    from logkernel.cli import cluster_facts

    with cluster_facts.coordination(coordination, config, connection.timeout_s) as session:
        connection = cluster_facts.reaching(connection, session)
    with connection.admins() as (admin, hasty):

        def looked() -> ClusterStatus:  # in a session of its own: one that lost ZooKeeper for a moment stays lost
            with cluster_facts.coordination(coordination, config, connection.timeout_s) as session:
                return look(admin, hasty, session)

        if every_s is not None:
            return watch(
                every_s, looked, shown, lambda found: [document(found)],
                lambda found: found.exit_code, as_json=as_json,
            )  # fmt: skip
        found = looked()
    if as_json:
        put_json(document(found))
        if found.unseen is not None:
            click.echo(f"logkernel: {found.unseen}", err=True)
    else:
        put(shown(found))
    return found.exit_code
