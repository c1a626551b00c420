"""How many elements the arrays of a message may hold."""

from __future__ import annotations

import struct

import pytest

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.api import OrderApi
from logkernel.plugins.transport.tcp.wire import (
    ELEMENT_BYTES,
    FEW_ELEMENTS,
    MAX_STRING,
    MAX_TAGS,
    Cursor,
    WireError,
    put_tagged,
)

PARTITIONS, REPLICAS = 200_000, 3


def counted(count: int, size: int, *, trusted: bool = False) -> Cursor:
    """A message that begins with an array of `count` elements, and has `size` bytes after it."""
    data = struct.pack(">i", count) + bytes(size)
    return Cursor.of_trusted(data) if trusted else Cursor(data)


def test_an_order_that_tells_of_many_partitions_is_read() -> None:
    """Of each: its row, its replicas and those in sync."""
    counts = (PARTITIONS, PARTITIONS * REPLICAS, PARTITIONS * REPLICAS)
    cursor = Cursor.of_trusted(struct.pack(">3i", *counts) + bytes(PARTITIONS * (24 + 2 * 4 * REPLICAS)))
    assert tuple(cursor.count(False) for _ in counts) == counts
    assert sum(counts) > FEW_ELEMENTS


def test_a_small_message_may_hold_elements_of_a_single_byte() -> None:
    assert counted(FEW_ELEMENTS, FEW_ELEMENTS).count(False) == FEW_ELEMENTS


@pytest.mark.parametrize("size", [FEW_ELEMENTS + 1, ELEMENT_BYTES * 2 * FEW_ELEMENTS])
def test_an_order_holds_no_more_elements_than_its_bytes_allow(size: int) -> None:
    most = max(FEW_ELEMENTS, (size + 4) // ELEMENT_BYTES)
    assert counted(most, size, trusted=True).count(False) == most
    with pytest.raises(WireError, match=f"an array of {most + 1} elements in {size} bytes"):
        counted(most + 1, size, trusted=True).count(False)


def test_the_request_of_a_client_may_hold_a_million_however_large_it_is() -> None:
    size = ELEMENT_BYTES * 2 * FEW_ELEMENTS
    assert counted(FEW_ELEMENTS, size).count(False) == FEW_ELEMENTS
    with pytest.raises(WireError, match=f"an array of {FEW_ELEMENTS + 1} elements in {size} bytes"):
        counted(FEW_ELEMENTS + 1, size).count(False)


@pytest.mark.parametrize(("key", "order"), [(3, False), (4, True), (5, True), (6, True)])
def test_orders_alone_are_read_as_a_controllers(key: int, order: bool) -> None:
    assert isinstance(registry.load(key), OrderApi) is order


def tagged(*fields: tuple[int, bytes]) -> bytes:
    out = bytearray()
    put_tagged(out, list(fields))
    return bytes(out)


def test_a_struct_has_few_tagged_fields() -> None:
    """Half as many as a request has bytes were kept, at a hundred bytes each: 100 MB took the broker's memory."""
    fields = [(number, b"") for number in range(MAX_TAGS + 1)]
    assert len(Cursor(tagged(*fields[:MAX_TAGS])).tags()) == MAX_TAGS
    with pytest.raises(WireError, match=f"{MAX_TAGS + 1} tagged fields in"):
        Cursor(tagged(*fields)).tags()


def test_tagged_fields_of_all_structs_are_elements_of_the_message() -> None:
    cursor = Cursor(tagged((0, b""), (1, b"")) * 2, most_elements=3)
    assert [tag for tag, _ in cursor.tags()] == [0, 1]
    with pytest.raises(WireError, match="2 tagged fields in"):
        cursor.tags()


def test_a_tagged_field_comes_once() -> None:
    """Its value was read each time, as long as it said to be, whatever length its tag gave: 1 MB was 300 GB to read."""
    with pytest.raises(WireError, match="there twice"):
        Cursor(tagged((0, b""), (7, b""), (0, b""))).tags()


def test_a_compact_string_is_no_longer_than_kafkas() -> None:
    """It was read, and could be written to nobody: an answer that told it to others ended their connections."""
    assert Cursor(b"\x80\x80\x02" + b"x" * MAX_STRING).string(True) == "x" * MAX_STRING
    with pytest.raises(WireError, match=f"a string of {MAX_STRING + 1} bytes"):
        Cursor(b"\x81\x80\x02" + b"x" * (MAX_STRING + 1)).string(True)
