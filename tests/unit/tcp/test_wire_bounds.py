"""How many elements the arrays of a message may hold."""

from __future__ import annotations

import struct

import pytest

from logkernel.plugins.transport.tcp.wire import ELEMENT_BYTES, FEW_ELEMENTS, Cursor, WireError

PARTITIONS, REPLICAS = 200_000, 3


def counted(count: int, size: int) -> Cursor:
    """A message that begins with an array of `count` elements, and has `size` bytes after it."""
    return Cursor(struct.pack(">i", count) + bytes(size))


def test_an_order_that_tells_of_many_partitions_is_read() -> None:
    """Of each: its row, its replicas and those in sync."""
    counts = (PARTITIONS, PARTITIONS * REPLICAS, PARTITIONS * REPLICAS)
    cursor = Cursor(struct.pack(">3i", *counts) + bytes(PARTITIONS * (24 + 2 * 4 * REPLICAS)))
    assert tuple(cursor.count(False) for _ in counts) == counts
    assert sum(counts) > FEW_ELEMENTS


def test_a_small_message_may_hold_elements_of_a_single_byte() -> None:
    assert counted(FEW_ELEMENTS, FEW_ELEMENTS).count(False) == FEW_ELEMENTS


@pytest.mark.parametrize("size", [FEW_ELEMENTS + 1, ELEMENT_BYTES * 2 * FEW_ELEMENTS])
def test_more_elements_than_the_bytes_of_a_message_allow_are_refused(size: int) -> None:
    most = max(FEW_ELEMENTS, (size + 4) // ELEMENT_BYTES)
    assert counted(most, size).count(False) == most
    with pytest.raises(WireError, match=f"an array of {most + 1} elements in {size} bytes"):
        counted(most + 1, size).count(False)
