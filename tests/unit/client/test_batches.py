"""What a batch holds, and when it lets go."""

from __future__ import annotations

import weakref

import pytest

from logkernel.client.producer.batches import Batch, Section
from logkernel.plugins.compression.gzip import GzipCodec
from logkernel.record.batch import HEADER_BYTES


class Bytes(bytearray):
    """A bytearray that can be watched."""


@pytest.mark.parametrize("compressed", [False, True])
def test_records_that_were_encoded_elsewhere_are_let_go_with_the_outcome(compressed: bool) -> None:
    """A task of Spark keeps its batches until its end; their bytes were kept with them, all that it wrote."""
    wire = Bytes(HEADER_BYTES + 1000)
    held = weakref.ref(wire)
    batch = Batch("t", 0, 0, len(wire), 0, Section(wire, 3, 77))
    del wire
    batch.close(GzipCodec(1) if compressed else None)
    assert (held() is None) == compressed
    batch.stamp(1, 0, 0, False)
    assert batch.count == 3
    batch.finish(5, -1, None)
    assert held() is None
    assert (batch.builder.size, batch.base_offset) == (HEADER_BYTES + 1000, 5)
