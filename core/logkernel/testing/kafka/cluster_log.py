"""A cluster as a view asks it: what `EmbeddedLog` offers of one broker, of whichever broker leads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from logkernel.broker.timers import Clock
from logkernel.cluster.cluster import Cluster
from logkernel.cluster.inspector import NoBrokerRuns
from logkernel.config.isolation import isolation_level
from logkernel.embed.log import into_future
from logkernel.embed.reading import read_from
from logkernel.errors import LeaderNotAvailable, NotLeaderOrFollower, UnknownTopicOrPartition
from logkernel.testing.kafka.broker import GroupsByAdmin
from logkernel.vocabulary import CleanupResult, Record, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.client.admin.client import Admin
    from logkernel.client.consumer.consumer import Consumer
    from logkernel.client.producer.producer import Producer

T = TypeVar("T")
READ_BYTES: Final = 1 << 20
LEADER_S: Final = 10.0
"""How long a leader, or any broker, is waited for."""
CLEAN_S: Final = 30.0
RETRY_MS: Final = 5
LOOK_AGAIN_S: Final = 0.002


class ClusterLog(GroupsByAdmin):
    """`broker.LogInside`. Methods may be called from any thread."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._producer: Producer | None = None

    def producer(self, **settings: Any) -> Producer:
        return self._cluster.producer(**settings)

    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> Consumer:
        return self._cluster.consumer(*topics, group=group, **settings)

    def admin(self, **settings: Any) -> Admin:
        return self._cluster.admin(**settings)

    def renew(self) -> None:
        """The cluster is not the one that was written to: what was sent last means nothing to it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(0)

    # ------------------------------------------------------------ topics

    def create_topic(
        self, name: str, partitions: int = -1, *, config: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        """`replication.factor` may be among the settings. Returns when every broker that runs knows its leaders."""
        wanted = dict(config or {})
        factor = int(wanted.pop("replication.factor", settings.pop("replication_factor", -1)))
        self._cluster.create_topic(name, partitions, factor, config=wanted, **settings)

    def delete_topic(self, name: str) -> None:
        self._cluster.delete_topic(name)

    def topics(self) -> dict[str, int]:
        """A broker is waited for, as one may be about to start again."""
        return self._wait(self._cluster.topics, NoBrokerRuns)

    # ------------------------------------------------------------ records

    def append_many(
        self, topic: str, records: Iterable[Record], *, partition: int | None = None
    ) -> list[RecordMetadata]:
        """Acknowledged by all replicas in sync."""
        if self._producer is None or self._producer.closed:
            self._producer = self._cluster.producer(acks="all", retry_backoff_ms=RETRY_MS)
        now_ms = self._clock.wall_ms()
        sent = [
            self._producer.send(
                topic, row.value, key=row.key, headers=list(row.headers), partition=partition,
                timestamp_ms=now_ms if row.timestamp_ms < 0 else row.timestamp_ms,
            )
            for row in records
        ]  # fmt: skip
        return [delivery.result() for delivery in sent]

    def read(
        self, topic: str, partition: int = 0, offset: int | None = None, *, isolation: str = "read_uncommitted"
    ) -> Iterator[Record]:
        level = isolation_level(isolation)
        name = TopicPartition(topic, partition)
        position = self.start_offset(topic, partition) if offset is None else offset

        def some(broker: Broker) -> list[Record]:
            return read_from(broker, name, position, READ_BYTES, level)

        while records := self._at_leader(name, some):
            yield from records
            position = records[-1].offset + 1

    def start_offset(self, topic: str, partition: int = 0) -> int:
        name = TopicPartition(topic, partition)
        return self._at_leader(name, lambda broker: broker.replicas.get(name).log.start_offset)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        name = TopicPartition(topic, partition)
        return self._at_leader(name, lambda broker: broker.replicas.get(name).leader.high_watermark)

    def _at_leader(self, name: TopicPartition, work: Callable[[Broker], T]) -> T:
        """Do `work` where the partition is led. Raises `UnknownTopicOrPartition`, and `LeaderNotAvailable` where nobody
        leads it for ten seconds."""

        def ask() -> T:
            broker = self._cluster.inspector.leading_broker(*name)
            if broker is None:
                raise LeaderNotAvailable(f"{name} has no leader; start or resume a broker that is in sync")
            return work(broker)

        return self._wait(lambda: self._cluster.run(ask), LeaderNotAvailable, NotLeaderOrFollower)

    def _wait(self, ask: Callable[[], T], *passing: type[Exception]) -> T:
        """What `ask` returns, when it no longer raises what passes; its error after ten seconds."""
        deadline_s = time.monotonic() + LEADER_S
        while True:
            try:
                return ask()
            except passing:
                if time.monotonic() >= deadline_s:
                    raise
            time.sleep(LOOK_AGAIN_S)

    # ------------------------------------------------------------ cleaning

    def compact(self, topic: str) -> list[CleanupResult]:
        """Of each partition, the leader's log."""
        return self._clean(topic, lambda broker, done: broker.cleaner.compact(topic, done))

    def apply_retention(self, topic: str) -> list[CleanupResult]:
        return self._clean(topic, lambda broker, done: broker.retention.expire(topic, done))

    def _clean(self, topic: str, begin: Callable[[Broker, Callable[[Any], None]], None]) -> list[CleanupResult]:
        count = self.topics().get(topic)
        if count is None:
            raise UnknownTopicOrPartition(f"there is no topic {topic!r}; create it first")
        found: list[CleanupResult] = []
        asked: list[int] = []
        for index in range(count):
            done: Future[list[CleanupResult]] = Future()

            def ask(broker: Broker, done: Future[list[CleanupResult]] = done) -> None:
                if broker.runtime.node_id in asked:  # it cleans all that it leads
                    done.set_result([])
                else:
                    asked.append(broker.runtime.node_id)
                    begin(broker, into_future(done))

            self._at_leader(TopicPartition(topic, index), ask)
            found += done.result(CLEAN_S)
        return found
