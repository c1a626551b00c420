"""What a follower's broker asks of a leader's: a request names what moved."""

from __future__ import annotations

from uuid import UUID

from logkernel.partition.fetcher import FetchLimits, ReplicaFetcher
from logkernel.partition.follower import FetchPosition
from logkernel.requests.data import FetchRequest
from logkernel.vocabulary import TopicPartition

T, U = UUID(int=1), UUID(int=2)
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Positions:
    def __init__(self) -> None:
        self.fetcher = ReplicaFetcher(2, FetchLimits())
        self.at: dict[TopicPartition, FetchPosition | None] = {}

    def follow(self, name: TopicPartition, offset: int, topic_id: UUID = T) -> None:
        self.at[name] = FetchPosition(offset, 0, 1, 0)
        self.fetcher.follow(name, topic_id, lambda: self.at[name])

    def move(self, name: TopicPartition, position: FetchPosition | None) -> None:
        self.at[name] = position
        self.fetcher.moved(name)

    def next(self, mono_ms: int = 0) -> FetchRequest | None:
        return self.fetcher.next_request(mono_ms)


def asked(request: FetchRequest | None) -> list[tuple[int, int]]:
    assert request is not None
    return [(row.partition, row.fetch_offset) for topic in request.topics for row in topic.partitions]


def forgotten(request: FetchRequest | None) -> list[tuple[UUID, list[int]]]:
    assert request is not None
    return [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data]


def test_the_first_request_names_all_and_the_next_what_moved() -> None:
    made = Positions()
    made.follow(A, 5)
    made.follow(B, 7)
    first = made.next()
    assert first is not None
    assert (first.replica_id, first.session_id, first.session_epoch) == (2, 0, 0)
    assert asked(first) == [(0, 5), (1, 7)]
    assert made.next() is None  # one is under way
    made.fetcher.on_answered(9)
    made.move(B, FetchPosition(8, 0, 1, 0))
    second = made.next()
    assert second is not None
    assert (second.session_id, second.session_epoch) == (9, 1)
    assert asked(second) == [(1, 8)]
    made.fetcher.on_answered(9)
    third = made.next()
    assert third is not None
    assert (asked(third), third.session_epoch) == ([], 2)


def test_what_is_not_followed_any_more_is_taken_out() -> None:
    made = Positions()
    made.follow(A, 5)
    made.follow(B, 7)
    made.next()
    made.fetcher.on_answered(9)
    made.fetcher.forget(A)
    request = made.next()
    assert (asked(request), forgotten(request)) == ([], [(T, [0])])


def test_a_topic_made_anew_is_another_partition_of_the_session() -> None:
    made = Positions()
    made.follow(A, 5)
    made.next()
    made.fetcher.on_answered(9)
    made.follow(A, 0, U)
    request = made.next()
    assert request is not None
    assert [topic.topic_id for topic in request.topics] == [U]
    assert forgotten(request) == [(T, [0])]


def test_a_partition_that_pauses_leaves_the_session_and_comes_back() -> None:
    made = Positions()
    made.follow(A, 5)
    made.follow(B, 7)
    made.next()
    made.fetcher.on_answered(9)
    made.move(A, None)
    request = made.next()
    assert (asked(request), forgotten(request)) == ([], [(T, [0])])
    made.fetcher.on_answered(9)
    made.move(A, FetchPosition(5, 0, 1, 0))
    assert asked(made.next()) == [(0, 5)]


def test_a_lost_session_begins_anew_with_everything() -> None:
    made = Positions()
    made.follow(A, 5)
    made.next()
    made.fetcher.on_answered(9)
    made.next()
    made.fetcher.on_session_lost()
    request = made.next()
    assert request is not None
    assert (request.session_id, request.session_epoch, asked(request)) == (0, 0, [(0, 5)])


def test_a_failure_waits() -> None:
    made = Positions()
    made.follow(A, 5)
    made.next()
    made.fetcher.on_failed(100, 50)
    assert made.next(149) is None
    assert made.fetcher.next_deadline() == 150
    assert asked(made.next(150)) == [(0, 5)]


def test_a_leader_without_room_for_sessions_is_asked_for_all_each_time() -> None:
    made = Positions()
    made.follow(A, 5)
    made.next()
    made.fetcher.on_answered(0)
    assert asked(made.next()) == [(0, 5)]


def test_where_nothing_is_followed_nothing_is_asked() -> None:
    made = Positions()
    assert made.next() is None
    made.follow(A, 5)
    made.move(A, None)
    assert made.next() is None


def test_an_answer_names_a_partition_by_the_id_that_its_topic_has_now() -> None:
    made = Positions()
    made.follow(A, 5)
    made.follow(B, 7)
    assert (made.fetcher.name_of(T, 0), made.fetcher.name_of(T, 1), made.fetcher.name_of(U, 0)) == (A, B, None)
    made.follow(A, 0, U)
    assert (made.fetcher.name_of(T, 0), made.fetcher.name_of(U, 0)) == (None, A)
    made.fetcher.forget(A)
    assert (made.fetcher.name_of(U, 0), made.fetcher.name_of(T, 1)) == (None, B)
