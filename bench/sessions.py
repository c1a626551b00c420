"""Fetch sessions (KIP-227): what a fetch costs that finds nothing new in 1,000 partitions, and an append beside one."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable
from uuid import UUID

import clients
import process
from rig import Rig, Samples

from logkernel.plugins.transport.tcp.channel import TcpChannel
from logkernel.record.encode import encode_batch
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.vocabulary import Record

PARTITIONS = 1000
WARM, ROUNDS = 200, 1000
WAIT_MS = 30_000


def _topic_id(channel: TcpChannel, topic: str) -> UUID:
    (found,) = channel.call(MetadataRequest([MetadataRequestTopic(name=topic)])).topics
    identity: UUID = found.topic_id
    return identity


class _Session:
    """One fetch session over all partitions of a topic, on a connection of its own."""

    def __init__(self, port: int, topic: str) -> None:
        self.channel = TcpChannel("127.0.0.1", port, {})
        self._topic = _topic_id(self.channel, topic)
        asked = [FetchPartition(partition, 0, 1 << 20) for partition in range(PARTITIONS)]
        opened = self.channel.call(
            FetchRequest(session_epoch=0, topics=[FetchTopic(topic_id=self._topic, partitions=asked)])
        )
        assert not opened.error_code, f"no session: {opened.error_code}"
        assert opened.session_id
        self._id, self._epoch = opened.session_id, 0

    def next(self, *, wait_ms: int = 0, offset: int | None = None) -> FetchRequest:
        """An incremental fetch; `offset` is where it goes on in the partition that records are appended to."""
        self._epoch += 1
        topics = (
            []
            if offset is None
            else [FetchTopic(topic_id=self._topic, partitions=[FetchPartition(0, offset, 1 << 20)])]
        )
        return FetchRequest(
            max_wait_ms=wait_ms, min_bytes=1, session_id=self._id, session_epoch=self._epoch, topics=topics
        )

    def settle(self) -> None:
        """Wait until every partition has a leader that answers, and nothing is left to tell."""
        deadline = time.monotonic() + clients.WAIT_S
        while self.channel.call(self.next()).responses:
            assert time.monotonic() < deadline, "the session never becomes idle"


def sessions(rig: Rig) -> Samples:
    """The broker's CPU and the time of one round: a fetch that finds nothing; and an append with the fetch that waited
    for it. Both with one connection a client, one round after another."""
    server, topic = rig.shared, f"bench-{uuid.uuid4().hex[:10]}"
    clients.create_topic(server.bootstrap, topic, PARTITIONS)
    batch = bytes(encode_batch([Record(value=bytes(100), timestamp_ms=time.time_ns() // 1_000_000)]))
    producer, session = TcpChannel("127.0.0.1", server.port, {}), _Session(server.port, topic)
    session.settle()
    appended = 0

    def append() -> None:
        rows = [TopicProduceData(topic, [PartitionProduceData(0, memoryview(bytearray(batch)))])]
        produced = producer.call(ProduceRequest(None, -1, 10_000, rows))
        assert not produced.responses[0].partition_responses[0].error_code

    def idle() -> None:
        found = session.channel.call(session.next())
        assert found.error_code == 0, found
        assert not found.responses, found

    def beside() -> None:
        nonlocal appended
        waiting = session.channel.send(session.next(wait_ms=WAIT_MS, offset=appended))
        append()
        appended += 1
        found = waiting.result(WAIT_MS / 1000)
        assert not found.error_code, found
        assert found.responses[0].partitions[0].records

    def measured(label: str, act: Callable[[], None]) -> Samples:
        for _ in range(WARM):
            act()
        before, took = process.cpu_s(server.pid), []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            act()
            took.append(time.perf_counter() - begun)
        spent = process.cpu_s(server.pid) - before
        return {f"{label}, p50": statistics.median(took) * 1000, f"{label}, broker CPU": spent / ROUNDS * 1e6}

    try:
        return {
            **measured("fetch session of 1,000, idle fetch", idle),
            **measured("fetch session of 1,000, append and fetch", beside),
        }
    finally:
        producer.close()
        session.channel.close()
        clients.delete_topic(server.bootstrap, topic)
