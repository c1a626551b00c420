"""The contract of the loops that compaction runs, over plain Python and the compiled codec, beside a model."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkernel.errors import InvalidRecord
from logkernel.record import pure_compaction, pure_decode, pure_encode
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch, encode_empty
from logkernel.vocabulary import Record

SEED = bytes(range(16))
BASE_MS = 1_700_000_000_000


def compiled() -> Any:
    return pytest.importorskip(
        "logkernel.record._loops", reason="the compiled codec was not built", exc_type=ImportError
    )


@pytest.fixture(params=["pure", "compiled"], scope="module")
def loops(request: pytest.FixtureRequest) -> Any:
    return pure_compaction if request.param == "pure" else compiled()


keys = st.none() | st.sampled_from([b"", b"a", b"b", b"c" * 20]) | st.binary(max_size=9)
values = st.none() | st.binary(max_size=12)
headers = st.sampled_from([(), (("h", b"1"),), (("", None), ("x", b""))])
stamps = st.integers(BASE_MS - 2**33, BASE_MS + 2**33) | st.just(-1)
records = st.lists(st.builds(Record, keys, values, headers, stamps), min_size=1, max_size=40)


def section(made: list[Record], base_offset: int, base_ms: int = BASE_MS, gap: int = 1) -> bytes:
    for index, record in enumerate(made):
        record.offset = base_offset + index * gap
    return pure_encode.encode_records(made, base_offset, base_ms, True)[0]


@given(batches=st.lists(records, min_size=1, max_size=4), start=st.integers(0, 60), end=st.integers(0, 200))
@settings(deadline=None)
def test_the_last_offset_of_a_key_wins(loops: Any, batches: list[list[Record]], start: int, end: int) -> None:
    table = loops.OffsetMap(1 << 16, 0.9, SEED)
    last: dict[bytes, int] = {}
    base, sections = 5, []
    for made in batches:
        data = section(made, base, gap=2)
        assert table.add(b"x" + data, 1, 1 + len(data), len(made), base, start) == len(made)
        last.update({r.key: r.offset for r in made if r.key is not None and r.offset >= start})
        sections.append((data, made, base))
        base += 2 * len(made)
    assert table.size == len(last)
    for data, made, base in sections:
        mask = table.keep(data, 0, len(data), len(made), base, end)
        assert list(mask) == [
            int(r.offset >= end or (r.key is not None and r.offset >= last.get(r.key, -1))) for r in made
        ]


@given(batches=st.lists(records, min_size=1, max_size=3), data=st.data())
@settings(deadline=None)
def test_the_highest_version_wins(loops: Any, batches: list[list[Record]], data: st.DataObject) -> None:
    table = loops.OffsetMap(1 << 16, 0.9, SEED, True)
    best: dict[bytes, tuple[int, int]] = {}
    base, kept = 0, []
    for made in batches:
        told = data.draw(st.lists(st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1]), min_size=len(made), max_size=40))
        told = told[: len(made)]
        blob = array("q", told).tobytes()
        encoded = section(made, base)
        assert table.add(encoded, 0, len(encoded), len(made), base, 0, blob) == len(made)
        for record, version in zip(made, told, strict=True):
            if record.key is not None:
                best[record.key] = max(best.get(record.key, (version, record.offset)), (version, record.offset))
        kept.append((encoded, made, base, blob, told))
        base += len(made)
    for encoded, made, base, blob, told in kept:
        mask = table.keep(encoded, 0, len(encoded), len(made), base, 2**62, blob)
        pairs = zip(made, told, strict=True)
        assert list(mask) == [int(r.key is not None and best[r.key] == (v, r.offset)) for r, v in pairs]


def test_a_full_map_says_where_it_stopped_but_takes_what_it_knows(loops: Any) -> None:
    table = loops.OffsetMap(24 * 10, 0.5, SEED)
    assert (table.slots, table.capacity) == (10, 5)
    made = [Record(b"%d" % (index % 5), b"v", (), BASE_MS) for index in range(50)]
    made += [Record(b"new", b"v", (), BASE_MS), Record(b"0", b"v", (), BASE_MS)]
    data = section(made, 0)
    assert table.add(data, 0, len(data), len(made), 0, 0) == 50
    assert table.size == 5
    mask = table.keep(data, 0, len(data), len(made), 0, 50)
    assert [index for index, stays in enumerate(mask) if stays] == [45, 46, 47, 48, 49, 50, 51]


def test_a_map_is_filled_to_its_last_slot_but_one(loops: Any) -> None:
    """Probing ends at a free slot, so there must be one whatever the load factor says."""
    table = loops.OffsetMap(24 * 64, 1.0, SEED)
    assert table.capacity == 63
    made = [Record(b"%d" % index, b"v", (), BASE_MS) for index in range(70)]
    data = section(made, 0)
    assert table.add(data, 0, len(data), 70, 0, 0) == 63
    assert sum(table.keep(data, 0, len(data), 70, 0, 70)) == 70


@pytest.mark.parametrize("arguments", [(23, 0.9, SEED), (0, 0.9, SEED), (-5, 0.9, SEED), (1000, 0.9, b"short")])
def test_maps_that_cannot_be(loops: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):
        loops.OffsetMap(*arguments)


def test_versions_go_with_versioned_maps(loops: Any) -> None:
    data = section([Record(b"k", b"v", (), BASE_MS)], 0)
    plain, versioned = loops.OffsetMap(1000, 0.9, SEED), loops.OffsetMap(1000, 0.9, SEED, True)
    for table, versions in ((plain, bytes(8)), (versioned, None), (versioned, bytes(16)), (versioned, b"")):
        with pytest.raises(ValueError):
            table.add(data, 0, len(data), 1, 0, 0, versions)
        with pytest.raises(ValueError):
            table.keep(data, 0, len(data), 1, 0, 9, versions)


@given(made=records, data=st.data(), before=st.sampled_from([-(2**63), 0, 20, 2**62]))
@settings(deadline=None)
def test_survey_counts_what_stays(loops: Any, made: list[Record], data: st.DataObject, before: int) -> None:
    encoded = section(made, 10)
    mask = bytearray(data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(made), max_size=len(made))))
    stays = [bool(m) and not (r.value is None and r.offset < before) for m, r in zip(mask, made, strict=True)]
    left = [record for record, yes in zip(made, stays, strict=True) if yes]
    expected = (len(left), sum(r.value is None for r in left), max((r.timestamp_ms for r in left), default=-1))
    kept, nulls, largest = loops.survey_records(encoded, 0, len(encoded), len(made), 10, BASE_MS, mask, before)
    assert (kept, nulls, largest) == (*expected[:2], max(expected[2], -1))
    assert [bool(m) for m in mask] == stays


@given(made=records, data=st.data(), other=st.sampled_from([BASE_MS, BASE_MS + 86_400_000, 0, -1]))
@settings(deadline=None)
def test_copies_are_the_records_that_stay(loops: Any, made: list[Record], data: st.DataObject, other: int) -> None:
    encoded = section(made, 10)
    mask = bytearray(data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(made), max_size=len(made))))
    copied = loops.copy_records(b"!" + encoded, 1, 1 + len(encoded), len(made), BASE_MS, mask, other)
    left = [record for record, yes in zip(made, mask, strict=True) if yes]
    assert pure_decode.decode_records(copied, 0, len(copied), len(left), 10, other) == left
    if other == BASE_MS and all(mask):
        assert copied == encoded


@given(made=records, data=st.data())
@settings(deadline=None, max_examples=200)
def test_both_judge_damaged_bytes_alike(made: list[Record], data: st.DataObject) -> None:
    rotten = bytearray(section(made, 0))
    for _ in range(data.draw(st.integers(0, 3))):
        rotten[data.draw(st.integers(0, len(rotten) - 1))] = data.draw(st.integers(0, 255))
    rotten = rotten[: data.draw(st.integers(0, len(rotten)))] if data.draw(st.booleans()) else rotten
    count = len(made) + data.draw(st.sampled_from([0, 0, 1, -1]))

    def outcome(call: Any) -> Any:
        try:
            return call()
        except InvalidRecord:
            return InvalidRecord

    for module in (pure_compaction, compiled()):
        table = module.OffsetMap(1 << 14, 0.9, SEED)
        mask = bytearray(b"\1") * max(count, 0)
        both = [
            outcome(lambda m=module, k=mask: m.survey_records(rotten, 0, len(rotten), count, 0, BASE_MS, k, 0)),
            outcome(lambda m=module, k=mask: m.copy_records(rotten, 0, len(rotten), count, BASE_MS, k, BASE_MS)),
            outcome(lambda t=table: (t.add(rotten, 0, len(rotten), count, 0, 0), t.size)),
            outcome(lambda t=table: t.keep(rotten, 0, len(rotten), count, 0, 3)),
        ]
        if module is pure_compaction:
            wanted = both
    assert both[:2] == wanted[:2]
    assert [each is InvalidRecord for each in both] == [each is InvalidRecord for each in wanted]


def test_a_mask_that_is_too_short_is_refused(loops: Any) -> None:
    data = section([Record(b"k", b"v", (), BASE_MS)] * 1 + [Record(b"l", b"v", (), BASE_MS)], 0)
    with pytest.raises(InvalidRecord):
        loops.survey_records(data, 0, len(data), 2, 0, BASE_MS, bytearray(1), 0)
    with pytest.raises(InvalidRecord):
        loops.copy_records(data, 0, len(data), 2, BASE_MS, b"\1", BASE_MS)


def test_timestamps_that_do_not_fit_another_base_are_refused(loops: Any) -> None:
    data = pure_encode.encode_records([Record(b"k", b"v", (), 2**63 - 1)], 0, 2**63 - 1, False)[0]
    with pytest.raises(InvalidRecord):
        loops.copy_records(data, 0, len(data), 1, 2**63 - 1, b"\1", -5)


def test_the_compiled_hash_is_siphash_of_128_bits() -> None:
    """Vectors of SipHash's reference implementation (vectors_sip128)."""
    table = compiled().OffsetMap(1000, 0.9, SEED)
    assert table.digest(b"").hex() == "a3817f04ba25a8e66df67214c7550293"
    assert table.digest(b"\0").hex() == "da87c1d86b99af44347659119b22fc45"


# ---------------------------------------------------------------- runs of small batches

ROW = pure_compaction.ROW
small = st.lists(records.map(lambda made: made[:3]), min_size=1, max_size=8)
FAR = 1 << 20


def run_of(made: list[list[Record]], **fields: Any) -> tuple[bytes, list[tuple[int, int, int]]]:
    """(batches one behind the other from offset 5 on, (position, base, last offset) of each)."""
    data, places, base = b"", [], 5
    for each in made:
        for index, record in enumerate(each):
            record.offset = base + index
        places.append((len(data), base, base + len(each) - 1))
        data += encode_batch(each, base_offset=base, leader_epoch=0, **fields)
        base += len(each)
    return data, places


@given(made=small, data=st.data(), start=st.integers(0, 30), end=st.integers(0, 40))
@settings(deadline=None)
def test_a_run_is_learned_and_judged_as_its_batches_one_by_one(
    loops: Any, made: list[list[Record]], data: st.DataObject, start: int, end: int
) -> None:
    buf, places = run_of(made)
    rows, behind = loops.small_batches(b"##" + buf, 2, 2 + len(buf), FAR, b"")
    assert behind == 2 + len(buf)
    found = [*ROW.iter_unpack(rows)]
    assert [(row[0] - 2, row[3], row[4]) for row in found] == places
    assert [row[2] for row in found] == [len(each) for each in made]
    for row, facts in zip(found, batches(buf), strict=True):
        assert (row[1], row[5], row[6]) == (facts.size, facts.base_timestamp_ms, facts.max_timestamp_ms)
    memory = data.draw(st.sampled_from([24 * 5, 1 << 14]))
    table, other = loops.OffsetMap(memory, 0.9, SEED), loops.OffsetMap(memory, 0.9, SEED)
    sections = [(place + 61, place + facts.size) for (place, _, _), facts in zip(places, batches(buf), strict=True)]
    each = [(buf, *span, len(one), base) for span, one, (_, base, _) in zip(sections, made, places, strict=True)]
    done = table.add_batches(b"##" + buf, rows, start)
    for index, what in enumerate(each):
        if other.add(*what, start) < len(made[index]):
            assert done == index
            break
    else:
        assert done == len(made)
    assert table.size == other.size
    verdicts = table.keep_batches(b"##" + buf, rows, end)
    masks = [other.keep(*what, end) for what in each]
    for verdict, mask, one in zip(verdicts, masks, made, strict=True):
        kept = [record for record, stays in zip(one, mask, strict=True) if stays]
        plain = len(kept) == len(one) and all(record.value is not None for record in kept)
        assert verdict == (1 if plain else 2 if kept else 0)


@pytest.mark.parametrize(
    ("fields", "most", "barriers"),
    [
        ({"transactional": True, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}, FAR, []),
        ({"delete_horizon_ms": 5}, FAR, []),
        ({}, 70, []),
        ({}, FAR, [6]),
        ({}, FAR, [-1, 0, 3, 6, 9, 2**62]),
    ],
)
def test_what_is_not_for_a_run_ends_it(loops: Any, fields: dict[str, Any], most: int, barriers: list[int]) -> None:
    first, _ = run_of([[Record(b"k", b"v", (), BASE_MS)]])
    second = encode_batch([Record(b"k" * 9, b"v" * 9, (), BASE_MS)], base_offset=6, leader_epoch=0, **fields)
    third = encode_batch([Record(b"k", b"v", (), BASE_MS)], base_offset=7, leader_epoch=0)
    data = first + second + third
    rows, behind = loops.small_batches(data, 0, len(data), max(most, len(first)), array("q", barriers).tobytes())
    assert (len(rows), behind) == (ROW.size, len(first))
    rows, behind = loops.small_batches(data, behind + len(second), len(data), FAR, b"")
    assert (len(rows), behind) == (ROW.size, len(data))


def test_markers_compressed_empty_and_old_batches_end_a_run(loops: Any) -> None:
    from logkernel.kernel import Kernel
    from logkernel.record.control import encode_marker

    record = Record(b"k", b"v" * 50, (), BASE_MS)
    others = [
        encode_marker(1, 0, True, 1, BASE_MS, base_offset=5, leader_epoch=0),
        encode_batch([record], base_offset=5, leader_epoch=0, codec=Kernel().codec("gzip")),
        encode_empty(next(batches(encode_batch([record], base_offset=5, leader_epoch=0)))),
        bytes(12) + b"\1" * 60,
        b"",
    ]
    for other in others:
        assert loops.small_batches(other, 0, len(other), FAR, b"") == (b"", 0)


@given(made=small, data=st.data())
@settings(deadline=None, max_examples=200)
def test_damage_ends_a_run_for_both_at_the_same_batch(made: list[list[Record]], data: st.DataObject) -> None:
    buf, _ = run_of(made)
    rotten = bytearray(buf)
    for _ in range(data.draw(st.integers(0, 2))):
        rotten[data.draw(st.integers(0, len(rotten) - 1))] ^= data.draw(st.integers(1, 255))
    rotten = rotten[: data.draw(st.integers(len(rotten) // 2, len(rotten)))]
    wanted = pure_compaction.small_batches(rotten, 0, len(rotten), FAR, b"")
    assert compiled().small_batches(rotten, 0, len(rotten), FAR, b"") == wanted
    whole = pure_compaction.small_batches(buf, 0, len(buf), FAR, b"")[0]
    rows = b"".join(whole[at : at + ROW.size] for at in range(0, len(whole), ROW.size)
                    if sum(ROW.unpack_from(whole, at)[:2]) <= len(rotten))  # fmt: skip
    outcomes = []
    for module in (pure_compaction, compiled()):  # told that damaged records are whole
        table = module.OffsetMap(1 << 14, 0.9, SEED)
        assert table.add_batches(buf, whole, 0) == len(made)
        verdicts = bytes(table.keep_batches(rotten, rows, 9))
        outcomes.append((table.add_batches(rotten, rows, 0), verdicts))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("row", [(0, 60, 1), (-1, 80, 1), (5, 100, 1), (2**62, 80, 1), (0, 80, 9), (0, 80, -1)])
def test_rows_that_lie_are_refused(loops: Any, row: tuple[int, int, int]) -> None:
    table = loops.OffsetMap(1 << 14, 0.9, SEED)
    rows = ROW.pack(*row, 0, 0, 0, 0)
    for call in (table.add_batches, table.keep_batches):
        with pytest.raises(ValueError):
            call(bytes(100), rows, 0)
    with pytest.raises(ValueError):
        loops.small_batches(bytes(10), 3, 11, FAR, b"")
    with pytest.raises(ValueError):
        loops.OffsetMap(1 << 14, 0.9, SEED, True).add_batches(b"", b"", 0)
