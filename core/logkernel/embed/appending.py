"""Records into batches: each record to its partition, one batch a partition, appended at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.contracts import Partitioner
from logkernel.errors import LogkernelError, UnknownTopicOrPartition, error_for
from logkernel.partition.effects import Outcome
from logkernel.vocabulary import Record, RecordMetadata, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

NEVER_MS = 2**62


class _HeldOutcome:
    """Holds the outcome of one append."""

    __slots__ = ("outcome",)

    def __init__(self) -> None:
        self.outcome: Outcome | None = None

    def deliver(self, outcome: Outcome) -> None:
        self.outcome = outcome


class Appending:
    """Appends to the partitions that the broker leads; on its thread. Each topic's partitioner is made once."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._partitioners: dict[str, Partitioner] = {}

    def forget(self, topic: str) -> None:
        """The topic is deleted; one of that name may have another partitioner."""
        self._partitioners.pop(topic, None)

    def append(self, topic: str, records: list[Record], partition: int | None) -> list[RecordMetadata]:
        """See `EmbeddedLog.append_many`."""
        wall_ms = self._broker.runtime.clock.wall_ms()
        by_partition: dict[int, list[int]] = {}
        for index, record in enumerate(records):
            if record.timestamp_ms < 0:
                record.timestamp_ms = wall_ms
            chosen = self._partition(topic, record) if partition is None else partition
            by_partition.setdefault(chosen, []).append(index)
        found: list[RecordMetadata | None] = [None] * len(records)
        for chosen, indexes in by_partition.items():
            base = self._append_batch(TopicPartition(topic, chosen), [records[index] for index in indexes], wall_ms)
            for offset, index in enumerate(indexes, base):
                found[index] = RecordMetadata(topic, chosen, offset, records[index].timestamp_ms)
        self._broker.step()
        return [metadata for metadata in found if metadata is not None]

    def _append_batch(self, name: TopicPartition, records: list[Record], wall_ms: int) -> int:
        from logkernel.record.encode import encode_batch

        receiver = _HeldOutcome()
        data = bytearray(encode_batch(records))
        self._broker.replicas.get(name).produce(data, -1, receiver, wall_ms, NEVER_MS)
        outcome = receiver.outcome
        if outcome is None:
            raise LogkernelError(f"{name}: the append waits for other replicas; use a producer, which waits for them")
        if outcome.error_code:
            raise error_for(outcome.error_code, outcome.error_message, about=name)
        return outcome.base_offset

    def _partition(self, topic: str, record: Record) -> int:
        count = self._broker.cluster.partition_count(topic)
        if count is None:
            raise UnknownTopicOrPartition(f"there is no topic {topic!r}; create it first")
        partitioner = self._partitioners.get(topic)
        if partitioner is None:
            settings = self._broker.metadata.topic_settings(topic)
            partitioner = self._partitioners[topic] = self._broker.runtime.kernel.partitioner(
                settings.partitioner, settings.plugin, self._broker.runtime.clock.wall_ms()
            )
        return partitioner.partition(record.key, record.value, count, range(count))
