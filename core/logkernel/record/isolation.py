"""What a reader makes of fetched bytes: data without markers, and without the records of aborted transactions.

A broker sends whole batches up to the last stable offset, with the transactions among them that were aborted:
(producer id, first offset) of each. The reader walks the batches:

    data batch, its producer aborts from an offset at or below its last   dropped
    any other data batch                                                  read
    abort marker                                                          its producer's next batches are read again
    any other control batch                                               passed over
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol

from logkernel.contracts import Buffer
from logkernel.record.batch import batches
from logkernel.record.bounds import CodecFor
from logkernel.record.control import ABORT, control_type
from logkernel.record.decode import R, decode_batch, row_decoder
from logkernel.record.legacy import decode_message
from logkernel.vocabulary import BatchFacts, Record, TopicPartition


def read_batches(
    buf: Buffer, codec_for: CodecFor, aborted: Iterable[tuple[int, int]] = ()
) -> tuple[list[Record], int | None]:
    """(records, offset behind the last whole batch) of `buf`; None where not one batch is whole.

    `aborted` are (producer id, first offset); none for a reader of what is not committed. Raises `CorruptMessage`.
    """
    records: list[Record] = []
    end = None
    for facts, visible in seen_batches(buf, codec_for, aborted):
        end = facts.last_offset + 1
        if visible:
            records += batch_records(buf, facts, codec_for)
    return records, end


def batch_records(buf: Buffer, facts: BatchFacts, codec_for: CodecFor, *, verify_crc: bool = True) -> list[Record]:
    """The records of one data batch of any magic. Raises as `decode_batch`."""
    read = decode_message if facts.magic < 2 else decode_batch
    return read(buf, facts, codec_for, verify_crc=verify_crc)


class Stretches(Protocol[R]):
    """The rows of one batch, a stretch at a time (see `pure_decode.RowDecoder`)."""

    @property
    def left(self) -> int:
        """Records that were not looked at yet."""
        ...

    def next(self, most: int) -> list[R]:
        """The rows of the next records, `most` or as many as are left."""
        ...


class _Made(Generic[R]):
    """`Stretches` of rows that were made at once."""

    def __init__(self, rows: list[R]) -> None:
        self._rows = rows
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._rows) - self._at

    def next(self, most: int) -> list[R]:
        start, self._at = self._at, min(len(self._rows), self._at + most)
        return self._rows[start : self._at]


def batch_rows(
    buf: Buffer,
    facts: BatchFacts,
    codec_for: CodecFor,
    kind: type[R],
    name: TopicPartition,
    from_offset: int = 0,
    *,
    verify_crc: bool = True,
) -> Stretches[R]:
    """As `batch_records`, from `from_offset` on, as rows of `kind` (see `pure_decode.RowDecoder`)."""
    if facts.magic >= 2:
        return row_decoder(buf, facts, codec_for, kind, name, from_offset, verify_crc=verify_crc)
    new, epoch = tuple.__new__, facts.leader_epoch
    return _Made(
        [
            new(kind, (*name, row.offset, row.timestamp_ms, row.key, row.value, row.headers, epoch))
            for row in decode_message(buf, facts, codec_for, verify_crc=verify_crc)
            if row.offset >= from_offset
        ]
    )


def seen_batches(
    buf: Buffer, codec_for: CodecFor, aborted: Iterable[tuple[int, int]] = ()
) -> Iterator[tuple[BatchFacts, bool]]:
    """Every whole batch of `buf`, and whether its records are to be read; `aborted` as for `read_batches`."""
    coming = deque(sorted((first, producer_id) for producer_id, first in aborted))
    dropped: set[int] = set()
    for facts in batches(buf):
        while coming and coming[0][0] <= facts.last_offset:
            dropped.add(coming.popleft()[1])
        if facts.magic >= 2 and facts.is_control:
            if facts.producer_id in dropped and _is_abort(buf, facts, codec_for):
                dropped.discard(facts.producer_id)
            yield facts, False
        else:
            yield facts, not (facts.is_transactional and facts.producer_id in dropped)


def _is_abort(buf: Buffer, facts: BatchFacts, codec_for: CodecFor) -> bool:
    return any(control_type(record.key) == ABORT for record in decode_batch(buf, facts, codec_for))
