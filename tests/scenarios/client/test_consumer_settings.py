"""What the consumer's settings do, seen in the requests that its machine sends; see also `test_settings`."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest

import logkernel
from logkernel.broker.broker import Broker
from logkernel.client.consumer.consumer_machine import ConsumerMachine
from logkernel.client.consumer.positions import FAILED, FETCHING, VALIDATING, LogTruncated
from logkernel.client.settings.consumer import load_consumer
from logkernel.config.durations import duration_ms
from logkernel.errors import ConfigError, FencedInstanceId, RequestTimedOut
from logkernel.kernel import Kernel
from logkernel.peer.network import Connect, Transmit
from logkernel.record.encode import encode_batch
from logkernel.requests.cluster import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from logkernel.requests.data import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from logkernel.requests.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from logkernel.requests.offsets import (
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from logkernel.vocabulary import Record, TopicPartition

KERNEL = Kernel()
T0 = TopicPartition("t", 0)


class World:
    """A machine in virtual time, and a cluster that the test plays."""

    def __init__(self, partitions: int = 2, **settings: Any) -> None:
        values = load_consumer({"bootstrap_servers": "host:1", **settings})
        self.machine = ConsumerMachine(values, [("host", 1)], Random(1), KERNEL.codec_for)
        self.now_ms = 1000
        self.partitions = partitions
        self.epoch = 0
        self.sent: list[tuple[int, int, Any]] = []
        self.asked: list[Any] = []

    def run(self, ms: int = 0) -> World:
        end_ms = self.now_ms + ms
        while True:
            self._settle()
            if self.now_ms >= end_ms:
                return self
            self.now_ms = min(end_ms, self.now_ms + 100)

    def _settle(self) -> None:
        network = self.machine.core.network
        for _ in range(100):
            self.machine.step(0, self.now_ms)
            actions, network.actions = network.actions, []
            if not actions:
                return
            for action in actions:
                if isinstance(action, Connect):
                    network.on_connected(action.number, {}, self.now_ms)
                elif isinstance(action, Transmit):
                    self.asked.append(action.request)
                    answer = self._answer(action.request)
                    if answer is None:
                        self.sent.append((action.number, action.request_id, action.request))
                    else:
                        network.on_response(action.number, action.request_id, answer, self.now_ms)
        raise AssertionError("the machine does not come to rest")

    def _answer(self, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            rows = [MetadataResponsePartition(0, p, 1, leader_epoch=self.epoch) for p in range(self.partitions)]
            topics = [MetadataResponseTopic(0, topic.name, rows) for topic in request.topics or ()]
            return MetadataResponse([MetadataResponseBroker(1, "a", 1), MetadataResponseBroker(2, "b", 2)], topics, 1)
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(coordinators=[Coordinator(request.key, 1, "a", 1)])
        return None

    def waiting(self, kind: type) -> list[Any]:
        return [request for _, _, request in self.sent if isinstance(request, kind)]

    def reply(self, kind: type, response: Any) -> None:
        for row in self.sent:
            if isinstance(row[2], kind):
                self.sent.remove(row)
                self.machine.core.network.on_response(row[0], row[1], response, self.now_ms)
                self.run()
                return
        raise AssertionError(f"no {kind.__name__} is waiting: {self.sent}")

    def assigned(self, *offsets: int) -> World:
        """Partitions 0, 1, ... are read from these offsets on."""
        self.machine.assign([TopicPartition("t", index) for index in range(len(offsets))], self.now_ms)
        for index, offset in enumerate(offsets):
            self.machine.parts[TopicPartition("t", index)].place(offset)
        return self.run()

    def fetched(self, size: int = 100, partition: int = 0, offset: int = 0, session: int = 7, **fields: Any) -> None:
        records = bytearray(encode_batch([Record(None, bytes(size))]))
        records[:8] = offset.to_bytes(8, "big")
        row = PartitionData(partition, records=bytes(records), high_watermark=offset + 1, **fields)
        self.reply(FetchRequest, FetchResponse(0, [FetchableTopicResponse("t", [row])], session_id=session))

    def joined(self) -> World:
        """Subscribed, and in the group as a member that follows."""
        self.machine.subscribe(["t"], self.now_ms)
        self.machine.polled(self.now_ms)
        self.run()
        self.reply(JoinGroupRequest, JoinGroupResponse(0, 1, "range", "other", "me"))
        self.reply(SyncGroupRequest, SyncGroupResponse(0, b""))
        return self


@pytest.mark.setting(
    "fetch.min.bytes", "fetch.max.wait.ms", "fetch.max.bytes", "max.partition.fetch.bytes", "client.rack"
)
def test_a_fetch_says_what_the_settings_say() -> None:
    world = World(
        fetch_min_bytes=5, fetch_max_wait_ms=77, fetch_max_bytes=900, max_partition_fetch_bytes=300, client_rack="r"
    ).assigned(3)
    (request,) = world.waiting(FetchRequest)
    assert (request.min_bytes, request.max_wait_ms, request.max_bytes, request.rack_id) == (5, 77, 900, "r")
    assert [(p.partition, p.fetch_offset, p.partition_max_bytes) for p in request.topics[0].partitions] == [(0, 3, 300)]


def test_what_is_held_is_bounded_and_full_partitions_are_forgotten() -> None:
    world = World(fetch_max_bytes=1000, max_partition_fetch_bytes=150).assigned(0, 0)
    world.fetched(size=100)
    (request,) = world.waiting(FetchRequest)
    assert (request.session_id, request.session_epoch, request.topics) == (7, 1, [])
    assert [(row.topic, row.partitions) for row in request.forgotten_topics_data] == [("t", [0])]
    assert request.max_bytes < 1000
    world.fetched(size=800, partition=1)
    assert world.waiting(FetchRequest) == [], "more than half is held"
    assert len(world.machine.take(10)) == 2
    world.run()
    (request,) = world.waiting(FetchRequest)
    assert {p.partition: p.fetch_offset for p in request.topics[0].partitions} == {0: 1, 1: 1}


def test_a_session_begins_anew_after_an_error() -> None:
    world = World().assigned(0)
    world.fetched()
    world.reply(FetchRequest, FetchResponse(error_code=70))
    (request,) = world.waiting(FetchRequest)
    assert (request.session_id, request.session_epoch, len(request.topics)) == (0, 0, 1)


def test_a_closer_replica_is_fetched_from_until_it_fails() -> None:
    world = World(client_rack="r").assigned(0)
    world.reply(
        FetchRequest, FetchResponse(0, [FetchableTopicResponse("t", [PartitionData(0, preferred_read_replica=2)])])
    )
    number = world.sent[-1][0]
    assert world.machine.core.network._numbers[number].id == 2
    world.reply(FetchRequest, FetchResponse(0, [FetchableTopicResponse("t", [PartitionData(0, error_code=1)])]))
    world.run(2000)
    assert world.machine.core.network._numbers[world.sent[-1][0]].id == 1
    assert world.machine.parts[T0].state == FETCHING


@pytest.mark.parametrize(("reset", "state"), [("earliest", FETCHING), ("none", FAILED)])
def test_a_log_that_was_cut_is_noticed_under_a_new_leader(reset: str, state: int) -> None:
    world = World(auto_offset_reset=reset, metadata_max_age_ms=100).assigned(0)
    world.fetched(offset=9)
    assert world.machine.take(10)[0].offset == 9
    world.machine.parts[T0].epoch, world.epoch = 0, 1
    world.run(500)
    assert world.machine.parts[T0].state == VALIDATING
    row = OffsetForLeaderEpochEpochEndOffset(0, 0, 0, 6)
    world.reply(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse(0, [OffsetForLeaderTopicResult("t", [row])]))
    part = world.machine.parts[T0]
    assert part.state == state
    if reset == "none":
        with pytest.raises(LogTruncated, match="ends at 6"):
            world.machine.take(10)
    else:
        assert part.position == 6


@pytest.mark.setting("group.id", "session.timeout.ms", "heartbeat.interval.ms")
def test_a_member_joins_and_beats_without_further_polls() -> None:
    world = World(group_id="g", session_timeout_ms=7000, heartbeat_interval_ms=1000, max_poll_interval_ms=9000).joined()
    (join,) = [request for request in world.asked if isinstance(request, JoinGroupRequest)]
    assert (join.session_timeout_ms, join.rebalance_timeout_ms) == (7000, 9000)
    for _ in range(3):
        world.run(1000)
        world.reply(HeartbeatRequest, HeartbeatResponse())
    world.run(6500)
    assert world.waiting(LeaveGroupRequest), "no poll for 9 s"
    assert world.machine.group is not None
    assert not world.machine.group.member


def test_a_fenced_member_is_told() -> None:
    world = World(group_id="g", group_instance_id="i").joined()
    world.run(3000)
    world.reply(HeartbeatRequest, HeartbeatResponse(FencedInstanceId.code))
    with pytest.raises(FencedInstanceId):
        world.machine.raise_error()


def test_questions_end_after_their_time() -> None:
    world = World(default_api_timeout_ms=500)
    question = world.machine.fetcher.offsets_by_time({T0: -1}, world.now_ms + 500)
    world.machine.questions.append(question)
    world.run(600)
    assert isinstance(question.errors[T0], RequestTimedOut)
    read = World(group_id="g", default_api_timeout_ms=500)
    read.machine.assign([T0], read.now_ms)
    read.run(100)
    assert read.waiting(OffsetFetchRequest)


@pytest.mark.setting("allow.auto.create.topics")
@pytest.mark.parametrize("allowed", [True, False])
def test_metadata_may_make_topics(allowed: bool) -> None:
    world = World(allow_auto_create_topics=allowed).assigned(0)
    assert {one.allow_auto_topic_creation for one in world.asked if isinstance(one, MetadataRequest)} == {allowed}


def test_settings_that_do_not_go_together() -> None:
    for bad, text in (
        ({"group_protocol": "share"}, "one of|classic"),
        ({"group_protocol": "consumer", "session_timeout_ms": 9000}, "the coordinator decides"),
        ({"group_protocol": "consumer", "heartbeat_interval_ms": 9}, "the coordinator decides"),
        ({"group_protocol": "consumer", "partition_assignment_strategy": "range"}, "the coordinator decides"),
        ({"group_remote_assignor": "uniform"}, "needs group.protocol"),
        ({"enable_auto_commit": True}, "needs a group"),
        ({"group_instance_id": "i"}, "needs a group"),
        ({"group_id": "g", "heartbeat_interval_ms": 50_000}, "less than"),
        ({"auto_offset_reset": "by_duration:1h"}, "not an ISO 8601 duration"),
    ):
        with pytest.raises(ConfigError, match=text):
            load_consumer(bad)
    assert load_consumer({"group_id": "g"})["receive.buffer.bytes"] == 65_536
    assert duration_ms("P1DT2H3M4.5S") == 93_784_500


def test_an_embedded_member_beats_while_records_are_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its polls give it a turn where one is due, though none of them needs to wait."""
    asked: list[str] = []
    submit = Broker.submit

    def counted(broker: Broker, request: Any, *rest: Any) -> None:
        asked.append(type(request).__name__)
        submit(broker, request, *rest)

    with logkernel.open(group_initial_rebalance_delay_ms=0) as log:
        log.create_topic("t", 1)
        log.append_many("t", [Record(None, b"v")] * 3000)
        with log.consumer(
            "t", group="g", auto_offset_reset="earliest", heartbeat_interval_ms=300, enable_auto_commit=False
        ) as consumer:
            assert len(consumer.poll(20, 1)) == 1
            monkeypatch.setattr(Broker, "submit", counted)
            polls = 0
            while (asked.count("HeartbeatRequest") < 3 or polls < 100) and polls < 2500:
                assert len(consumer.poll(0, 1)) == 1
                polls += 1
                time.sleep(0.001)
            beats = asked.count("HeartbeatRequest")  # as many as fit in, where a poll takes long
            assert beats >= 3
            assert len(asked) - beats < polls / 2
