"""The contract of the record loops, run over plain Python and over the compiled codec, and one against the other."""

from __future__ import annotations

import gc
import importlib
import struct
import sys
from array import array
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logkernel.errors import CorruptMessage, InvalidRecord
from logkernel.record import pure_decode, pure_encode, pure_hash, pure_rows
from logkernel.record.layout import Columns, Headers
from logkernel.record.pure_decode import decode_headers
from logkernel.record.pure_encode import encode_headers
from logkernel.vocabulary import Record

pure: Any = SimpleNamespace(**{**vars(pure_decode), **vars(pure_encode), **vars(pure_hash), **vars(pure_rows)})


def compiled() -> Any:
    return pytest.importorskip("logkernel.record._loops", reason="it was not built", exc_type=ImportError)


@pytest.fixture(params=["pure", "compiled"], scope="module")
def loops(request: pytest.FixtureRequest) -> Any:
    return pure if request.param == "pure" else compiled()


blobs = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=70)
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=4).map(tuple)
times = st.integers(-(2**40), 2**50)
records = st.lists(st.builds(Record, blobs, blobs, headers, times), min_size=1, max_size=12)


def section(loops: Any, made: list[Record], base_offset: int = 0, keep: bool = False) -> bytes:
    data: bytes = loops.encode_records(made, base_offset, made[0].timestamp_ms, keep)[0]
    return data


def decoded(loops: Any, data: bytes, count: int, base_time: int = 0, base_offset: int = 0) -> list[Record]:
    found: list[Record] = loops.decode_records(data, 0, len(data), count, base_offset, base_time)
    return found


@given(made=records)
@settings(deadline=None)
def test_round_trip(loops: Any, made: list[Record]) -> None:
    data, largest, last = loops.encode_records(made, 0, made[0].timestamp_ms, False)
    assert (largest, last) == (max(-1, *(record.timestamp_ms for record in made)), len(made) - 1)
    found = decoded(loops, data, len(made), made[0].timestamp_ms, 10)
    assert [record.offset for record in found] == [10 + index for index in range(len(made))]
    for record in found:
        record.offset = -1
    assert found == made


@given(made=records)
@example(made=[Record(timestamp_ms=2**63 - 1), Record(timestamp_ms=2**63 - 1)])
@settings(deadline=None)
def test_walk_agrees_with_the_records(loops: Any, made: list[Record]) -> None:
    data = section(loops, made)
    known = [record.timestamp_ms for record in made if record.timestamp_ms != -1]
    null = next((index for index, record in enumerate(made) if record.key is None), -1)
    expected = (min(known, default=-1), max(-1, *known) if known else -1, null)
    assert loops.walk(b"ab" + data + b"c", 2, 2 + len(data), len(made), made[0].timestamp_ms) == expected


@given(made=records, append_time=st.none() | st.integers(0, 2**50))
@settings(deadline=None)
def test_columns_agree_with_the_records(loops: Any, made: list[Record], append_time: int | None) -> None:
    data = section(loops, made)
    columns = loops.columns(data, 0, len(data), len(made), 5, made[0].timestamp_ms, append_time)
    assert isinstance(columns, Columns)
    expected = loops.decode_records(data, 0, len(data), len(made), 5, made[0].timestamp_ms, append_time)
    assert rows(columns) == expected


def rows(columns: Columns) -> list[Record]:
    """Records from columns, by the documented layout."""

    def pick(validity: bytes | None, ends: bytes, data: bytes, row: int) -> bytes | None:
        stops = array("i", ends)
        if validity is not None and not validity[row >> 3] >> (row & 7) & 1:
            assert stops[row] == stops[row + 1]
            return None
        return data[stops[row] : stops[row + 1]]

    offsets, timestamps = array("q", columns.offsets), array("q", columns.timestamps)
    found = []
    for row in range(columns.rows):
        key = pick(columns.key_validity, columns.key_ends, columns.keys, row)
        value = pick(columns.value_validity, columns.value_ends, columns.values, row)
        encoded = pick(None, columns.header_ends, columns.headers, row)
        assert encoded is not None
        found.append(Record(key, value, decode_headers(encoded), timestamps[row], offsets[row]))
    return found


@given(made=records)
@settings(deadline=None, max_examples=50)
def test_both_write_the_same_bytes(made: list[Record]) -> None:
    other = compiled()
    assert pure.encode_records(made, 0, 0, False) == other.encode_records(made, 0, 0, False)
    data = section(pure, made)
    assert pure.columns(data, 0, len(data), len(made), 0, 0) == other.columns(data, 0, len(data), len(made), 0, 0)


def outcome(call: Any) -> Any:
    try:
        return call()
    except InvalidRecord:
        return InvalidRecord


@given(made=records, data=st.data())
@settings(deadline=None, max_examples=300)
def test_both_judge_damaged_bytes_alike(made: list[Record], data: st.DataObject) -> None:
    """Flipped, cut off or lengthened: the same answer or a refusal from both, and never anything but that."""
    other = compiled()
    rotten = bytearray(section(pure, made))
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(rotten) - 1))
        rotten[place] = data.draw(st.integers(0, 255))
    rotten = rotten[: data.draw(st.integers(0, len(rotten)))] if data.draw(st.booleans()) else rotten
    rotten += data.draw(st.binary(max_size=4))
    count = len(made) + data.draw(st.sampled_from([0, 0, 0, 1, -1, 2**31 - 1]))
    for name in ("walk", "decode_records", "columns"):
        extra = () if name == "walk" else (0,)
        arguments = (rotten, 0, len(rotten), count, *extra, made[0].timestamp_ms)
        ours, theirs = (outcome(lambda m=m, n=name, a=arguments: getattr(m, n)(*a)) for m in (pure, other))
        assert ours == theirs, name


@given(noise=st.binary(max_size=200), count=st.integers(-2, 40), base=st.integers(-(2**63), 2**63 - 1))
@settings(deadline=None, max_examples=300)
def test_both_judge_noise_alike(noise: bytes, count: int, base: int) -> None:
    other = compiled()
    found, wanted = (outcome(lambda by=by: by.walk(noise, 0, len(noise), count, base)) for by in (other, pure))
    assert found == wanted


def varint(value: int) -> bytes:
    raw, out = (value << 1) ^ (value >> 63), bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes((*out, raw))


def record(body: bytes, size: int | None = None) -> bytes:
    return varint(len(body) if size is None else size) + body


GOOD = b"\0" + varint(0) + varint(0) + varint(1) + b"k" + varint(1) + b"v" + varint(0)

ROTTEN = {
    "empty section": (b"", 1),
    "no record for the count": (record(GOOD), 2),
    "bytes behind the last": (record(GOOD) + b"\0", 1),
    "zero count, bytes": (record(GOOD), 0),
    "negative count": (record(GOOD), -1),
    "huge count": (record(GOOD), 2**31 - 1),
    "length past the end": (record(GOOD, len(GOOD) + 1), 1),
    "length too short": (record(GOOD, len(GOOD) - 1), 1),
    "negative length": (record(GOOD, -5), 1),
    "length of 6 bytes": (b"\x80\x80\x80\x80\x80\x01" + GOOD, 1),
    "length past 32 bits": (b"\x90\x80\x80\x80\x10" + GOOD, 1),
    "varlong of 11 bytes": (record(b"\0" + b"\x80" * 10 + b"\x01" + GOOD[2:]), 1),
    "varlong past 64 bits": (record(b"\0" + b"\x80" * 9 + b"\x02" + GOOD[2:]), 1),
    "second has delta 0": (record(GOOD) * 2, 2),
    "first has delta 1": (record(b"\0" + varint(0) + varint(1) + GOOD[3:]), 1),
    "delta negative": (record(b"\0" + varint(0) + varint(-1) + GOOD[3:]), 1),
    "key past the end": (record(b"\0\0\0" + varint(100) + b"k" + varint(1) + b"v\0"), 1),
    "key of 2 GB": (record(b"\0\0\0" + varint(2**31 - 1) + b"k" + varint(1) + b"v\0"), 1),
    "value past the end": (record(b"\0\0\0" + varint(1) + b"k" + varint(3) + b"v\0"), 1),
    "no header count": (record(GOOD[:-1]), 1),
    "negative header count": (record(GOOD[:-1] + varint(-1)), 1),
    "header count too large": (record(GOOD[:-1] + varint(2**31 - 1)), 1),
    "header name null": (record(GOOD[:-1] + varint(1) + varint(-1) + varint(-1)), 1),
    "header name past the end": (record(GOOD[:-1] + varint(1) + varint(9) + b"n" + varint(-1)), 1),
    "header value past the end": (record(GOOD[:-1] + varint(1) + varint(1) + b"n" + varint(9) + b"v"), 1),
    "header value missing": (record(GOOD[:-1] + varint(1) + varint(1) + b"n"), 1),
    "a header too few": (record(GOOD[:-1] + varint(2) + varint(1) + b"n" + varint(-1)), 1),
    "bytes behind the headers": (record(GOOD + b"\0"), 1),
    "key length -2": (record(b"\0\0\0" + varint(-2) + varint(1) + b"v\0"), 1),
    "value length -2": (record(b"\0\0\0" + varint(1) + b"k" + varint(-2) + b"\0"), 1),
}


@pytest.mark.parametrize("name", ROTTEN)
def test_rotten_records_are_refused(loops: Any, name: str) -> None:
    data, count = ROTTEN[name]
    with pytest.raises(InvalidRecord):
        loops.walk(data, 0, len(data), count, 0)


def test_the_good_record_passes(loops: Any) -> None:
    data = record(GOOD)
    assert loops.walk(data, 0, len(data), 1, 3) == (3, 3, -1)
    assert decoded(loops, data, 1, 3) == [Record(b"k", b"v", (), 3, 0)]


def test_any_negative_length_is_read_as_null(loops: Any) -> None:
    data = record(b"\0\0\0" + varint(-7) + varint(-2) + b"\0")
    assert decoded(loops, data, 1) == [Record(None, None, (), 0, 0)]


def test_overlong_varints_are_read(loops: Any) -> None:
    data = record(b"\0" + b"\x80\x80\x00" + b"\x80\x00" + GOOD[3:])
    assert decoded(loops, data, 1, 9) == [Record(b"k", b"v", (), 9, 0)]


@pytest.mark.parametrize(("base", "delta", "other"), [(2**63 - 1, 1, -2), (-(2**63), -1, 1)])
def test_timestamps_do_not_wrap(loops: Any, base: int, delta: int, other: int) -> None:
    data = record(b"\0" + varint(delta) + GOOD[2:])
    with pytest.raises(InvalidRecord):
        loops.walk(data, 0, len(data), 1, base)
    with pytest.raises(InvalidRecord):
        loops.encode_records([Record(timestamp_ms=base)], 0, other, False)


def test_bounds_outside_the_buffer_are_refused(loops: Any) -> None:
    data = record(GOOD)
    for start, end in ((-1, len(data)), (0, len(data) + 1), (3, 2)):
        with pytest.raises(InvalidRecord):
            loops.walk(data, start, end, 1, 0)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(loops: Any, kind: Any) -> None:
    data = record(GOOD)
    assert loops.walk(kind(data), 0, len(data), 1, 0) == (0, 0, -1)
    (found,) = loops.decode_records(kind(data), 0, len(data), 1, 0, 0)
    assert (type(found.key), type(found.value)) == (bytes, bytes)


def test_any_buffer_is_written(loops: Any) -> None:
    made: Any = Record(bytearray(b"k"), memoryview(b"v"), (("h", bytearray(b"w")),), 0)
    assert decoded(loops, section(loops, [made]), 1) == [Record(b"k", b"v", (("h", b"w"),), 0, 0)]
    with pytest.raises(TypeError):
        section(loops, [Record("text", timestamp_ms=0)])  # type: ignore[arg-type]


def test_offsets_are_kept_where_asked(loops: Any) -> None:
    made = [Record(b"a", offset=12, timestamp_ms=0), Record(b"b", offset=2**31 + 9, timestamp_ms=0)]
    data, _, last = loops.encode_records(made, 10, 0, True)
    assert last == 2**31 - 1
    assert [found.offset for found in decoded(loops, data, 2, 0, 10)] == [12, 2**31 + 9]


@pytest.mark.parametrize("offsets", [(9,), (12, 12), (13, 12), (2**31 + 10,)])
def test_offsets_that_do_not_fit_are_refused(loops: Any, offsets: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRecord):
        loops.encode_records([Record(offset=offset, timestamp_ms=0) for offset in offsets], 10, 0, True)


def test_header_names_keep_bytes_that_are_no_utf8(loops: Any) -> None:
    data = record(GOOD[:-1] + varint(1) + varint(2) + b"\xff\xc3" + varint(-1))
    made = decoded(loops, data, 1)
    assert section(loops, made) == data
    with pytest.raises(InvalidRecord):
        section(loops, [Record(headers=(("\ud800", None),), timestamp_ms=0)])


@given(made=headers)
@settings(deadline=None)
def test_headers_alone(made: Headers) -> None:
    assert decode_headers(encode_headers(made)) == made


def test_rotten_headers_alone() -> None:
    for rotten in (b"", b"\x02", b"\x00\x00", b"\x01", b"\x80"):
        with pytest.raises(InvalidRecord):
            decode_headers(rotten)


def test_murmur2_of_the_compiled_codec_is_that_of_python() -> None:
    other = compiled()
    for size in range(64):
        data = struct.pack(f">{size}B", *(index * 37 & 0xFF for index in range(size)))
        assert pure.murmur2(data) == other.murmur2(data)


def test_the_environment_asks_for_python(monkeypatch: pytest.MonkeyPatch) -> None:
    from logkernel.record import loops

    other = compiled()
    try:
        for asked, module in (("1", pure), ("0", other), ("", other)):
            monkeypatch.setenv("LOGKERNEL_PURE", asked)
            importlib.reload(loops)
            assert loops.COMPILED is (module is other)
            assert loops.walk is module.walk
    finally:
        monkeypatch.undo()
        importlib.reload(loops)


@given(made=records)
@settings(deadline=None)
def test_a_builder_writes_what_encode_records_writes(loops: Any, made: list[Record]) -> None:
    builder = loops.BatchBuilder(1 << 20, 61)
    for index, record in enumerate(made):
        assert builder.append(record.timestamp_ms, record.key, record.value, record.headers) == index
    expected, largest, _ = loops.encode_records(made, 0, made[0].timestamp_ms, False)
    assert (builder.count, builder.max_timestamp_ms, builder.base_timestamp_ms) == (
        len(made),
        largest,
        made[0].timestamp_ms,
    )
    size = builder.size
    found = builder.finish()
    assert isinstance(found, bytearray)
    assert found == bytes(61) + expected
    assert len(found) == size


def test_a_builder_keeps_its_limit_but_for_the_first(loops: Any) -> None:
    builder = loops.BatchBuilder(100, 61)
    assert builder.append(5, None, bytes(200), ()) == 0
    before = builder.size
    assert builder.append(5, None, b"", ()) == -1
    assert (builder.size, builder.count) == (before, 1)
    exact = loops.BatchBuilder(61 + 2 * 8, 61)
    assert [exact.append(0, None, b"v", ()) for _ in range(3)] == [0, 1, -1]
    with pytest.raises(TypeError):
        exact.append(0, "text", b"", ())


def test_a_builder_refuses_times_too_far_apart(loops: Any) -> None:
    builder = loops.BatchBuilder(1000, 61)
    builder.append(-(2**62), None, b"", ())
    with pytest.raises(InvalidRecord):
        builder.append(2**63 - 1, None, b"", ())
    assert builder.count == 1


@pytest.mark.parametrize("timestamp", [2**63, -(2**63) - 1])
def test_a_builder_refuses_a_time_of_more_than_64_bits(loops: Any, timestamp: int) -> None:
    builder = loops.BatchBuilder(1000, 61)
    with pytest.raises(OverflowError):
        builder.append(timestamp, None, b"", ())
    assert builder.count == 0


def test_a_builder_that_is_finished_takes_nothing(loops: Any) -> None:
    builder = loops.BatchBuilder(1000, 61)
    assert builder.append(1, b"k", b"v", ()) == 0
    data = bytes(builder.finish())
    assert builder.append(2, b"k", b"v", ()) == -1
    assert builder.put(loops.Place, None, 2, b"k", b"v", ()) is None
    assert builder.count == 1
    assert len(data) > 61


def test_put_gives_the_place(loops: Any) -> None:
    class Found(loops.Place):  # type: ignore[misc, name-defined]
        __slots__ = ()

        def twice(self) -> int:
            return 2 * int(self.index)

    owner = object()
    builder = loops.BatchBuilder(200, 61)
    for index in range(3):
        found = builder.put(Found, owner, 1000 + index, None, b"value", (("h", b"1"),) if index else ())
        assert isinstance(found, Found)
        assert (found.batch, found.index, found.timestamp_ms, found.twice()) == (owner, index, 1000 + index, 2 * index)
    assert builder.put(Found, owner, 1, None, bytes(200), ()) is None
    assert builder.count == 3
    by_hand = loops.BatchBuilder(200, 61)
    for index in range(3):
        by_hand.append(1000 + index, None, b"value", (("h", b"1"),) if index else ())
    assert builder.finish() == by_hand.finish()
    made = loops.Place(owner, 4, 5)
    assert (made.batch, made.index, made.timestamp_ms) == (owner, 4, 5)


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int


@given(
    made=records,
    append_time=st.none() | st.integers(0, 2**50),
    skipped=st.integers(0, 12),
    stretches=st.lists(st.integers(0, 5), max_size=5),
)
@settings(deadline=None)
def test_rows_agree_with_the_records(
    loops: Any, made: list[Record], append_time: int | None, skipped: int, stretches: list[int]
) -> None:
    data = section(loops, made)
    place = b"ab" + data + b"c", 2, 2 + len(data), len(made), 2**40, made[0].timestamp_ms, append_time
    decoder = loops.RowDecoder(*place, Row, "t", 7, 3, 2**40 + skipped)
    expected = [
        Row("t", 7, record.offset, record.timestamp_ms, record.key, record.value, record.headers, 3)
        for record in loops.decode_records(*place)
    ]
    found: list[Row] = []
    looked = 0
    for most in (*stretches, 2**31):
        rows = decoder.next(most)
        assert rows == expected[max(looked, skipped) : looked + most]
        looked = min(looked + most, len(made))
        assert decoder.left == len(made) - looked
        found += rows
    assert found == expected[skipped:]
    assert all(type(row) is Row for row in found)
    assert [row._replace(topic="u").topic for row in found] == ["u"] * len(found)
    assert decoder.next(3) == []


def rows_of(loops: Any, data: Any, count: int, kind: Any = Row, topic: str = "t") -> Any:
    return loops.RowDecoder(data, 0, len(data), count, 0, 5, None, kind, topic, 0, 0, 0)


def test_rows_are_let_go(loops: Any) -> None:
    """Every reference that a row takes is given back, tracked by the garbage collector or not; and the bytes."""
    data = bytearray(section(loops, [Record(b"k" * 50, b"v" * 50, (("h", b"x"),), 5)] * 20))
    topic = "".join(["a topic", " of its own"])
    before = sys.getrefcount(topic), sys.getrefcount(Row)
    for _ in range(50):
        decoder = rows_of(loops, data, 20, topic=topic)
        rows = decoder.next(7) + decoder.next(13)
        del decoder
        assert sys.getrefcount(topic) == before[0] + 20
        kept = rows[3]
        del rows
        assert (kept.key, kept.headers) == (b"k" * 50, (("h", b"x"),))
        del kept
    gc.collect()
    assert (sys.getrefcount(topic), sys.getrefcount(Row)) == before
    data.clear()


@pytest.mark.usefixtures("young_heap")
def test_a_decoder_may_lie_in_a_cycle(loops: Any) -> None:
    """A consumer that is dropped in the midst of a batch is the garbage collector's, with the bytes it held."""
    for _ in range(20):
        data = bytearray(section(loops, [Record(b"k", b"v", (), 5)] * 20))
        view = memoryview(data)
        holder = SimpleNamespace(view=view)
        holder.itself = holder
        holder.decoder = rows_of(loops, view, 20)  # the youngest: the holder lets it go after the view was cleared
        assert len(holder.decoder.next(3)) == 3
        del holder, view
        gc.collect()
        data.clear()  # nobody has a view of it any more


def test_a_decoder_holds_no_view_between_stretches(loops: Any) -> None:
    """What holds a view of a memoryview, and is cleared with it, crashes the interpreter (python/cpython#77894)."""
    data = bytearray(section(loops, [Record(b"k", b"v", (), 5)] * 20))
    decoder = rows_of(loops, data, 20)
    assert len(decoder.next(3)) == 3
    if loops is not pure:
        del data[-1]  # possible, and noticed
        with pytest.raises(InvalidRecord):
            decoder.next(3)


@pytest.mark.usefixtures("young_heap")
def test_headers_of_rows_may_lie_in_a_cycle(loops: Any) -> None:
    for _ in range(20):
        numbers = array("i", (0, 1))
        view = memoryview(numbers)
        holder = SimpleNamespace(view=view)
        holder.itself = holder
        words = loops.Strings(None, array("i", (0, 1)), b"x", 0, 1)
        holder.lists = loops.HeaderLists(None, view, words, words, 0, 1)
        del holder, view, words
        gc.collect()
        numbers.append(2)  # nobody has a view of it any more
        assert len(numbers) == 3


def test_rotten_records_make_no_rows(loops: Any) -> None:
    data = bytearray(section(loops, [Record(b"k", b"v", (), 5)] * 3))
    far = bytes(data[:8]) + b"\xff" + bytes(data[9:])
    for bad, sound in ((bytes(data[:-1]), 2), (bytes(data) + b"\0", 2), (far, 0)):
        with pytest.raises(InvalidRecord):
            rows_of(loops, bad, 3).next(3)
        decoder = rows_of(loops, bad, 3)
        assert [row.value for row in decoder.next(sound)] == [b"v"] * sound
        with pytest.raises(InvalidRecord, match=f"record {sound} "):
            decoder.next(3)
    with pytest.raises(InvalidRecord):
        rows_of(loops, data, 1000)
    with pytest.raises(ValueError, match="-1"):
        rows_of(loops, data, 3).next(-1)
    if loops is not pure:
        for no_tuple in (list, int, object):
            with pytest.raises(TypeError):
                rows_of(loops, bytes(data), 3, no_tuple)
        with pytest.raises(TypeError, match="one batch"):
            rows_of(loops, data, 3).__init__(data, 0, len(data), 3, 0, 5, None, Row, "t", 0, 0, 0)
        with pytest.raises(TypeError):
            loops.BatchBuilder(100, 61).put(object, None, 0, None, b"", ())


# ---------------------------------------------------------------- the last batch of some


def framed(length: int, size: int | None = None) -> bytes:
    """What begins as a batch that says it has `length` bytes behind its length."""
    return struct.pack(">qi", 7, length).ljust(12 + (length if size is None else size), b"x")


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"", None),
        (b"x" * 12, None),
        (framed(60), 0),
        (framed(60) + framed(14), 72),
        (framed(60) + framed(14) + framed(100, 99), 72),
        (framed(60) + framed(14) + framed(2**31 - 1, 5), 72),
        (framed(60, 59), None),
        (framed(60) + b"x" * 12, 0),
    ],
)
def test_the_last_batch_that_is_whole(loops: Any, data: bytes, at: int | None) -> None:
    assert loops.last_batch(data) == at
    assert loops.last_batch(memoryview(bytearray(data))) == at


@pytest.mark.parametrize("length", [13, 0, -1, -(2**31)])
def test_a_length_that_makes_no_sense_is_an_error(loops: Any, length: int) -> None:
    data = framed(60) + framed(length, 20)
    with pytest.raises(CorruptMessage, match=f"batch at 72: length {length} is less than a header"):
        loops.last_batch(data)
