"""Every setting of a client does something, and here or in the contract suite it is seen doing it.

A test names the settings whose effect it shows by `@pytest.mark.setting(...)`; the last tests hold the table
of settings against these marks, and against the code that reads them. `ignoring.py` ignores each in turn, and finds
those that no test misses.
"""

from __future__ import annotations

import ast
import re
import socket
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from modelled import TOPIC, Faults, World

import logkernel
from logkernel.client.accumulator import Accumulator
from logkernel.client.batches import Batch
from logkernel.client.bootstrap import bootstrap_places
from logkernel.client.consumer import Consumer
from logkernel.client.consumer_base import make_consumption
from logkernel.client.consumer_settings import CONSUMER, load_consumer
from logkernel.client.core import ClientCore
from logkernel.client.metadata import Metadata
from logkernel.client.metrics import ProducerMetrics
from logkernel.client.network import Close, Connect
from logkernel.client.partitioning import Plan
from logkernel.client.producer import Producer
from logkernel.client.producer_base import make_sender
from logkernel.client.producer_settings import ALIASES, PRODUCER, load_producer
from logkernel.client.settings import LONG_MAX
from logkernel.client.thread_driver import ThreadDriver
from logkernel.client.transactions import Transactions
from logkernel.errors import ConfigError, MessageTooLarge, NetworkException, RequestTimedOut
from logkernel.kernel import Kernel
from logkernel.requests.cluster import MetadataRequest, MetadataResponse, MetadataResponseBroker
from logkernel.requests.data import ProduceRequest

ROOT = Path(__file__).resolve().parents[3]
CALM = Faults(longest_ms=0)
HERE = "host:1"


def world(faults: Faults = CALM, partitions: int = 1, **settings: Any) -> World:
    return World(1, faults, partitions, **settings)


def values(**settings: Any) -> dict[str, Any]:
    return load_producer({"bootstrap_servers": HERE, **settings})


# ---------------------------------------------------------------- connections


@pytest.mark.setting("bootstrap.servers")
def test_the_first_connection_goes_to_a_bootstrap_server() -> None:
    made = world()
    made.turn(1)
    assert [(action.host, action.port) for _, action in made.actions(Connect)] == [("host", 1)]
    assert bootstrap_places(load_producer({"bootstrap_servers": "a:1,b:2,[::1]:3,d"})) == [
        ("a", 1),
        ("b", 2),
        ("::1", 3),
        ("d", 9092),
    ]
    for bad in ("", "a:x", ":1", "a:0", "a:70000"):
        with pytest.raises(ConfigError):
            bootstrap_places(load_producer({"bootstrap_servers": bad}))


@pytest.mark.setting("client.dns.lookup")
def test_bootstrap_names_are_resolved_to_full_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *a, **k: [(0, 0, 0, "", ("1.1.1.1", 5)), (0, 0, 0, "", ("2.2.2.2", 5))]
    )
    monkeypatch.setattr(socket, "getnameinfo", lambda address, flags: (f"full-{address[0]}", "5"))
    lookup = "resolve_canonical_bootstrap_servers_only"
    assert bootstrap_places(values(bootstrap_servers="x:5")) == [("x", 5)]
    assert bootstrap_places(values(bootstrap_servers="x:5", client_dns_lookup=lookup)) == [
        ("full-1.1.1.1", 5),
        ("full-2.2.2.2", 5),
    ]


@pytest.mark.setting("connections.max.idle.ms")
def test_an_idle_connection_is_closed() -> None:
    for idle_ms, closed in ((2000, True), (-1, False)):
        made = world(connections_max_idle_ms=idle_ms, metadata_max_age_ms=10**9)
        made.send(0, b"v")
        made.settle()
        made.run(10_000)
        assert bool(made.actions(Close)) is closed


def gaps(times: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.setting("reconnect.backoff.ms", "reconnect.backoff.max.ms")
def test_connections_that_fail_are_tried_ever_more_rarely() -> None:
    made = world(
        Faults(connect_fails=1.0, longest_ms=0),
        reconnect_backoff_ms=100,
        reconnect_backoff_max_ms=800,
        metadata_recovery_strategy="none",
        retry_backoff_ms=1,
        retry_backoff_max_ms=1,
    )
    made.run(5000)
    waits = gaps([at for at, _ in made.actions(Connect)])
    assert 75 <= waits[0] <= 130
    assert 150 <= waits[1] <= 250
    assert all(600 <= wait <= 1000 for wait in waits[4:])


@pytest.mark.setting("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms")
def test_a_connection_that_is_never_made_is_given_up() -> None:
    made = world(
        Faults(deaf=True),
        socket_connection_setup_timeout_ms=1000,
        socket_connection_setup_timeout_max_ms=3000,
        reconnect_backoff_ms=0,
        reconnect_backoff_max_ms=0,
    )
    made.run(20_000)
    limits = [action.timeout_ms for _, action in made.actions(Connect)]
    assert 800 <= limits[0] <= 1200
    assert 1600 <= limits[1] <= 2400
    assert max(limits) <= 3600
    assert abs(made.actions(Close)[0][0] - limits[0]) <= 5


@pytest.mark.setting("request.timeout.ms")
def test_no_answer_closes_the_connection() -> None:
    made = world(request_timeout_ms=700, linger_ms=0)
    made.send(0, b"v")
    made.settle()
    made.faults.silent = True
    made.send(0, b"w")
    made.run(200)
    sent_ms = made.requests(ProduceRequest)[-1][0]
    assert made.requests(ProduceRequest)[-1][1].timeout_ms == 700
    made.run(2000)
    assert made.actions(Close)[0][0] - sent_ms == 700
    CALM.silent = False


class Remembering:
    """A transport whose channels are only asked for."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    def connect(self, host: str, port: int, settings: Any) -> Any:
        self.settings = dict(settings)
        raise NetworkException("not here")


@pytest.mark.setting("client.id", "send.buffer.bytes", "receive.buffer.bytes")
def test_what_a_channel_is_told(monkeypatch: pytest.MonkeyPatch, eventually: Any) -> None:
    kernel, transport = Kernel(), Remembering()
    monkeypatch.setattr(kernel, "transport", lambda name: transport)
    given = values(client_id="me", send_buffer_bytes=5000, receive_buffer_bytes=6000)
    driver = ThreadDriver(make_sender(given, [("host", 1)], kernel), given, kernel, "tcp")
    eventually(lambda: bool(transport.settings))
    driver.end(0)
    assert transport.settings["client.id"] == "me"
    assert transport.settings["send.buffer.bytes"] == 5000
    assert transport.settings["receive.buffer.bytes"] == 6000


# ---------------------------------------------------------------- metadata


@pytest.mark.setting("metadata.max.age.ms")
def test_metadata_is_asked_for_again_when_it_is_old() -> None:
    made = world(metadata_max_age_ms=1000, connections_max_idle_ms=-1)
    made.run(10_500)
    assert 9 <= len(made.requests(MetadataRequest)) <= 12


@pytest.mark.setting("metadata.max.idle.ms")
def test_a_topic_without_records_is_forgotten() -> None:
    made = world(metadata_max_idle_ms=5000)
    made.send(0, b"v")
    made.settle()
    made.run(4000)
    assert TOPIC in made.sender.core.metadata.topics
    made.run(60_000)
    assert TOPIC not in made.sender.core.metadata.topics


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
@pytest.mark.setting("metadata.recovery.strategy")
def test_where_all_known_brokers_are_gone(strategy: str) -> None:
    made = world(metadata_recovery_strategy=strategy, metadata_max_age_ms=1000)
    made.run(100)
    made.faults = Faults(connect_fails=1.0, lose_request=1.0, longest_ms=0)
    made.run(60_000)
    late = [action.port for at, action in made.actions(Connect) if at > 10_000]
    assert late
    assert ({action.node for at, action in made.actions(Connect) if at > 10_000} >= {-1}) is (strategy == "rebootstrap")


@pytest.mark.setting("metadata.recovery.rebootstrap.trigger.ms")
def test_metadata_that_cannot_be_had_for_long_is_dropped() -> None:
    for trigger_ms, dropped in ((3000, True), (30_000, False)):
        metadata = Metadata(values(metadata_recovery_rebootstrap_trigger_ms=trigger_ms), [("host", 1)], Random(1))
        metadata.ask(0)
        metadata.on_response(MetadataResponse([MetadataResponseBroker(7, "far", 9)]), 0)
        for now_ms in range(1000, 6000, 1000):
            metadata.request_update()
            metadata.ask(now_ms)
            metadata.on_failure(now_ms)
        assert (metadata.brokers == {-1: ("host", 1)}) is dropped


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


def plan(made: World, partitioner: Any = None) -> Plan:
    made.run(50)
    info = made.sender.core.metadata.topics[TOPIC]
    return Plan(info, made.sender, made.values, partitioner, Random(3), made.now)


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
    call = core._calls[0]
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
        metrics.batch_sent(batch, 0)
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


@pytest.mark.setting("security.protocol", "enable.metrics.push", "transaction.two.phase.commit.enable")
def test_what_is_not_offered_is_refused() -> None:
    assert values(security_protocol="PLAINTEXT", enable_metrics_push=False)
    for bad in (
        {"security_protocol": "SSL"},
        {"enable_metrics_push": True},
        {"transaction_two_phase_commit_enable": True},
        {"ssl_keystore_location": "x"},
        {"config_providers": "x"},
    ):
        with pytest.raises(ConfigError):
            values(**bad)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"timeout_ms": 777}, {"request.timeout.ms": 777}),
        ({"metadata_fetch_timeout_ms": 888}, {"max.block.ms": 888}),
        ({"block_on_buffer_full": True}, {"max.block.ms": LONG_MAX}),
        ({"block_on_buffer_full": "false", "max_block_ms": 5}, {"max.block.ms": 5}),
        ({"timeout_ms": 1, "request_timeout_ms": 2}, {"request.timeout.ms": 2}),
    ],
)
def test_names_of_old_are_taken_with_a_warning(given: dict[str, Any], expected: dict[str, Any]) -> None:
    with pytest.warns(DeprecationWarning, match="deprecated"):
        found = values(**given)
    assert {name: found[name] for name in expected} == expected


def test_a_bad_setting_is_refused_with_the_remedy() -> None:
    for bad, text in (
        ({"lingerms": 1}, "did you mean linger.ms"),
        ({"linger_ms": -1}, "at least 0"),
        ({"linger_ms": "soon"}, "whole number"),
        ({"linger_ms": 1.5}, "whole number"),
        ({"linger_ms": True}, "number"),
        ({"acks": 2}, "one of"),
        ({"enable_idempotence": 3}, "true or false"),
    ):
        with pytest.raises(ConfigError, match=text):
            values(**bad)
    assert values(linger_ms="7", enable_idempotence="FALSE")["linger.ms"] == 7


def test_a_record_larger_than_a_request_or_the_pool_is_refused() -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        with (
            log.producer(max_request_size=1000) as producer,
            pytest.raises(MessageTooLarge, match=r"max\.request\.size"),
        ):
            producer.send("t", bytes(2000))
        with log.producer(buffer_memory=1000) as producer, pytest.raises(MessageTooLarge, match=r"buffer\.memory"):
            producer.send("t", bytes(2000))


# ---------------------------------------------------------------- the table against tests and code


def marked() -> set[str]:
    """Every name in a mark `setting` of the tests."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        if "mark.setting" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setting":
                found |= {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
    return found


def test_every_setting_is_shown_by_a_test() -> None:
    names = {setting.name for setting in (*PRODUCER, *CONSUMER)}
    assert names - marked() == set()
    assert marked() - names == set()


class Watched(dict[str, Any]):
    """Settings that know which of them were asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


REFUSED = {"security.protocol", "enable.metrics.push", "transaction.two.phase.commit.enable"}
"""Of these, the one value that is offered means that there is nothing to do."""


def test_every_setting_of_a_producer_is_read_by_the_code_that_runs() -> None:
    read: set[str] = set()
    codecs = ({"compression_type": name} for name in ("gzip", "lz4", "zstd"))
    with logkernel.open() as log:
        log.create_topic("t")
        address = log.listen()
        for more in ({}, {"transactional_id": "x", "transaction_timeout_ms": 10_000}, *codecs):
            given = Watched(load_producer({"bootstrap_servers": address, **more}))
            driver = ThreadDriver(make_sender(given, bootstrap_places(given), log.kernel), given, log.kernel, "tcp")
            with Producer(driver, log.kernel, given) as producer:
                if "transactional_id" in more:
                    producer.init_transactions()
                    producer.begin_transaction()
                producer.send("t", b"v").result(20)
            read |= given.read
    assert {setting.name for setting in PRODUCER} - read == REFUSED


def test_every_setting_of_a_consumer_is_read_by_the_code_that_runs() -> None:
    read: set[str] = set()
    with logkernel.open(group_initial_rebalance_delay_ms=0) as log:
        log.create_topic("t")
        log.append("t", b"v")
        address = log.listen()
        for more in ({}, {"group_id": "a"}, {"group_id": "b", "group_protocol": "consumer"}):
            wanted = {"bootstrap_servers": address, "auto_offset_reset": "earliest", **more}
            given = Watched(load_consumer(wanted))
            machine = make_consumption(given, bootstrap_places(given), log.kernel)
            with Consumer(ThreadDriver(machine, given, log.kernel, "tcp"), log.kernel, given) as consumer:
                consumer.subscribe(pattern=re.compile("t"))
                while not consumer.poll(1):
                    pass
            read |= given.read
    assert {setting.name for setting in CONSUMER} - read == REFUSED & {setting.name for setting in CONSUMER}


def test_every_name_of_old_stands_for_a_setting() -> None:
    assert set(ALIASES.values()) <= {setting.name for setting in PRODUCER}
