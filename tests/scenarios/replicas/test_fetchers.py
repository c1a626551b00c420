"""What a fetcher costs: it looks at partitions that moved or pause, not at all that it follows."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

import pytest

from logkernel.broker.peers import Peers
from logkernel.broker.replicas.fetchers import ReplicaFetchers
from logkernel.broker.replicas.follower_replica import FollowerReplica
from logkernel.contracts import Answer
from logkernel.errors import TopicAuthorizationFailed
from logkernel.record.encode import encode_batch
from logkernel.requests.data import FetchableTopicResponse, FetchResponse, PartitionData
from logkernel.requests.replication import LeaderAndIsrPartitionState
from logkernel.vocabulary import Record, TopicPartition

from .conftest import NAME, Make


class Wire:
    """Keeps what was sent, until the test answers."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Answer]] = []

    def send(self, target: int, request: Any, answer: Answer, failed: Any, timeout_ms: int) -> None:
        self.sent.append((request, answer))

    def close(self) -> None:
        """It has nothing open."""


def test_a_fetch_looks_at_no_partition_that_is_idle(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    node, wire = make(2), Wire()
    broker = node.broker
    fetchers = ReplicaFetchers(
        broker.runtime, Peers(broker.runtime, broker.turn, wire), lambda: -1, broker.replicas.keep_log_starts
    )
    settings = broker.metadata.topic_settings(NAME.topic)
    for index in range(100):
        name = TopicPartition(NAME.topic, index)
        state = LeaderAndIsrPartitionState(index, 1, 1, 0, [1, 2], 0, [1, 2], is_new=True)
        node.replicas.take(name, UUID(int=7), state, settings)
        fetchers.follow(node.replicas.followed[name], 1)
    node.pass_ms(1)
    looked: list[TopicPartition] = []
    for method in ("next_fetch", "next_deadline"):
        whole = getattr(FollowerReplica, method)

        def counted(self: FollowerReplica, *args: Any, whole: Any = whole) -> Any:
            looked.append(self.name)
            return whole(self, *args)

        monkeypatch.setattr(FollowerReplica, method, counted)
    for number in range(3):
        request, answer = wire.sent.pop()
        assert len(request.topics[0].partitions if request.topics else []) == (0 if number else 100)
        row = PartitionData(7, high_watermark=0, log_start_offset=0)
        rows = [FetchableTopicResponse(topic_id=UUID(int=7), partitions=[row])]
        answer(FetchResponse(session_id=5, responses=rows))
    assert set(looked) == {(NAME.topic, 7)}


def test_an_answer_without_a_session_is_taken(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """It was dropped: a follower whose leader refused it asked again at once, 500 times a second, and said nothing; one
    whose leader had no room for its session asked for the same records for ever. Then each partition said it."""
    node, wire = make(2), Wire()
    broker = node.broker
    fetchers = ReplicaFetchers(
        broker.runtime, Peers(broker.runtime, broker.turn, wire), lambda: -1, broker.replicas.keep_log_starts
    )
    for index in range(100):
        state = LeaderAndIsrPartitionState(index, 1, 1, 0, [1, 2], 0, [1, 2], is_new=True)
        name = TopicPartition(NAME.topic, index)
        node.replicas.take(name, UUID(int=7), state, broker.metadata.topic_settings(NAME.topic))
        fetchers.follow(node.replicas.followed[name], 1)
    node.pass_ms(1)

    def answered(code: int, records: bytes = b"") -> None:
        _, answer = wire.sent.pop()
        rows = [PartitionData(index, code, high_watermark=0, log_start_offset=0) for index in range(100)]
        rows[0].records = records
        answer(FetchResponse(responses=[FetchableTopicResponse(topic_id=UUID(int=7), partitions=rows)]))

    with caplog.at_level(logging.INFO, "logkernel.replica"):
        for pause_ms in (20, 40, 80, 160, 320):
            answered(TopicAuthorizationFailed.code)
            node.pass_ms(pause_ms - 5)
            assert wire.sent == [], "it pauses"
            node.pass_ms(10)
    assert [line.partition(" times=")[2].partition(";")[0] for line in caplog.messages] == ["1", "2", "4"]
    assert "do CLUSTER_ACTION on the cluster" in caplog.messages[0]
    records = encode_batch([Record(None, b"a")], leader_epoch=0)
    answered(0, records)
    node.pass_ms(1)
    assert wire.sent[0][0].topics[0].partitions[0].fetch_offset == 1
