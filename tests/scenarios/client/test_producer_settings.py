"""What a producer's settings do to batches and requests, partitions, transactions and metrics."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from modelled import TOPIC, Faults, World
from producing import gaps, values, world

from logkernel.client.cluster.calls import ClientCore
from logkernel.client.producer.accumulator import Accumulator
from logkernel.client.producer.base import make_sender
from logkernel.client.producer.batches import Batch
from logkernel.client.producer.metrics import ProducerMetrics
from logkernel.client.producer.partitioning import Partitioning
from logkernel.client.producer.transactions import Transactions
from logkernel.errors import ConfigError, RequestTimedOut
from logkernel.kernel import Kernel
from logkernel.requests.data import ProduceRequest

# ---------------------------------------------------------------- batches and requests


def sizes(made: World) -> list[int]:
    return [
        len(part.records)
        for _, request in made.requests(ProduceRequest)
        for topic in request.topic_data
        for part in topic.partition_data
    ]


@pytest.mark.setting("batch.size")
def test_batches_are_as_large_as_asked() -> None:
    for size, least in ((0, 200), (500, 12), (100_000, 1)):
        made = world(batch_size=size, linger_ms=50)
        made.run(50)
        for _ in range(200):
            made.send(0, bytes(20))
        made.settle()
        assert len(sizes(made)) >= least
        assert size == 0 or max(sizes(made)) <= size


@pytest.mark.setting("linger.ms")
def test_a_batch_waits_for_more() -> None:
    for linger_ms in (0, 5, 70):
        made = world(linger_ms=linger_ms)
        made.send(0, b"first")
        made.settle()
        begun = made.now
        made.send(0, b"v")
        made.run(200)
        assert made.requests(ProduceRequest)[-1][0] - begun == linger_ms


@pytest.mark.setting("max.request.size")
def test_a_request_holds_no_more_than_asked() -> None:
    made = world(partitions=12, max_request_size=1000, batch_size=400, linger_ms=100)
    made.run(50)
    for number in range(120):
        made.send(number % 12, bytes(100))
    made.settle()
    requests = [request.topic_data[0].partition_data for _, request in made.requests(ProduceRequest)]
    assert max(sum(len(part.records) for part in parts) for parts in requests) <= 1000
    assert 1 < max(map(len, requests)) < 4, "a broker leads four"
    assert len({part.index for parts in requests[:12] for part in parts}) == 12, "a partition starves"


@pytest.mark.setting("max.in.flight.requests.per.connection")
def test_so_many_requests_are_in_flight_and_no_more() -> None:
    for limit in (1, 3, 5):
        made = world(max_in_flight_requests_per_connection=limit, batch_size=0, linger_ms=0)
        made.send(0, b"first")
        made.settle()
        made.faults = Faults(silent=True, longest_ms=0)
        before = len(made.requests(ProduceRequest))
        for number in range(9):
            made.send(0, b"%d" % number)
        made.run(1000)
        assert len(made.requests(ProduceRequest)) - before == limit


@pytest.mark.setting("acks")
def test_acks_travel_with_the_request() -> None:
    for given, sent in (("all", -1), ("-1", -1), ("1", 1)):
        made = world(acks=given)
        made.send(0, b"v")
        made.settle()
        assert made.requests(ProduceRequest)[0][1].acks == sent


@pytest.mark.setting("enable.idempotence")
def test_idempotent_batches_carry_a_producer_id() -> None:
    for given in (True, False):
        made = world(enable_idempotence=given)
        made.send(0, b"v")
        made.settle()
        assert (made.sent[0][2].producer_id >= 0) is given
    assert values(acks=1)["enable.idempotence"] is False
    assert values(retries=0)["enable.idempotence"] is False
    with pytest.raises(ConfigError):
        values(acks=1, enable_idempotence=True)


@pytest.mark.setting("retries", "retry.backoff.ms", "retry.backoff.max.ms")
def test_a_refused_batch_is_tried_again_ever_more_rarely_and_so_often() -> None:
    made = world(
        Faults(refuse=1.0, longest_ms=0), retries=6, retry_backoff_ms=50, retry_backoff_max_ms=400, linger_ms=0
    )
    made.send(0, b"v")
    made.settle()
    times = [at for at, _ in made.requests(ProduceRequest)]
    assert len(times) == 7
    waits = gaps(times)
    assert 40 <= waits[0] <= 61
    assert 80 <= waits[1] <= 121
    assert all(320 <= wait <= 481 for wait in waits[4:])
    assert made.sent[0][2].error is not None


@pytest.mark.setting("delivery.timeout.ms")
def test_a_record_fails_when_its_time_is_over() -> None:
    for silent in (True, False):
        made = world(
            Faults(refuse=1.0, silent=silent, longest_ms=0),
            delivery_timeout_ms=5000,
            request_timeout_ms=4000,
            enable_idempotence=False,
        )
        made.send(0, b"v")
        made.run(4990)
        assert not made.sent[0][2].done
        made.run(15)
        assert isinstance(made.sent[0][2].error, RequestTimedOut)
    with pytest.raises(ConfigError):
        values(delivery_timeout_ms=100, request_timeout_ms=200)
    assert values(request_timeout_ms=200_000)["delivery.timeout.ms"] == 200_005


@pytest.mark.setting("buffer.memory")
def test_the_pool_is_as_large_as_asked_and_serves_waiters_in_order() -> None:
    pool = Accumulator(values(buffer_memory=1000), None, None).pool  # type: ignore[arg-type]
    assert pool.take(900)
    assert not pool.take(200)
    first, second = pool.claim(600), pool.claim(50)
    assert not pool.take(10), "nobody overtakes those who wait"
    pool.release(300)
    assert not first.granted
    assert not second.granted
    pool.release(300)
    assert first.granted
    assert second.granted
    assert pool.free == 50


@pytest.mark.setting("compression.type", "compression.gzip.level", "compression.lz4.level", "compression.zstd.level")
def test_each_batch_is_compressed_as_asked() -> None:
    kernel = Kernel()
    asked: list[tuple[str, int | None]] = []
    usual = kernel.codec
    kernel.codec = lambda name, level=None: asked.append((name, level)) or usual(name, level)  # type: ignore
    given: dict[str, dict[str, Any]] = {
        "gzip": {"compression_gzip_level": 7},
        "lz4": {"compression_lz4_level": 11},
        "zstd": {"compression_zstd_level": -5},
        "snappy": {},
    }
    for number, (name, more) in enumerate(given.items()):
        accumulator = make_sender(values(compression_type=name, **more), [], kernel).accumulator
        assert accumulator.codec is not None
        assert accumulator.codec.name == name
        assert asked[number] == (name, next(iter(more.values()), None))
        batch = Batch("t", 0, 10_000, 0, 0)
        batch.append(0, None, bytes(5000), ())
        batch.close(accumulator.codec)
        assert len(batch.wire) < 2000
        assert batch.codec_id == accumulator.codec.codec_id
    make_sender(values(compression_type="gzip"), [], kernel)
    assert asked[-1] == ("gzip", None)


# ---------------------------------------------------------------- partitions


def plan(made: World, partitioner: Any = None) -> Partitioning:
    made.run(50)
    info = made.sender.core.metadata.topics[TOPIC]
    return Partitioning(info, made.sender, made.values, partitioner, Random(3), made.now)


@pytest.mark.setting("partitioner.ignore.keys")
def test_keys_choose_unless_they_are_ignored() -> None:
    by_key = plan(world(partitions=3))
    assert len({by_key.choose(b"%d" % number, None).partition for number in range(50)}) == 3
    assert {by_key.choose(b"same", None) for _ in range(9)} == {by_key.choose(b"same", None)}
    ignoring = plan(world(partitions=3, partitioner_ignore_keys=True))
    assert len({ignoring.choose(b"%d" % number, None).partition for number in range(50)}) == 1


@pytest.mark.setting("partitioner.adaptive.partitioning.enable")
def test_long_queues_get_less() -> None:
    drawn: dict[bool, int] = {}
    for adaptive in (True, False):
        made = world(partitions=2, partitioner_adaptive_partitioning_enable=adaptive)
        chosen = plan(made)
        for number in range(40):
            chosen.queues[0].batches.append(Batch(TOPIC, 0, 100, 0, number))
        drawn[adaptive] = sum(chosen._draw() == 0 for _ in range(1000))
    assert drawn[True] < 60
    assert 400 < drawn[False] < 600


@pytest.mark.setting("partitioner.availability.timeout.ms")
def test_a_broker_that_takes_nothing_gets_nothing() -> None:
    for limit_ms, avoided in ((100, True), (0, False)):
        made = world(partitions=2, partitioner_availability_timeout_ms=limit_ms)
        chosen = plan(made)
        made.sender.node_ready_ms[1], made.sender.node_drained_ms[1] = 1000, 800  # node 1 leads partition 0
        assert (sum(chosen._draw() == 0 for _ in range(100)) == 0) is avoided


# ---------------------------------------------------------------- transactions, metrics


@pytest.mark.setting("transactional.id", "transaction.timeout.ms")
def test_the_coordinator_hears_name_and_timeout() -> None:
    given = values(transactional_id="me", transaction_timeout_ms=4321)
    core = ClientCore(given, [("host", 1)], Random(1))
    transactions = Transactions(core, given)
    transactions.init()
    call = core.calls[0]
    assert call.target == ("transaction", "me")
    assert (call.request.transactional_id, call.request.transaction_timeout_ms) == ("me", 4321)
    with pytest.raises(ConfigError):
        values(transactional_id="me", acks=1)


@pytest.mark.setting("metrics.sample.window.ms", "metrics.num.samples", "metrics.recording.level")
def test_rates_are_taken_over_the_last_windows() -> None:
    made = world()
    for level, samples in (("INFO", 2), ("DEBUG", 3)):
        given = values(metrics_sample_window_ms=1000, metrics_num_samples=samples, metrics_recording_level=level)
        metrics = ProducerMetrics(given)
        batch = Batch("t", 0, 100, 0, 0)
        batch.append(0, None, b"v", ())
        batch.close(None)
        assert metrics.roll(0) == 1000
        metrics.request_sent([batch], 0)
        metrics.roll(1000)
        sender = made.sender
        both = metrics.snapshot(sender.accumulator, sender.core.network, 0, 1500)
        assert both["record-send-rate"] == pytest.approx(1 / 1.5)
        metrics.roll(2000)
        later = metrics.snapshot(sender.accumulator, sender.core.network, 0, 2500)
        assert later["record-send-rate"] == pytest.approx(0 if samples == 2 else 1 / 2.5)
        assert later["record-send-total"] == 1
        assert ("topics" in later) is (level == "DEBUG")
        assert metrics.closed_windows == 2
