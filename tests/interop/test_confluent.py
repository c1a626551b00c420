"""confluent-kafka (librdkafka): admin, positions by time and by end, refusals."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType

pytestmark = pytest.mark.interop
WAIT_S = 120


@pytest.fixture
def admin(broker_session: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker_session.bootstrap})


def consumer(bootstrap: str, group: str, **settings: Any) -> Consumer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, **named})


def test_a_topic_s_life(admin: AdminClient, topic: str, eventually: Any) -> None:
    def partitions() -> int:
        found = admin.list_topics(timeout=WAIT_S).topics.get(topic)
        return len(found.partitions) if found else 0

    admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "86400000"})])[topic].result(WAIT_S)
    eventually(lambda: partitions() == 2, what="two partitions")
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(WAIT_S)
    eventually(lambda: partitions() == 5, what="five partitions")
    admin.delete_topics([topic])[topic].result(WAIT_S)
    eventually(lambda: partitions() == 0, what="the topic gone")


def test_a_second_topic_of_a_name_is_refused(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
    assert caught.value.args[0].name() == "TOPIC_ALREADY_EXISTS"


def test_an_impossible_setting_is_refused(admin: AdminClient, topic: str) -> None:
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "soon"})])[topic].result(WAIT_S)
    assert caught.value.args[0].name() == "INVALID_CONFIG"


def test_settings_tell_value_source_and_default(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "delete", "segment.bytes": "1048576"})])[
        topic
    ].result(WAIT_S)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert entries["segment.bytes"].value == "1048576"
    assert not entries["segment.bytes"].is_default
    assert entries["retention.ms"].value == "604800000"
    assert entries["retention.ms"].is_default
    assert entries["max.message.bytes"].value == "1048588"


def test_the_broker_s_settings_can_be_read(admin: AdminClient) -> None:
    node = next(iter(admin.list_topics(timeout=WAIT_S).brokers))
    resource = ConfigResource(ResourceType.BROKER, str(node))
    entries = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert entries["log.retention.hours"].value == "168"
    assert entries["num.partitions"].value == "1"


def test_the_cluster_describes_itself(admin: AdminClient, broker_session: Any) -> None:
    cluster = admin.describe_cluster().result(WAIT_S)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker_session.bootstrap]
    assert cluster.controller.id == cluster.nodes[0].id
    assert len(cluster.cluster_id) == 22


def test_offsets_by_beginning_end_and_time(
    admin: AdminClient, clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    records = sorted(sample, key=lambda record: record.timestamp_ms)
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, records)
    place = TopicPartition(topic, 0)

    def offset(spec: Any) -> int:
        return admin.list_offsets({place: spec})[place].result(WAIT_S).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == len(records)
    assert offset(OffsetSpec.max_timestamp()) == len(records) - 1
    middle = len(records) // 2
    assert offset(OffsetSpec.for_timestamp(records[middle].timestamp_ms)) == middle
    assert offset(OffsetSpec.for_timestamp(records[-1].timestamp_ms + 1)) == -1


def test_a_consumer_seeks_by_time(clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic)
    records = sorted(sample, key=lambda record: record.timestamp_ms)
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, records, codec="snappy")
    reader = consumer(broker_session.bootstrap, topic)
    found = reader.offsets_for_times([TopicPartition(topic, 0, records[20].timestamp_ms)], timeout=WAIT_S)
    assert found[0].offset == 20
    reader.assign(found)
    message = reader.poll(WAIT_S)
    assert message is not None
    assert message.offset() == 20
    reader.close()


def test_latest_sees_only_what_comes_after(
    clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample)
    reader = consumer(broker_session.bootstrap, topic, auto_offset_reset="latest")
    assigned: list[int] = []
    reader.subscribe([topic], on_assign=lambda member, parts: assigned.append(member.position(parts) is not None))
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline and not assigned:
        assert reader.poll(0.1) is None
    while reader.position([TopicPartition(topic, 0)])[0].offset < 0 and time.monotonic() < deadline:
        assert reader.poll(0.1) is None
        if reader.get_watermark_offsets(TopicPartition(topic, 0), cached=True)[1] == len(sample):
            break
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample[:1])
    message = reader.poll(WAIT_S)
    assert message is not None
    assert message.offset() == len(sample)
    reader.close()


def test_an_offset_out_of_range_is_an_error(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic)
    reader = consumer(broker_session.bootstrap, topic, auto_offset_reset="error")
    reader.assign([TopicPartition(topic, 0, 999)])
    message = reader.poll(WAIT_S)
    assert message is not None
    assert message.error().name() == "_AUTO_OFFSET_RESET"
    reader.close()


def test_a_record_over_the_topic_s_limit_is_refused(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic, max_message_bytes="1000")
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": broker_session.bootstrap})
    producer.produce(topic, b"x" * 5000, on_delivery=lambda error, _: errors.append(error))
    producer.flush(WAIT_S)
    assert [error.name() for error in errors] == ["MSG_SIZE_TOO_LARGE"]


def test_a_record_beyond_the_fetch_size_is_still_read(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic)
    producer = Producer({"bootstrap.servers": broker_session.bootstrap})
    producer.produce(topic, b"x" * 900_000)
    assert producer.flush(WAIT_S) == 0
    reader = consumer(broker_session.bootstrap, topic, fetch_message_max_bytes=1000, fetch_max_bytes=1000000)
    reader.assign([TopicPartition(topic, 0, 0)])
    message = reader.poll(WAIT_S)
    assert message is not None
    assert len(message.value()) == 900_000
    reader.close()


def test_log_append_time_overrules_the_client(
    clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic, message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample)
    got = clients["kafka-python"].consume(broker_session.bootstrap, topic, len(sample))
    assert all(before_ms <= record.timestamp_ms <= int(time.time() * 1000) for record in got)


def test_records_can_be_deleted_up_to_an_offset(
    admin: AdminClient, clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample)
    place = TopicPartition(topic, 0, 7)
    assert admin.delete_records([place])[place].result(WAIT_S).low_watermark == 7
    reader = consumer(broker_session.bootstrap, topic)
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S) == (7, len(sample))
    reader.close()


def test_an_unwritten_topic_reads_as_empty(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic, 3)
    reader = consumer(broker_session.bootstrap, topic, enable_partition_eof=True)
    reader.assign([TopicPartition(topic, number, 0) for number in range(3)])
    ends = [reader.poll(WAIT_S) for _ in range(3)]
    assert sorted(end.partition() for end in ends) == [0, 1, 2]
    assert {end.error().name() for end in ends} == {"_PARTITION_EOF"}
    reader.close()
