"""Asks the coordination and every broker, for `cluster check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from logkernel.cli.cluster_findings import Facts, View
from logkernel.cli.connection import ConnectionOptions
from logkernel.cli.partition_health import log_ends, min_isrs
from logkernel.client.admin.topics import PartitionDescription, TopicDescription
from logkernel.config.listeners import address
from logkernel.contracts import SharedCoordination
from logkernel.errors import ConfigError, KafkaError
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.controller.image import ClusterImage

SILENT_S = 1.0
"""After so long a wait is told."""
KINDS = frozenset({"cluster", "broker", "topic", "partition", "config", "gone"})


@contextmanager
def coordination(url: str | None, config: str | None, within_s: float) -> Iterator[SharedCoordination | None]:
    """The session of one who only reads, which is waited for `within_s` at most; None where neither is given. Raises
    `ConfigError`, `PluginError`, `KafkaStorageError`."""
    if url is None and config is None:
        yield None
        return
    from logkernel.broker.build import open_coordination
    from logkernel.cli.coordination_url import settings_of

    said = Timer(SILENT_S, click.echo, (f"waiting for {url or config} for up to {within_s:g} s …",), {"err": True})
    said.daemon = True
    said.start()
    try:
        session = open_coordination(config, settings_of(url) if url else (), int(within_s * 1000))
    finally:
        said.cancel()
    try:
        yield session
    finally:
        session.close()


def kept_by(session: SharedCoordination) -> tuple[View, ClusterImage]:
    """What the coordination keeps. Raises `ConfigError` if it keeps no cluster."""
    from logkernel.controller.image import ClusterImage

    image = ClusterImage.of(session.changes(KINDS))
    if not image.cluster_id:
        raise ConfigError("the coordination keeps no cluster there; correct the address, or its chroot")
    controller, _ = session.read_controller()
    topics = {
        name: TopicDescription(
            name, topic.id, topic.internal,
            tuple(
                PartitionDescription(index, row.leader, row.leader_epoch, row.replicas, row.isr)
                for index, row in enumerate(topic.partitions)
            ),
        )
        for name, topic in image.topics.items()
    }  # fmt: skip
    brokers = {
        node_id: tuple(address(host, port) for host, port in node.listeners.values())
        for node_id, node in image.nodes.items()
    }
    return View(image.cluster_id, -1 if controller is None else controller, brokers, topics), image


def reaching(connection: ConnectionOptions, session: SharedCoordination | None) -> ConnectionOptions:
    """To the brokers that are registered, where none are named. Raises `ConfigError` if there are none."""
    if session is None or connection.bootstrap is not None:
        return connection
    view, _ = kept_by(session)
    found = [addresses[0] for addresses in view.brokers.values() if addresses]
    if not found:
        raise ConfigError("no broker is registered there; start one, or name the brokers by --bootstrap")
    return evolve(connection, bootstrap=",".join(found))


def gather(admin: Admin, hasty: Admin, session: SharedCoordination | None) -> Facts:
    """Ask everybody once; each broker by `hasty`, of which one may hang. Raises `KafkaError` if nobody answers."""
    cluster = admin.describe_cluster()
    kept, image = (None, None) if session is None else kept_by(session)
    nodes = {row.id for row in cluster.brokers} | set(() if kept is None else kept.brokers)
    views: dict[int, View] = {}
    silent: dict[int, str] = {}
    for node in sorted(nodes):
        try:
            views[node] = _view(hasty.describe_metadata(node))
        except KafkaError as error:
            silent[node] = type(error).__name__
    facts = Facts(views, silent, kept)
    measure = facts.measure
    topics: Mapping[str, TopicDescription] = {} if measure is None else measure.topics
    rows = [(TopicPartition(name, row.partition), row) for name, topic in topics.items() for row in topic.partitions]
    return Facts(
        views, silent, kept,
        -1 if session is None else session.read_controller()[1],
        {} if session is None else session.broker_epochs(),
        () if image is None else tuple(sorted(gone.name for gone in image.gone.values() if gone is not None)),
        min_isrs(admin, _known(topics, views.values())),
        {node: failed for node in views if (failed := _failed(hasty, node))},
        log_ends(hasty, rows, views),
        _moving(admin, image),
    )  # fmt: skip


def _known(topics: Iterable[str], views: Iterable[View]) -> list[str]:
    """Those that all brokers know: any of them may be asked for settings."""
    known = list(views)
    return [name for name in topics if all(name in view.topics for view in known)]


def _view(found: Any) -> View:
    brokers = {row.id: (address(row.host, row.port),) for row in found.brokers}
    return View(found.cluster_id, found.controller, brokers, found.topics)


def _failed(hasty: Admin, node: int) -> dict[str, str]:
    try:
        (folders,) = hasty.describe_log_dirs([node]).values()
    except KafkaError:  # it hangs or has just gone
        return {}
    return {folder.path: type(folder.error).__name__ for folder in folders.values() if folder.error is not None}


def _moving(admin: Admin, image: ClusterImage | None) -> dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]:
    if image is None:
        found = admin.list_partition_reassignments()
        return {name: (tuple(row.adding), tuple(row.removing)) for name, row in found.items()}
    return {
        TopicPartition(name, index): (row.adding, row.removing)
        for name, topic in image.topics.items()
        for index, row in enumerate(topic.partitions)
        if row.adding or row.removing
    }
