"""What a fetched slice holds, batch by batch, from the headers alone: records stay in their file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from logkernel.contracts import Buffer
from logkernel.record.batch import HEADER_BYTES, parse_header
from logkernel.requests.data import AbortedTransaction
from logkernel.vocabulary import BatchFacts, FileSlice

from .partition import Acquired, Stretch

CHUNK_BYTES = 1 << 16


class Batch(NamedTuple):
    stretch: Stretch
    position: int
    """Where it lies in the slice."""
    size: int


def read(records: Buffer | FileSlice | None, aborted: Iterable[AbortedTransaction]) -> list[Batch]:
    """Every whole batch. Markers, and batches of the `aborted` transactions, are not deliverable."""
    found: list[Batch] = []
    waiting = sorted(aborted, key=lambda row: row.first_offset)
    active: set[int] = set()
    for facts, position in _headers(records):
        while waiting and waiting[0].first_offset <= facts.last_offset:
            active.add(waiting.pop(0).producer_id)
        deliverable = not facts.is_control and not (facts.is_transactional and facts.producer_id in active)
        if facts.is_control:
            active.discard(facts.producer_id)
        base = facts.base_offset
        if facts.magic < 2:  # a set of old messages names its last offset alone
            base = found[-1].stretch.last + 1 if found else 0
        found.append(Batch(Stretch(base, facts.last_offset, deliverable), position, facts.size))
    return found


def _headers(records: Buffer | FileSlice | None) -> Iterator[tuple[BatchFacts, int]]:
    if records is None:
        return
    size = records.size if isinstance(records, FileSlice) else len(records)
    position = 0
    while position + HEADER_BYTES <= size:
        chunk = _bytes(records, position, min(CHUNK_BYTES, size - position))
        at = 0
        while at + HEADER_BYTES <= len(chunk):
            facts = parse_header(chunk, at)
            if position + at + facts.size > size:
                return
            yield facts, position + at
            at += facts.size
        if at == 0:
            return
        position += at


def _bytes(records: Buffer | FileSlice, position: int, size: int) -> Buffer:
    if isinstance(records, FileSlice):
        data: bytes = records.owner.read(records.position + position, size)  # type: ignore[attr-defined]
        return data
    return memoryview(records)[position : position + size]


def cut(records: Buffer | FileSlice, batches: Sequence[Batch], acquired: Sequence[Acquired]) -> Buffer | FileSlice:
    """The batches that hold acquired records, and what lies between them, still in the file."""
    first, last = acquired[0].first, acquired[-1].last
    held = [batch for batch in batches if batch.stretch.last >= first and batch.stretch.base <= last]
    begin, end = held[0].position, held[-1].position + held[-1].size
    if isinstance(records, FileSlice):
        return FileSlice(records.fd, records.position + begin, end - begin, records.owner)
    return memoryview(records)[begin:end]
