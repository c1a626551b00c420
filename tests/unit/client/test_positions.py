"""Where a consumer stands in a partition: each move, and what it drops."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.client.consumer.positions import FAILED, FETCHING, FEWEST_ROWS, RESETTING, UNKNOWN, Chunk, Part
from logkernel.errors import CorruptMessage, InvalidRecord
from logkernel.kernel import Kernel
from logkernel.record.encode import encode_batch
from logkernel.vocabulary import Record, TopicPartition

T0 = TopicPartition("t", 0)
CODEC_FOR = Kernel().codec_for


def chunk(*sizes: int, cut: int = 0, verify: bool = True, rotten: bool = False) -> Chunk:
    """Batches of so many records each, from offset 0 on."""
    data, offset = bytearray(), 0
    for size in sizes:
        made = bytearray(encode_batch([Record(None, b"%d" % (offset + index)) for index in range(size)]))
        made[:8] = offset.to_bytes(8, "big")
        data += made
        offset += size
    if rotten:
        data[-1] ^= 1
    return Chunk(T0, bytes(data[: len(data) - cut]), [], CODEC_FOR, verify)


def held(state: int = FETCHING) -> Part:
    part = Part(T0, state, position=3, epoch=1, fetch_offset=9)
    part.chunks.append(chunk(1))
    part.buffered_bytes, part.retry_ms, part.closer, part.asking = 70, 500, 2, True
    part.error = ValueError("x") if state == FAILED else None
    return part


@pytest.mark.parametrize("state", [UNKNOWN, RESETTING, FETCHING, FAILED])
@pytest.mark.parametrize(
    ("move", "after"),
    [
        (lambda part: part.place(7, 2), (FETCHING, 7, 2, 7)),
        (lambda part: part.place(7), (FETCHING, 7, -1, 7)),
        (lambda part: part.reset(), (RESETTING, -1, -1, 9)),
        (lambda part: part.reset(-2), (RESETTING, -1, -1, 9)),
        (lambda part: part.fail(KeyError("k")), (FAILED, 3, 1, 9)),
    ],
)
def test_each_move_drops_what_was_ahead(state: int, move: Any, after: tuple[int, ...]) -> None:
    part = held(state)
    version = part.version
    move(part)
    assert (part.state, part.position, part.epoch, part.fetch_offset) == after
    assert (part.version, list(part.chunks), part.buffered_bytes) == (version + 1, [], 0)
    assert (part.asking, part.retry_ms, part.closer) == (False, 0, -1)
    assert (part.error is not None) is (part.state == FAILED)


@pytest.mark.parametrize(
    ("position", "watermark", "stable", "committed_only", "lag"),
    [
        (-1, 5, 5, False, None),
        (3, -1, -1, False, None),
        (3, 5, 4, False, 2),
        (3, 5, 4, True, 1),
        (9, 5, 4, False, 0),
    ],
)
def test_lag_counts_to_the_end_that_isolation_shows(
    position: int, watermark: int, stable: int, committed_only: bool, lag: int | None
) -> None:
    part = Part(T0, position=position, high_watermark=watermark, last_stable=stable)
    assert part.lag(committed_only) == lag


@pytest.mark.parametrize(
    ("sizes", "cut", "start", "rows", "last"),
    [
        ((3,), 0, 0, [0, 1, 2], 2),
        ((3,), 0, 2, [2], 2),
        ((2, 2), 0, 0, [0, 1, 2, 3], 3),
        ((2, 2), 0, 2, [2, 3], 3),
        ((2, 2), 1, 0, [0, 1], 1),
        ((2,), 1, 0, [], None),
        ((2,), 0, 5, [], 1),
    ],
)
def test_a_chunk_gives_whole_batches_from_an_offset_on(
    sizes: tuple[int, ...], cut: int, start: int, rows: list[int], last: int | None
) -> None:
    made = chunk(*sizes, cut=cut)
    assert made.last_offset() == last
    found = []
    while made.load(start):
        found += [row.offset for row in made.rows]
        made.taken = len(made.rows)
    assert found == rows


def test_a_batch_that_cannot_be_read_is_come_to_again() -> None:
    made = chunk(1, 2, rotten=True)
    assert made.load(0)
    made.taken = len(made.rows)
    for _ in range(2):
        with pytest.raises(CorruptMessage):
            made.load(0)
    careless = chunk(1, 2, rotten=True, verify=False)
    assert careless.load(0)


def test_a_batch_is_decoded_in_stretches() -> None:
    made = chunk(3 * FEWEST_ROWS, 2)
    sizes = []
    while made.load(0, 5):
        sizes.append((len(made.rows), made.batch_ended))
        made.taken = len(made.rows)
    assert sizes == [(FEWEST_ROWS, False), (FEWEST_ROWS, False), (FEWEST_ROWS, True), (2, True)]
    made = chunk(3 * FEWEST_ROWS)
    assert made.load(2 * FEWEST_ROWS + 1, 1)  # what lies before is passed over
    assert made.rows[0].offset == 2 * FEWEST_ROWS + 1


def test_after_a_rewind_the_batch_is_read_from_where_it_is_wanted() -> None:
    made = chunk(3 * FEWEST_ROWS, 1)
    assert made.load(0, 1)
    made.rewind()
    assert (made.rows, made.taken) == ([], 0)
    assert made.load(10, 1)
    assert made.rows[0].offset == 10
    while not made.batch_ended:
        assert made.load(10, 1000)
    made.rewind()
    assert made.load(3 * FEWEST_ROWS)
    assert [row.offset for row in made.rows] == [3 * FEWEST_ROWS]


def test_records_before_a_rotten_one_are_given_and_it_is_come_to_again() -> None:
    made = chunk(2 * FEWEST_ROWS, verify=False, rotten=True)  # the last value's last byte is its header count
    assert made.load(0)
    made.taken = len(made.rows)
    for _ in range(2):
        with pytest.raises(InvalidRecord):
            made.load(FEWEST_ROWS)
    made.rewind()
    assert made.load(0)
    assert len(made.rows) == FEWEST_ROWS
