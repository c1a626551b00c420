"""Which partitions are served here, which are offline, and what a client is told of the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Codec
from logkernel.errors import (
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
    no_partition,
)
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.led import LedReplica
    from logkernel.broker.replicas.replica import Replica
    from logkernel.controller.image import Partition
    from logkernel.partition.producers import ProducerStates
    from logkernel.storage.log import Log

AS_IT_CAME: Final = ("producer", "uncompressed")
"""Values of `compression.type` that leave batches as their producers made them."""


class ReplicaManager:
    """Owns the replicas of one broker and the list of partitions that are offline."""

    def __init__(
        self,
        runtime: Runtime,
        turn: Turn,
        *,
        partition_count: Callable[[str], int | None],
        fail_directory: Callable[[TopicPartition, OSError], None],
    ) -> None:
        """`fail_directory` is told of a partition whose storage failed."""
        self._runtime = runtime
        self._turn = turn
        self._partition_count = partition_count
        self._fail_directory = fail_directory
        self.led: dict[tuple[str, int], LedReplica] = {}
        """Those that this broker leads, and serves to clients; to look at."""
        self.followed: dict[tuple[str, int], Replica] = {}
        """Those that another broker leads, or none; to look at."""
        self._offline: set[TopicPartition] = set()
        self._codecs: dict[tuple[str, int], Codec] = {}

    # ------------------------------------------------------------ questions

    def all(self) -> list[Replica]:
        """Every replica in service, whatever its role."""
        return [*self.led.values(), *self.followed.values()]

    def find(self, name: tuple[str, int]) -> Replica | None:
        """The replica in service, whatever its role."""
        return self.led.get(name) or self.followed.get(name)

    def held(self, name: TopicPartition) -> Replica:
        """As `find`; raises what a client must hear where there is none."""
        replica = self.find(name)
        if replica is None:
            raise self._absent(name)
        return replica

    def get(self, name: TopicPartition) -> LedReplica:
        """The replica that is led here; raises what a client must hear where there is none."""
        replica = self.led.get(name)
        if replica is None:
            raise self._absent(name)
        return replica

    def of_topic(self, topic: str) -> list[LedReplica]:
        """Those that are led here, in the order of their partitions; raises what a client must hear where none is."""
        found = sorted((each for each in self.led.values() if each.name.topic == topic), key=lambda each: each.name)
        if not found:
            raise self.absence(topic, 0)(topic)
        return found

    def absence(self, topic: str, partition: int) -> type[KafkaError]:
        """Why a partition is not served here."""
        count = self._partition_count(topic)
        if count is None or not 0 <= partition < count:
            return UnknownTopicOrPartition
        if self.is_offline(topic, partition):
            return KafkaStorageError
        return NotLeaderOrFollower

    def _absent(self, name: TopicPartition) -> KafkaError:
        error, count = self.absence(*name), self._partition_count(name.topic)
        if error is not UnknownTopicOrPartition:
            return error(str(name))
        if count is None:
            return error(f"there is no topic {name.topic!r}; create it first")
        return error(no_partition(*name, count))

    def is_offline(self, topic: str, partition: int) -> bool:
        """Whether the partition belongs here, but what it holds cannot be known."""
        return (topic, partition) in self._offline

    def leader_error(self, topic: str, partition: int, leader: int) -> int:
        """The error code that metadata gives of a partition with this leader."""
        if leader < 0 or self.is_offline(topic, partition):
            return LeaderNotAvailable.code
        return 0

    def offline_replicas(self, topic: str, partition: int, replicas: tuple[int, ...]) -> list[int]:
        node = self._runtime.node_id
        return [node] if self.is_offline(topic, partition) and node in replicas else []

    def watermarks(self) -> dict[TopicPartition, int]:
        return {replica.name: replica.high_watermark for replica in self.all()}

    # ------------------------------------------------------------ coming and going

    def lead(
        self,
        name: TopicPartition,
        topic_id: UUID,
        row: Partition,
        settings: TopicSettings,
        disk_log: Log,
        producers: ProducerStates,
        high_watermark: int,
    ) -> None:
        """Serve a partition as its leader; `high_watermark` is the last one that was noted."""
        from logkernel.broker.replicas.led import LedReplica  # a first start leads nothing, and waits for every import
        from logkernel.partition.leader import Leader

        leader = Leader(
            node_id=self._runtime.node_id,
            leader_epoch=row.leader_epoch,
            isr=row.isr,
            log_start=disk_log.start_offset,
            log_end=disk_log.end_offset,
            high_watermark=high_watermark,
            min_isr=settings.min_insync_replicas,
            producers=producers,
        )
        self.led[name] = LedReplica(
            self._runtime, name, topic_id, disk_log, leader, settings, self._target_codec(settings),
            storage_failed=self.storage_failed,
        )  # fmt: skip

    def configure(self, topic: str, partitions: int, settings: TopicSettings) -> None:
        """A topic's settings changed."""
        for partition in range(partitions):
            replica = self.led.get((topic, partition))
            if replica is not None:
                replica.configure(settings, self._target_codec(settings))

    def _target_codec(self, settings: TopicSettings) -> Codec | None:
        """The codec that `compression.type` asks for, None where batches stay as they came."""
        name = settings.compression_type
        if name in AS_IT_CAME:
            return None
        level = getattr(settings, f"compression_{name}_level", None)
        key = (name, -1 if level is None else level)
        codec = self._codecs.get(key)
        if codec is None:
            codec = self._codecs[key] = self._runtime.kernel.codec(name, level)
        return codec

    def segment_rolled(self, name: TopicPartition, base_offset: int, size_bytes: int) -> None:
        """A segment of a partition's log was closed: have it synced soon, and tell plugins."""
        replica = self.find(name)
        if replica is not None:
            replica.flush_soon()
        self._runtime.kernel.tell(
            "logkernel_segment_rolled",
            topic=name.topic, partition=name.partition, base_offset=base_offset, size_bytes=size_bytes,
        )  # fmt: skip

    def delete_topic(self, topic: str) -> None:
        """Serve no partition of it any more, and forget which were offline."""
        for name in [each.name for each in self.all() if each.name.topic == topic]:
            self._retire(name)
        self._offline = {name for name in self._offline if name.topic != topic}

    def _retire(self, name: TopicPartition) -> Replica | None:
        replica = self.led.pop(name, None) or self.followed.pop(name, None)
        if replica is not None:
            replica.in_service = False
            replica.news.tell()
        return replica

    # ------------------------------------------------------------ failure

    def storage_failed(self, replica: Replica, error: OSError) -> KafkaStorageError:
        """A write failed: its directory goes offline with its partitions, the others go on. Not for a partition that
        was deleted meanwhile: work on it that was under way misses its files."""
        if replica.in_service:
            self._fail_directory(replica.name, error)
        return KafkaStorageError(f"{replica.name}: {error}")

    def never_came(self, name: TopicPartition) -> None:
        """The partition belongs here, but its log cannot be had."""
        self._offline.add(name)

    def went_offline(self, name: TopicPartition, error: KafkaStorageError) -> None:
        """The directory of a partition is offline: it is served no more, and who waits for it is told."""
        replica = self._retire(name)
        if replica is not None:
            self._offline.add(name)
            self._turn.call_soon(partial(replica.went_offline, error))
