"""Three brokers over each transport, with one face: how tests create topics, harm brokers, and look into their logs.

memory      brokers of this process; clients reach them without a socket
tcp         brokers of this process that reach one another, and are reached, over sockets
zookeeper   `logkernel serve`, a process each, over one ZooKeeper
"""

from __future__ import annotations

import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen
from served_over_zookeeper import Served

import logkernel
from logkernel.admin import NewTopic
from logkernel.cluster.cluster import Cluster
from logkernel.errors import LogkernelError, TopicAlreadyExists, UnknownTopicOrPartition
from logkernel.remote import RemoteLog
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.configs import DescribeConfigsRequest, DescribeConfigsResource

NODES = (1, 2, 3)
SOON_S = 180.0
SETTINGS = (
    "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0",
    "controlled.shutdown.retry.backoff.ms=100", "log.retention.check.interval.ms=100", "log.cleaner.backoff.ms=100",
)  # fmt: skip
TOPIC = 2
"""Kafka's number of a resource type."""
BATCH = struct.Struct(">qiiBIhiqqqhii")
"""Kafka's header of a batch; its attributes hold the codec in three bits, then control batches in bit 5."""
BITS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
CODEC_BITS, CONTROL_BIT = 7, 1 << 5


@frozen
class StoredBatch:
    """A batch as it lies in a log."""

    base_offset: int
    epoch: int
    attributes: int
    records: int
    data: bytes

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)


def stored(folder: Path) -> Iterator[StoredBatch]:
    """The batches of a partition's folder."""
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        position = 0
        while position + BATCH.size <= len(data):
            offset, length, epoch, magic, _, attributes, *_, count = BATCH.unpack_from(data, position)
            assert magic == 2
            yield StoredBatch(offset, epoch, attributes, count, data[position : position + 12 + length])
            position += 12 + length


@frozen
class Row:
    """A partition, as a broker knows it."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @classmethod
    def of(cls, leader: int | None, replicas: Sequence[int], isr: Sequence[int]) -> Row:
        return cls(leader if leader is not None and leader >= 0 else None, tuple(replicas), tuple(isr))

    @property
    def whole(self) -> bool:
        return self.leader is not None and len(self.isr) == len(self.replicas)


class View(Protocol):
    """What one broker knows of the cluster."""

    def brokers(self) -> int: ...

    def rows(self, topic: str) -> list[Row]: ...

    def settings(self, topic: str) -> dict[str, str | None]: ...


class ByAdmin:
    """The view of the broker that an admin client asks."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin

    def brokers(self) -> int:
        return len(self._admin.describe_cluster().brokers)

    def rows(self, topic: str) -> list[Row]:
        rows = self._admin.describe_topics([topic])[topic].partitions
        return [Row.of(row.leader, row.replicas, row.isr) for row in rows]

    def settings(self, topic: str) -> dict[str, str | None]:
        found = self._admin.describe_configs([("topic", topic)])["topic", topic]
        return {name: entry.value for name, entry in found.items()}


class ByAddress:
    """The view of the broker at an address; an admin client would ask others, too."""

    def __init__(self, log: RemoteLog) -> None:
        self._log = log

    def brokers(self) -> int:
        return len(self._log.request(MetadataRequest(topics=[], allow_auto_topic_creation=False)).brokers)

    def rows(self, topic: str) -> list[Row]:
        request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        rows = sorted(self._log.request(request).topics[0].partitions, key=lambda row: row.partition_index)
        return [Row.of(row.leader_id, row.replica_nodes, row.isr_nodes) for row in rows]

    def settings(self, topic: str) -> dict[str, str | None]:
        (found,) = self._log.request(DescribeConfigsRequest([DescribeConfigsResource(TOPIC, topic, None)])).results
        return {each.name: each.value for each in found.configs}


class Brokers(ABC):
    """Brokers 1, 2 and 3. All of them run when a test begins; `settle` brings that about."""

    def __init__(self) -> None:
        self.log: Any = None
        """`producer()`, `consumer()` and `admin()`, over this transport."""
        self.bootstrap = ""
        """For clients of others; empty where there is no socket."""
        self.away: set[int] = set()
        self._admin: Any = None

    @abstractmethod
    def folder(self, node: int) -> Path:
        """The broker's data folder."""

    @abstractmethod
    def _end(self, node: int, killed: bool) -> None: ...

    @abstractmethod
    def _start(self, node: int) -> None: ...

    def kill(self, node: int) -> None:
        """End it as by kill -9."""
        self.away.add(node)
        self._end(node, True)

    def stop(self, node: int) -> None:
        """Stop it cleanly."""
        self.away.add(node)
        self._end(node, False)

    def start(self, node: int) -> None:
        """Start it over the files that it left."""
        self._start(node)
        self.away.discard(node)

    @property
    def admin(self) -> Any:
        if self._admin is None:
            self._admin = self.log.admin()
        return self._admin

    @abstractmethod
    def views(self) -> list[View]:
        """Of the brokers that run."""

    # ------------------------------------------------------------ topics

    def create(self, topic: str, assignment: Mapping[int, Sequence[int]], **settings: Any) -> None:
        """Create a topic with these replicas, and wait until they are in sync, and know its settings, which are
        Kafka's with `_` for `.`."""
        config = {"min.insync.replicas": "1"} | {name.replace("_", "."): str(value) for name, value in settings.items()}

        def created() -> bool:
            with suppress(TopicAlreadyExists):  # an earlier answer was lost
                self.admin.create_topics(NewTopic(topic, config=config, assignments=assignment))
            return True

        until(created, f"{topic} is created")
        until(
            lambda: all(config.items() <= view.settings(topic).items() for view in self.views()), "settings are known"
        )
        self.until_in_sync(topic)

    def _all_rows(self, topic: str) -> list[list[Row]]:
        return [view.rows(topic) for view in self.views()]

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """None while the partition is offline, or brokers do not agree."""
        found = {row.leader for rows in self._all_rows(topic) for row in rows[partition : partition + 1]}
        return found.pop() if len(found) == 1 else None

    def until_led(self, topic: str, partition: int = 0, other_than: int | None = None) -> int:
        until(lambda: self.leader(topic, partition) not in (None, other_than), f"{topic}-{partition} is led")
        leader = self.leader(topic, partition)
        assert leader is not None
        return leader

    def until_offline(self, topic: str, partition: int = 0) -> None:
        """Until every broker that runs knows that it has no leader."""
        until(
            lambda: all(len(rows) > partition and rows[partition].leader is None for rows in self._all_rows(topic)),
            f"{topic}-{partition} is offline",
        )

    def until_in_sync(self, topic: str, count: int | None = None) -> None:
        """Until every broker knows that all replicas are in sync, or `count` of them."""

        def ready() -> bool:
            known = self._all_rows(topic)
            return all(known) and all(
                row.whole if count is None else len(row.isr) == count for rows in known for row in rows
            )

        until(ready, f"{topic} is in sync")

    def settle(self) -> None:
        """All brokers run, and all their replicas are in sync."""
        for node in sorted(self.away):
            self.start(node)
        until(lambda: all(view.brokers() == len(NODES) for view in self.views()), "all brokers are known")
        for topic in self.admin.list_topics(internal=True):
            self.until_in_sync(topic)

    def forget_topics(self) -> None:
        """Delete those of the test."""

        def forgotten() -> bool:
            topics = list(self.admin.list_topics())
            if topics:
                with suppress(UnknownTopicOrPartition):
                    self.admin.delete_topics(topics)
            return not topics

        until(forgotten, "topics are deleted")

    # ------------------------------------------------------------ records

    def batches(self, node: int, topic: str, partition: int = 0) -> list[StoredBatch]:
        """The batches of records in a broker's log: without markers, and those that compaction has emptied."""
        found = stored(self.folder(node) / f"{topic}-{partition}")
        return [each for each in found if each.records and not each.control]

    def read(self, topic: str, isolation: str = "read_uncommitted") -> list[Any]:
        """All records of a topic, each partition in its order."""
        found: list[Any] = []
        settings = {"auto_offset_reset": "earliest", "isolation_level": isolation, "fetch_max_wait_ms": 20}
        with self.log.consumer(topic, **settings) as consumer:
            names = [(topic, partition) for partition in consumer.partitions_for(topic)]
            until(
                lambda: not found.extend(consumer.poll(0.05)) and len(consumer.assignment()) == len(names), "assigned"
            )
            ends = consumer.end_offsets(names)
            until(
                lambda: (
                    not found.extend(consumer.poll(0.05))
                    and all(consumer.position(name) >= end for name, end in ends.items())
                ),
                f"{topic} is read",
            )
        return sorted(found, key=lambda record: (record.partition, record.offset))


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a state that nothing tells; what brokers refuse while they come and go is no answer."""
    deadline_s = time.monotonic() + SOON_S
    problem: Exception | None = None
    while True:
        try:
            if holds():
                return
        except (LogkernelError, OSError) as error:
            problem = error
        assert time.monotonic() < deadline_s, f"not so in {SOON_S} s: {what} ({problem})"
        time.sleep(0.01)


def views_by_address(bootstrap: str, stack: ExitStack) -> dict[int, View]:
    logs = [stack.enter_context(logkernel.connect(address)) for address in bootstrap.split(",")]
    return {node: ByAddress(log) for node, log in zip(NODES, logs, strict=True)}


class InProcess(Brokers):
    """Brokers of this process."""

    def __init__(self, folder: Path, stack: ExitStack, *, sockets: bool) -> None:
        super().__init__()
        self._folder = folder
        self._cluster = stack.enter_context(
            Cluster(3, path=folder, listen=sockets, over_sockets=sockets, overrides=SETTINGS)
        )
        self.log = self._cluster
        self._views: dict[int, View] = {}
        if sockets:
            self.bootstrap = self._cluster.bootstrap_servers
            self.log = stack.enter_context(logkernel.connect(self.bootstrap))
            self._views = views_by_address(self.bootstrap, stack)

    def folder(self, node: int) -> Path:
        return self._folder / f"broker-{node}"

    def views(self) -> list[View]:
        if not self._views:
            return [ByAdmin(self.admin)]
        return [view for node, view in self._views.items() if node not in self.away]

    def _end(self, node: int, killed: bool) -> None:
        (self._cluster.kill if killed else self._cluster.stop)(node)

    def _start(self, node: int) -> None:
        self._cluster.start(node)


class OverZooKeeper(Brokers):
    """Processes."""

    def __init__(self, url: str, start_broker: Callable[..., Any], stack: ExitStack) -> None:
        super().__init__()
        self._served = Served(url, start_broker, lambda holds, _, what: until(holds, what))
        words = [word for setting in SETTINGS for word in ("--set", setting)]
        for node in NODES:
            self._served.start(node, *words)
        self.bootstrap = ",".join(self._served.brokers[node].bootstrap for node in NODES)
        self.log = stack.enter_context(self._served.connect())
        self._views = views_by_address(self.bootstrap, stack)

    def folder(self, node: int) -> Path:
        return Path(self._served.brokers[node].data)

    def views(self) -> list[View]:
        return [view for node, view in self._views.items() if node not in self.away]

    def _end(self, node: int, killed: bool) -> None:
        broker = self._served.brokers[node]
        broker.kill() if killed else broker.terminate()

    def _start(self, node: int) -> None:
        self._served.brokers[node].restart()
