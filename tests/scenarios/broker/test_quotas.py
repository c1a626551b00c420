"""`quotas`: a topic's plugins hold back clients that use too much of it (KIP-219)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.hand_clock import HandClock

import logkernel
from logkernel.broker.build import build
from logkernel.contracts import Quota, RequestContext, Usage
from logkernel.embed import EmbeddedLog
from logkernel.errors import InvalidConfig, UnknownServerError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from logkernel.testing import Kafka
from logkernel.vocabulary import Record

TOPIC = "t"
BATCH = encode_batch([Record(value=bytes(1_000), timestamp_ms=5)])


class Scripted:
    """A quota `a` that answers what the test says."""

    def __init__(self) -> None:
        self.answer: Callable[[Usage], Any] = lambda usage: 0
        self.seen: list[Usage] = []
        self.made = 0

    @hookimpl
    def logkernel_quota(self, name: str, settings: Mapping[str, Any]) -> Quota | None:
        if name != "a":
            return None
        self.made += 1
        return self

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("quota", "a")]

    def throttle(self, usage: Usage) -> Any:
        self.seen.append(usage)
        return self.answer(usage)


@pytest.fixture
def script() -> Scripted:
    return Scripted()


@pytest.fixture
def log(script: Scripted) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(build(None, (), in_memory=True, kernel=Kernel(plugins=[script]))) as found:
        found.create_topic(TOPIC, partitions=2, config={"quotas": "a"})
        found.create_topic("plain")
        yield found


@pytest.fixture
def muted() -> list[int]:
    return []


@pytest.fixture
def client(muted: list[int]) -> RequestContext:
    return RequestContext(client_id="billing", mute=muted.append)


def produce(log: EmbeddedLog, client: RequestContext, *topics: str, partition: int = 0) -> ProduceResponse:
    found: list[ProduceResponse] = []
    rows = [TopicProduceData(topic, [PartitionProduceData(partition, bytearray(BATCH))]) for topic in topics]
    log.broker.submit(ProduceRequest(None, -1, 1_000, rows), client, found.append)
    log.broker.step()
    return found[0]


def fetch(log: EmbeddedLog, client: RequestContext, *topics: str) -> FetchResponse:
    found: list[FetchResponse] = []
    rows = [FetchTopic(topic, [FetchPartition(0, 0, 1 << 20)]) for topic in topics]
    log.broker.submit(FetchRequest(topics=rows), client, found.append)
    return found[0]


def test_a_writer_is_answered_and_held_back(
    log: EmbeddedLog, script: Scripted, client: RequestContext, muted: list[int]
) -> None:
    script.answer = lambda usage: 700
    response = produce(log, client, "plain", TOPIC)
    assert response.throttle_time_ms == 700
    assert [row.partition_responses[0].error_code for row in response.responses] == [0, 0]
    assert muted == [700]
    (usage,) = script.seen
    assert (usage.topic, usage.partition, usage.written, usage.read) == (TOPIC, 0, len(BATCH), 0)
    assert usage.client.client_id == "billing"


def test_a_reader_is_answered_and_held_back(
    log: EmbeddedLog, script: Scripted, client: RequestContext, muted: list[int]
) -> None:
    produce(log, client, TOPIC)
    script.seen.clear()
    script.answer = lambda usage: 300
    response = fetch(log, client, TOPIC)
    assert (response.throttle_time_ms, muted) == (300, [300])
    (usage,) = script.seen
    assert (usage.topic, usage.partition, usage.written, usage.read) == (TOPIC, 0, 0, len(BATCH))


def test_a_topic_that_names_none_asks_nobody(
    log: EmbeddedLog, script: Scripted, client: RequestContext, muted: list[int]
) -> None:
    assert produce(log, client, "plain").throttle_time_ms == 0
    assert fetch(log, client, "plain").throttle_time_ms == 0
    assert (script.seen, muted, log.broker.replicas.led["plain", 0].quotas) == ([], [], None)


def test_all_partitions_of_a_topic_share_one_object(log: EmbeddedLog, script: Scripted, client: RequestContext) -> None:
    for partition in (0, 1, 0):
        produce(log, client, TOPIC, partition=partition)
    assert (script.made, len(script.seen)) == (1, 3)
    with log.admin() as admin:
        admin.alter_configs({("topic", TOPIC): {"produce.quota.bytes.per.second": "5"}})
    assert script.made == 2


def test_longer_times_are_cut(log: EmbeddedLog, script: Scripted, client: RequestContext, muted: list[int]) -> None:
    script.answer = lambda usage: 10**12
    produce(log, client, TOPIC)
    assert muted == [60_000]


@pytest.mark.parametrize("answer", [lambda usage: 1 // 0, lambda usage: None, lambda usage: -1, lambda usage: 0.5])
def test_one_that_fails_fails_its_topic_alone(
    log: EmbeddedLog, script: Scripted, client: RequestContext, answer: Callable[[Usage], Any]
) -> None:
    produce(log, client, TOPIC)
    script.answer = answer
    failed, well = (row.partition_responses[0] for row in produce(log, client, TOPIC, "plain").responses)
    assert (failed.error_code, well.error_code) == (UnknownServerError.code, 0)
    assert f"plugin 'Scripted' in {__file__!r}" in failed.error_message
    failed_read, read = (row.partitions[0] for row in fetch(log, client, TOPIC, "plain").responses)
    assert (failed_read.error_code, failed_read.records, read.error_code) == (UnknownServerError.code, None, 0)
    assert [fault.place for fault in log.broker.runtime.kernel.faults] == ["quota a"]
    script.answer = lambda usage: 0
    assert len(list(log.read(TOPIC))) == 1, "what was refused is not in the log"


def test_requests_fail_while_the_plugin_is_missing(tmp_path: Any, script: Scripted, client: RequestContext) -> None:
    with EmbeddedLog(build(None, [f"log.dirs={tmp_path}"], kernel=Kernel(plugins=[script]))) as log:
        log.create_topic(TOPIC, config={"quotas": "a"})
    with EmbeddedLog(build(None, [f"log.dirs={tmp_path}"], kernel=Kernel())) as log:
        (row,) = produce(log, client, TOPIC).responses[0].partition_responses
        assert row.error_code == UnknownServerError.code
        assert "no plugin provides the quota 'a'" in row.error_message


def test_the_built_in_quota_keeps_to_its_rate(client: RequestContext, muted: list[int]) -> None:
    size = len(BATCH)
    with EmbeddedLog(build(None, (), in_memory=True, clock=HandClock(1_000))) as log:
        config = {"quotas": "rate", "produce.quota.bytes.per.second": str(size), "fetch.quota.bytes.per.second": "10"}
        log.create_topic(TOPIC, config=config)
        assert produce(log, client, TOPIC).throttle_time_ms == 0, "one second's worth passes at once"
        assert produce(log, client, TOPIC).throttle_time_ms == 1_000
        assert produce(log, client, TOPIC).throttle_time_ms == 2_000
        assert fetch(log, client, TOPIC).throttle_time_ms == 60_000
        with pytest.raises(InvalidConfig):
            log.create_topic("u", config={"produce.quota.bytes.per.second": "0"})
        with pytest.raises(InvalidConfig, match="one of: rate"):
            log.create_topic("u", config={"quotas": "none such"})


def test_a_client_over_its_quota_gets_slower_and_loses_nothing() -> None:
    """Over TCP: it is told, and its connection waits. Two records a second: a machine that stalls between them uses the
    quota of two alone."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    config = {"quotas": "rate", "produce.quota.bytes.per.second": "100000"}
    with Kafka(topics={TOPIC: config}) as kafka:
        told: list[Any] = []
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "throttle_cb": told.append, "linger.ms": 0,
             "batch.size": 50_000, "max.in.flight": 1}
        )  # fmt: skip
        for number in range(6):
            producer.produce(TOPIC, b"%02d" % number + bytes(45_000))
        assert producer.flush(60) == 0
        producer.poll(0)
        assert max(event.throttle_time for event in told) > 0.05
        with logkernel.connect(kafka.bootstrap_servers).producer(linger_ms=0) as ours:
            for number in range(6, 9):
                ours.send(TOPIC, b"%02d" % number + bytes(45_000)).result(60)
        reader = confluent_kafka.Consumer(
            {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        reader.subscribe([TOPIC])
        values = [message.value()[:2] for message in reader.consume(9, 60)]
        reader.close()
        assert sorted(values) == [b"%02d" % number for number in range(9)]
