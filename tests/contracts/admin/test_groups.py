"""Groups and their offsets; transactions."""

from __future__ import annotations

import time
from typing import Any

import pytest
from administering import Bench
from doors import way_into

import logkernel
from logkernel.client.admin.topics import NewTopic
from logkernel.client.vocabulary import Committed
from logkernel.errors import (
    GroupIdNotFound,
    LogkernelError,
    TransactionalIdNotFound,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.vocabulary import Record, TopicPartition

# ---------------------------------------------------------------- groups


def commit(bench: Bench, group: str, topic: str) -> None:
    bench.admin.create_topics(topic)
    for number in range(5):
        bench.log.append(topic, b"%d" % number)
    with bench.log.consumer(topic, group=group, auto_offset_reset="earliest") as consumer:
        end_s = time.monotonic() + 180
        while not consumer.poll(0.1):
            assert time.monotonic() < end_s


def test_a_classic_group_and_its_members(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics(NewTopic("a", 2))
    settings: dict[str, Any] = {"group_instance_id": "one", "client_id": "c"}
    with bench.log.consumer("a", group="g", **settings) as consumer:
        end_s = time.monotonic() + 180
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < end_s
        assert {name: (row.type, row.state) for name, row in admin.list_groups().items()} == {
            "g": ("classic", "Stable")
        }
        assert admin.list_groups(types=["consumer"]) == {}
        assert admin.list_groups(states=["Empty"]) == {}
        found = admin.describe_groups("g")["g"]
        assert (found.state, found.assignor, found.coordinator, found.protocol_type) == (
            "Stable",
            "range",
            1,
            "consumer",
        )
        (member,) = found.members
        assert (member.instance_id, member.client_id, member.topics) == ("one", "c", ("a",))
        assert member.assigned == (("a", 0), ("a", 1))
        admin.remove_members_from_group("g")
        assert admin.describe_groups("g")["g"].members == []
        with pytest.raises(UnknownMemberId):
            admin.remove_members_from_group("g", member_ids="nobody")
    admin.delete_groups("g")
    assert admin.list_groups() == {}
    with pytest.raises(GroupIdNotFound):
        admin.describe_groups("g")
    with pytest.raises(GroupIdNotFound):
        admin.delete_groups("g")


def test_offsets_of_a_consumer_group(bench: Bench) -> None:
    admin = bench.admin
    commit(bench, "g", "a")
    assert admin.list_consumer_group_offsets("g") == {("a", 0): Committed(5, 0, "")}
    admin.alter_consumer_group_offsets("g", {("a", 0): Committed(3, -1, "why")})
    assert admin.list_consumer_group_offsets("g", [("a", 0)]) == {("a", 0): Committed(3, -1, "why")}
    admin.alter_consumer_group_offsets("other", {("a", 0): 1})
    assert admin.list_consumer_group_offsets("other", require_stable=True)["a", 0].offset == 1
    admin.delete_consumer_group_offsets("g", [("a", 0)])
    assert admin.list_consumer_group_offsets("g") == {}
    with pytest.raises(UnknownTopicOrPartition):
        admin.alter_consumer_group_offsets("g", {("nowhere", 0): 1})


def test_offsets_of_a_share_group(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    for _ in range(4):
        bench.log.append("a", b"v")
    admin.alter_share_group_offsets("s", {("a", 0): 2})
    assert admin.list_groups(types=["share"])["s"].state == "Empty"
    found = admin.list_share_group_offsets("s")
    assert found[TopicPartition("a", 0)].offset == 2
    assert admin.list_share_group_offsets("s", [("a", 0)]) == found
    assert admin.describe_groups(["s"])["s"].type == "share"
    admin.delete_share_group_offsets("s", "a")
    assert admin.list_share_group_offsets("s") == {}
    admin.delete_groups("s")
    assert admin.list_groups() == {}


# ---------------------------------------------------------------- transactions


def test_transactions_are_listed_described_fenced(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    with bench.log.producer(transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("a", b"v").result()
        assert {name: row.state for name, row in admin.list_transactions().items()} == {"t": "Ongoing"}
        assert admin.list_transactions(states=["Empty"], pattern="t.*") == {}
        found = admin.describe_transactions("t")["t"]
        assert (found.state, found.partitions, found.coordinator) == ("Ongoing", (("a", 0),), 1)
        (state,) = admin.describe_producers(("a", 0))["a", 0]
        assert (state.producer_id, state.transaction_start) == (found.producer_id, 0)
        assert admin.list_transactions(producer_ids=[found.producer_id])["t"].producer_id == found.producer_id
        now_ms = time.time_ns() // 1_000_000
        assert admin.find_hanging_transactions(("a", 0), now_ms) == []
        assert admin.find_hanging_transactions(("a", 0), now_ms + 10_000, longest_ms=0) == []
        fenced = admin.fence_producers("t")["t"]
        assert fenced.producer_id == found.producer_id
        assert fenced.epoch > found.producer_epoch
        assert admin.describe_producers([("a", 0)])["a", 0][0].transaction_start == -1
        with pytest.raises(LogkernelError):
            producer.commit_transaction()
    with pytest.raises(TransactionalIdNotFound):
        admin.describe_transactions("nobody")


def test_a_transaction_without_a_coordinator_hangs_until_it_is_aborted(way: str) -> None:
    """Where nobody verifies it, a write of a transaction that its coordinator does not know is open for ever."""
    now_ms = time.time_ns() // 1_000_000
    details: dict[str, Any] = {"producer_id": 4242, "producer_epoch": 3, "base_sequence": 0, "transactional": True}
    data = bytearray(encode_batch([Record(None, b"v", (), now_ms)], **details))
    rows = ProduceRequest("t", -1, 1000, [TopicProduceData("a", [PartitionProduceData(0, data)])])
    with (
        logkernel.open(transaction_partition_verification_enable=False) as log,
        way_into(log, way) as far,
        far.admin() as admin,
    ):
        admin.create_topics("a")
        assert log.request(rows).responses[0].partition_responses[0].error_code == 0
        assert admin.find_hanging_transactions([("a", 0)], now_ms) == []
        (found,) = admin.find_hanging_transactions([("a", 0)], now_ms + 10_000, longest_ms=0)
        assert (found.partition, found.transactional_id) == (("a", 0), None)
        assert (found.producer.producer_id, found.producer.transaction_start) == (4242, 0)
        assert admin.list_offsets({("a", 0): "latest"}, isolation_level="read_committed")["a", 0].offset == 0
        admin.abort_transaction(found.partition, 4242, found.producer.epoch, found.producer.coordinator_epoch)
        assert admin.find_hanging_transactions([("a", 0)], now_ms + 10_000, longest_ms=0) == []
        assert admin.list_offsets({("a", 0): "latest"}, isolation_level="read_committed")["a", 0].offset == 2
