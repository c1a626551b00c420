"""The source of a log that is open in this process: whole batches by plain fetches, without a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from logkernel.errors import LogkernelError, OffsetOutOfRange, UnknownTopicOrPartition, error_for
from logkernel.record.arrow import Shape, batches_of
from logkernel.record.bounds import CodecFor
from logkernel.record.columns import CHUNK_BYTES, ENDED, ColumnReader
from logkernel.requests.cluster import MetadataRequest
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic, PartitionData
from logkernel.requests.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logkernel.table.scanning import Scan, ScanningSource
from logkernel.table.source import (
    NOTHING_SEEN,
    READ_UNCOMMITTED,
    Bounds,
    check_isolation,
    even_cuts,
)
from logkernel.vocabulary import FileSlice, TopicPartition

EARLIEST, LATEST = -2, -1
"""Timestamps that ask ListOffsets for the first and last offset."""


class EmbeddedSource(ScanningSource):
    """See `Source`. `ask` answers a versionless request at once. It lives as long as its log, in its process."""

    def __init__(self, ask: Callable[[Any], Any], codec_for: CodecFor) -> None:
        self._ask = ask
        self._codec_for = codec_for

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Raises `LogkernelError`: the source cannot be opened elsewhere."""
        raise LogkernelError("this log can be read in this process only; elsewhere, open its directory or a listener")

    def __reduce__(self) -> Any:
        return self.arguments

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def topics(self) -> dict[str, int]:
        rows = self._ask(MetadataRequest(topics=None, allow_auto_topic_creation=False)).topics
        return {row.name: len(row.partitions) for row in sorted(rows, key=lambda row: row.name)}

    # ------------------------------------------------------------ offsets

    def _offset(self, partition: TopicPartition, timestamp_ms: int, committed: bool = False) -> int:
        asked = ListOffsetsTopic(partition[0], [ListOffsetsPartition(partition[1], timestamp_ms)])
        row = self._ask(ListOffsetsRequest(topics=[asked], isolation_level=int(committed))).topics[0].partitions[0]
        if row.error_code == UnknownTopicOrPartition.code:
            raise UnknownTopicOrPartition(f"{TopicPartition(*partition)} is not in this log; check the name")
        if row.error_code:
            raise error_for(row.error_code, about=TopicPartition(*partition))
        return int(row.offset)

    def bounds(self, partition: TopicPartition, isolation: str = READ_UNCOMMITTED) -> Bounds:
        committed = check_isolation(isolation)
        return Bounds(self._offset(partition, EARLIEST), self._offset(partition, LATEST, committed))

    def bounds_of(
        self,
        partitions: Sequence[TopicPartition],
        isolation: str = READ_UNCOMMITTED,
        seen: Mapping[TopicPartition, int] = NOTHING_SEEN,
    ) -> dict[TopicPartition, Bounds]:
        return {partition: self.bounds(partition, isolation) for partition in partitions}

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        offset = self._offset(partition, max(0, timestamp_ms))
        return offset if offset >= 0 else None

    def cuts(self, partition: TopicPartition, start: int, end: int, parts: int) -> list[int]:
        """Cut by offsets."""
        return even_cuts(start, end, parts)

    # ------------------------------------------------------------ records

    def _scan(self, scan: Scan) -> Iterator[Any]:
        partition, start = scan.partition, scan.start
        bounds = self.bounds(partition)
        if start < bounds.start:
            raise OffsetOutOfRange(f"{partition}: {start} is below the log start, {bounds.start}; start there")
        rows, shape = scan.reader(self._codec_for, where=str(partition)), scan.shape()
        if scan.first_ms is not None and scan.first_ms > 0:
            found = self.offset_for_timestamp(partition, scan.first_ms)
            start = scan.end if found is None else max(start, found)
        return self._batches(partition, start, scan.end, scan.committed, rows, shape)

    def _batches(
        self, partition: TopicPartition, offset: int, end: int, committed: bool, rows: ColumnReader, shape: Shape
    ) -> Iterator[Any]:
        while offset < end:
            row = self._fetch(partition, offset, committed)
            if row.records is None:
                break  # nothing lies between here and the end
            data = row.records.read() if isinstance(row.records, FileSlice) else row.records
            rows.forget_aborted()
            for one in row.aborted_transactions or ():
                rows.abort(one.producer_id, one.first_offset)
            yield from batches_of(rows, data, shape)
            if rows.why == ENDED or rows.next_offset <= offset:
                break
            offset = rows.next_offset
        left = rows.take()
        if left is not None:
            yield from shape.batches(left)

    def _fetch(self, partition: TopicPartition, offset: int, committed: bool) -> PartitionData:
        wanted = FetchTopic(partition.topic, [FetchPartition(partition.partition, offset, CHUNK_BYTES)])
        response = self._ask(FetchRequest(topics=[wanted], isolation_level=int(committed)))
        row: PartitionData = response.responses[0].partitions[0]
        if row.error_code == OffsetOutOfRange.code:
            bounds = self.bounds(partition)
            raise OffsetOutOfRange(
                f"{partition}: {offset} is not in {bounds.start}..{bounds.end}, as records were deleted; start there"
            )
        if row.error_code:
            raise error_for(row.error_code, about=partition)
        return row
