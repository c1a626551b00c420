"""Transactions as a partition sees them: verification, markers, and what readers of each isolation see."""

import pytest

import logkernel
from logkernel.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTopicException,
    InvalidTxnState,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from logkernel.requests.offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from logkernel.requests.transactions import DescribeProducersRequest, TopicRequest

OK = 0

# ---------------------------------------------------------------- verification


def test_the_first_batch_asks_the_coordinator_and_the_next_does_not(world):
    assert world.codes(world.send(0, b"a")) == [OK]
    assert world.codes(world.send(1, b"b")) == [OK]
    (asked,) = world.coordinator.heard
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch, asked.verify_only) == ("tx", 7, 0, False)
    assert [(topic.name, topic.partitions) for topic in asked.topics] == [("t", [0])]
    assert world.values("read_uncommitted") == [b"a", b"b"]


def test_old_producers_add_partitions_themselves(world):
    world.send(0, capabilities=world.old)
    assert world.coordinator.heard[0].verify_only


def test_one_question_for_all_partitions_of_a_request(world):
    assert world.codes(world.send(0, partitions=(0, 2))) == [OK, OK]
    (asked,) = world.coordinator.heard
    assert asked.topics[0].partitions == [0, 2]


def test_batches_that_come_meanwhile_wait_in_their_order(world):
    world.coordinator.held = True
    answers = [world.send(number, b"%d" % number) for number in range(4)]
    other = world.send(0, b"other", producer=8, transactional_id="other")
    plain = world.send(0, b"plain", producer=9, transactional_id=None, transactional=False)
    assert [world.codes(answer) for answer in (*answers, other, plain)] == [[], [], [], [], [], [OK]]
    assert len(world.coordinator.heard) == 2
    world.coordinator.speak()
    assert [world.codes(answer) for answer in answers] == [[OK]] * 4
    assert world.codes(other) == []
    world.coordinator.speak()
    assert world.values("read_uncommitted") == [b"plain", b"0", b"1", b"2", b"3", b"other"]
    assert len(world.broker.context.verifications) == 0


def test_after_a_refusal_those_behind_are_asked_for_anew(world):
    """And do not overtake what was refused: the producer sends that again."""
    world.coordinator.held = True
    first, second = world.send(0), world.send(1)
    world.coordinator.speak(CoordinatorNotAvailable.code)
    assert world.codes(first) == [NotEnoughReplicas.code]
    assert world.codes(second) == []
    world.coordinator.speak()
    assert world.codes(second) == [OutOfOrderSequenceNumber.code]
    world.coordinator.held = False
    assert world.codes(world.send(0)) == world.codes(world.send(1)) == [OK]


def test_a_fenced_producer_does_not_take_its_successor_with_it(world):
    world.coordinator.held = True
    zombie, successor = world.send(0, b"zombie", epoch=0), world.send(0, b"new", epoch=1)
    world.coordinator.speak(ProducerFenced.code)
    world.coordinator.speak()
    assert (world.codes(zombie), world.codes(successor)) == ([InvalidProducerEpoch.code], [OK])
    assert world.values("read_uncommitted") == [b"new"]


@pytest.mark.parametrize(
    ("said", "told", "told_old"),
    [
        (TransactionAbortable, TransactionAbortable, InvalidTxnState),
        (InvalidTxnState, InvalidTxnState, InvalidTxnState),
        (InvalidProducerIdMapping, InvalidProducerIdMapping, InvalidProducerIdMapping),
        (ProducerFenced, InvalidProducerEpoch, InvalidProducerEpoch),
        (CoordinatorNotAvailable, NotEnoughReplicas, NotEnoughReplicas),
    ],
)
def test_a_refusal_is_told_in_words_that_producers_know(world, said, told, told_old):
    world.coordinator.code = said.code
    assert world.codes(world.send()) == [told.code]
    assert world.codes(world.send(capabilities=world.old)) == [told_old.code]
    assert world.values("read_uncommitted") == []


def test_a_coordinator_that_is_busy_is_asked_again_for_a_moment(world):
    world.at(0)
    world.coordinator.code = ConcurrentTransactions.code
    answer = world.send(0, b"a")
    world.at(19)
    assert (len(world.coordinator.heard), world.codes(answer)) == (1, [])
    world.at(20)
    assert (len(world.coordinator.heard), world.codes(answer)) == (2, [])
    world.coordinator.code = 0
    world.at(40)
    assert (len(world.coordinator.heard), world.codes(answer)) == (3, [OK])
    assert world.values("read_uncommitted") == [b"a"]
    world.mark()
    world.coordinator.code = ConcurrentTransactions.code
    answer = world.send(1, b"b")
    for ms in range(40, 141, 20):
        assert world.codes(answer) == []
        world.at(ms)
    assert world.codes(answer) == [NotEnoughReplicas.code]


def test_a_topic_that_went_meanwhile_is_not_written(world):
    world.coordinator.held = True
    answers = [world.send(0), world.send(1)]
    world.log.delete_topic("t")
    world.coordinator.speak()
    assert [world.codes(answer) for answer in answers] == [[UnknownTopicOrPartition.code]] * 2


def test_old_producers_ask_again_themselves(world):
    world.coordinator.code = ConcurrentTransactions.code
    assert world.codes(world.send(capabilities=world.old)) == [NotEnoughReplicas.code]


def test_without_a_coordinator_there_are_no_transactions(make_world):
    with logkernel.open() as log:
        log.create_topic("t")
        world = make_world(log, coordinator=False)
        assert world.codes(world.send()) == [InvalidProducerIdMapping.code]
        assert world.codes(world.send(transactional=False)) == [OK]


def test_verification_can_be_turned_off_for_old_producers(make_world):
    with logkernel.open(transaction_partition_verification_enable=False) as log:
        log.create_topic("t")
        world = make_world(log)
        assert world.codes(world.send(capabilities=world.old)) == [OK]
        assert world.coordinator.heard == []
        assert world.codes(world.send(producer=8)) == [OK]
        assert len(world.coordinator.heard) == 1, "v2 adds the partition by it"


def test_a_transactional_batch_needs_a_transactional_id(world):
    assert world.codes(world.send(transactional_id=None)) == [TransactionalIdAuthorizationFailed.code]


def test_a_plain_batch_does_not_slip_into_a_transaction(world):
    world.send(0)
    assert world.codes(world.send(1, transactional=False)) == [InvalidTxnState.code]


# ---------------------------------------------------------------- markers


def test_what_readers_see_of_a_transaction(world):
    world.send(0, b"a", b"b")
    world.send(0, b"plain", producer=9, transactional_id=None, transactional=False)
    assert world.values() == []
    assert world.values("read_uncommitted") == [b"a", b"b", b"plain"]
    assert world.mark() == [OK]
    assert world.values() == [b"a", b"b", b"plain"]


def test_aborted_records_are_not_read(world):
    for number in range(6):
        world.send(number, b"%d" % number)
        world.send(number, b"other %d" % number, producer=8, transactional_id="other")
        assert world.mark(committed=number % 2 == 0) == [OK]
    assert world.values() == [b"0", b"other 0"][:1]
    world.mark(producer=8, committed=False)
    assert world.values() == [b"0", b"2", b"4"]
    assert [r.offset for r in world.log.read("t", offset=3, isolation="read_committed")] == [6, 12]


def test_a_repeated_marker_is_harmless_and_an_old_one_refused(world):
    world.send(0, epoch=1)
    assert world.mark(epoch=1, coordinator_epoch=3) == world.mark(epoch=1, coordinator_epoch=3) == [OK]
    assert world.mark(epoch=1, coordinator_epoch=2) == [TransactionCoordinatorFenced.code]
    assert world.mark(epoch=0, coordinator_epoch=3) == [InvalidProducerEpoch.code]
    assert world.mark(partitions=(0, 9), epoch=1, coordinator_epoch=3) == [OK, UnknownTopicOrPartition.code]
    assert world.mark(topic="nothing") == [UnknownTopicOrPartition.code]


def test_a_v2_marker_carries_the_next_epoch(world):
    world.send(0, b"a")
    assert world.mark(epoch=1, version=2) == world.mark(epoch=1, version=2) == [OK]
    assert world.codes(world.send(0, b"b", epoch=1)) == [OK]
    assert world.mark(epoch=1, version=2) == [InvalidProducerEpoch.code], "that one came late"
    assert world.mark(epoch=2, version=2) == [OK]
    assert world.values() == [b"a", b"b"]


def test_a_parked_fetch_of_committed_records_wakes_at_the_marker(world):
    world.send(0, b"a")
    parked = world.fetch(wait_ms=60_000)
    reader_of_all = world.fetch(wait_ms=60_000, isolation=0)
    world.send(1, b"b")
    assert (len(parked), len(reader_of_all)) == (0, 1)
    world.mark()
    (row,) = parked[0].responses[0].partitions
    assert (row.high_watermark, row.last_stable_offset, row.aborted_transactions) == (3, 3, [])
    assert row.records.size > 0


def test_a_fetch_tells_only_the_aborts_that_it_may_meet(make_world):
    with logkernel.open(log_index_interval_bytes=100) as log:
        log.create_topic("t")
        world = make_world(log)
        for number in range(50):
            world.send(number, b"x" * 50, timestamp_ms=log.broker.runtime.clock.wall_ms())
            world.mark(committed=False)
        (response,) = world.fetch(max_bytes=300)
        told = response.responses[0].partitions[0].aborted_transactions
        assert [row.first_offset for row in told][:2] == [0, 2]
        assert len(told) <= 3
        assert world.fetch(isolation=0)[0].responses[0].partitions[0].aborted_transactions is None
        assert world.values() == []


@pytest.mark.parametrize("clean", [True, False])
def test_open_transactions_and_aborts_survive_a_restart(tmp_path, make_world, clean):
    log = logkernel.open(tmp_path)
    log.create_topic("t")
    world = make_world(log)
    world.send(0, b"aborted")
    world.mark(committed=False)
    world.send(0, b"done", producer=8)
    world.mark(producer=8)
    world.send(1, b"open")
    if clean:
        log.close()
    else:
        log.broker.logs.abandon()
    with logkernel.open(tmp_path) as log:
        world = make_world(log)
        assert world.values() == [b"done"]
        assert world.codes(world.send(2, b"more")) == [OK]
        assert world.coordinator.heard == [], "it is still open here"
        assert world.mark() == [OK]
        assert world.values() == [b"done", b"open", b"more"]


# ---------------------------------------------------------------- other questions


def offset(world, timestamp, isolation):
    asked = [ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp)])]
    (response,) = world.ask(ListOffsetsRequest(-1, asked, isolation))
    return response.topics[0].partitions[0].offset


def test_list_offsets_keeps_to_its_isolation(world):
    world.send(0, b"plain", producer=9, transactional_id=None, transactional=False)
    world.send(0, b"a")
    assert [offset(world, -1, isolation) for isolation in (0, 1)] == [2, 1]
    assert [offset(world, 1, isolation) for isolation in (0, 1)] == [0, 0]
    world.log.append("t", b"later", partition=0, timestamp_ms=5)
    assert [offset(world, 5, isolation) for isolation in (0, 1)] == [2, -1]
    world.mark()
    assert [offset(world, -1, 1), offset(world, 5, 1)] == [4, 2]


def test_records_of_an_open_transaction_can_be_deleted(world):
    world.send(0, b"a", b"b", b"c")
    world.log.append("t", b"d", partition=0)
    topics = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 2)])]
    (response,) = world.ask(DeleteRecordsRequest(topics))
    assert response.topics[0].partitions[0].low_watermark == 2
    assert (offset(world, -1, 1), offset(world, -2, 1)) == (2, 2)
    world.mark()
    assert world.values() == [b"c", b"d"]


def test_describe_producers(world):
    world.send(0, b"a", b"b", epoch=4)
    world.mark(epoch=4, coordinator_epoch=6)
    world.send(2, b"c", epoch=4)
    world.send(0, producer=9, transactional_id=None, transactional=False)
    asked = [TopicRequest("t", [0, 1, 9]), TopicRequest("nothing", [0]), TopicRequest("no/name", [0])]
    (response,) = world.ask(DescribeProducersRequest(asked))
    found, empty, absent = response.topics[0].partitions
    rows = [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in found.active_producers
    ]
    assert rows == [(7, 4, 2, 6, 3), (9, 0, 0, -1, -1)]
    assert [p.last_timestamp for p in found.active_producers] == [1, 1]
    assert (empty.error_code, empty.active_producers) == (OK, [])
    assert absent.error_code == UnknownTopicOrPartition.code
    assert [topic.partitions[0].error_code for topic in response.topics[1:]] == [
        UnknownTopicOrPartition.code,
        InvalidTopicException.code,
    ]
