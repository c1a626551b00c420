"""The delay queue's machine alone, in the harness that its author would use: no broker, no disk, no clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logkernel.record.batch import batches
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from logkernel.testing import ClusterStub, SentRequest, ServiceHarness
from logkernel.vocabulary import Record

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "acme-delay-queue" / "src"


class Queue:
    """The harness, with the topic `delayed` of two partitions and a broker that keeps what is produced."""

    def __init__(self, service: Any, cluster: ClusterStub) -> None:
        self.harness = ServiceHarness(service, cluster, broker=self.answer)
        self.produced: list[tuple[str, bytes | None]] = []
        self.refuse = 0

    def answer(self, request: Any) -> Any:
        if isinstance(request, FetchRequest):
            return None  # parked until `put`
        assert isinstance(request, ProduceRequest)
        (topic,) = request.topic_data
        data = topic.partition_data[0].records
        if not self.refuse:
            for facts in batches(data):
                records = decode_batch(data, facts, None, verify_crc=True)  # type: ignore[arg-type]
                self.produced += [(topic.name, record.value) for record in records]
        rows = [PartitionProduceResponse(0, self.refuse)]
        return ProduceResponse([TopicProduceResponse(topic.name, rows)])

    def fetches(self) -> dict[int, SentRequest]:
        """The parked fetch of each partition."""
        found = [sent for sent in self.harness.sent if isinstance(sent.request, FetchRequest)]
        return {sent.request.topics[0].partitions[0].partition: sent for sent in found}

    def put(self, offset: int, value: bytes, *, partition: int = 0, **headers: str) -> None:
        pairs = tuple((name.replace("_", "-"), text.encode()) for name, text in headers.items())
        data = bytearray(encode_batch([Record(b"k", value, pairs, self.harness.wall_ms)]))
        data[0:8] = offset.to_bytes(8, "big")
        row = PartitionData(partition, records=data)
        self.harness.respond(self.fetches()[partition], FetchResponse(responses=[FetchableTopicResponse("", [row])]))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    monkeypatch.syspath_prepend(str(SOURCE))
    from acme_delay_queue.machine import DelayQueue

    cluster = ClusterStub({"delayed": 2, "mails": 1})
    return Queue(DelayQueue("delayed", 1, cluster), cluster)


def keys(queue: Queue) -> list[str]:
    return [(record.key or b"").decode() for record in queue.harness.log()]


def test_each_partition_is_watched_from_where_it_was_read(queue: Queue) -> None:
    queue.put(0, b"a", deliver_to="mails", delay_ms="1000")
    offsets = {number: sent.request.topics[0].partitions[0].fetch_offset for number, sent in queue.fetches().items()}
    assert offsets == {0: 1, 1: 0}
    queue.harness.restart()
    offsets = {number: sent.request.topics[0].partitions[0].fetch_offset for number, sent in queue.fetches().items()}
    assert offsets == {0: 1, 1: 0}


def test_a_record_is_kept_until_it_is_due_and_then_forgotten(queue: Queue) -> None:
    queue.put(0, b"late", deliver_to="mails", delay_ms="1000")
    queue.put(0, b"soon", partition=1, deliver_to="mails", delay_ms="400")
    queue.harness.advance(399)
    assert queue.produced == []
    queue.harness.advance(1)
    assert queue.produced == [("mails", b"soon")]
    queue.harness.advance(600)
    assert queue.produced == [("mails", b"soon"), ("mails", b"late")]
    assert [record.value for record in queue.harness.log()][-1] is None
    queue.harness.compact()
    assert sorted(keys(queue)) == ["at:0", "at:1"]


def test_a_delivery_whose_end_is_not_in_the_log_is_repeated(queue: Queue) -> None:
    queue.put(0, b"once", deliver_to="mails", delay_ms="100")
    queue.harness.fail_append()  # the tombstone
    queue.harness.advance(100)
    queue.harness.advance(1)
    assert queue.produced == [("mails", b"once"), ("mails", b"once")]
    queue.harness.restart()
    queue.harness.advance(60_000)
    assert len(queue.produced) == 2


def test_a_refused_delivery_is_tried_again(queue: Queue) -> None:
    queue.put(0, b"v", deliver_to="mails", delay_ms="1")
    queue.refuse = 3
    queue.harness.advance(1)
    queue.refuse = 0
    queue.harness.advance(4_999)
    assert queue.produced == []
    queue.harness.advance(1)
    assert queue.produced == [("mails", b"v")]


def test_partitions_that_are_added_are_watched(queue: Queue) -> None:
    assert sorted(queue.fetches()) == [0, 1]
    queue.harness.create_topics(delayed=3)
    assert sorted(queue.fetches()) == [0, 1, 2]
