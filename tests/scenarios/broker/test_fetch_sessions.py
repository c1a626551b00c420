"""Fetch sessions over a broker: what they cost, and that they answer as a plain scan of everything would.

The plain scan is the broker's own fetch without a session. A model beside each session keeps its partitions in order
and what was told of them, reads all of them by such a scan after every event, and says whether a fetch must be
answered now, and with what.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import define, field
from hand_clock import HandClock

from logkernel.broker.build import build
from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.contracts import RequestContext
from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.requests.groups import FindCoordinatorRequest
from logkernel.requests.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest, DeleteTopicState
from logkernel.requests.transactions import EndTxnRequest
from logkernel.vocabulary import NO_ID, Record

V2 = frozenset({"zstd", "transaction_abortable", "transactions_v2"})
BY_NAME, BY_ID = frozenset({"zstd"}), frozenset({"zstd", "topic_ids"})
Key = tuple[str, Any, int]


@define
class House:
    """A broker in memory, and short ways to ask it."""

    broker: Any
    clock: HandClock
    producer: Any = None
    """Who answered with a producer id and epoch last."""
    sequences: dict[tuple[str, int], int] = field(factory=dict)
    """The next ones of the transaction that is open."""

    def ask(self, request: Any, capabilities: frozenset[str] = BY_NAME) -> list[Any]:
        answers: list[Any] = []
        self.broker.submit(request, RequestContext("c", capabilities=capabilities), answers.append)
        return answers

    def create(self, topic: str, partitions: int) -> None:
        (answer,) = self.ask(CreateTopicsRequest(topics=[CreatableTopic(topic, partitions, 1)], timeout_ms=1000))
        assert answer.topics[0].error_code == 0, answer

    def delete(self, topic: str) -> None:
        (answer,) = self.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1000))
        assert answer.responses[0].error_code == 0, answer

    def append(self, topic: str, partition: int, size: int = 20, **producer: Any) -> None:
        data = encode_batch([Record(value=bytes(size), timestamp_ms=self.clock.now_ms)], **producer)
        rows = [PartitionProduceData(partition, memoryview(bytearray(data)))]
        transactional_id = "tx" if producer else None
        request = ProduceRequest(transactional_id, -1, 1000, [TopicProduceData(topic, rows)])
        (answer,) = self.ask(request, V2)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer

    def append_in_transaction(self, topic: str, partition: int) -> None:
        """Part of the one transaction, which begins with it where none is open."""
        if self.producer is None:
            self.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]))
            (self.producer,) = self.ask(InitProducerIdRequest("tx", 900_000), V2)
            assert self.producer.error_code == 0, self.producer
        sequence = self.sequences.get((topic, partition), 0)
        self.sequences[topic, partition] = sequence + 1
        known = {"producer_id": self.producer.producer_id, "producer_epoch": self.producer.producer_epoch}
        self.append(topic, partition, base_sequence=sequence, transactional=True, **known)

    def end_transaction(self, *, committed: bool) -> None:
        if not self.sequences:
            return
        assert self.producer is not None
        known = self.producer.producer_id, self.producer.producer_epoch
        (self.producer,) = self.ask(EndTxnRequest("tx", *known, committed), V2)
        assert self.producer.error_code == 0, self.producer
        self.sequences.clear()

    def delete_records(self, topic: str, partition: int, offset: int) -> None:
        self.ask(DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, offset)])], 1000))

    def advance(self, ms: int) -> None:
        self.clock.now_ms += ms
        self.broker.step()

    def offsets(self, topic: str, partition: int) -> tuple[int, int, int]:
        """Log start, last stable offset, watermark."""
        found = self.broker.cluster.offsets(topic, partition)
        assert found is not None
        return found  # type: ignore[no-any-return]

    def listeners(self) -> int:
        """How many partitions of sessions and parked fetches wait for news."""
        return sum(len(replica.news) for replica in self.broker.replicas.led.values())


@pytest.fixture
def make_house() -> Iterator[Any]:
    made: list[House] = []

    def make(*settings: str) -> House:
        clock = HandClock(1_000_000)
        house = House(build(None, settings, in_memory=True, clock=clock), clock)
        house.broker.start()
        made.append(house)
        return house

    yield make
    for house in made:
        house.broker.close()


@pytest.fixture
def house(make_house: Any) -> House:
    return make_house()  # type: ignore[no-any-return]


def asked(*rows: tuple[Key, int, int]) -> list[FetchTopic]:
    """(key, offset, max bytes), each a topic of its own, so that any order can be written."""
    return [
        FetchTopic(name, [FetchPartition(index, offset, size)], topic_id)
        for (name, topic_id, index), offset, size in rows
    ]


def rows_of(response: FetchResponse) -> list[tuple[Key, Any]]:
    return [
        ((one.topic, one.topic_id, row.partition_index), row) for one in response.responses for row in one.partitions
    ]


def seen(row: Any) -> tuple[Any, ...]:
    """What a client can tell of a row."""
    records = (row.records.fd, row.records.position, row.records.size) if row.records is not None else None
    aborted = [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
    return row.error_code, row.high_watermark, row.last_stable_offset, row.log_start_offset, aborted, records


# ---------------------------------------------------------------- what it costs


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The partitions whose logs were asked for records, one entry a read."""
    found: list[str] = []
    read = LeaderReplica.read

    def counted(self: LeaderReplica, *args: Any, **named: Any) -> Any:
        found.append(str(self.name))
        return read(self, *args, **named)

    monkeypatch.setattr(LeaderReplica, "read", counted)
    return found


def open_session(house: House, topic: str, count: int) -> int:
    (answer,) = house.ask(
        FetchRequest(session_epoch=0, topics=asked(*(((topic, NO_ID, p), 0, 1000) for p in range(count))))
    )
    return answer.session_id  # type: ignore[no-any-return]


def test_an_idle_session_reads_no_partition(house: House, reads: list[str]) -> None:
    house.create("t", 200)
    session = open_session(house, "t", 200)
    reads.clear()
    (answer,) = house.ask(FetchRequest(session_id=session, session_epoch=1))
    assert (answer.responses, reads) == ([], [])


def test_an_append_wakes_a_parked_session_for_one_partition(house: House, reads: list[str]) -> None:
    house.create("t", 200)
    session = open_session(house, "t", 200)
    reads.clear()
    answers = house.ask(FetchRequest(session_id=session, session_epoch=1, max_wait_ms=9000, min_bytes=1))
    house.append("t", 77)
    assert [key for key, _ in rows_of(answers[0])] == [("t", NO_ID, 77)]
    assert reads == ["t-77"]


def test_appends_below_min_bytes_read_their_own_partition_alone(house: House, reads: list[str]) -> None:
    house.create("t", 50)
    session = open_session(house, "t", 50)
    reads.clear()
    answers = house.ask(FetchRequest(session_id=session, session_epoch=1, max_wait_ms=9000, min_bytes=5000))
    for partition in range(40):
        house.append("t", partition)
        assert reads == [f"t-{partition}"]
        reads.clear()
    assert not answers
    house.advance(9000)
    assert len(rows_of(answers[0])) == 40


def test_a_fetch_of_old_clients_is_not_read_again_for_an_append_that_is_not_enough(
    house: House, reads: list[str]
) -> None:
    house.create("t", 50)
    topics = asked(*((("t", NO_ID, p), 0, 1000) for p in range(50)))
    answers = house.ask(FetchRequest(session_epoch=-1, topics=topics, max_wait_ms=9000, min_bytes=150))
    reads.clear()
    house.append("t", 3)
    assert reads == ["t-3"]
    house.append("t", 4)
    assert len(rows_of(answers[0])) == 50
    assert house.listeners() == 0


@pytest.mark.parametrize("in_session", [False, True])
def test_a_fetch_that_waits_for_one_partition_reads_it_once_for_each_append(
    house: House, reads: list[str], in_session: bool
) -> None:
    house.create("t", 1)
    session, epoch = (open_session(house, "t", 1), 1) if in_session else (0, -1)
    topics = asked((("t", NO_ID, 0), 0, 1000))
    answers = house.ask(
        FetchRequest(session_id=session, session_epoch=epoch, topics=topics, max_wait_ms=9000, min_bytes=150)
    )
    for _ in range(2):
        assert not answers
        reads.clear()
        house.append("t", 0)
        assert reads == ["t-0"]
    assert len(rows_of(answers[0])) == 1


def test_a_deleted_topic_answers_who_waits_for_it(house: House) -> None:
    house.create("t", 3)
    session = open_session(house, "t", 3)
    answers = house.ask(FetchRequest(session_id=session, session_epoch=1, max_wait_ms=9000, min_bytes=1))
    house.delete("t")
    assert {row.error_code for _, row in rows_of(answers[0])} == {3}
    house.create("t", 3)
    (answer,) = house.ask(FetchRequest(session_id=session, session_epoch=2))
    assert [(row.error_code, row.high_watermark) for _, row in rows_of(answer)] == [(0, 0)] * 3
    house.append("t", 2)
    (answer,) = house.ask(FetchRequest(session_id=session, session_epoch=3))
    assert [key[2] for key, _ in rows_of(answer)] == [2]


def test_sessions_that_end_leave_no_listener(make_house: Any) -> None:
    house = make_house("max.incremental.fetch.session.cache.slots=2")
    house.create("t", 5)
    one, two = open_session(house, "t", 5), open_session(house, "t", 5)
    assert house.listeners() == 10
    assert open_session(house, "t", 5) == 0, "both are young"
    assert house.listeners() == 10
    house.ask(FetchRequest(session_id=two, session_epoch=-1))
    assert house.listeners() == 5
    open_session(house, "t", 5)
    house.clock.now_ms += 200_000
    assert open_session(house, "t", 5) > 0, "the oldest is evicted"
    assert house.listeners() == 10
    house.ask(FetchRequest(session_id=one, session_epoch=-1))
    assert house.listeners() == 10


# ---------------------------------------------------------------- the same as a plain scan


@define
class Kept:
    offset: int
    max_bytes: int
    told: tuple[int, int, int] = (-2, -2, -2)


@define
class Client:
    """One session, and the model of it."""

    house: House
    capabilities: frozenset[str]
    session_id: int = 0
    epoch: int = 0
    kept: dict[Key, Kept] = field(factory=dict)
    request: FetchRequest | None = None
    incremental: bool = False
    deadline_ms: int = 0
    answers: list[Any] = field(factory=list)
    answered: int = 0
    """Answers that were compared."""

    def scan(self) -> list[tuple[Key, Any]]:
        assert self.request is not None
        plain = FetchRequest(
            session_epoch=-1,
            max_bytes=self.request.max_bytes,
            isolation_level=self.request.isolation_level,
            topics=asked(*((key, kept.offset, kept.max_bytes) for key, kept in self.kept.items())),
        )
        (answer,) = self.house.ask(plain, self.capabilities)
        return rows_of(answer)

    def begin(self, request: FetchRequest, *, incremental: bool) -> None:
        self.request, self.incremental = request, incremental
        self.deadline_ms = self.house.clock.now_ms + request.max_wait_ms
        self.answers = self.house.ask(request, self.capabilities)

    def check(self) -> None:
        """Compare with the model, if a fetch is under way."""
        if self.request is None:
            return
        rows = self.scan()
        size = sum(row.records.size for _, row in rows if row.records is not None)
        due = self.house.clock.now_ms >= self.deadline_ms or not self.kept
        if not (due or size >= self.request.min_bytes or any(row.error_code for _, row in rows)):
            assert not self.answers, "answered too early"
            return
        assert len(self.answers) == 1, "not answered"
        wanted = []
        for key, row in rows:
            kept = self.kept[key]
            state = (row.high_watermark, row.last_stable_offset, row.log_start_offset)
            if self.incremental and not row.error_code and row.records is None and state == kept.told:
                continue
            kept.told = (-2, *kept.told[1:]) if row.error_code else state
            wanted.append((key, seen(row)))
            if row.records is not None:
                self.kept[key] = self.kept.pop(key)
        assert [(key, seen(row)) for key, row in rows_of(self.answers[0])] == wanted
        self.session_id = self.answers[0].session_id
        self.request = None
        self.answered += 1


@define
class Play:
    seed: int
    house: House
    random: random.Random
    clients: list[Client]
    topics: dict[str, int] = field(factory=lambda: {"a": 4, "b": 3})

    def some_partition(self) -> tuple[str, int]:
        topic = self.random.choice(list(self.topics))
        return topic, self.random.randrange(self.topics[topic])

    def key(self, client: Client, topic: str, partition: int) -> Key:
        if client.capabilities is BY_ID:
            return "", self.house.broker.cluster.topic_id(topic), partition
        return topic, NO_ID, partition

    def change(self) -> None:
        """Something happens in the broker."""
        pick = self.random
        topic, partition = self.some_partition()
        kind = pick.choices(("append", "transaction", "end", "cut", "remake", "time"), (8, 3, 3, 2, 0.3, 3))[0]
        if kind == "append":
            self.house.append(topic, partition, pick.choice((10, 100, 400)))
        elif kind == "transaction":
            self.house.append_in_transaction(topic, partition)
        elif kind == "end":
            self.house.end_transaction(committed=pick.random() < 0.5)
        elif kind == "cut":
            start, _, watermark = self.house.offsets(topic, partition)
            self.house.delete_records(topic, partition, pick.randint(start, watermark))
        elif kind == "remake":
            self.house.end_transaction(committed=True)
            for client in self.clients:
                client.check()
            self.house.delete(topic)
            for client in self.clients:
                client.check()
            self.house.create(topic, self.topics[topic])
        else:
            self.house.advance(pick.choice((10, 100, 1000)))

    def fetch(self, client: Client) -> None:
        pick = self.random
        options = {
            "max_wait_ms": pick.choice((0, 0, 500)),
            "min_bytes": pick.choice((0, 1, 1, 300, 900)),
            "max_bytes": pick.choice((1 << 20, 1 << 20, 300)),
            "isolation_level": pick.choice((0, 0, 0, 1)),
        }
        names = [(topic, index) for topic, count in self.topics.items() for index in range(count)]
        if not client.session_id or pick.random() < 0.05:
            chosen = pick.sample(names, pick.randint(1, len(names)))
            client.kept = {self.key(client, *name): self.some_kept(*name) for name in chosen}
            request = FetchRequest(
                session_id=client.session_id, session_epoch=0, topics=self.written(client, client.kept), **options
            )
            client.epoch = 0
            client.begin(request, incremental=False)
            return
        changed = {}
        for key, kept in client.kept.items():
            if pick.random() < 0.3:
                changed[key] = self.moved(key, kept)
        if pick.random() < 0.1:
            name = pick.choice(names)
            changed[self.key(client, *name)] = self.some_kept(*name)
        gone = [key for key in client.kept if key not in changed and pick.random() < 0.03]
        for key in gone:
            del client.kept[key]
        for key, kept in changed.items():
            if key in client.kept:
                client.kept[key].offset, client.kept[key].max_bytes = kept.offset, kept.max_bytes
            else:
                client.kept[key] = kept
        client.epoch += 1
        forgotten = [ForgottenTopic(key[0], [key[2]], key[1]) for key in gone]
        request = FetchRequest(
            session_id=client.session_id, session_epoch=client.epoch, topics=self.written(client, changed),
            forgotten_topics_data=forgotten, **options,
        )  # fmt: skip
        client.begin(request, incremental=True)

    def written(self, client: Client, kept: dict[Key, Kept]) -> list[FetchTopic]:
        return asked(*((key, one.offset, one.max_bytes) for key, one in kept.items()))

    def some_kept(self, topic: str, partition: int) -> Kept:
        start, _, watermark = self.house.offsets(topic, partition)
        return Kept(self.random.randint(max(0, start - 1), watermark + 1), self.random.choice((1000, 150)))

    def moved(self, key: Key, kept: Kept) -> Kept:
        """Mostly to the end, as a consumer would."""
        topic = key[0] or self.house.broker.cluster.topic_name(key[1])
        found = self.house.broker.cluster.offsets(topic, key[2]) if topic else None
        if found is None:
            return Kept(kept.offset, kept.max_bytes)
        offset = self.random.choice((found[1], found[2], found[2], kept.offset, found[0]))
        return Kept(offset, self.random.choice((kept.max_bytes, 1000)))

    def run(self, steps: int) -> int:
        for _ in range(steps):
            idle = [client for client in self.clients if client.request is None]
            if idle and self.random.random() < 0.5:
                self.fetch(self.random.choice(idle))
            else:
                self.change()
            for client in self.clients:
                client.check()
        return sum(client.answered for client in self.clients)


@pytest.mark.parametrize("seed", range(25))
def test_sessions_answer_as_a_scan_of_everything_would(house: House, seed: int) -> None:
    play = Play(
        seed, house, random.Random(seed), [Client(house, BY_NAME), Client(house, BY_ID), Client(house, BY_NAME)]
    )
    for topic, count in play.topics.items():
        house.create(topic, count)
    assert play.run(250) > 50
    house.advance(10_000)
    for client in play.clients:
        client.check()
        if client.session_id:
            house.ask(FetchRequest(session_id=client.session_id, session_epoch=-1))
    assert house.listeners() == 0
