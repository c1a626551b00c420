"""What `client.accumulator` sends when, and in what order."""

from __future__ import annotations

from random import Random
from typing import Any

from logkernel.client.cluster.metadata import Metadata, TopicInfo
from logkernel.client.producer.accumulator import Accumulator, Queue
from logkernel.client.producer.batches import Batch
from logkernel.client.settings.producer import load_producer


def made(partitions: int = 4, **settings: Any) -> tuple[Accumulator, Metadata]:
    values = load_producer({"bootstrap_servers": "h:1", "batch_size": 200, **settings})
    metadata = Metadata(values, [("h", 1)], Random(1))
    metadata.topics["t"] = TopicInfo("t", leaders=[1] * partitions, epochs=[0] * partitions)
    return Accumulator(values, None, None), metadata  # type: ignore[arg-type]


def opened(accumulator: Accumulator, queue: Queue, size: int, now_ms: int, record: tuple[int, Any, Any, Any]) -> Batch:
    batch = accumulator.new_batch(queue, size, now_ms)
    batch.append(*record)
    accumulator.add_open(queue, batch)
    return batch


def put(accumulator: Accumulator, partition: int, value: bytes, now_ms: int = 0) -> Batch:
    queue = accumulator.queue("t", partition)
    record = (now_ms, None, value, ())
    if queue.open is not None and queue.open.append(*record) >= 0:
        return queue.open
    accumulator.close_open(queue)
    assert accumulator.pool.take(accumulator.batch_bytes)
    return opened(accumulator, queue, accumulator.batch_bytes, now_ms, record)


def yes(queue: Queue, batch: Batch) -> bool:
    return True


def test_when_a_batch_is_ready() -> None:
    accumulator, metadata = made()
    put(accumulator, 0, b"v")
    assert accumulator.ready(metadata, 4).nodes == set()
    assert accumulator.ready(metadata, 4).next_ms == 5
    assert accumulator.ready(metadata, 5).nodes == {1}
    for hurry in ("flushing", "closing"):
        setattr(accumulator, hurry, True)
        assert accumulator.ready(metadata, 0).nodes == {1}
        setattr(accumulator, hurry, False)
    claim = accumulator.pool.claim(10**9)
    assert accumulator.ready(metadata, 0).nodes == {1}, "somebody waits for memory"
    accumulator.pool.give_up(claim)
    put(accumulator, 0, bytes(150))
    assert accumulator.ready(metadata, 0).nodes == {1}, "a second batch: the first is full"


def test_a_topic_without_a_leader_is_told() -> None:
    accumulator, metadata = made()
    metadata.topics["t"].leaders[2] = -1
    put(accumulator, 2, b"v")
    found = accumulator.ready(metadata, 10)
    assert (found.unknown, found.nodes) == ({"t"}, set())


def test_a_batch_that_backs_off_is_not_ready() -> None:
    accumulator, metadata = made()
    batch = put(accumulator, 0, b"v")
    batch.attempts, batch.retry_ms = 1, 50
    assert accumulator.ready(metadata, 49).next_ms == 50
    assert accumulator.drain(metadata, 1, 49, yes) == []
    assert accumulator.ready(metadata, 50).nodes == {1}


def test_draining_takes_one_of_each_and_begins_elsewhere_each_time() -> None:
    accumulator, metadata = made(max_request_size=400)
    for partition in range(4):
        for _ in range(3):
            put(accumulator, partition, bytes(100))
    firsts = []
    for _ in range(6):
        taken = accumulator.drain(metadata, 1, 0, yes)
        assert len(taken) == len({batch.partition for batch in taken}) == 2
        firsts += [batch.partition for batch in taken]
    assert sorted(firsts) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert set(firsts[:4]) == {0, 1, 2, 3}, "nobody starves"
    assert not accumulator.active


def test_a_batch_above_the_limit_goes_alone() -> None:
    accumulator, metadata = made(max_request_size=400)
    for partition in range(2):
        queue = accumulator.queue("t", partition)
        assert accumulator.pool.take(900)
        opened(accumulator, queue, 900, 0, (0, None, bytes(700), ()))
    assert [len(accumulator.drain(metadata, 1, 0, yes)) for _ in range(3)] == [1, 1, 0]


def test_a_second_request_leaves_what_still_fills() -> None:
    accumulator, metadata = made()
    put(accumulator, 0, b"v")
    assert accumulator.drain(metadata, 1, 0, yes, whole=True) == []
    accumulator.flushing = 1
    assert len(accumulator.drain(metadata, 1, 0, yes, whole=True)) == 1


def test_with_one_in_flight_a_partition_is_muted_while_it_is() -> None:
    accumulator, metadata = made(max_in_flight_requests_per_connection=1)
    put(accumulator, 0, bytes(150))
    put(accumulator, 0, bytes(150))
    queue = accumulator.queue("t", 0)
    assert len(accumulator.drain(metadata, 1, 9, yes)) == 1
    queue.sequences.wire = 1
    assert accumulator.ready(metadata, 9).nodes == set()
    assert accumulator.drain(metadata, 1, 9, yes) == []
    queue.sequences.wire = 0
    assert accumulator.ready(metadata, 9).nodes == {1}


def test_what_is_sent_again_returns_to_its_place() -> None:
    accumulator, metadata = made()
    batches = [put(accumulator, 0, bytes(150)) for _ in range(4)]
    queue = accumulator.queue("t", 0)
    for batch in batches[:3]:
        assert accumulator.drain(metadata, 1, 9, yes) == [batch]
        batch.stamp(1, 0, queue.sequences.assign(batch, 1, 0), False)
    for index in (1, 2, 0):
        accumulator.put_back(batches[index])
    assert list(queue.batches) == batches


def test_memory_comes_back() -> None:
    accumulator, metadata = made()
    total = accumulator.pool.total
    batch = put(accumulator, 0, b"v")
    assert accumulator.pool.free == total - 200
    accumulator.drain(metadata, 1, 9, yes)
    assert accumulator.pool.free == total - len(batch.wire), "what a closed batch does not need"
    accumulator.finish(batch, 5, -1, None)
    accumulator.finish(batch, 6, -1, None)
    assert accumulator.pool.free == total
    assert accumulator.finished == [batch]
    assert batch.metadata(0, 7) == ("t", 0, 5, 7)


def test_what_is_too_old_leaves_its_queue() -> None:
    accumulator, _ = made(delivery_timeout_ms=40_000)
    old = put(accumulator, 0, bytes(150), 0)
    young = put(accumulator, 0, bytes(150), 1000)
    assert accumulator.next_expiry_ms() == 40_000
    assert accumulator.expired(39_999) == []
    assert accumulator.expired(40_000) == [old]
    assert list(accumulator.queue("t", 0).batches) == [young]


def test_an_abort_drops_what_has_no_number() -> None:
    accumulator, _ = made()
    numbered, fresh = put(accumulator, 0, bytes(150)), put(accumulator, 0, bytes(150))
    other = put(accumulator, 1, b"v")
    numbered.sequence = 0
    assert accumulator.drop_unsent() == [fresh, other]
    assert list(accumulator.active) == [("t", 0)]
