"""What a reader gets of a stretch of a log where it gets some of the records only.

| batch | becomes |
|---|---|
| every record passes; markers; empty batches | itself, byte for byte |
| some records pass | a batch of them, with the offsets of the old one |
| none passes, and another batch follows | nothing |
| none passes, and it is the last | an empty batch: the reader goes on behind it |

Offsets and producers stay, as compaction leaves them, so every consumer can read it, and one of committed records finds
the transactions. A batch of magic 0 or 1 becomes one of magic 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from logkernel.contracts import Buffer
from logkernel.record import loops
from logkernel.record.batch import batches, parse_header
from logkernel.record.bounds import CodecFor
from logkernel.record.decode import check_crc
from logkernel.record.encode import encode_empty
from logkernel.record.filtering import NEVER, as_v2, join_kept, view_of
from logkernel.vocabulary import BatchFacts, Record

Mark = Callable[[Sequence[Record], bytearray], None]
"""Sets the byte of each record that the reader does not get to 0."""

PLAIN_BYTES: Final = 4 << 20
"""After so many bytes of decompressed records no further batch is looked at."""


def leave_for_reader(data: Buffer, codec_for: CodecFor, mark: Mark) -> bytes:
    """The batches that `data` becomes; a partial one at its tail is left out, as may be some at its end.

    What a whole batch becomes is at least an empty batch. Raises `CorruptMessage` for rotten bytes, and what `mark`
    raises.
    """
    parts: list[Buffer] = []
    view = memoryview(data)
    dropped: BatchFacts | None = None
    plain_bytes = 0
    for facts in batches(data):
        if plain_bytes >= PLAIN_BYTES:
            break
        left: Buffer | None
        if facts.magic == 2 and (facts.is_control or facts.count == 0):
            left = view[facts.position : facts.position + facts.size]
        else:
            left, facts, size = _leave(data, facts, codec_for, mark)
            plain_bytes += size
        if left is None:
            dropped = facts
        else:
            dropped = None
            parts.append(left)
    if dropped is not None:
        parts.append(encode_empty(dropped))
    return b"".join(parts)


def _leave(data: Buffer, facts: BatchFacts, codec_for: CodecFor, mark: Mark) -> tuple[Buffer | None, BatchFacts, int]:
    """(what a batch of data becomes, its facts in magic 2, bytes of its records)."""
    if facts.magic < 2:
        data = as_v2(data, facts, codec_for)
        facts = parse_header(data, 0)
    else:
        check_crc(data, facts)
    found = view_of(data, facts, codec_for)
    size = found.end - found.start
    mask = bytearray(b"\1") * facts.count
    mark(found.records(), mask)
    kept, _, largest = loops.survey_records(
        found.section, found.start, found.end, found.count, found.base_offset, found.base_timestamp_ms, mask, NEVER
    )
    if not kept:
        return None, facts, size
    if kept == facts.count:
        return memoryview(data)[facts.position : facts.position + facts.size], facts, size
    base_ms = facts.base_timestamp_ms
    return join_kept(facts, found, mask, kept, largest, codec_for, facts.attributes, base_ms), facts, size
