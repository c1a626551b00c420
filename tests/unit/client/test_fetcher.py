"""Fetch sessions, what each answer leads to, and where positions come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import attrs
import pytest

from logkernel.client.cluster.metadata import TopicInfo
from logkernel.client.consumer.fetcher import Fetcher
from logkernel.client.consumer.positions import FAILED, FETCHING, RESETTING, VALIDATING, LogTruncated, NoOffset, Part
from logkernel.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    KafkaStorageError,
    NetworkException,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from logkernel.kernel import Kernel
from logkernel.record.encode import encode_batch
from logkernel.requests.data import FetchableTopicResponse, FetchRequest, FetchResponse, LeaderIdAndEpoch, PartitionData
from logkernel.requests.offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from logkernel.vocabulary import Record, TopicPartition

CODEC_FOR = Kernel().codec_for
ID = UUID(int=5)


def batch(offset: int, values: int = 1, epoch: int = 0) -> bytes:
    data = bytearray(encode_batch([Record(None, b"%d" % (offset + index)) for index in range(values)]))
    data[:8] = offset.to_bytes(8, "big")
    data[12:16] = epoch.to_bytes(4, "big")
    return bytes(data)


class Bench:
    """A fetcher of topic t with partitions at the offsets named; node 1 leads them."""

    def __init__(self, play: Callable[..., Any], *offsets: int, **settings: Any) -> None:
        self.core = play(**settings)
        self.core.learn("t", 4, ID)
        self.fetcher = Fetcher(self.core, self.core.settings, CODEC_FOR)
        self.now_ms = 1000
        for index, offset in enumerate(offsets):
            part = self.fetcher.parts[TopicPartition("t", index)] = Part(TopicPartition("t", index))
            part.place(offset)

    def part(self, index: int = 0) -> Part:
        return self.fetcher.parts[TopicPartition("t", index)]

    def step(self, ms: int = 0) -> Bench:
        self.now_ms += ms
        self.fetcher.step(50_000_000, self.now_ms)
        return self

    def request(self, kind: type = FetchRequest) -> Any:
        (found,) = (request for _, request, _ in self.core.network.sent if isinstance(request, kind))
        return found

    def said(self) -> tuple[int, int, dict[int, int], dict[int, UUID]]:
        """(session, epoch, partition → offset, forgotten partition → topic id) of the fetch under way."""
        request = self.request()
        return (
            request.session_id,
            request.session_epoch,
            {row.partition: row.fetch_offset for topic in request.topics for row in topic.partitions},
            {index: topic.topic_id for topic in request.forgotten_topics_data for index in topic.partitions},
        )

    def reply(self, response: Any, error: Exception | None = None) -> Bench:
        _, _, token = self.core.network.sent.pop(0)
        token.complete(response, error, self.now_ms)
        return self

    def answer(self, *rows: PartitionData, session: int = 7, code: int = 0) -> Bench:
        topics = [FetchableTopicResponse("", list(rows), ID)] if rows else []
        return self.reply(FetchResponse(0, topics, code, session))

    def values(self, limit: int = 100) -> list[bytes]:
        return [row.value for row in self.fetcher.take(limit)]


# ---------------------------------------------------------------- sessions


def test_a_session_says_only_what_is_new(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3, 4).step()
    assert bench.said() == (0, 0, {0: 3, 1: 4}, {})
    bench.answer(PartitionData(0, records=batch(3)), PartitionData(1)).step()
    assert bench.said() == (7, 1, {0: 4}, {})
    bench.answer().step()
    assert bench.said() == (7, 2, {}, {})
    bench.part(1).place(0)
    bench.answer().step()
    assert bench.said() == (7, 3, {1: 0}, {})


def test_a_session_s_epoch_goes_round(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3).step()
    bench.answer(PartitionData(0)).fetcher.sessions[1].epoch = 2**31 - 1
    bench.step().answer().step()
    assert bench.said()[:2] == (7, 1)


def test_a_broker_without_sessions_is_told_all_each_time(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3).step().answer(PartitionData(0), session=0).step()
    assert bench.said() == (0, 0, {0: 3}, {})


@pytest.mark.parametrize("how", ["paused", "revoked", "failed", "seeking", "moved"])
def test_a_fetch_session_names_the_partition_in_forgotten_topics_when_it_is_dropped_from_it(
    play: Callable[..., Any], how: str
) -> None:
    """Else the broker would wait with it, and answer for it, to a reader who does not look."""
    bench = Bench(play, 3, 4).step().answer(PartitionData(0), PartitionData(1))
    part = bench.part(1)
    if how == "paused":
        part.paused = True
    elif how == "revoked":
        del bench.fetcher.parts[part.name]
    elif how == "failed":
        part.fail(CorruptMessage("x"))
    elif how == "seeking":
        part.reset()
        part.asking = True
    else:
        bench.core.metadata.topics["t"].leaders[1] = 2
    bench.step()
    bench.core.network.sent[1:] = []
    assert bench.said() == (7, 1, {}, {1: ID})
    bench.answer().step()
    bench.core.network.sent[1:] = []
    assert bench.said() == (7, 2, {}, {}), "once is enough"


def test_a_topic_made_anew_is_forgotten_under_its_old_id(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3).step().answer(PartitionData(0))
    new = UUID(int=6)
    bench.core.learn("t", 4, new)
    bench.step()
    assert bench.said() == (7, 1, {0: 3}, {0: ID})
    assert bench.request().topics[0].topic_id == new


@pytest.mark.parametrize("error", [FetchSessionIdNotFound, InvalidFetchSessionEpoch, FetchSessionTopicIdError])
def test_a_session_that_is_gone_begins_anew_at_once(play: Callable[..., Any], error: Any) -> None:
    bench = Bench(play, 3).step().answer(PartitionData(0)).step().answer(code=error.code).step()
    assert bench.said() == (0, 0, {0: 3}, {})


@pytest.mark.parametrize("how", ["lost", "refused", "another session"])
def test_an_answer_that_never_came_ends_the_session(play: Callable[..., Any], how: str) -> None:
    bench = Bench(play, 3).step().answer(PartitionData(0)).step()
    if how == "lost":
        bench.reply(None, NetworkException("gone"))
    elif how == "refused":
        bench.answer(code=UnknownServerError.code)
    else:
        bench.answer(session=8)
    bench.step()
    assert len(bench.core.network.sent) == (1 if how == "another session" else 0), "not at once after an error"
    bench.step(5000)
    assert bench.said() == (0, 0, {0: 3}, {})


def test_a_partition_that_comes_back_to_its_session_knows_its_lag(play: Callable[..., Any]) -> None:
    """The broker told of its watermark before, and tells nothing while nothing changes."""
    bench = Bench(play, 3, 4).step()
    bench.answer(PartitionData(0, high_watermark=3), PartitionData(1, high_watermark=9, last_stable_offset=8)).step()
    part = Part(TopicPartition("t", 1))
    part.place(4)
    bench.fetcher.parts[part.name] = part
    bench.answer().step()
    assert bench.said() == (7, 2, {}, {})
    assert (part.lag(False), part.lag(True)) == (5, 4)


# ---------------------------------------------------------------- how much is asked for


MIB = 1 << 20


def large(offset: int, size: int) -> bytes:
    data = bytearray(encode_batch([Record(None, bytes(size))]))
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def asked(bench: Bench, *answers: tuple[float, int | None]) -> list[int]:
    """What is asked for (MiB) after each answer of (MiB, ms that somebody waited for it; None: nobody did)."""
    found = []
    for size, waited_ms in answers:
        bench.fetcher.waiting_ms = None if waited_ms is None else bench.now_ms
        bench.now_ms += waited_ms or 0
        bench.answer(PartitionData(0, records=large(bench.part().fetch_offset, int(size * MIB))))
        assert len(bench.values()) == 1
        found.append(bench.step().request().max_bytes // MIB)
    return found


def test_a_broker_that_is_far_is_asked_for_more_at_once(play: Callable[..., Any]) -> None:
    """Up to fetch.max.bytes; one that answers at once for what the processor's caches hold."""
    bench = Bench(play, 0).step()
    assert bench.request().max_bytes == 50 * MIB, "without a session every partition is to have its turn"
    far = asked(bench, (0, 0), (4, 20), (8, 40), (16, 60), (32, 100), (50, 200))
    assert far == [4, 8, 16, 32, 50, 50]
    assert asked(bench, (50, None), (20, 200)) == [50, 50], "nobody waited; there was no more"
    assert asked(bench, (50, 4), (25, 4), (13, 4), (7, 4), (4, 4)) == [25, 12, 6, 4, 4]


def test_a_large_answer_takes_its_time_on_a_quick_network_too(play: Callable[..., Any]) -> None:
    bench = Bench(play, 0).step()
    assert asked(bench, (0, 0), (4, 5 + 8), (4, 5 + 9)) == [4, 4, 8]


@pytest.mark.parametrize(
    ("settings", "mib"),
    [
        ({"max_partition_fetch_bytes": 16 * MIB}, 16),
        ({"max_partition_fetch_bytes": MIB, "fetch_max_bytes": 3 * MIB}, 3),
    ],
)
def test_one_partition_is_asked_for_whole_and_never_more_than_fetch_max_bytes(
    play: Callable[..., Any], settings: dict[str, Any], mib: int
) -> None:
    bench = Bench(play, 0, **settings).step()
    assert asked(bench, (0, 0)) == [mib]


def test_one_fetch_a_broker_at_a_time(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3, 4)
    bench.core.metadata.topics["t"].leaders[1] = 2
    bench.step().step(10_000)
    assert sorted(node for node, _, _ in bench.core.network.sent) == [1, 2]
    assert {request.max_bytes for _, request, _ in bench.core.network.sent} == {52_428_800 // 2}


# ---------------------------------------------------------------- a partition's answer


@pytest.mark.parametrize(
    ("error", "reset", "state"),
    [
        (OffsetOutOfRange, "earliest", RESETTING),
        (OffsetOutOfRange, "none", FAILED),
        (NotLeaderOrFollower, "none", FETCHING),
        (FencedLeaderEpoch, "none", FETCHING),
        (UnknownLeaderEpoch, "none", FETCHING),
        (UnknownTopicOrPartition, "none", FETCHING),
        (UnknownTopicId, "none", FETCHING),
        (KafkaStorageError, "none", FETCHING),
        (UnknownServerError, "none", FETCHING),
        (TopicAuthorizationFailed, "none", FAILED),
        (CorruptMessage, "none", FETCHING),
    ],
)
def test_a_partition_that_is_refused(play: Callable[..., Any], error: Any, reset: str, state: int) -> None:
    bench = Bench(play, 3, 4, auto_offset_reset=reset).step()
    bench.answer(PartitionData(0, error.code), PartitionData(1, records=batch(4)))
    assert bench.part(0).state == state
    assert bench.part(1).fetch_offset == 5, "the other one goes on"
    if state == FETCHING:
        bench.step()
        assert bench.said()[2:] == ({1: 5}, {0: ID}), "not at once"
        bench.answer().step(5000)
        assert bench.said()[2] == {0: 3}
        assert bench.core.metadata.update_wanted
    elif state == FAILED:
        with pytest.raises(error):
            bench.fetcher.take(10)


@pytest.mark.parametrize("how", ["partition", "request", "connection", "reset"])
def test_what_fails_and_is_tried_again_is_failing_until_it_is_read(play: Callable[..., Any], how: str) -> None:
    bench = Bench(play, 3)
    if how == "reset":
        bench.part().reset()
    bench.step()
    if how == "partition":
        bench.answer(PartitionData(0, UnknownServerError.code))
    elif how == "request":
        bench.answer(code=UnknownServerError.code)
    elif how == "connection":
        bench.reply(None, NetworkException("gone"))
    else:
        bench.step(61_000).core.network.sent.clear()
    kinds = {"connection": NetworkException, "reset": RequestTimedOut}
    found = bench.part().failing
    assert found is not None
    assert type(found.error) is kinds.get(how, UnknownServerError)
    assert found.since_ms == bench.now_ms
    bench.part().place(3)
    bench.step(60_000).answer(PartitionData(0, records=batch(3)))
    assert bench.part().failing is None


def test_a_leader_that_is_named_in_passing_is_believed(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3).step()
    bench.answer(PartitionData(0, NotLeaderOrFollower.code, current_leader=LeaderIdAndEpoch(2, 1))).step(5000)
    assert [node for node, _, _ in bench.core.network.sent] == [2]
    assert bench.core.metadata.topics["t"].epochs[0] == 1


def test_a_closer_replica_is_read_until_its_time_is_over_or_it_is_out_of_range(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3, client_rack="r", metadata_max_age_ms=60_000).step()
    assert bench.request().rack_id == "r"
    bench.answer(PartitionData(0, preferred_read_replica=2)).step()
    # The leader's session forgets it; the closer one is asked.
    nodes = {node: request for node, request, _ in bench.core.network.sent}
    assert set(nodes) == {2}
    bench.answer(PartitionData(0, OffsetOutOfRange.code)).step(5000)
    assert bench.part().state == FETCHING, "the leader is asked before anything is reset"
    assert [node for node, _, _ in bench.core.network.sent] == [1]
    bench.answer(PartitionData(0, preferred_read_replica=2)).step()
    assert [node for node, _, _ in bench.core.network.sent] == [2]
    bench.answer(PartitionData(0)).step(60_000)
    assert [node for node, _, _ in bench.core.network.sent] == [1]
    assert bench.said() == (7, 2, {}, {}), "the leader's session still has it, at its offset"


def test_a_closer_replica_that_is_gone_is_not_asked(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3).step().answer(PartitionData(0, preferred_read_replica=2))
    del bench.core.network.nodes[2]
    bench.step()
    assert [node for node, _, _ in bench.core.network.sent] == [1]


def test_what_was_asked_before_a_seek_is_not_looked_at(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3).step()
    bench.part().place(9)
    bench.answer(PartitionData(0, records=batch(3)))
    assert bench.values() == []
    assert bench.part().position == 9


def test_records_are_taken_in_turn_and_in_order(play: Callable[..., Any]) -> None:
    bench = Bench(play, 0, 10).step()
    bench.answer(PartitionData(0, records=batch(0, 3) + batch(3, 2)), PartitionData(1, records=batch(10, 3)))
    assert bench.values(4) == [b"0", b"1", b"2", b"3"]
    assert bench.values(2) == [b"10", b"11"]
    assert bench.values(2) == [b"4", b"12"]
    assert [bench.part(index).position for index in (0, 1)] == [5, 13]
    assert bench.fetcher.buffered_bytes == 0 or bench.fetcher.line


def test_the_next_fetch_is_sent_while_an_answer_of_full_size_is_read(play: Callable[..., Any]) -> None:
    """A broker cuts what it sends at max.partition.fetch.bytes: so much ahead must not keep the next fetch back."""
    records = batch(0, 3)
    bench = Bench(play, 0, max_partition_fetch_bytes=len(records)).step()
    bench.answer(PartitionData(0, records=records)).step()
    assert bench.said()[2] == {0: 3}
    bench.answer(PartitionData(0, records=batch(3, 3))).step()
    assert bench.core.network.sent == []  # two answers lie here
    assert bench.part().buffered_bytes == 2 * len(records)


def test_only_what_makes_room_for_a_fetch_is_worth_a_turn(play: Callable[..., Any]) -> None:
    records = batch(0, 3)
    bench = Bench(play, 0, max_partition_fetch_bytes=len(records)).step()
    assert not bench.fetcher.hungry
    bench.answer(PartitionData(0, records=records)).step()
    assert not bench.fetcher.hungry  # the next is asked for already
    bench.answer(PartitionData(0, records=batch(3, 3))).step()
    assert bench.values(2) == [b"0", b"1"]
    assert not bench.fetcher.hungry
    assert bench.values(2) == [b"2", b"3"]
    assert bench.fetcher.hungry
    bench.step()
    assert not bench.fetcher.hungry
    assert bench.said()[2] == {0: 6}


def test_what_all_partitions_hold_is_worth_a_turn_once_half_is_read(play: Callable[..., Any]) -> None:
    records = batch(0, 3)
    bench = Bench(play, 0, 0, fetch_max_bytes=3 * len(records)).step()
    bench.answer(PartitionData(0, records=records), PartitionData(1, records=records)).step()
    assert bench.core.network.sent == []
    assert not bench.fetcher.hungry
    assert bench.values(2) == [b"0", b"1"]
    assert not bench.fetcher.hungry
    assert bench.values(2) == [b"0", b"1"]  # in turn
    assert bench.values(2) == [b"2", b"2"]
    assert bench.fetcher.hungry
    assert bench.step().said()[2]


def test_a_batch_that_begins_before_the_position_gives_only_what_follows(play: Callable[..., Any]) -> None:
    bench = Bench(play, 2).step().answer(PartitionData(0, records=batch(0, 5)))
    assert bench.values() == [b"2", b"3", b"4"]


def test_a_cut_batch_at_the_end_is_asked_for_again(play: Callable[..., Any]) -> None:
    bench = Bench(play, 0).step().answer(PartitionData(0, records=batch(0) + batch(1)[:-1])).step()
    assert bench.values() == [b"0"]
    assert bench.said()[2] == {0: 1}


# ---------------------------------------------------------------- positions


@pytest.mark.parametrize(
    ("reset", "timestamp"), [("earliest", -2), ("latest", -1), ("by_duration:PT1H", 50_000_000 - 3_600_000)]
)
def test_where_a_partition_without_an_offset_begins(play: Callable[..., Any], reset: str, timestamp: int) -> None:
    bench = Bench(play, 0, auto_offset_reset=reset)
    bench.part().reset()
    bench.step().step()
    assert bench.request(ListOffsetsRequest).topics[0].partitions[0].timestamp == timestamp
    row = ListOffsetsPartitionResponse(0, offset=17, leader_epoch=0)
    bench.reply(ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [row])])).step()
    assert (bench.part().state, bench.part().position) == (FETCHING, 17)


def test_nothing_so_young_begins_at_the_end(play: Callable[..., Any]) -> None:
    bench = Bench(play, 0, auto_offset_reset="by_duration:PT1H")
    bench.part().reset()
    bench.step().step()
    row = ListOffsetsPartitionResponse(0, offset=-1)
    bench.reply(ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [row])])).step().step()
    assert bench.request(ListOffsetsRequest).topics[0].partitions[0].timestamp == -1


def test_no_reset_is_an_error(play: Callable[..., Any]) -> None:
    bench = Bench(play, 0, auto_offset_reset="none")
    bench.part().reset()
    bench.step()
    with pytest.raises(NoOffset):
        bench.fetcher.take(1)


def test_a_seek_while_the_leader_is_asked_stands(play: Callable[..., Any]) -> None:
    bench = Bench(play, 0, auto_offset_reset="earliest")
    bench.part().reset()
    bench.step().step()
    bench.part().place(40)
    row = ListOffsetsPartitionResponse(0, offset=17)
    bench.reply(ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [row])])).step()
    assert bench.part().position == 40


def test_an_answer_to_an_earlier_assignment_places_nothing(play: Callable[..., Any]) -> None:
    """Found by the world's seed 27: versions of a partition that was assigned anew begin anew, too."""
    bench = Bench(play, 0, auto_offset_reset="earliest")
    bench.part().reset()
    bench.step().step()
    again = Part(bench.part().name, version=bench.part().version)
    again.state, again.position = FETCHING, 40
    bench.fetcher.parts[again.name] = again
    row = ListOffsetsPartitionResponse(0, offset=17)
    bench.reply(ListOffsetsResponse(topics=[ListOffsetsTopicResponse("t", [row])])).step()
    assert again.position == 40


@pytest.mark.parametrize(
    ("reset", "end", "epoch", "state", "position"),
    [
        ("earliest", 10, 3, FETCHING, 10),
        ("earliest", 12, 3, FETCHING, 10),
        ("earliest", 6, 2, FETCHING, 6),
        ("earliest", -1, -1, RESETTING, -1),
        ("none", 6, 2, FAILED, 10),
        ("none", -1, -1, FAILED, 10),
        ("none", 10, 3, FETCHING, 10),
    ],
)
def test_a_new_leader_is_asked_whether_it_has_what_was_read(
    play: Callable[..., Any], reset: str, end: int, epoch: int, state: int, position: int
) -> None:
    bench = Bench(play, 0, auto_offset_reset=reset)
    part = bench.part()
    part.place(10, 3)
    bench.core.metadata.topics["t"] = TopicInfo("t", ID, [1], [3])
    bench.step().answer(PartitionData(0, records=batch(10, epoch=3)))
    bench.core.metadata.topics["t"] = TopicInfo("t", ID, [2], [4])
    bench.step().step()
    assert part.state == VALIDATING
    assert bench.values() == [], "what the old leader's log held is not handed out"
    asked = bench.request(OffsetForLeaderEpochRequest).topics[0].partitions[0]
    assert (asked.leader_epoch, asked.current_leader_epoch) == (3, 4)
    bench.core.network.sent = [row for row in bench.core.network.sent if not isinstance(row[1], FetchRequest)]
    row = OffsetForLeaderEpochEpochEndOffset(0, 0, epoch, end)
    bench.reply(OffsetForLeaderEpochResponse(0, [OffsetForLeaderTopicResult("t", [row])])).step()
    if state == FAILED:
        assert part.state == FAILED
        with pytest.raises(LogTruncated):
            bench.fetcher.take(1)
    else:
        assert part.state == state
    assert part.position == position


def test_a_leader_s_answer_that_the_next_leader_outran_is_asked_for_again(play: Callable[..., Any]) -> None:
    """Found by the world's seed 60440: one partition's answer waited in its question for the other's."""
    bench = Bench(play, 10, 20, auto_offset_reset="earliest")
    for index in (0, 1):
        bench.part(index).place(bench.part(index).position, 3)
    bench.core.metadata.topics["t"] = TopicInfo("t", ID, [1, 1], [4, 4])
    bench.step().step()
    rows = [OffsetForLeaderEpochEpochEndOffset(NetworkException.code, 1, -1, -1)]
    rows.append(OffsetForLeaderEpochEpochEndOffset(0, 0, 3, 26))
    bench.reply(OffsetForLeaderEpochResponse(0, [OffsetForLeaderTopicResult("t", rows)]))
    bench.core.metadata.topics["t"] = TopicInfo("t", ID, [1, 1], [5, 4])
    bench.step(1000)
    bench.reply(
        OffsetForLeaderEpochResponse(0, [OffsetForLeaderTopicResult("t", [attrs.evolve(rows[1], partition=1)])])
    )
    bench.step()
    assert (bench.part(0).state, bench.part(1).state) == (VALIDATING, FETCHING)
    assert bench.said()[2] == {1: 20}
    bench.step()
    (asked,) = bench.request(OffsetForLeaderEpochRequest).topics[0].partitions
    assert (asked.partition, asked.leader_epoch, asked.current_leader_epoch) == (0, 3, 5)


def test_lag_is_known_from_the_first_answer_on(play: Callable[..., Any]) -> None:
    bench = Bench(play, 3).step()
    part = bench.part()
    assert part.lag(False) is None
    bench.answer(PartitionData(0, records=batch(3), high_watermark=9, last_stable_offset=7))
    assert (part.lag(False), part.lag(True)) == (6, 4)
    bench.values()
    assert (part.lag(False), part.lag(True)) == (5, 3)
