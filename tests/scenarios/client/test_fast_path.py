"""Sending without a lock, batches that gather, rows that are handed out whole: what was made faster stays right."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.client.drivers.embedded_driver import GATHERED_BYTES
from logkernel.client.producer.batches import Batch
from logkernel.client.settings.producer import EMBEDDED_BATCH_BYTES
from logkernel.record import loops


@pytest.fixture(params=["embedded", "tcp"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[logkernel.EmbeddedLog, Any]]:
    """(where records are read from, whose producers are used)."""
    with logkernel.open() as log:
        log.create_topic("t", partitions=3)
        if request.param == "embedded":
            yield log, log
        else:
            with logkernel.connect(log.listen()) as remote:
                yield log, remote


@pytest.mark.parametrize("keyed", [False, True])
def test_threads_lose_and_double_nothing(place: tuple[logkernel.EmbeddedLog, Any], keyed: bool) -> None:
    """Batches are closed by one thread while others put records into them."""
    log, source = place
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    deliveries: dict[bytes, Any] = {}
    told: list[tuple[int, int]] = []
    try:
        with source.producer(batch_size=300, linger_ms=1) as producer:

            def work(name: int) -> None:
                for number in range(1500):
                    value = b"%d-%05d" % (name, number)
                    key = b"%d" % (number % 7) if keyed else None
                    if number % 50 == 0:
                        producer.send("t", value, key, on_delivery=lambda row, error: told.append(row[1:3]))
                    else:
                        deliveries[value] = producer.send("t", value, key)

            threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            producer.flush(60)
            places = {value: delivery.result(1)[1:3] for value, delivery in deliveries.items()}
    finally:
        sys.setswitchinterval(usual)
    found = {(index, record.offset): record.value for index in range(3) for record in log.read("t", index)}
    assert len(found) == 6000
    assert len(set(found.values())) == 6000
    assert all(found[place] == value for value, place in places.items())
    assert len(set(told)) == 4 * 30
    if keyed:  # the order of each thread's records with one key
        for name in range(4):
            for index in range(3):
                mine = [row for (part, _), row in sorted(found.items()) if part == index and row[:1] == b"%d" % name]  # type: ignore[index]
                for key in range(7):
                    numbers = [int(row[2:]) for row in mine if row is not None and int(row[2:]) % 7 == key]
                    assert numbers == sorted(numbers)


def test_a_record_that_comes_as_its_batch_closes_goes_into_the_next() -> None:
    """Another thread closed the batch between the look for it and the put."""
    with logkernel.open() as log:
        log.create_topic("t")
        with log.producer() as producer:
            producer.send("t", b"one")
            queue = producer._accumulator.queue("t", 0)
            batch = queue.open
            batch.close(None)  # as close_open does it, at the worst moment: `queue.open` still names it
            assert batch.put(logkernel.client.producer.producer.Delivery, batch, 0, None, b"late", ()) is None  # type: ignore[attr-defined]
            delivery = producer.send("t", b"two")
            assert delivery.batch is not batch
        assert [record.value for record in log.read("t")] == [b"one", b"two"]


def test_a_batch_knows_its_count_only_when_it_is_finished() -> None:
    """Its builder is asked for the count after it takes no more, not before."""
    batch = Batch("t", 0, 1000, 0, 0)
    batch.append(0, None, b"a", ())
    finish = batch.builder.finish

    class Late:
        """A record comes in the midst of the close."""

        base_timestamp_ms = max_timestamp_ms = 0

        def finish(self) -> bytearray:
            batch.append(0, None, b"b", ())
            found: bytearray = finish()
            return found

        @property
        def count(self) -> int:
            return int(inner.count)

    inner = batch.builder
    batch.builder = Late()
    batch.close(None)
    assert batch.count == 2


@pytest.mark.parametrize("given", [None, 16_384])
def test_an_embedded_producer_has_larger_batches_unless_it_is_told_a_size(given: int | None) -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        producer = log.producer() if given is None else log.producer(batch_size=given)
        assert producer.settings["batch.size"] == (EMBEDDED_BATCH_BYTES if given is None else given)
        small = log.producer(buffer_memory=200_000)
        assert small.settings["batch.size"] == 25_000
        tiny = log.producer(buffer_memory=10_000)
        assert tiny.settings["batch.size"] == 16_384
    with logkernel.connect("127.0.0.1:1") as remote:
        assert remote.producer().settings["batch.size"] == 16_384


def test_full_batches_gather_and_are_written_without_a_flush() -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        producer = log.producer(batch_size=10_000, linger_ms=60_000)
        producer.send("t", b"first").result(60)
        sent = 1
        while log.end_offset("t") == 1:
            producer.send("t", bytes(1000))
            sent += 1
            assert sent * 1000 < GATHERED_BYTES + 30_000, "full batches are not written"
        assert sent * 1000 > GATHERED_BYTES - 10_000


def test_a_batch_that_lingers_is_written_by_the_kernels_timers() -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        producer = log.producer(linger_ms=20)
        producer.send("t", b"first").result(60)
        producer.send("t", b"second")
        assert log.end_offset("t") == 1
        end_s = time.monotonic() + 10
        while log.end_offset("t") == 1 and time.monotonic() < end_s:
            log.step()
        assert log.end_offset("t") == 2


@pytest.mark.parametrize("callback", [False, True])
def test_a_batch_that_lingers_is_written_by_a_later_send(callback: bool) -> None:
    """Embedded, who sends is the one who steps the kernel: he keeps linger.ms by it, as far as he comes by."""
    told: dict[str, Any] = {"on_delivery": lambda metadata, error: None} if callback else {}
    with logkernel.open() as log:
        log.create_topic("t")
        producer = log.producer(linger_ms=20)
        producer.send("t", b"first").result(60)
        producer.send("t", b"second", **told)
        end_s = time.monotonic() + 0.025
        while time.monotonic() < end_s:
            pass
        assert log.end_offset("t") == 1
        producer.send("t", b"third", **told)
        assert log.end_offset("t") == 3


def test_a_partitioner_is_asked_once_a_record() -> None:
    asked: list[bytes | None] = []

    def choose(key: bytes | None, value: bytes | None, partitions: int, available: Any) -> int:
        asked.append(value)
        return len(asked) % partitions

    with logkernel.open() as log:
        log.create_topic("t", partitions=3)
        with log.producer(partitioner_class=choose, batch_size=100) as producer:
            for number in range(50):
                producer.send("t", b"%d" % number)
        assert asked == [b"%d" % number for number in range(50)]


def test_polls_of_any_size_give_every_record_once(tmp_path: Path) -> None:
    with logkernel.open(tmp_path) as log:
        log.create_topic("t")
        with log.producer(batch_size=700) as producer:
            for number in range(500):
                producer.send("t", b"%d" % number)
        for limit in (1, 7, 50, 1000):
            with log.consumer("t", auto_offset_reset="earliest", max_poll_records=limit) as consumer:
                found: list[bytes] = []
                while len(found) < 500:
                    rows = consumer.poll(5)
                    assert 0 < len(rows) <= limit
                    found += [row.value for row in rows]
                    assert consumer.position(("t", 0)) == len(found)
            assert found == [b"%d" % number for number in range(500)]


def test_the_compiled_builder_is_what_makes_a_lock_needless() -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        with log.producer() as producer, log.producer(transactional_id="x", transaction_timeout_ms=10_000) as other:
            producer.send("t", b"v")
            assert bool(producer._path.routes) is loops.COMPILED
            other.init_transactions()
            with other.transaction():
                other.send("t", b"v")
                assert not other._path.routes
