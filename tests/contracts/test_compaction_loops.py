"""The contract of the loops that compaction runs, over plain Python and the compiled codec, beside a model."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkernel.errors import InvalidRecord
from logkernel.record import pure, pure_compaction
from logkernel.vocabulary import Record

SEED = bytes(range(16))
BASE_MS = 1_700_000_000_000


def compiled() -> Any:
    return pytest.importorskip(
        "logkernel.record._codec", reason="the compiled codec was not built", exc_type=ImportError
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
    return pure.encode_records(made, base_offset, base_ms, True)[0]


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
    assert pure.decode_records(copied, 0, len(copied), len(left), 10, other) == left
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
    data = pure.encode_records([Record(b"k", b"v", (), 2**63 - 1)], 0, 2**63 - 1, False)[0]
    with pytest.raises(InvalidRecord):
        loops.copy_records(data, 0, len(data), 1, 2**63 - 1, b"\1", -5)


def test_the_compiled_hash_is_siphash_of_128_bits() -> None:
    """Vectors of SipHash's reference implementation (vectors_sip128)."""
    table = compiled().OffsetMap(1000, 0.9, SEED)
    assert table.digest(b"").hex() == "a3817f04ba25a8e66df67214c7550293"
    assert table.digest(b"\0").hex() == "da87c1d86b99af44347659119b22fc45"
