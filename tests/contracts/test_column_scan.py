"""The contract of the column scan, run over plain Python and over the compiled one, and one against the other."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkernel.errors import UnsupportedCompressionType
from logkernel.kernel import Kernel
from logkernel.record import columns, pure_columns
from logkernel.record.columns import (
    ENDED,
    FULL,
    HEADERS,
    KEY,
    OFFSET,
    TAIL,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    Blobs,
    ColumnReader,
    CorruptRecord,
    Rows,
)
from logkernel.record.control import encode_marker
from logkernel.record.decode import decode_all
from logkernel.record.encode import encode_batch
from logkernel.vocabulary import Record

ALL = KEY | VALUE | OFFSET | TIMESTAMP | TIMESTAMP_TYPE | HEADERS
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
KERNEL = Kernel()
GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def compiled() -> Any:
    return pytest.importorskip(
        "logkernel.record._columns", reason="the compiled scan was not built", exc_type=ImportError
    ).ColumnScan


@pytest.fixture(params=["pure", "compiled"])
def scan(request: pytest.FixtureRequest) -> Any:
    return pure_columns.ColumnScan if request.param == "pure" else compiled()


def reader(scan: Any, wanted: int = ALL, **options: Any) -> ColumnReader:
    usual, columns.scan_type = columns.scan_type, scan
    try:
        return ColumnReader(options.pop("codec_for", KERNEL.codec_for), wanted, **options)
    finally:
        columns.scan_type = usual


def read(made: ColumnReader, data: bytes, step: int | None = None) -> list[Rows]:
    """Everything, in windows of `step` bytes that grow to the batch at hand, as files are read."""
    found, at, stop = [], 0, len(data) if step is None else min(step, len(data))
    while True:
        at = made.read(data, at, stop)
        if made.why == FULL:
            rows = made.take()
            assert rows is not None
            found.append(rows)
        elif made.why == ENDED or stop == len(data):
            break
        else:
            stop = min(len(data), max(stop + 1, at + max(made.needed, step or 0)))
    rows = made.take()
    return found if rows is None else [*found, rows]


def blob(column: Blobs, row: int) -> bytes | None:
    ends = array("i", bytes(column.ends))
    if column.validity is not None and not bytes(column.validity)[row >> 3] >> (row & 7) & 1:
        assert ends[row] == ends[row + 1]
        return None
    return bytes(column.data)[ends[row] : ends[row + 1]]


def records(rows: Rows) -> list[tuple[Record, int]]:
    """(record, timestamp type) from all columns, by the documented layout."""
    assert rows.keys is not None
    assert rows.values is not None
    assert rows.headers is not None
    assert len(bytes(rows.keys.ends)) == len(bytes(rows.values.ends)) == 4 * rows.rows + 4
    offsets, micros = array("q", bytes(rows.offsets or b"")), array("q", bytes(rows.timestamps or b""))
    types, headers = array("i", bytes(rows.timestamp_types or b"")), rows.headers
    ends = array("i", bytes(headers.ends))
    found = []
    for row in range(rows.rows):
        pairs = []
        for at in range(ends[row], ends[row + 1]):
            name = blob(headers.names, at)
            assert name is not None
            pairs.append((name.decode("utf-8", "surrogateescape"), blob(headers.values, at)))
        is_null = headers.validity is not None and not bytes(headers.validity)[row >> 3] >> (row & 7) & 1
        assert is_null == (not pairs)
        assert micros[row] % 1000 == 0
        record = Record(blob(rows.keys, row), blob(rows.values, row), tuple(pairs), micros[row] // 1000, offsets[row])
        found.append((record, types[row]))
    assert ends[0] == 0
    assert ends[-1] == headers.pairs
    return found


def plain(found: list[Rows]) -> list[Record]:
    return [record for rows in found for record, _ in records(rows)]


blobs = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=70)
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=4).map(tuple)
times = st.integers(-(2**40), 2**50)
batch_records = st.lists(st.builds(Record, blobs, blobs, headers, times), min_size=1, max_size=12)


@st.composite
def runs(draw: st.DrawFn) -> bytes:
    """Batches one after the other, with gaps between them and within, compressed or not, of either timestamp type."""
    data, offset = b"", draw(st.integers(0, 5))
    for rows in draw(st.lists(batch_records, max_size=5)):
        gaps = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
        for row, gap in zip(rows, gaps, strict=True):
            row.offset = offset = offset + gap
            offset += 1
        codec = draw(st.sampled_from(CODECS))
        data += encode_batch(
            rows,
            base_offset=rows[0].offset,
            preserve_offsets=True,
            codec=KERNEL.codec(codec) if codec else None,
            timestamp_type_log_append=draw(st.booleans()),
        )
    return data


@given(data=runs(), step=st.none() | st.integers(1, 400), rows=st.integers(1, 30), size=st.integers(1, 400))
@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("kind", ["pure", "compiled"])
def test_it_reads_what_the_records_decoder_reads(
    kind: str, data: bytes, step: int | None, rows: int, size: int
) -> None:
    scan = pure_columns.ColumnScan if kind == "pure" else compiled()
    made = reader(scan, max_rows=rows, max_bytes=size)
    found = read(made, data, step)
    assert plain(found) == decode_all(data, KERNEL.codec_for)
    assert made.why == TAIL
    for each in found[:-1]:
        assert each.headers is not None
        told = (each.keys, each.values, each.headers.names, each.headers.values)
        assert each.rows >= rows or sum(len(bytes(column.data)) for column in told if column is not None) >= size


@given(data=runs(), start=st.integers(0, 60), end=st.integers(0, 60), times=st.none() | st.tuples(times, times))
@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("kind", ["pure", "compiled"])
def test_bounds_of_offset_and_time(kind: str, data: bytes, start: int, end: int, times: tuple[int, int] | None) -> None:
    scan = pure_columns.ColumnScan if kind == "pure" else compiled()
    first, last = times or (None, None)
    found = plain(read(reader(scan, start=start, end=end, first_ms=first, last_ms=last), data))
    expected = [record for record in decode_all(data, KERNEL.codec_for) if start <= record.offset < end]
    if times is not None:
        expected = [record for record in expected if times[0] <= record.timestamp_ms < times[1]]
    assert found == expected
    counted = read(reader(scan, 0, start=start, end=end, first_ms=first, last_ms=last), data)
    assert sum(rows.rows for rows in counted) == len(expected)


@given(data=runs(), wanted=st.integers(0, ALL))
@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("kind", ["pure", "compiled"])
def test_columns_that_are_not_asked_for_are_not_there(kind: str, data: bytes, wanted: int) -> None:
    scan = pure_columns.ColumnScan if kind == "pure" else compiled()
    every, some = read(reader(scan, max_rows=10**6), data), read(reader(scan, wanted, max_rows=10**6), data)
    assert [rows.rows for rows in every] == [rows.rows for rows in some]
    bits = (KEY, VALUE, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, HEADERS)
    for whole, part in zip(every, some, strict=True):
        for bit, left, right in zip(bits, whole[1:], part[1:], strict=True):
            assert flat(right) == (flat(left) if wanted & bit else None)


def flat(column: Any) -> Any:
    if isinstance(column, tuple):
        return tuple(flat(part) for part in column)
    return column if column is None or isinstance(column, int) else bytes(column)


def outcome(scan: Any, data: bytes, **options: Any) -> Any:
    try:
        return [flat(rows) for rows in read(reader(scan, where="a.log", **options), data)]
    except (CorruptRecord, UnsupportedCompressionType) as error:
        return type(error), str(error).startswith("a.log, byte ")


@given(data=runs(), damage=st.data(), verify=st.booleans(), legacy=st.booleans())
@settings(deadline=None, max_examples=150)
def test_both_judge_damaged_bytes_alike(data: bytes, damage: st.DataObject, verify: bool, legacy: bool) -> None:
    """Flipped, cut off or lengthened: the same rows or a refusal from both, and never anything but that."""
    rotten = bytearray(data)
    for _ in range(damage.draw(st.integers(1, 3))):
        kind = damage.draw(st.sampled_from(("flip", "cut", "grow", "number")))
        at = damage.draw(st.integers(0, max(0, len(rotten) - 1)))
        if kind == "flip" and rotten:
            rotten[at] ^= 1 << damage.draw(st.integers(0, 7))
        elif kind == "cut":
            del rotten[at:]
        elif kind == "number" and len(rotten) - at >= 8:
            struct.pack_into(">q", rotten, at, damage.draw(st.sampled_from((-1, 0, 2**31, 2**63 - 1, -(2**63)))))
        else:
            rotten += damage.draw(st.binary(max_size=30))
    options = {"verify_crc": verify, "limit_bytes": 10_000}
    found = outcome(pure_columns.ColumnScan, bytes(rotten), **options)
    assert found == outcome(compiled(), bytes(rotten), **options)
    assert isinstance(found, list) or found[1]


@given(data=st.binary(max_size=300), wanted=st.integers(0, ALL), head=st.booleans())
@settings(deadline=None, max_examples=100)
@pytest.mark.parametrize("kind", ["pure", "compiled"])
def test_noise_is_refused_or_nothing(kind: str, data: bytes, wanted: int, head: bool) -> None:
    scan = pure_columns.ColumnScan if kind == "pure" else compiled()
    if head:  # a header that leads into the records, whatever they are
        count, whole = len(data) // 7, len(data) + 49
        data = struct.pack(">qiibIhiqqqhii", 0, whole, 0, 2, 0, 0, count, 0, 0, -1, -1, -1, count) + data
    found = outcome(scan, data, wanted=wanted, verify_crc=False)
    assert isinstance(found, list) or found[1]


def batch(offset: int, *values: bytes, **fields: Any) -> bytes:
    rows = [Record(None, value, timestamp_ms=1000 + offset) for value in values]
    data: bytes = encode_batch(rows, base_offset=offset, **fields)
    return data


def test_aborted_transactions_and_markers_are_no_rows(scan: Any) -> None:
    txn = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
    data = b"".join(
        (
            batch(0, b"a"),
            batch(1, b"aborted", producer_id=7, **txn),
            batch(2, b"committed", producer_id=8, **txn),
            encode_marker(7, 0, False, 0, 0, base_offset=3),
            encode_marker(8, 0, True, 0, 0, base_offset=4),
            batch(5, b"later", producer_id=7, **txn),
            batch(6, b"again", producer_id=7, **txn),
            encode_marker(7, 0, False, 0, 0, base_offset=7),
            batch(8, b"not of a transaction", producer_id=7, producer_epoch=0, base_sequence=0),
        )
    )

    def values(*rows: tuple[int, ...], start: int = 0) -> list[bytes | None]:
        made = reader(scan, start=start)
        for row in rows:
            made.abort(*row)
        return [record.value for record in plain(read(made, data))]

    rest = [b"later", b"again", b"not of a transaction"]
    assert values() == [b"a", b"aborted", b"committed", *rest]
    # Told by a fetch: until the marker. Told by a .txnindex: to its last offset. Told again: the same.
    assert values((7, 1)) == values((7, 1, 3)) == values((7, 1), (7, 1)) == [b"a", b"committed", *rest]
    assert values((7, 6), (7, 1)) == [b"a", b"committed", b"later", rest[-1]]
    assert values((7, 1, 3), start=2) == [b"committed", *rest]
    # The marker may be gone by compaction: a .txnindex's row ends all the same.
    assert values((7, 1, 2)) == [b"a", b"committed", *rest]


def test_an_answers_aborted_transactions_are_not_the_next_ones(scan: Any) -> None:
    made = reader(scan)
    txn = {"producer_epoch": 0, "base_sequence": 0, "transactional": True, "producer_id": 7}
    made.abort(7, 0)
    assert plain(read(made, batch(0, b"x", **txn))) == []
    made.forget_aborted()
    assert [record.value for record in plain(read(made, batch(1, b"y", **txn)))] == [b"y"]


def test_the_end_and_the_tail(scan: Any) -> None:
    data = batch(0, b"a", b"b") + batch(2, b"c") + batch(3, b"d")
    made = reader(scan, end=2)
    assert [record.offset for record in plain(read(made, data))] == [0, 1]
    assert (made.why, made.next_offset) == (ENDED, 2)
    size = len(batch(3, b"d"))
    for cut in (1, size - 12, size - 1):
        made = reader(scan)
        assert made.read(data[:-cut], 0, len(data) - cut) == len(data) - size
        assert made.why == TAIL
        assert made.needed == (size if size - cut >= 12 else 0)
        assert made.next_offset == 3
    # A file that is longer than what was written (preallocated) ends in zeros.
    made = reader(scan)
    assert made.read(data + bytes(100), 0, len(data) + 100) == len(data)
    assert (made.why, made.needed) == (TAIL, 0)


def test_what_was_read_elsewhere_is_skipped(scan: Any) -> None:
    made = reader(scan)
    made.skip_to(3)
    data = batch(0, b"a", b"b") + batch(2, b"c", b"d", b"e")
    assert [record.offset for record in plain(read(made, data))] == [3, 4]


def test_a_plain_size_is_bounded(scan: Any) -> None:
    data = batch(0, bytes(100_000), codec=KERNEL.codec("zstd"))
    with pytest.raises(CorruptRecord, match=r"t, byte 0, offset 0: .*99999"):
        read(reader(scan, where="t", limit_bytes=99_999), data)


def test_a_codec_that_nobody_has(scan: Any) -> None:
    data = bytearray(batch(0, b"x"))
    data[22] |= 6
    made = reader(scan, where="t", verify_crc=False)
    made.base = 5
    with pytest.raises(UnsupportedCompressionType, match="t, byte 5"):
        read(made, bytes(data))


def test_a_wrong_checksum_is_told_with_its_place(scan: Any) -> None:
    data = bytearray(batch(0, b"a") + batch(1, b"b"))
    data[-2] ^= 1
    made = reader(scan, where="x.log")
    made.base = 1000
    with pytest.raises(CorruptRecord, match=rf"^x.log, byte {1000 + len(data) // 2}, offset 1: stored CRC"):
        read(made, bytes(data))
    assert len(plain(read(reader(scan, verify_crc=False), bytes(data)))) == 2


def test_a_count_that_the_bytes_cannot_hold(scan: Any) -> None:
    data = bytearray(batch(0, b"a"))
    struct.pack_into(">i", data, 57, 2**31 - 1)
    with pytest.raises(CorruptRecord):
        read(reader(scan, verify_crc=False), bytes(data))


def test_more_than_32_bits_are_cut_into_several(scan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed batches that do not fit beside what waits are kept, and taken after it."""
    codec = KERNEL.codec("lz4")
    data = b"".join(batch(n, bytes(50_000), codec=codec) for n in range(4))
    asked = []

    def codec_for(codec_id: int) -> Any:
        asked.append(codec_id)
        return codec

    if scan is pure_columns.ColumnScan:
        monkeypatch.setattr(pure_columns, "MAX_INT", 120_000)
        found = read(reader(scan, codec_for=codec_for), data)
        assert [rows.rows for rows in found] == [2, 2]
        assert len(asked) == 4, "nothing is decompressed twice"


def test_times_beyond_microseconds_are_as_late_as_can_be(scan: Any) -> None:
    data = b"".join(
        encode_batch([Record(None, b"", timestamp_ms=time)], base_offset=offset)
        for offset, time in enumerate((2**63 - 1, -(2**62), 5))
    )
    (found,) = read(reader(scan), data)
    assert array("q", bytes(found.timestamps or b"")).tolist() == [2**63 - 1, -(2**63), 5000]


@pytest.mark.parametrize("path", sorted((GOLDEN / "record").glob("java-v*.bin")), ids=lambda path: path.stem)
def test_batches_of_the_java_client(scan: Any, path: Path) -> None:
    data = path.read_bytes()
    found = [row for rows in read(reader(scan), data) for row in records(rows)]
    is_control = path.stem in ("java-v2-abort", "java-v2-commit")
    assert [record for record, _ in found] == ([] if is_control else decode_all(data, KERNEL.codec_for))
    kinds = {-1} if "-v0-" in path.stem else {1} if "log-append" in path.stem else {0}
    assert {kind for _, kind in found} == (set() if is_control else kinds)


@pytest.mark.parametrize("path", sorted((GOLDEN / "storage").glob("kafka-*/java.topic-0/*.log")), ids=lambda p: p.stem)
@pytest.mark.parametrize("step", [None, 100])
def test_segments_of_apache_kafka(scan: Any, path: Path, step: int | None) -> None:
    data = path.read_bytes()
    assert plain(read(reader(scan), data, step)) == decode_all(data, KERNEL.codec_for, skip_control=True)


def test_the_compiled_one_is_in_use_where_it_was_built() -> None:
    compiled()
    assert (os.environ.get("LOGKERNEL_PURE", "") in ("", "0")) == columns.COMPILED


# ---------------------------------------------------------------- memory


def test_columns_that_are_held_never_change_and_their_memory_serves_again(scan: Any) -> None:
    """What was given back is used for later columns; what somebody looks at is not."""
    held: list[tuple[Rows, bytes]] = []
    for number in range(40):
        value = bytes([65 + number % 26]) * 3000
        data = encode_batch([Record(None, value) for _ in range(30 + number % 3)])
        (rows,) = read(reader(scan), data)
        assert rows.values is not None
        held.append((rows, value * rows.rows))
        for kept, expected in held:
            assert kept.values is not None
            assert bytes(kept.values.data) == expected
        if len(held) > 4:
            del held[number % 5]


def test_kept_memory_is_bounded() -> None:
    compiled()
    from logkernel.record import _columns

    data = b"".join(encode_batch([Record(None, b"x" * 100_000) for _ in range(9)]) for _ in range(3))
    held = [read(reader(_columns.ColumnScan), data) for _ in range(40)]
    del held
    blocks, size = _columns.kept_memory()
    assert 0 < blocks <= 16
    assert 0 < size <= 16 << 20


def test_a_reader_takes_memory_when_there_is_something_for_it() -> None:
    """Not as soon as it gave its rows away: most readers read nothing more, and who has the rows reads the next."""
    compiled()
    environment = {**os.environ, "LOGKERNEL_PURE": ""}
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["0", "1", "0", "1"]


KEPT = """
from logkernel.kernel import Kernel
from logkernel.record import _columns
from logkernel.record.columns import VALUE, ColumnReader
from logkernel.record.encode import encode_batch
from logkernel.vocabulary import Record

data = encode_batch([Record(None, b"x" * 100_000) for _ in range(9)])
for _ in range(2):
    reader = ColumnReader(Kernel().codec_for, VALUE)
    reader.read(data, 0, len(data))
    rows = reader.take()
    print(_columns.kept_memory()[0])
    del rows
    print(_columns.kept_memory()[0])
"""
