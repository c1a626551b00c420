"""Columns to records, by both codecs: the same bytes, which the decoder of records reads back."""

from __future__ import annotations

import random
import struct
from array import array
from types import ModuleType
from typing import Any

import pytest

from logkernel.errors import InvalidPartitions, InvalidRecord
from logkernel.record import loops, pure_decode, pure_hash, pure_rows

CODECS: list[Any] = [pytest.param(pure_rows, id="plain")]
if loops.COMPILED:
    from logkernel.record import _loops

    CODECS.append(pytest.param(_loops, id="compiled"))


@pytest.fixture(params=CODECS)
def rows(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def column(rows: Any, cells: list[bytes | None], first: int = 0) -> Any:
    """`cells` as Arrow has them, behind `first` cells that do not count."""
    before: list[bytes | None] = [b"not this"] * first
    whole = [*before, *cells]
    valid = bytearray((len(whole) + 7) // 8)
    offsets = array("i", [0])
    data = b""
    for index, cell in enumerate(whole):
        if cell is not None:
            valid[index >> 3] |= 1 << (index & 7)
            data += cell
        offsets.append(len(data))
    return rows.Strings(bytes(valid), offsets.tobytes(), data, first, len(cells))


def headers(rows: Any, lists: list[list[tuple[bytes, bytes | None]] | None]) -> Any:
    flat = [pair for pairs in lists for pair in pairs or ()]
    offsets = array("i", [0])
    valid = bytearray((len(lists) + 7) // 8)
    for index, pairs in enumerate(lists):
        if pairs is not None:
            valid[index >> 3] |= 1 << (index & 7)
        offsets.append(offsets[-1] + len(pairs or ()))
    names, values = column(rows, [name for name, _ in flat]), column(rows, [value for _, value in flat])
    return rows.HeaderLists(bytes(valid), offsets.tobytes(), names, values, 0, len(lists))


KEYS = [b"a", None, b"", b"long" * 40, b"a"]
VALUES = [b"1", b"", None, b"2" * 300, b"3"]
HEADERS: list[Any] = [None, [(b"h", b"v"), (b"h", None)], [], [("ü".encode(), b"")], [(b"z", b"9" * 200)]]


def decoded(section: bytearray, count: int) -> list[Any]:
    return [
        (record.key, record.value, record.headers)
        for record in pure_decode.decode_records(section, 61, len(section), count, 0, 0)
    ]


def test_columns_become_records(rows: Any) -> None:
    section, end = rows.encode_rows(
        column(rows, KEYS, 3), column(rows, VALUES), headers(rows, HEADERS), None, 0, 5, 9999, 61
    )
    named = [tuple((name.decode(), value) for name, value in pairs or ()) for pairs in HEADERS]
    assert end == 5
    assert decoded(section, 5) == list(zip(KEYS, VALUES, named, strict=True))
    assert section[:61] == bytes(61)


def test_rows_in_another_order_and_no_more_than_a_batch_holds(rows: Any) -> None:
    order = array("i", [4, 3, 0, 2]).tobytes()
    values = column(rows, VALUES)
    section, end = rows.encode_rows(None, values, None, order, 0, 4, 61 + 20, 61)
    assert (decoded(section, 1), end) == ([(None, b"3", ())], 1)
    section, end = rows.encode_rows(None, values, None, order, 1, 4, 61 + 20, 61)
    assert end == 2, "the first record always fits"
    section, end = rows.encode_rows(None, values, None, order, 2, 4, 61 + 20, 61)
    assert (decoded(section, 2), end) == ([(None, b"1", ()), (None, None, ())], 4)


def test_both_codecs_write_the_same() -> None:
    if not loops.COMPILED:
        pytest.skip("the compiled codec was not built")
    chance = random.Random(5)

    def cell() -> bytes | None:
        return (
            None
            if chance.random() < 0.2
            else bytes(chance.randrange(256) for _ in range(chance.choice((0, 3, 70, 200))))
        )

    for _ in range(30):
        count = chance.randrange(1, 40)
        keys, values = [cell() for _ in range(count)], [cell() for _ in range(count)]
        lists: list[Any] = [
            None if chance.random() < 0.4 else [(b"n", cell()) for _ in range(chance.randrange(3))]
            for _ in range(count)
        ]
        found = []
        for module in (pure_rows, _loops):
            places = module.place_rows(column(module, keys, 2), 5)
            order, bounds = module.group_rows(places, count, 5, 2)
            batches = []
            at, columns = 0, (column(module, keys), column(module, values), headers(module, lists))
            while at < count:
                section, at = module.encode_rows(*columns, order, at, count, 700, 61)
                batches.append((bytes(section), at))
            found.append((bytes(places), bytes(order), bounds, batches))
        assert found[0] == found[1]


def test_places_are_those_of_kafkas_clients(rows: Any) -> None:
    places = array("i", bytes(rows.place_rows(column(rows, KEYS, 1), 7)))
    assert list(places) == [-1 if key is None else (pure_hash.murmur2(key) & 0x7FFFFFFF) % 7 for key in KEYS]


def test_rows_are_grouped_as_they_came(rows: Any) -> None:
    order, bounds = rows.group_rows(array("i", [1, -1, 0, 1, -1]).tobytes(), 5, 3, 2)
    assert (list(array("i", bytes(order))), bounds) == ([2, 0, 3, 1, 4], [0, 1, 3, 5])
    with pytest.raises(InvalidPartitions, match="0 to 2, not 3"):
        rows.group_rows(array("i", [3]).tobytes(), 1, 3, 0)


@pytest.mark.parametrize("offsets", [[0, 5], [3, 1], [-1, 1], [0]])
def test_offsets_are_not_believed(rows: Any, offsets: list[int]) -> None:
    with pytest.raises(InvalidRecord):
        rows.Strings(None, struct.pack(f"={len(offsets)}i", *offsets), b"1234", 0, 1)


def test_rows_are_not_believed(rows: Any) -> None:
    values = column(rows, VALUES)
    for bad in (5, -1):
        with pytest.raises(InvalidRecord):
            rows.encode_rows(None, values, None, array("i", [bad]).tobytes(), 0, 1, 100, 61)
    with pytest.raises(InvalidRecord):
        rows.encode_rows(None, values, None, None, 0, 6, 100, 61)
    with pytest.raises(InvalidRecord):
        rows.encode_rows(None, values, None, b"\0" * 4, 0, 2, 100, 61)
    with pytest.raises(InvalidRecord):
        rows.Strings(b"", struct.pack("=2i", 0, 1), b"1", 0, 1)


def test_a_header_has_a_name(rows: Any) -> None:
    offsets = struct.pack("=2i", 0, 1)
    with pytest.raises(InvalidRecord, match="key must not be null"):
        rows.HeaderLists(None, offsets, column(rows, [None]), column(rows, [b"v"]), 0, 1)
    with pytest.raises(InvalidRecord):
        rows.HeaderLists(None, offsets, column(rows, []), column(rows, []), 0, 1)
