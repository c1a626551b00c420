"""What a leader answers to followers: sessions, waiting, and what it costs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.contracts import RequestContext
from logkernel.errors import ClusterAuthorizationFailed, FencedLeaderEpoch, NotLeaderOrFollower, UnknownLeaderEpoch
from logkernel.partition.follower import FetchPosition
from logkernel.record.encode import encode_batch
from logkernel.requests.data import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from logkernel.requests.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from logkernel.requests.replication import LeaderAndIsrPartitionState
from logkernel.vocabulary import Record, TopicPartition

from .conftest import NAME, Make, Node, ask, catch_up, fetch_request, follow, row_of

Pair = tuple[Node, Node]


class Session:
    """A follower's session: partitions of topic `t`, each with where the follower is."""

    def __init__(self, leader: Node, node_id: int = 2) -> None:
        self.leader = leader
        self.node_id = node_id
        self.session_id = self.epoch = 0
        self.told: list[FetchResponse] = []

    def fetch(self, positions: dict[int, int], *, wait_ms: int = 500, min_bytes: int = 1, epoch: int = 0) -> None:
        """Partition → offset, of those that moved."""
        rows = [
            FetchPartition(index, offset, 1 << 20, 0, epoch, 0 if offset else -1) for index, offset in positions.items()
        ]
        request = FetchRequest(
            replica_id=self.node_id, max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=10 << 20,
            topics=[FetchTopic(NAME.topic, rows)] if rows else [],
            session_id=self.session_id, session_epoch=self.epoch, replica_state=ReplicaState(self.node_id, -1),
        )  # fmt: skip
        self.told = ask(self.leader, request)

    def answer(self) -> dict[int, Any]:
        """Partition → row, of the answer to the last fetch; empties it."""
        (response,) = self.told
        self.told = []
        assert response.error_code == 0
        self.session_id, self.epoch = response.session_id, self.epoch + 1
        return {row.partition_index: row for topic in response.responses for row in topic.partitions}


def lead(node: Node, partitions: int, epoch: int = 0) -> None:
    settings = node.broker.metadata.topic_settings(NAME.topic)
    for index in range(partitions):
        state = LeaderAndIsrPartitionState(index, 1, 1, epoch, [1, 2], epoch, [1, 2], is_new=True)
        assert node.replicas.take(TopicPartition(NAME.topic, index), UUID(int=7), state, settings) == 0
    node.replicas.on_live_brokers(frozenset((1, 2)))
    node.broker.turn.end()


def test_a_fetch_that_names_a_replica_is_refused_where_brokers_do_not_command(pair: Pair) -> None:
    one, two = pair
    position = two.followed.next_fetch(0)
    assert position is not None
    (response,) = ask(one, fetch_request(position, 2), RequestContext())
    assert response.error_code == ClusterAuthorizationFailed.code
    request = fetch_request(position, 2)
    request.replica_id = -1
    (response,) = ask(one, request, RequestContext())
    assert response.error_code == ClusterAuthorizationFailed.code


@pytest.mark.parametrize(
    ("epoch", "node", "error"),
    [(0, 2, FencedLeaderEpoch), (2, 2, UnknownLeaderEpoch), (1, 3, UnknownLeaderEpoch)],
)
def test_verdicts_reach_the_follower(pair: Pair, epoch: int, node: int, error: Any) -> None:
    one, _ = pair
    one.order(1, 1)
    row = row_of(ask(one, fetch_request(FetchPosition(0, -1, epoch, 0), node))[0])
    assert (row.error_code, row.high_watermark) == (error.code, -1)


def test_who_does_not_lead_says_so(pair: Pair) -> None:
    _, two = pair
    row = row_of(ask(two, fetch_request(FetchPosition(0, -1, 0, 0), 1))[0])
    assert row.error_code in (NotLeaderOrFollower.code, 3)  # this broker knows of no topic


def test_a_parked_fetch_is_answered_by_an_append_that_no_consumer_may_see(pair: Pair) -> None:
    one, _ = pair
    session = Session(one)
    session.fetch({0: 0})
    assert not session.answer()[0].records
    session.fetch({})
    assert session.told == []
    one.produce(b"a")
    assert session.answer()[0].records.size > 0
    assert one.led.high_watermark == 0


def test_a_parked_fetch_tells_of_the_watermark_with_the_next_records_or_when_its_wait_ends(make: Make) -> None:
    one = make(1)
    settings = one.broker.metadata.topic_settings(NAME.topic)
    state = LeaderAndIsrPartitionState(0, 1, 1, 0, [1, 2, 3], 0, [1, 2, 3], is_new=True)
    one.replicas.take(NAME, UUID(int=7), state, settings)
    one.replicas.on_live_brokers(frozenset((1, 2, 3)))
    two, three = Session(one), Session(one, 3)
    one.produce(b"a", acks=1)
    for session in (two, three):
        session.fetch({0: 0})
        assert session.answer()[0].records.size > 0
    two.fetch({0: 1})
    assert two.told == [], "3 has not said that it holds the record"
    three.fetch({0: 1}, wait_ms=100)
    assert one.led.high_watermark == 1
    assert (two.told, three.told) == ([], []), "that alone is not worth an answer (KAFKA-9731)"
    one.pass_ms(101)
    assert three.answer()[0].high_watermark == 1
    one.produce(b"b", acks=1)
    assert two.answer()[0].high_watermark == 1


def test_a_parked_fetch_ends_with_its_wait(pair: Pair) -> None:
    one, _ = pair
    session = Session(one)
    session.fetch({0: 0})
    session.answer()
    session.fetch({}, wait_ms=300)
    one.pass_ms(299)
    assert session.told == []
    one.pass_ms(1)
    assert session.answer() == {}


def test_min_bytes_are_waited_for(pair: Pair) -> None:
    one, _ = pair
    session = Session(one)
    session.fetch({0: 0})
    session.answer()
    session.fetch({}, min_bytes=1000)
    one.produce(b"a" * 100, acks=1)
    assert session.told == []
    one.produce(b"a" * 1000, acks=1)
    assert session.answer()[0].records.size > 1000


def test_a_second_divergence_is_told_as_the_first(pair: Pair) -> None:
    one, _ = pair
    one.produce(b"a", acks=1)
    one.order(1, 2)
    one.produce(b"b", acks=1)
    session = Session(one)
    session.fetch({0: 0}, epoch=2)
    session.answer()
    for _ in range(2):
        rows = [FetchPartition(0, 2, 1 << 20, 0, 2, 1)]
        request = FetchRequest(
            replica_id=2, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(NAME.topic, rows)],
            session_id=session.session_id, session_epoch=session.epoch,
        )  # fmt: skip
        session.told = ask(one, request)
        row = session.answer()[0]
        assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 1)


def test_after_a_cut_the_watermark_is_told_again(pair: Pair) -> None:
    """What comes with a divergence is no bound of the log that was cut."""
    one, _ = pair
    one.produce(b"a", acks=1)
    one.order(1, 2)
    session = Session(one)
    rows = [FetchPartition(0, 2, 1 << 20, 0, 2, 1)]
    request = FetchRequest(
        replica_id=2, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, session_epoch=0,
        topics=[FetchTopic(NAME.topic, rows)],
    )  # fmt: skip
    session.told = ask(one, request)
    assert session.answer()[0].diverging_epoch.end_offset == 1
    rows[0] = FetchPartition(0, 1, 1 << 20, 0, 2, 0)
    request = FetchRequest(
        replica_id=2, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(NAME.topic, rows)],
        session_id=session.session_id, session_epoch=session.epoch,
    )  # fmt: skip
    session.told = ask(one, request)
    assert 0 in session.answer()


def test_in_a_new_epoch_the_watermark_is_told_again(pair: Pair) -> None:
    """The answer in the epoch before may have come too late, and been dropped."""
    one, _ = pair
    session = Session(one)
    session.fetch({0: 0})
    session.answer()
    one.order(1, 2)
    session.fetch({0: 0}, epoch=2)
    assert 0 in session.answer()


def test_what_a_limit_hid_is_told_next(make: Make) -> None:
    one = make(1)
    lead(one, 2)
    session = Session(one)
    session.fetch({0: 0, 1: 0})
    session.answer()
    for index in (0, 1):
        _produce(one, index, b"x" * 700_000)
    request = FetchRequest(
        replica_id=2, max_wait_ms=500, min_bytes=1, max_bytes=10, session_id=session.session_id,
        session_epoch=session.epoch,
    )  # fmt: skip
    session.told = ask(one, request)
    first = session.answer()
    assert len(first) == 1
    ((index, row),) = first.items()
    assert row.records.size > 700_000
    session.fetch({index: 1})
    second = session.answer()
    assert second[1 - index].records.size > 700_000


def _produce(node: Node, index: int, value: bytes) -> None:
    replica = node.replicas.led[NAME.topic, index]
    receiver: Any = type("Receiver", (), {"deliver": staticmethod(lambda outcome: None)})()
    replica.produce(bytearray(encode_batch([Record(None, value, timestamp_ms=1)])), 1, receiver, 0, 10_000)
    node.broker.turn.end()


def test_idle_partitions_cost_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make(1)
    lead(one, 200)
    session = Session(one)
    session.fetch(dict.fromkeys(range(200), 0))
    assert len(session.answer()) == 200
    looked: list[TopicPartition] = []
    whole = LeaderReplica.read_to_end

    def counted(self: LeaderReplica, *args: Any, **named: Any) -> Any:
        looked.append(self.name)
        return whole(self, *args, **named)

    fetched: list[TopicPartition] = []
    vote = LeaderReplica.follower_fetched

    def voted(self: LeaderReplica, *args: Any) -> None:
        fetched.append(self.name)
        vote(self, *args)

    monkeypatch.setattr(LeaderReplica, "read_to_end", counted)
    monkeypatch.setattr(LeaderReplica, "follower_fetched", voted)
    session.fetch({})
    _produce(one, 7, b"a")
    assert list(session.answer()) == [7]
    assert looked == [(NAME.topic, 7)]
    assert fetched == []
    session.fetch({7: 1}, wait_ms=100)
    assert fetched == [(NAME.topic, 7)]
    one.pass_ms(101)
    assert session.answer()[7].high_watermark == 1


def test_a_partition_without_followers_has_nobody_to_tell(make: Make) -> None:
    one = make(1)
    one.order(1, 0, isr=(1,), replicas=(1,), is_new=True)
    one.produce(b"a")
    assert one.led.end_news is None
    row = row_of(ask(one, fetch_request(FetchPosition(0, -1, 0, 0), 2))[0])
    assert row.error_code == UnknownLeaderEpoch.code


def test_the_latest_offset_is_the_log_end_for_a_replica_alone(pair: Pair) -> None:
    one, _ = pair
    one.produce(b"a", acks=1)

    def latest(replica_id: int, *, commands: bool) -> int:
        partitions = [ListOffsetsPartition(NAME.partition, timestamp=-1)]
        request = ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(NAME.topic, partitions)])
        offset: int = ask(one, request, RequestContext(commands=commands))[0].topics[0].partitions[0].offset
        return offset

    assert latest(2, commands=True) == 1
    assert latest(2, commands=False) == 0
    assert latest(-1, commands=True) == 0


def test_delete_records_waits_for_the_followers(pair: Pair) -> None:
    one, two = pair
    for _ in range(3):
        one.produce(b"a", acks=1)
    catch_up(two, one)
    told = ask(one, _delete(2), RequestContext())
    assert told == []
    assert one.led.log.start_offset == 2
    follow(two, one)
    assert two.followed.log.start_offset == 2
    assert told == [], "its next fetch tells"
    follow(two, one)
    (row,) = told[0].topics[0].partitions
    assert (row.error_code, row.low_watermark) == (0, 2)


def test_delete_records_does_not_wait_for_the_dead_and_not_for_ever(pair: Pair) -> None:
    one, two = pair
    for _ in range(3):
        one.produce(b"a", acks=1)
    catch_up(two, one)
    told = ask(one, _delete(1, timeout_ms=500), RequestContext())
    one.pass_ms(600)
    assert [row.error_code for row in told[0].topics[0].partitions] == [7]
    told = ask(one, _delete(2), RequestContext())
    one.replicas.on_live_brokers(frozenset((1,)))
    one.broker.turn.end()
    assert [row.low_watermark for row in told[0].topics[0].partitions] == [2]


def test_delete_records_hears_that_the_leader_resigned(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    told = ask(one, _delete(1), RequestContext())
    one.order(2, 1)
    assert told[0].topics[0].partitions[0].error_code != 0


def _delete(offset: int, timeout_ms: int = 5000) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(NAME.partition, offset)]
    return DeleteRecordsRequest([DeleteRecordsTopic(NAME.topic, partitions)], timeout_ms)
