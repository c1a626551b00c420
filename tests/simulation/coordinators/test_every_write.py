"""The broker ends in the middle of every single write of its coordinators, and right after it, and goes on.

One story: a producer fills `in`; a processor copies it to two partitions of `out` in transactions, its offsets in them,
one of which it aborts; three consumers commit (one by himself, one of a classic group, one of a group of KIP-848); a
share group works `in` off. The story is told once to count the writes, and then once for each of them with the cut
there. It is told so for each way to end: the process alone (with transactions v2, and v1), or the machine with all that
was not synced; and the clients live on and repeat what was not answered, or their heirs begin anew.

What holds at every restart, before any client speaks:

- a committed offset is not older than what was answered, nor one that nobody sent;
- a transaction that was prepared is completed, as it was prepared; what it wrote is seen whole or not at all, the
  offset included, and markers lie in all its partitions;
- a member is still a member, in its epoch or generation;
- a record that a share group was done with is not delivered again.

And at the end: every record was processed exactly once, by no id, epoch and sequence twice, and nothing is open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from cut_stories import PASSING, Story, cut_at_every_write

from logkernel.plugins.services.transactions.records import decode_key, decode_value
from logkernel.record.encode import encode_batch
from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.requests.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.share_delivery import (
    AcknowledgePartition,
    AcknowledgePartitionAcknowledgementBatch,
    AcknowledgeTopic,
    FetchPartition,
    FetchTopic,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
)
from logkernel.requests.share_groups import ShareGroupHeartbeatRequest
from logkernel.requests.share_offsets import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from logkernel.vocabulary import Record

RECORDS = 3
ABORTED = 1
"""The processor gives up its first try at this record."""
OUTPUTS = (("out", 0), ("out", 1))
OFFSETS = ("__consumer_offsets", 0)
NAME = "processor"
V2 = ("zstd", "transaction_abortable", "transactions_v2")
OLD = ("zstd",)
REBALANCE = 27
NO_SHARE_SESSION, BAD_SHARE_EPOCH = 122, 123
PREPARED = {"PrepareCommit": "CompleteCommit", "PrepareAbort": "CompleteAbort"}


class CoordinatorsStory(Story):
    def __init__(self, world: Any, *, v2: bool = True) -> None:
        settings = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "1000"}
        super().__init__(world, "sharers", settings, {"in": 1, "out": 2})
        self.capabilities = V2 if v2 else OLD
        self.v2 = v2
        self.aborted = False
        self.acked: dict[str, int] = {}
        """Group → the newest offset that its commit was answered for."""
        self.sent: dict[str, int] = {}
        self.ids: list[int] = []
        """Producer ids that were given to producers without a name."""
        self.generation: tuple[str, int] | None = None
        self.epoch: tuple[str, int] | None = None
        self.share_epoch = 0
        self.delivered: set[int] = set()
        self.done: set[int] = set()

    def tell(self) -> None:
        self.fill()
        self.alive(self.process)
        for chapter in (self.commit_alone, self.commit_as_member, self.commit_by_epoch, self.share):
            self.alive(chapter)
        self.world.pass_ms(2_000)
        self.check_all()

    def alive(self, chapter: Callable[[], None]) -> None:
        """Heirs take over from a client that died."""
        while not self.outlives(chapter):
            pass

    # ------------------------------------------------------------ the producer, who never dies

    def fill(self) -> None:
        answer = self.world.ask(InitProducerIdRequest(), heir=False)
        assert answer.error_code == 0
        assert answer.producer_id not in self.ids
        self.ids.append(answer.producer_id)
        for number in range(RECORDS):
            code = self.produce("in", 0, (answer.producer_id, 0), number, b"%d" % number, None, heir=False)
            assert code == 0

    def produce(
        self,
        topic: str,
        partition: int,
        who: tuple[int, int],
        sequence: int,
        value: bytes,
        name: str | None = NAME,
        heir: bool | None = None,
    ) -> int:
        def request() -> ProduceRequest:
            record = Record(None, value, timestamp_ms=self.world.clock.wall_ms())
            data = encode_batch(
                [record], producer_id=who[0], producer_epoch=who[1], base_sequence=sequence, transactional=bool(name)
            )
            rows = [PartitionProduceData(partition, bytearray(data))]
            return ProduceRequest(name, -1, 30_000, [TopicProduceData(topic, rows)])

        def code(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        return code(self.world.until(lambda: self.world.ask(request, *self.capabilities, heir=heir), code, *PASSING))

    # ------------------------------------------------------------ the processor

    def process(self) -> None:
        world = self.world
        answer = self.asked(InitProducerIdRequest(NAME, 60_000))
        assert answer.error_code == 0
        who = (answer.producer_id, answer.producer_epoch)
        sequences = dict.fromkeys(OUTPUTS, 0)
        at = max(0, self.offset_of(NAME))
        while at < RECORDS:
            abort = at == ABORTED and not self.aborted
            self.aborted |= abort
            if not self.v2:
                self.add(who)
            for topic, partition in OUTPUTS:
                value = b"%d.%d" % (at, partition) if not abort else b"junk"
                assert self.produce(topic, partition, who, sequences[topic, partition], value) == 0
                sequences[topic, partition] += 1
            if not abort:
                self.sent[NAME] = at + 1
            self.commit_offset(who, at + 1 if not abort else 99)
            answer = self.asked(EndTxnRequest(NAME, *who, not abort))
            assert answer.error_code == 0, answer
            if not abort:
                at += 1
                self.acked[NAME] = at
            if self.v2:
                who = (answer.producer_id, answer.producer_epoch)
                sequences = dict.fromkeys(OUTPUTS, 0)
            world.pass_ms(20)

    def asked(self, request: Any) -> Any:
        """An answer with one error code for all."""
        ask = lambda: self.world.ask(request, *self.capabilities)  # noqa: E731
        return self.world.until(ask, lambda answer: answer.error_code, *PASSING)

    def add(self, who: tuple[int, int]) -> None:
        """As producers of transactions v1 do."""
        transaction = AddPartitionsToTxnTransaction(NAME, *who, topics=[AddPartitionsToTxnTopic("out", [0, 1])])

        def code(answer: Any) -> int:
            rows = answer.results_by_transaction[0].topic_results[0].results_by_partition
            return max(int(row.partition_error_code) for row in rows)

        request = AddPartitionsToTxnRequest([transaction])
        assert code(self.world.until(lambda: self.world.ask(request), code, *PASSING)) == 0
        assert self.asked(AddOffsetsToTxnRequest(NAME, *who, NAME)).error_code == 0

    def commit_offset(self, who: tuple[int, int], offset: int) -> None:
        topics = [TxnOffsetCommitRequestTopic("in", [TxnOffsetCommitRequestPartition(0, offset)])]
        request = TxnOffsetCommitRequest(NAME, NAME, *who, topics=topics)

        def code(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        ask = lambda: self.world.ask(request, *self.capabilities)  # noqa: E731
        assert code(self.world.until(ask, code, *PASSING)) == 0

    # ------------------------------------------------------------ consumers

    def commit(self, group: str, offset: int, member: str = "", generation: int = -1) -> None:
        self.sent[group] = max(offset, self.sent.get(group, 0))
        self.commit_once(group, offset, member, generation)
        self.acked[group] = offset
        assert self.offset_of(group, heir=False) >= offset, "it was answered"

    def commit_alone(self) -> None:
        for offset in range(max(0, self.offset_of("alone")) + 1, RECORDS + 1):
            self.commit("alone", offset)

    def commit_as_member(self) -> None:
        protocols = [JoinGroupRequestProtocol("range", b"\0\0\0\0\0\x01\0\x02in\0\0\0\0")]
        request = JoinGroupRequest("classic", 20_000, "", "consumer", protocols, 20_000)
        joined = self.asked(request)
        while joined.error_code == 79:  # the id comes first (KIP-394)
            request.member_id = joined.member_id
            joined = self.asked(request)
        assert joined.error_code == 0, joined
        member, generation = joined.member_id, joined.generation_id
        parts = [SyncGroupRequestAssignment(member, b"all")]
        synced = self.asked(SyncGroupRequest("classic", generation, member, parts, None, "consumer", "range"))
        if synced.error_code:  # the round ended with the broker: nobody was told of it
            assert synced.error_code in (22, 25, REBALANCE)
            self.commit_as_member()
            return
        self.generation = (member, generation)
        for offset in range(max(0, self.offset_of("classic")) + 1, RECORDS + 1):
            if not self.in_generation():
                self.commit_as_member()
                return
            self.commit("classic", offset, member, generation)

    def in_generation(self) -> bool:
        """Whether the member may commit; asks as a member does."""
        assert self.generation is not None
        member, generation = self.generation
        code = self.asked(HeartbeatRequest("classic", generation, member)).error_code
        assert code in (0, REBALANCE), code
        return bool(code == 0)

    def commit_by_epoch(self) -> None:
        member, epoch = "kip-848", 0
        if self.epoch is None or self.world.heirs:
            request = ConsumerGroupHeartbeatRequest("modern", member, 0, None, None, 60_000, ["in"], None, None, [])
            answer = self.asked(request)
            assert answer.error_code == 0, answer
            epoch = answer.member_epoch
            self.epoch = (member, epoch)
        for offset in range(max(0, self.offset_of("modern")) + 1, RECORDS + 1):
            self.commit("modern", offset, member, epoch)

    # ------------------------------------------------------------ the share group

    def share(self) -> None:
        self.heartbeat_until_assigned()
        session = 0
        while len(self.done) < RECORDS:
            session = self.share_some(session)

    def heartbeat_until_assigned(self) -> None:
        member = "sharer-1"
        answer = self.asked(ShareGroupHeartbeatRequest("sharers", member, 0, None, ["in"]))
        assert answer.error_code == 0, answer
        while answer.assignment is None or not answer.assignment.topic_partitions:
            self.world.pass_ms(100)
            answer = self.asked(ShareGroupHeartbeatRequest("sharers", member, answer.member_epoch))
            assert answer.error_code == 0, answer
        self.share_epoch = answer.member_epoch

    @property
    def topic_id(self) -> UUID:
        found = self.world.broker.cluster.topic_id("in")
        assert isinstance(found, UUID)
        return found

    def share_some(self, session: int) -> int:
        """Fetch, and accept what came; returns the next epoch of the share session."""
        topics = [FetchTopic(self.topic_id, [FetchPartition(0)])]
        request = ShareFetchRequest("sharers", "sharer-1", session, 0, 1, 1 << 20, 1, 0, 1, False, topics)
        answer = self.world.ask(request)
        if answer.error_code:
            assert answer.error_code in (NO_SHARE_SESSION, BAD_SHARE_EPOCH, *PASSING), answer
            self.world.pass_ms(100)
            return 0
        session += 1
        got = [row for topic in answer.responses for part in topic.partitions for row in part.acquired_records]
        if not got:
            self.look_at_start()
            self.world.pass_ms(500)
            return session
        offsets = {offset for row in got for offset in range(row.first_offset, row.last_offset + 1)}
        assert not offsets & self.done, "delivered again"
        self.delivered |= offsets
        words = [AcknowledgePartitionAcknowledgementBatch(row.first_offset, row.last_offset, [1]) for row in got]
        acked = [AcknowledgeTopic(self.topic_id, [AcknowledgePartition(0, words)])]
        answer = self.world.ask(ShareAcknowledgeRequest("sharers", "sharer-1", session, False, acked))
        if answer.error_code:
            assert answer.error_code in (NO_SHARE_SESSION, BAD_SHARE_EPOCH, *PASSING), answer
            return 0
        codes = {row.error_code for topic in answer.responses for row in topic.partitions}
        if codes == {0}:
            self.done |= offsets
        return session + 1

    def look_at_start(self) -> None:
        """What lies before the group's start is done with, though the answer that said so may have been lost."""
        asked = DescribeShareGroupOffsetsRequestGroup("sharers", None)
        (group,) = self.world.ask(DescribeShareGroupOffsetsRequest([asked]), heir=False).groups
        start = group.topics[0].partitions[0].start_offset if not group.error_code and group.topics else 0
        passed = set(range(start))
        assert passed <= self.delivered, "lost"
        self.done |= passed

    # ------------------------------------------------------------ what must hold

    def look(self) -> None:
        """A broker came up; nobody has spoken to it yet."""
        prepared = self.prepared()
        self.world.settle()
        if prepared is not None:
            state = self.world.ask(DescribeTransactionsRequest([NAME]), heir=False).transaction_states[0]
            assert state.transaction_state == PREPARED[prepared], "what was prepared is not completed"
        self.look_at_transactions()
        for group, offset in self.acked.items():
            found = self.offset_of(group, stable=False, heir=False)
            assert offset <= found <= self.sent[group], f"{group}: {found}, though {offset} was answered"
        if self.generation is not None:
            member, generation = self.generation
            beat = self.world.ask(HeartbeatRequest("classic", generation, member), heir=False)
            assert beat.error_code in (0, REBALANCE), beat
        if self.epoch is not None:
            beat = self.world.ask(ConsumerGroupHeartbeatRequest("modern", *self.epoch), heir=False)
            assert beat.error_code == 0, beat

    def prepared(self) -> str | None:
        """The last state in the transaction's log, where it is one that must be completed."""
        state = None
        for _, records in self.world.stored("__transaction_state"):
            for record in records:
                assert record.key is not None
                if decode_key(record.key) == NAME and record.value is not None:
                    state = decode_value(record.value).state.value
        return state if state in PREPARED else None

    def look_at_transactions(self) -> None:
        """All or none, in both partitions and the offset; each transaction has one fate everywhere."""
        seen = [[value.split(b".")[0] for value in self.world.committed(*name)] for name in OUTPUTS]
        assert seen[0] == seen[1] == [b"%d" % number for number in range(len(seen[0]))], seen
        known = self.world.broker.cluster.partition_count("__consumer_offsets") is not None
        if known and not self.is_open():
            assert max(0, self.offset_of(NAME, heir=False)) == len(seen[0]), "the offset has another fate"
        fates: dict[tuple[int, int, int], set[bool]] = {}
        for name in (*OUTPUTS, OFFSETS):
            for key, fate in self.fates(*name).items():
                fates.setdefault(key, set()).add(fate)
        assert all(len(found) == 1 for found in fates.values()), fates

    def is_open(self) -> bool:
        (state,) = self.world.ask(DescribeTransactionsRequest([NAME]), heir=False).transaction_states
        return state.error_code == 0 and state.transaction_state == "Ongoing"

    def fates(self, topic: str, partition: int) -> dict[tuple[int, int, int], bool]:
        """(producer id, its epoch, which of that epoch's transactions) → whether it was committed."""
        opened: dict[int, int] = {}
        counts: dict[tuple[int, int], int] = {}
        found: dict[tuple[int, int, int], bool] = {}
        for facts, records in self.world.stored(topic, partition):
            if facts.is_control and facts.producer_id in opened:
                epoch = opened.pop(facts.producer_id)
                counts[facts.producer_id, epoch] = number = counts.get((facts.producer_id, epoch), -1) + 1
                found[facts.producer_id, epoch, number] = records[0].key == b"\0\0\0\x01"
            elif facts.is_transactional and not facts.is_control:
                opened[facts.producer_id] = facts.producer_epoch
        return found

    def check_all(self) -> None:
        world = self.world
        assert world.committed("in") == [b"%d" % number for number in range(RECORDS)]
        for topic, partition in OUTPUTS:
            assert world.committed(topic, partition) == [b"%d.%d" % (n, partition) for n in range(RECORDS)]
        assert [self.offset_of(group) for group in (NAME, "alone", "classic", "modern")] == [RECORDS] * 4
        assert self.delivered == self.done == set(range(RECORDS))
        self.look()

    def end(self) -> None:
        for name in (("in", 0), *OUTPUTS, OFFSETS):
            self.check_log(*name)

    def check_log(self, topic: str, partition: int) -> None:
        """Nothing is stored twice, and nothing is open."""
        stored: set[tuple[int, int, int]] = set()
        opened: set[int] = set()
        for facts, _ in self.world.stored(topic, partition):
            if facts.is_control:
                opened.discard(facts.producer_id)
            elif facts.producer_id >= 0:
                key = (facts.producer_id, facts.producer_epoch, facts.base_sequence)
                assert facts.base_sequence < 0 or key not in stored, f"{topic}: {key} is stored twice"
                stored.add(key)
                if facts.is_transactional:
                    opened.add(facts.producer_id)
        assert not opened, f"{topic}-{partition}: a transaction without its marker"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("heirs", [False, True], ids=["the same clients", "heirs"])
@pytest.mark.parametrize(
    ("durable", "v2"), [(False, True), (False, False), (True, True)], ids=["killed", "killed, v1", "power cut"]
)
def test_a_cut_at_every_write(make_world: Any, durable: bool, heirs: bool, v2: bool) -> None:
    cut_at_every_write(lambda: CoordinatorsStory(make_world(durable=durable, heirs=heirs), v2=v2), fewest=80)
