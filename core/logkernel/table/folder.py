"""The source of a data directory: records are read from the segments, whether its broker runs or not.

bounds             asked of                                    where that cannot be had
log start, end     the cluster, where `bootstrap` names one    it is an error
                   the broker, by its control socket           the checkpoints: log starts, high watermarks;
                                                               the end of the log for one that has none
last stable        the same                                    producer snapshots, and what follows them
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from logkernel.broker.control_socket import ask
from logkernel.errors import LogkernelError, OffsetOutOfRange, UnknownTopicOrPartition
from logkernel.kernel import Kernel
from logkernel.record.arrow import Shape
from logkernel.record.columns import CHUNK_BYTES, ENDED, FULL, ColumnReader, CorruptRecord
from logkernel.storage.checkpoints import HIGH_WATERMARKS, LOG_STARTS, parse_offsets
from logkernel.storage.disk import File
from logkernel.storage.names import LOG, NO_TOPICS, offset_name, partition_of
from logkernel.storage.reader import PartitionReader, SegmentWalk, open_reader
from logkernel.table.scanning import Scan, ScanningSource
from logkernel.table.source import (
    EVERYTHING,
    NOTHING_SEEN,
    READ_UNCOMMITTED,
    Bounds,
    Source,
    check_isolation,
)
from logkernel.vocabulary import TopicPartition


class FolderSource(ScanningSource):
    """See the module and `Source`. `path` is a data directory, or several (a list, or text as in `log.dirs`)."""

    def __init__(
        self,
        path: str | Sequence[str],
        bootstrap: str | None = None,
        settings: Mapping[str, Any] = EVERYTHING,
        patient: bool = False,
    ) -> None:
        if isinstance(path, str | os.PathLike):
            text = os.fspath(path)
            given = [text] if os.path.isdir(text) else [part for part in text.split(",") if part]
        else:
            given = [os.fspath(each) for each in path]
        self._paths = [os.path.abspath(each) for each in given]
        for each in self._paths:
            if not os.path.isdir(each):
                raise FileNotFoundError(f"there is no directory {each}; check the path")
        self.arguments: Mapping[str, Any] = {
            "path": self._paths,
            "bootstrap": bootstrap,
            "settings": dict(settings),
            "patient": patient,
        }
        self._kernel = Kernel()
        self._places: dict[TopicPartition, str] = {}
        self._cluster: Source | None = None
        if bootstrap:
            from logkernel.table.remote import RemoteSource

            self._cluster = RemoteSource(bootstrap, settings, patient)

    def __reduce__(self) -> Any:
        return FolderSource, tuple(self.arguments.values())

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    # ------------------------------------------------------------ where things are

    def _look(self) -> None:
        found = {}
        for path in self._paths:
            for name in os.listdir(path):
                partition = partition_of(name)
                if partition is not None and partition.topic not in NO_TOPICS and os.path.isdir(f"{path}/{name}"):
                    found[partition] = path
        self._places = found

    def _reader(self, partition: TopicPartition) -> tuple[PartitionReader, str]:
        """Return the partition's log and its data directory, which may have changed."""
        partition = TopicPartition(*partition)
        path = self._places.get(partition)
        if path is None or not os.path.isdir(f"{path}/{partition}"):
            self._look()
            path = self._places.get(partition)
        if path is None:
            raise UnknownTopicOrPartition(f"{partition} has no log in {', '.join(self._paths)}; check the name")
        return open_reader(f"{path}/{partition}"), path

    def topics(self) -> dict[str, int]:
        self._look()
        found: dict[str, int] = {}
        for topic, index in sorted(self._places):
            found[topic] = max(found.get(topic, 0), index + 1)
        return found

    # ------------------------------------------------------------ bounds

    def bounds(self, partition: TopicPartition, isolation: str = READ_UNCOMMITTED, seen: int = 0) -> Bounds:
        """`seen` is an end that was returned before."""
        committed = check_isolation(isolation)
        reader, path = self._reader(partition)
        if self._cluster is not None:
            return self._cluster.bounds(partition, isolation)
        answered = _ask_bounds(path, partition)
        if answered is not None:
            return Bounds(answered["logStart"], answered["lastStable" if committed else "highWatermark"])
        start = self._start(reader, path, partition)
        last = reader.end_offset()
        end = max(start, min(last, _checkpoint(path, HIGH_WATERMARKS).get(TopicPartition(*partition), last)))
        if committed:
            end = max(start, reader.last_stable(end))
        return Bounds(start, max(end, min(last, seen)))

    def bounds_of(
        self,
        partitions: Sequence[TopicPartition],
        isolation: str = READ_UNCOMMITTED,
        seen: Mapping[TopicPartition, int] = NOTHING_SEEN,
    ) -> dict[TopicPartition, Bounds]:
        if self._cluster is None:
            return {partition: self.bounds(partition, isolation, seen.get(partition, 0)) for partition in partitions}
        for partition in partitions:
            self._reader(partition)
        return self._cluster.bounds_of(partitions, isolation)

    @staticmethod
    def _start(reader: PartitionReader, path: str, partition: TopicPartition) -> int:
        bases = reader.bases()
        return max(bases[0] if bases else 0, _checkpoint(path, LOG_STARTS).get(TopicPartition(*partition), 0))

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        bounds = self.bounds(partition)
        reader, _ = self._reader(partition)
        return reader.offset_for_timestamp(timestamp_ms, self._kernel.codec_for, bounds.start, bounds.end)

    def cuts(self, partition: TopicPartition, start: int, end: int, parts: int) -> list[int]:
        return self._reader(partition)[0].cuts(start, end, parts)

    # ------------------------------------------------------------ records

    def _scan(self, scan: Scan) -> Iterator[Any]:
        partition, start, end, first_ms = scan.partition, scan.start, scan.end, scan.first_ms
        shape = scan.shape()
        reader, path = self._reader(partition)
        log_start = self._start(reader, path, partition)
        if start < log_start:
            raise OffsetOutOfRange(f"{partition}: {start} is below the log start, {log_start}; start there")
        rows = scan.reader(self._kernel.codec_for)
        begin = start if first_ms is None else reader.first_since(start, first_ms)
        walk = reader.walk(begin, end)
        if scan.committed:
            for row in reader.aborted_in(begin, end):
                rows.abort(row.producer_id, row.first_offset, row.last_offset)
        return _Batches(reader, walk, rows, shape, first_ms).since(begin)


class _Batches:
    """One scan: the files of a walk, one after the other, through a column reader."""

    def __init__(
        self, reader: PartitionReader, walk: SegmentWalk, rows: ColumnReader, shape: Shape, first_ms: int | None
    ) -> None:
        self._reader = reader
        self._walk = walk
        self._rows = rows
        self._shape = shape
        self._first_ms = first_ms
        self._buffer = bytearray(CHUNK_BYTES)

    def since(self, offset: int) -> Iterator[Any]:
        rows = self._rows
        try:
            while (step := self._walk.next(offset)) is not None:
                base, file, position = step
                if self._is_too_old(base):
                    offset = max(offset, self._walk.following)
                    continue
                rows.skip_to(offset)  # a file that compaction put in place holds again what was read
                rows.where = f"{self._reader.folder}/{offset_name(base, LOG)}"
                yield from self._segment(file, position)
                if rows.why == ENDED:
                    break
                offset = max(offset, rows.next_offset)
            left = rows.take()
            if left is not None:
                yield from self._shape.batches(left)
        finally:
            self._walk.close()

    def _is_too_old(self, base: int) -> bool:
        """Whether all records of a closed segment are earlier than the scan, by its time index."""
        if self._first_ms is None or self._walk.is_last:
            return False
        largest_ms = self._reader.largest_ms(base)
        return largest_ms is not None and largest_ms < self._first_ms

    def _segment(self, file: File, position: int) -> Iterator[Any]:
        """Read the complete batches from `position` on; the last segment may end in one that is being written."""
        rows, looked_again = self._rows, False
        while True:
            got = file.read_into(position, memoryview(self._buffer))
            rows.base, at = position, 0
            while True:
                at = rows.read(self._buffer, at, got)
                if rows.why != FULL:
                    break
                full = rows.take()
                assert full is not None
                yield from self._shape.batches(full)
            position += at
            if rows.why == ENDED or at == got < len(self._buffer):
                return
            if at:
                continue
            if rows.needed > len(self._buffer) and file.read(position + rows.needed - 1, 1):
                self._buffer = bytearray(rows.needed)
            elif self._walk.is_last:
                return
            elif looked_again:
                raise CorruptRecord(f"{rows.where}, byte {position}: what follows is no whole batch")
            else:
                looked_again = True  # it was the last one until now: what was being written is whole now


def _checkpoint(path: str, name: str) -> dict[TopicPartition, int]:
    """Return an offset checkpoint of a data directory; empty if it is missing, being replaced, or unreadable."""
    with contextlib.suppress(OSError, LogkernelError), open(f"{path}/{name}", "rb") as file:
        return parse_offsets(file.read(), name)
    return {}


def _ask_bounds(path: str, partition: TopicPartition) -> dict[str, int] | None:
    """Return the bounds of a partition from the broker that runs on `path`; None if none answers."""
    try:
        answer = ask(path, "partition.bounds", {"topic": partition[0], "partition": partition[1]})
    except OSError:
        return None
    result: dict[str, int] | None = answer.get("result") if answer.get("ok") else None
    return result
