"""What a follower takes from an answer, and what it refuses."""

from __future__ import annotations

import pytest

from logkernel.errors import CorruptMessage
from logkernel.record.batch import stamp
from logkernel.record.encode import encode_batch
from logkernel.record.replicated import scan_replicated
from logkernel.vocabulary import Record


def batch(offset: int, epoch: int = 0, count: int = 2) -> bytearray:
    data = bytearray(encode_batch([Record(None, b"value", timestamp_ms=1)] * count))
    stamp(data, 0, offset, epoch)
    return data


def test_whole_batches_are_taken_with_their_places() -> None:
    one, two = batch(4), batch(6, 1, 3)
    found = scan_replicated(one + two, 0, 1)
    assert [(facts.position, facts.base_offset, facts.last_offset, facts.leader_epoch) for facts in found] == [
        (0, 4, 5, 0),
        (len(one), 6, 8, 1),
    ]


def test_offsets_may_have_gaps_as_compaction_leaves_them() -> None:
    assert [facts.base_offset for facts in scan_replicated(batch(0) + batch(9), -1, 0)] == [0, 9]


@pytest.mark.parametrize("cut", [1, 40, 70])
def test_a_batch_that_is_cut_off_is_left_out(cut: int) -> None:
    data = batch(0) + batch(2)
    assert len(scan_replicated(data[:-cut], -1, 0)) == 1


def test_nothing_is_nothing() -> None:
    assert scan_replicated(b"", -1, 0) == []


def _with(data: bytearray, at: int, value: int) -> bytearray:
    data[at] = value
    return data


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_with(batch(0), 70, 0), "crc"),
        (_with(batch(0), 11, 3), "length"),
        (_with(batch(0), 16, 9), "magic"),
        (batch(5) + batch(5), "follows"),
        (batch(5) + batch(6), "follows"),
        (batch(0, 1) + batch(2, 0), "epoch"),
        (batch(0, 3), "epoch"),
    ],
)
def test_what_no_well_leader_sends_is_refused(data: bytearray, why: str) -> None:
    with pytest.raises(CorruptMessage, match=f"(?i){why}"):
        scan_replicated(data, 0, 2)


def test_an_epoch_below_that_of_the_last_record_is_refused() -> None:
    with pytest.raises(CorruptMessage, match="epoch"):
        scan_replicated(batch(8, 1), 2, 5)
