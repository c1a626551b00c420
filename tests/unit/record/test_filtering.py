"""What one rewrite after the other leaves of batches: markers, aborted data, tombstones, the last of a producer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import define, field

from logkernel.record.batch import DELETE_HORIZON, parse_header
from logkernel.record.control import COMMIT, control_type, encode_marker
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch, encode_empty
from logkernel.record.filtering import BatchFilter, LastOfProducer, Transactions
from logkernel.vocabulary import AbortedTxn, Record

RETENTION_MS = 300
COMMIT_KEY = b"\0\0\0\1"


def no_codec(codec_id: int):
    raise AssertionError("nothing is compressed here")


class AllBut:
    """A rule: records go that have one of some keys."""

    def __init__(self, keys: tuple[bytes, ...]) -> None:
        self._keys = keys

    def learn(self, batch) -> None:
        return None

    def keep(self, batch, end: int) -> bytearray:
        return bytearray(record.key not in self._keys for record in batch.records())


def data(offset: int, key: bytes, value: bytes | None = b"v", producer: int = -1) -> bytes:
    """A batch of one record, of nobody or of a producer's transaction."""
    known = producer >= 0
    return encode_batch(
        [Record(key, value, timestamp_ms=50)], base_offset=offset, leader_epoch=0, producer_id=producer,
        producer_epoch=0 if known else -1, base_sequence=offset if known else -1, transactional=known,
    )  # fmt: skip


def marker(offset: int, *, commit: bool, producer: int = 7, epoch: int = 0) -> bytes:
    return encode_marker(producer, epoch, commit, 0, 50, base_offset=offset, leader_epoch=0)


@define
class Log:
    batches: list[bytes]
    aborted: list[AbortedTxn] = field(factory=list)
    producers: Mapping[int, LastOfProducer] = field(factory=dict)

    def rewrite(
        self, wall_ms: int, *gone: bytes, tombstones: bool = True, end: int = 100, bound: int = 100,
        closes: bool = False,
    ) -> list[str]:  # fmt: skip
        """What is there then; `end` and `bound` as of `BatchFilter`, `closes`: the last batch ends its segment."""
        judge = BatchFilter(
            AllBut(gone), end, bound, wall_ms, RETENTION_MS, tombstones, Transactions(self.aborted), self.producers,
            no_codec,
        )  # fmt: skip
        found = []
        for each in self.batches:
            is_last = closes and each is self.batches[-1]
            found.append(judge.filter(each, parse_header(each, 0), is_last=is_last))
        self.batches = [left for left in found if left is not None]
        self.aborted = list(judge.aborted)
        return [said(each) for each in self.batches]


def said(batch: bytes) -> str:
    facts = parse_header(batch, 0)
    records = decode_batch(batch, facts, no_codec, verify_crc=True)
    if not records:
        what = f"empty of {facts.producer_id}"
    elif facts.is_control:
        what = "commit" if control_type(records[0].key) == COMMIT else "abort"
    else:
        what = " ".join(f"{record.key.decode()}{'' if record.value else '!'}" for record in records)
    until = f" until {facts.base_timestamp_ms}" if facts.attributes & DELETE_HORIZON else ""
    return f"{facts.base_offset} {what}{until}"


def test_a_commit_marker_stays_with_its_data_and_then_as_long_as_a_tombstone():
    log = Log([data(0, b"a", producer=7), data(1, b"b", producer=7), marker(2, commit=True)])
    assert log.rewrite(1000, b"a") == ["1 b", "2 commit"]
    assert log.rewrite(2000, b"b") == ["2 commit"]  # it was met in this pass
    assert log.rewrite(3000) == ["2 commit until 3300"]
    assert log.rewrite(3299) == ["2 commit until 3300"]
    assert log.rewrite(3300) == []


def test_aborted_data_goes_at_once_and_its_marker_and_index_row_when_none_was_met():
    row = AbortedTxn(7, 0, 2, 3)
    log = Log([data(0, b"a", producer=7), data(1, b"b"), marker(2, commit=False)], [row])
    assert log.rewrite(1000) == ["1 b", "2 abort"]
    assert log.aborted == [row]
    assert log.rewrite(2000) == ["1 b", "2 abort until 2300"]
    assert log.aborted == []
    assert log.rewrite(2299) == ["1 b", "2 abort until 2300"]
    assert log.rewrite(2300) == ["1 b"]


def test_transactions_of_one_producer_are_told_apart():
    log = Log(
        [
            data(0, b"a", producer=7), marker(1, commit=False), data(2, b"b", producer=7), marker(3, commit=True),
            marker(4, commit=True), data(5, b"c", producer=7), marker(6, commit=False),
        ],
        [AbortedTxn(7, 0, 1, 2), AbortedTxn(7, 5, 6, 7)],
    )  # fmt: skip
    assert log.rewrite(1000) == ["1 abort", "2 b", "3 commit", "4 commit until 1300", "6 abort"]
    assert log.aborted == [AbortedTxn(7, 0, 1, 2), AbortedTxn(7, 5, 6, 7)]
    assert log.rewrite(1300) == ["1 abort until 1600", "2 b", "3 commit", "6 abort until 1600"]


def test_a_marker_is_no_record_of_a_key():
    log = Log([data(0, b"a", producer=7), marker(1, commit=True)])
    assert log.rewrite(1000, COMMIT_KEY) == ["0 a", "1 commit"]


def test_an_emptied_marker_goes():
    log = Log([encode_empty(parse_header(marker(0, commit=True), 0))])
    assert log.rewrite(1000) == []


def test_tombstones_stay_for_their_time_from_the_first_rewrite_on():
    log = Log([data(0, b"a", None), data(1, b"b")])
    assert log.rewrite(1000) == ["0 a! until 1300", "1 b"]
    assert log.rewrite(1299) == ["0 a! until 1300", "1 b"]
    assert log.rewrite(1300, end=0) == ["0 a! until 1300", "1 b"]  # the rule did not come so far
    assert log.rewrite(1300) == ["1 b"]


def test_where_a_policy_has_no_tombstones_a_null_is_a_value():
    log = Log([data(0, b"a", None)])
    assert log.rewrite(1000, tombstones=False) == ["0 a!"]
    assert log.rewrite(1000) == ["0 a! until 1300"]
    assert log.rewrite(9000, tombstones=False) == ["0 a! until 1300"]


@pytest.mark.parametrize(
    ("last", "left"),
    [
        (LastOfProducer(0, 1), ["1 empty of 7", "2 commit"]),
        (LastOfProducer(0, 5), []),  # it lies behind
        (LastOfProducer(1, None), ["3 empty of 7"]),  # its newest marker, of that epoch
    ],
)
def test_of_a_producer_its_last_batch_stays_if_only_empty(last, left):
    batches = [data(0, b"a", producer=7), data(1, b"b", producer=7), marker(2, commit=True),
               marker(3, commit=True, epoch=1)]  # fmt: skip
    log = Log(batches, producers={7: last})
    log.rewrite(1000, b"a", b"b")
    log.rewrite(2000)
    assert log.rewrite(9000) == left


def test_where_the_clean_part_ends_and_where_a_segment_ends_stays_visible():
    assert Log([data(0, b"a"), data(1, b"b", producer=7)]).rewrite(1000, b"a", b"b", bound=2) == ["1 empty of 7"]
    assert Log([data(0, b"a"), data(1, b"b", producer=7)]).rewrite(1000, b"a", b"b", closes=True) == ["1 empty of -1"]
    assert Log([data(0, b"a"), data(1, b"b")]).rewrite(1000, b"a", b"b") == []
