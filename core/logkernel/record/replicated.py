"""What a follower checks of the bytes that it copies from its leader: each batch's frame, never its records.

The leader judged the records when they were produced. A follower has to know that it got what the leader holds: whole
batches with right checksums, in order of their offsets, in leader epochs that do not fall.
"""

from __future__ import annotations

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage
from logkernel.record.batch import LEGACY_MIN_BYTES, LENGTH_OFFSET, LOG_OVERHEAD, parse_header
from logkernel.record.decode import check_crc
from logkernel.vocabulary import BatchFacts


def scan_replicated(data: Buffer, last_epoch: int, leader_epoch: int) -> list[BatchFacts]:
    """The whole batches of an answer to a follower, in order; one that is cut off at the end is left out.

    `last_epoch` is that of the follower's last record (-1: none), `leader_epoch` the one in which its leader was asked.
    Raises `CorruptMessage` for bytes that cannot have come from a well leader: a wrong length or checksum, offsets
    that do not ascend, an epoch that falls or is newer than the leader's. Batches of magic 0 and 1 have no epoch.
    """
    found: list[BatchFacts] = []
    view = memoryview(data)
    position, end, expected, epoch = 0, len(view), 0, last_epoch
    while end - position >= LEGACY_MIN_BYTES:
        length = int.from_bytes(view[position + LENGTH_OFFSET : position + LOG_OVERHEAD], "big", signed=True)
        if length + LOG_OVERHEAD < LEGACY_MIN_BYTES:
            raise CorruptMessage(f"batch at {position}: length {length} is less than a header")
        if length + LOG_OVERHEAD > end - position:
            break
        facts = parse_header(view, position)
        if facts.magic == 2:
            check_crc(view, facts)
            if not epoch <= facts.leader_epoch <= leader_epoch:
                raise CorruptMessage(
                    f"batch at offset {facts.base_offset}: epoch {facts.leader_epoch} is not in {epoch}..{leader_epoch}"
                )
            epoch = facts.leader_epoch
        else:
            from logkernel.record.legacy import check_message_crc

            check_message_crc(view, facts)
        if facts.base_offset < expected or facts.last_offset < expected:
            raise CorruptMessage(f"batch at offset {facts.base_offset} follows offset {expected - 1}")
        expected = facts.last_offset + 1
        found.append(facts)
        position += facts.size
    return found
