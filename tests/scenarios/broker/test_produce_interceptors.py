"""`produce.interceptors`: a topic's plugins see each record before it is stored, and may replace or refuse it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import logkernel
from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import ProduceInterceptor, Refusal, RequestContext, WriteFacts
from logkernel.embed import EmbeddedLog
from logkernel.errors import (
    InvalidConfig,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    PolicyViolation,
    UnknownServerError,
)
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from logkernel.testing import Kafka
from logkernel.vocabulary import Record

Decide = Callable[[Record, WriteFacts], Any]
TOPIC = "t"


class Scripted:
    """Interceptors by name: each calls the function that the test gives it."""

    def __init__(self) -> None:
        self.decide: dict[str, Decide] = {"a": lambda record, write: record, "b": lambda record, write: record}
        self.made: list[str] = []
        self.seen: list[tuple[Record, WriteFacts]] = []

    @hookimpl
    def logkernel_produce_interceptor(self, name: str, settings: Mapping[str, Any]) -> ProduceInterceptor | None:
        if name not in self.decide:
            return None
        self.made.append(name)
        return _Calls(self, name)

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("produce interceptor", name) for name in self.decide]


class _Calls:
    def __init__(self, script: Scripted, name: str) -> None:
        self.script = script
        self.name = name

    def on_record(self, record: Record, write: WriteFacts) -> Any:
        self.script.seen.append((record, write))
        return self.script.decide[self.name](record, write)


@pytest.fixture
def script() -> Scripted:
    return Scripted()


@pytest.fixture
def broker(script: Scripted) -> Broker:
    return build(None, (), in_memory=True, kernel=Kernel(plugins=[script]))


@pytest.fixture
def log(broker: Broker) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(broker) as found:
        found.create_topic(TOPIC, config={"produce.interceptors": "a"})
        found.create_topic("plain")
        yield found


def values(log: EmbeddedLog, topic: str = TOPIC) -> list[bytes | None]:
    return [record.value for record in log.read(topic)]


def produce(broker: Broker, batch: bytes, topic: str = TOPIC) -> Any:
    """What a client is answered."""
    found: list[ProduceResponse] = []
    request = ProduceRequest(None, -1, 1_000, [TopicProduceData(topic, [PartitionProduceData(0, bytearray(batch))])])
    broker.submit(request, RequestContext(client_id="billing", client_host="10.0.0.7"), found.append)
    broker.step()
    return found[0].responses[0].partition_responses[0]


def test_it_sees_what_is_written_and_by_whom(broker: Broker, log: EmbeddedLog, script: Scripted) -> None:
    record = Record(b"k", b"v", (("h", None), ("h", b"2")), 1_700_000_000_000)
    assert produce(broker, encode_batch([record, Record(None, None, (), 1_700_000_000_001)])).error_code == 0
    (first, write), (second, _) = script.seen
    assert (first.key, first.value, first.headers, first.timestamp_ms, first.offset) == (
        b"k", b"v", (("h", None), ("h", b"2")), 1_700_000_000_000, 0
    )  # fmt: skip
    assert (second.key, second.value, second.offset) == (None, None, 1)
    assert (write.topic, write.partition, write.transactional) == (TOPIC, 0, False)
    assert (write.client.client_id, write.client.client_host) == ("billing", "10.0.0.7")


def test_a_topic_that_names_none_asks_nobody(broker: Broker, log: EmbeddedLog, script: Scripted) -> None:
    log.append("plain", b"v")
    assert script.seen == []
    assert broker.replicas.led["plain", 0].interceptors is None


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
def test_a_record_is_replaced_and_its_batch_keeps_all_else(
    broker: Broker, log: EmbeddedLog, script: Scripted, codec: str, tmp_path: Any
) -> None:
    script.decide["a"] = lambda record, write: Record(
        b"masked", (record.value or b"").upper(), (*record.headers, ("seen-by", b"a")), record.timestamp_ms + 5
    )
    log.append(TOPIC, b"first")
    with log.producer(compression_type=codec, linger_ms=50, enable_idempotence=True) as producer:
        sent = [producer.send(TOPIC, b"v%d" % number, key=b"k", timestamp_ms=1_000 + number) for number in range(300)]
        assert [one.result(60).offset for one in sent] == list(range(1, 301))
    rows = list(log.read(TOPIC))
    assert [row.value for row in rows] == [b"FIRST", *(b"V%d" % number for number in range(300))]
    assert {row.key for row in rows} == {b"masked"}
    assert rows[7].timestamp_ms == 1_011
    assert rows[7].headers == (("seen-by", b"a"),)
    facts = list(batches(stored(broker)))
    assert {one.codec_id for one in facts[1:]} == {("none", "gzip", "snappy", "lz4", "zstd").index(codec)}
    assert all(one.producer_id >= 0 and one.last_offset - one.base_offset + 1 == one.count for one in facts[1:])


def stored(broker: Broker, topic: str = TOPIC) -> bytes:
    found = broker.replicas.led[topic, 0].log.read(0, 1 << 20, None, min_one=True)
    assert found is not None
    return found.read()


def test_what_it_leaves_alone_is_stored_byte_for_byte(broker: Broker, log: EmbeddedLog) -> None:
    batch = encode_batch([Record(b"k", b"v", (("h", b"1"),), 5)])
    produce(broker, batch)
    assert stored(broker)[16:] == batch[16:]


def test_a_record_changed_in_place_is_replaced(log: EmbeddedLog, script: Scripted) -> None:
    def redact(record: Record, write: WriteFacts) -> Record:
        record.value = b"-"
        return record

    script.decide["a"] = redact
    log.append(TOPIC, b"secret")
    assert values(log) == [b"-"]


def test_interceptors_work_in_their_order(log: EmbeddedLog, script: Scripted) -> None:
    script.decide = {
        name: lambda record, write, name=name: Record(None, (record.value or b"") + name.encode(), (), 5)
        for name in "ab"
    }
    for number, order in enumerate(("a,b", "b,a")):
        log.create_topic(f"t{number}", config={"produce.interceptors": order})
        log.append(f"t{number}", b"-")
    assert (values(log, "t0"), values(log, "t1")) == ([b"-ab"], [b"-ba"])


def test_a_refusal_says_which_record_and_why_and_nothing_of_the_batch_is_written(
    broker: Broker, log: EmbeddedLog, script: Scripted
) -> None:
    script.decide["a"] = lambda record, write: Refusal("no card numbers") if record.value == b"4111" else record
    row = produce(broker, encode_batch([Record(value=b"ok", timestamp_ms=5), Record(value=b"4111", timestamp_ms=5)]))
    assert (row.error_code, row.base_offset) == (InvalidRecord.code, -1)
    assert [(one.batch_index, one.batch_index_error_message) for one in row.record_errors] == [(1, "no card numbers")]
    assert row.error_message == "record 1: no card numbers"
    assert values(log) == []
    with pytest.raises(InvalidRecord, match="record 0: no card numbers"):
        log.append(TOPIC, b"4111")
    with log.producer() as producer:
        for value in (b"one", b"4111", b"two"):
            delivery = producer.send(TOPIC, value)
            if value == b"4111":
                with pytest.raises(InvalidRecord, match="no card numbers"):
                    delivery.result(60)
            else:
                delivery.result(60)
    assert values(log) == [b"one", b"two"], "the producer's sequence goes on"


def test_refusals_are_bounded(broker: Broker, log: EmbeddedLog, script: Scripted) -> None:
    script.decide["a"] = lambda record, write: Refusal("x" * 10_000)
    row = produce(broker, encode_batch([Record(value=b"v", timestamp_ms=5)] * 3_000))
    assert len(row.record_errors) == 1_000
    assert {len(one.batch_index_error_message) for one in row.record_errors} == {500}


def boom(record: Record, write: WriteFacts) -> Any:
    raise ZeroDivisionError("oh")


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (boom, "ZeroDivisionError: oh"),
        (lambda record, write: None, "returned None for record 0"),
        (lambda record, write: b"v", "returned b'v' for record 0"),
        (lambda record, write: Record(value="text"), "return a Record of bytes, or a Refusal"),
        (lambda record, write: Record(headers=(("h", "text"),)), "return a Record of bytes, or a Refusal"),
        (lambda record, write: Record(headers=[("h", b"v")]), "return a Record of bytes, or a Refusal"),
        (lambda record, write: Record(timestamp_ms=2**63), "return a Record of bytes, or a Refusal"),
        (lambda record, write: Record(timestamp_ms="now"), "return a Record of bytes, or a Refusal"),
    ],
)
def test_a_plugin_that_fails_fails_its_topic_s_writes_alone(
    broker: Broker, log: EmbeddedLog, script: Scripted, decide: Decide, said: str
) -> None:
    log.append(TOPIC, b"before")
    script.decide["a"] = decide
    row = produce(broker, encode_batch([Record(value=b"v", timestamp_ms=5)]))
    assert row.error_code == UnknownServerError.code
    assert said in row.error_message
    assert f"plugin 'Scripted' in {__file__!r}" in row.error_message
    log.append("plain", b"v")
    assert (values(log), values(log, "plain")) == ([b"before"], [b"v"])
    (fault,) = broker.runtime.kernel.faults
    assert (fault.origin.plugin, fault.place) == ("Scripted", "produce interceptor a")
    script.decide["a"] = lambda record, write: record
    log.append(TOPIC, b"after")
    assert values(log) == [b"before", b"after"]


def test_it_may_refuse_by_an_error_of_kafka(broker: Broker, log: EmbeddedLog, script: Scripted) -> None:
    def refuse(record: Record, write: WriteFacts) -> Any:
        raise PolicyViolation("not on Sundays")

    script.decide["a"] = refuse
    row = produce(broker, encode_batch([Record(value=b"v", timestamp_ms=5)]))
    assert (row.error_code, row.error_message) == (PolicyViolation.code, "not on Sundays")


def test_the_result_has_to_pass_the_topic_s_checks(log: EmbeddedLog, script: Scripted) -> None:
    config = {"produce.interceptors": "a", "max.message.bytes": "1000", "message.timestamp.after.max.ms": "1000"}
    log.create_topic("checked", config={**config, "cleanup.policy": "compact"})
    for decide, error in [
        (lambda record, write: Record(b"k", b"x" * 2_000, (), 5), MessageTooLarge),
        (lambda record, write: Record(None, b"v", (), 5), InvalidRecord),
        (lambda record, write: Record(b"k", b"v", (), write.wall_ms + 10**9), InvalidTimestamp),
    ]:
        script.decide["a"] = decide
        with pytest.raises(error):
            log.append("checked", b"v", key=b"k")
    script.decide["a"] = lambda record, write: Record(b"given", record.value, (), record.timestamp_ms)
    log.append("checked", b"v")
    assert values(log, "checked") == [b"v"]


def test_what_would_not_be_read_again_is_not_written(log: EmbeddedLog, script: Scripted) -> None:
    """A batch that decompresses to more than any reader takes: the cleaner could never rewrite it."""
    script.decide["a"] = lambda record, write: Record(None, bytes(20 << 20), (), 5)
    with log.producer(compression_type="zstd") as producer, pytest.raises(MessageTooLarge, match="uncompressed"):
        producer.send(TOPIC, b"v").result(60)
    assert values(log) == []


def test_a_repeated_batch_is_answered_as_one_whatever_is_decided_now(
    broker: Broker, log: EmbeddedLog, script: Scripted
) -> None:
    batch = encode_batch([Record(value=b"v", timestamp_ms=5)], producer_id=7, producer_epoch=0, base_sequence=0)
    assert produce(broker, batch).error_code == 0
    script.decide["a"] = lambda record, write: Refusal("now forbidden")
    row = produce(broker, batch)
    assert (row.error_code, row.base_offset) == (0, 0)
    assert values(log) == [b"v"]


def test_transactions_are_seen_once_their_coordinator_agreed(log: EmbeddedLog, script: Scripted) -> None:
    script.decide["a"] = lambda record, write: Record(None, b"in %s" % str(write.transactional).encode(), (), 5)
    with log.producer(transactional_id="tx") as producer:
        producer.init_transactions()
        for commit in (True, False):
            producer.begin_transaction()
            producer.send(TOPIC, b"v").result(60)
            producer.commit_transaction() if commit else producer.abort_transaction()
    with log.consumer(isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        assert [record.value for record in consumer.poll(30)] == [b"in True"]
    assert [record.value for record, _ in script.seen] == [b"v", b"v"], "a marker is not shown"


def test_settings_change_it_while_the_broker_runs(broker: Broker, log: EmbeddedLog, script: Scripted) -> None:
    log.append(TOPIC, b"v")
    log.append(TOPIC, b"v")
    assert script.made == ["a"], "one object for the partition"
    with log.admin() as admin:
        admin.alter_configs({("topic", TOPIC): {"retention.ms": "1000000"}})
        log.append(TOPIC, b"v")
        assert script.made == ["a"], "other settings of the core do not concern it"
        admin.alter_configs({("topic", TOPIC): {"produce.interceptors": "b,a"}})
        assert script.made == ["a", "b", "a"]
        admin.alter_configs({("topic", TOPIC): {"produce.interceptors": ""}})
        assert broker.replicas.led[TOPIC, 0].interceptors is None
        with pytest.raises(InvalidConfig, match="one of: a, b"):
            admin.alter_configs({("topic", TOPIC): {"produce.interceptors": "c"}})


def test_writes_fail_while_the_plugin_is_missing(tmp_path: Any, script: Scripted, caplog: Any) -> None:
    """Its records would pass unchecked."""

    def opened(*plugins: object) -> EmbeddedLog:
        return EmbeddedLog(build(None, [f"log.dirs={tmp_path}"], kernel=Kernel(plugins=plugins)))

    with opened(script) as log:
        log.create_topic(TOPIC, config={"produce.interceptors": "a"})
        log.append(TOPIC, b"v")
    with opened() as log:
        assert "no plugin provides the produce interceptor 'a', which is set for topics t" in caplog.text
        with pytest.raises(UnknownServerError, match="no plugin provides the produce interceptor 'a'"):
            log.append(TOPIC, b"w")
        assert values(log) == [b"v"]
    with opened(script) as log:
        log.append(TOPIC, b"w")
        assert values(log) == [b"v", b"w"]


def test_without_any_plugin_none_can_be_named() -> None:
    with logkernel.open() as log, pytest.raises(InvalidConfig, match="no installed plugin provides one"):
        log.create_topic(TOPIC, config={"produce.interceptors": "a"})


def test_librdkafka_is_told_of_the_refusal_and_goes_on() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    script = Scripted()
    script.decide["a"] = lambda record, write: Refusal("no card numbers") if record.value == b"4111" else record
    with Kafka(plugins=[script], topics={TOPIC: {"produce.interceptors": "a"}}) as kafka:
        codes: list[Any] = []
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "compression.type": "lz4"}
        producer = confluent_kafka.Producer(settings)
        for value in (b"ok", b"4111", b"fine"):
            producer.produce(TOPIC, value, callback=lambda error, message: codes.append(error.code() if error else 0))
            assert producer.flush(20) == 0
        assert codes == [0, InvalidRecord.code, 0]
        assert [record.value for record in kafka.records(TOPIC)] == [b"ok", b"fine"]
