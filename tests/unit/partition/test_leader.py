"""The leader machine: offsets, watermark, parked answers, flushing."""

import pytest

from logkernel.errors import (
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
    TransactionalIdAuthorizationFailed,
    TransactionCoordinatorFenced,
)
from logkernel.partition.effects import Effects
from logkernel.partition.leader import Leader
from logkernel.partition.producers import ProducerStates
from logkernel.record.control import EndTxnMarker
from logkernel.vocabulary import READ_COMMITTED, READ_UNCOMMITTED, AbortedTxn, BatchFacts


def batch(count=1, producer_id=-1, epoch=-1, sequence=-1, attributes=0):
    return BatchFacts(0, 61 + count, 0, count - 1, -1, 2, attributes, 5, 5, producer_id, epoch, sequence, count)


def leader(isr=(1,), **settings):
    defaults = {"node_id": 1, "leader_epoch": 3, "log_start": 0, "log_end": 10, "high_watermark": 10}
    return Leader(isr=isr, producers=ProducerStates(), **{**defaults, **settings})


def write(machine, batches, acks=-1, receiver="t", deadline=100):
    effects = machine.on_produce(batches, acks, receiver)
    if effects.append is None:
        return effects
    return machine.on_appended(effects.append, acks, receiver, 1_000, deadline)


def transact(machine, batches, receiver="t", *, verified=True, epoch_bump=False):
    """Write as a producer does whose coordinator confirmed (or was not asked for) the transaction."""
    first = batches[0]
    guard = machine.on_verification(first.producer_id, first.producer_epoch, first.base_sequence, epoch_bump, 5)
    effects = machine.on_produce(batches, -1, receiver, guard if verified else 0)
    return effects if effects.append is None else machine.on_appended(effects.append, -1, receiver, 1_000, 100)


def end(machine, *, producer_id=7, epoch=0, committed=True, coordinator_epoch=0, version=1, receiver="m"):
    """Write a marker; the effects of the decision, and of the append where there was one."""
    marker = EndTxnMarker(committed, coordinator_epoch)
    facts = batch(producer_id=producer_id, epoch=epoch, attributes=0x30)
    decided = machine.on_marker(facts, marker, version, receiver)
    if decided.append is None:
        return decided, None
    return decided, machine.on_appended(decided.append, -1, receiver, 1_000, 100, marker)


def code_of(effects):
    ((_, outcome),) = effects.answer
    return outcome.error_code


def test_offsets_and_epoch_are_assigned_in_order():
    machine = leader()
    effects = machine.on_produce([batch(3), batch(2)], 1, "t")
    assert [(f.base_offset, f.last_offset, f.leader_epoch) for f in effects.append] == [(10, 12, 3), (13, 14, 3)]
    assert machine.log_end == 10, "nothing happened before the append did"


def test_alone_the_watermark_follows_the_log_end_at_once():
    machine = leader()
    effects = write(machine, [batch(3)])
    assert [(receiver, outcome.base_offset) for receiver, outcome in effects.answer] == [("t", 10)]
    assert effects.wake
    assert machine.high_watermark == machine.log_end == 13


def test_acks_all_waits_for_the_in_sync_replicas_and_acks_one_does_not():
    machine = leader(isr=(1, 2))
    assert write(machine, [batch()], acks=-1, receiver="all").answer == []
    assert [receiver for receiver, _ in write(machine, [batch()], acks=1, receiver="one").answer] == ["one"]
    assert machine.high_watermark == 10


def test_parked_answers_time_out():
    machine = leader(isr=(1, 2))
    write(machine, [batch()], deadline=100)
    assert machine.next_deadline() == 100
    assert machine.on_expired(99).answer == []
    ((receiver, outcome),) = machine.on_expired(100).answer
    assert (receiver, outcome.error_code) == ("t", RequestTimedOut.code)
    assert machine.next_deadline() is None


def test_too_few_replicas_refuse_acks_all_only():
    machine = leader(min_isr=2, replicas=(1, 2))
    ((_, outcome),) = machine.on_produce([batch()], -1, "t").answer
    assert outcome.error_code == NotEnoughReplicas.code
    assert machine.on_produce([batch()], 1, "t").append is not None


@pytest.mark.parametrize(
    ("replicas", "isr", "accepted"), [((1,), (1,), True), ((1, 2), (1, 2), True), ((1, 2), (1,), False)]
)
def test_no_more_replicas_have_to_be_in_sync_than_there_are(replicas, isr, accepted):
    """Kafka 4.3.1 takes acks=all on a topic of one replica with min.insync.replicas=2."""
    machine = leader(isr=isr, replicas=replicas, min_isr=3)
    assert (machine.on_produce([batch()], -1, "t").append is not None) is accepted


def test_flush_messages_hold_answers_and_watermark_until_the_disk_has_it():
    machine = leader(flush_messages=2)
    assert write(machine, [batch()]).persist is None
    effects = write(machine, [batch()], receiver="second")
    assert effects.persist == 12
    assert effects.answer == []
    assert machine.high_watermark == 11
    assert [receiver for receiver, _ in machine.on_flushed(12).answer] == ["second"]
    assert machine.high_watermark == 12


def test_a_partial_flush_promises_no_more_than_it_covered():
    machine = leader(flush_messages=1)
    write(machine, [batch()], receiver="a")
    write(machine, [batch()], receiver="b")
    assert [receiver for receiver, _ in machine.on_flushed(11).answer] == ["a"]
    assert machine.high_watermark == 11
    assert [receiver for receiver, _ in machine.on_flushed(12).answer] == ["b"]


def test_failed_append_leaves_the_state_as_it_was():
    machine = leader()
    machine.on_produce([batch(5)], 1, "t")
    ((_, outcome),) = machine.on_append_failed("t", KafkaStorageError("gone")).answer
    assert outcome.error_code == KafkaStorageError.code
    assert machine.log_end == 10
    assert machine.on_produce([batch()], 1, "t").append[0].base_offset == 10


def test_a_batch_behind_one_that_found_no_room_is_told_so_until_one_is_written():
    """It was told OUT_OF_ORDER_SEQUENCE_NUMBER: librdkafka began a new epoch for all partitions, and doubled records of
    another one that waited for their acknowledgement (chaos, seed 299500030)."""
    machine = leader()
    write(machine, [batch(1, producer_id=7, epoch=0, sequence=0)])
    machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=1)], -1, "first")
    machine.on_append_failed("first", KafkaStorageError("no room"))
    ((_, outcome),) = machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=2)], -1, "second").answer
    assert (outcome.error_code, outcome.error_message) == (KafkaStorageError.code, "no room")
    write(machine, [batch(1, producer_id=7, epoch=0, sequence=1)])
    ((_, outcome),) = machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=9)], -1, "gap").answer
    assert outcome.error_code == OutOfOrderSequenceNumber.code


def test_a_duplicate_that_is_not_committed_waits_as_its_first_does():
    """It was answered at once: a leader that lost its followers acknowledged records that nobody else held."""
    machine = leader(isr=(1, 2), replicas=(1, 2))
    batches = [batch(1, producer_id=7, epoch=0, sequence=number) for number in range(2)]
    for number, facts in enumerate(batches):
        assert write(machine, [facts], receiver=f"first {number}").answer == []
    again = batch(1, producer_id=7, epoch=0, sequence=0)
    assert machine.on_produce([again], -1, "again", None, 200).answer == []
    assert [receiver for receiver, _ in machine.on_expired(150).answer] == ["first 0", "first 1"]
    effects = machine.on_fetch(2, 11, 0, 160)
    assert [(receiver, outcome.base_offset) for receiver, outcome in effects.answer] == [("again", 10)]
    assert machine.on_produce([again], 1, "acks 1").answer[0][1].base_offset == 10, "acks=1 waits for nobody"


def test_duplicate_is_answered_with_its_first_offset_and_gap_is_refused():
    machine = leader()
    write(machine, [batch(2, producer_id=7, epoch=0, sequence=0)])
    write(machine, [batch(3, producer_id=7, epoch=0, sequence=2)])
    effects = machine.on_produce([batch(2, producer_id=7, epoch=0, sequence=0)], -1, "again")
    assert effects.append is None
    assert effects.answer[0][1].base_offset == 10
    ((_, outcome),) = machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=9)], -1, "gap").answer
    assert outcome.error_code == OutOfOrderSequenceNumber.code


def test_old_epoch_is_fenced_and_new_epoch_starts_at_zero():
    machine = leader()
    write(machine, [batch(1, producer_id=7, epoch=4, sequence=0)])
    ((_, outcome),) = machine.on_produce([batch(1, producer_id=7, epoch=3, sequence=1)], -1, "t").answer
    assert outcome.error_code == InvalidProducerEpoch.code
    ((_, outcome),) = machine.on_produce([batch(1, producer_id=7, epoch=5, sequence=1)], -1, "t").answer
    assert outcome.error_code == OutOfOrderSequenceNumber.code
    assert machine.on_produce([batch(1, producer_id=7, epoch=5, sequence=0)], -1, "t").append


def test_sequence_wraps_after_int_max():
    machine = leader()
    write(machine, [batch(1, producer_id=7, epoch=0, sequence=0x7FFFFFFF)])
    assert machine.on_produce([batch(2, producer_id=7, epoch=0, sequence=0)], -1, "t").append


def test_only_ten_batches_have_their_offsets_remembered():
    machine = leader()
    for sequence in range(11):
        write(machine, [batch(1, producer_id=7, epoch=0, sequence=sequence)])
    assert machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=1)], -1, "t").answer[0][1].base_offset == 11
    ((_, outcome),) = machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=0)], -1, "t").answer
    assert (outcome.error_code, outcome.base_offset) == (DuplicateSequenceNumber.code, -1)


def test_a_duplicate_without_an_offset_waits_until_it_is_committed():
    """Clients take DuplicateSequenceNumber for success."""
    machine = leader(isr=(1, 2), replicas=(1, 2))
    for sequence in range(11):
        write(machine, [batch(1, producer_id=7, epoch=0, sequence=sequence)])
    again = batch(1, producer_id=7, epoch=0, sequence=0)
    assert machine.on_produce([again], -1, "again", None, 200).answer == []
    answered = dict(machine.on_fetch(2, 21, 0, 60).answer)
    assert answered["again"].error_code == DuplicateSequenceNumber.code


def test_open_transaction_holds_the_last_stable_offset():
    machine = leader()
    transact(machine, [batch(2, producer_id=7, epoch=0, sequence=0, attributes=0x10)])
    write(machine, [batch(1)])
    assert machine.readable_end(READ_COMMITTED) == 10
    assert machine.readable_end(READ_UNCOMMITTED) == 13
    end(machine)
    assert machine.readable_end(READ_COMMITTED) == 14


def test_log_start_pulls_the_watermark_never_back():
    machine = leader(high_watermark=2, isr=(1, 2))
    machine.on_log_start(5)
    assert (machine.log_start, machine.high_watermark) == (5, 5)
    machine.on_log_start(1)
    assert (machine.log_start, machine.high_watermark) == (5, 5)


# ---------------------------------------------------------------- transactions


def in_transaction(count=1, epoch=0, sequence=0, producer_id=7):
    return batch(count, producer_id=producer_id, epoch=epoch, sequence=sequence, attributes=0x10)


def test_the_first_batch_of_a_transaction_needs_a_guard_and_the_next_none():
    machine = leader()
    assert code_of(transact(machine, [in_transaction()], verified=False)) == InvalidTxnState.code
    assert code_of(transact(machine, [in_transaction()])) == 0
    assert machine.on_verification(7, 0, 1, False, 5) == 0
    assert code_of(transact(machine, [in_transaction(sequence=1)])) == 0


def test_a_marker_makes_a_guard_void():
    """A batch that was late on its way must not open a transaction that nobody ends."""
    machine = leader()
    guard = machine.on_verification(7, 0, 0, False, 5)
    end(machine)
    assert code_of(machine.on_produce([in_transaction()], -1, "late", guard)) == InvalidTxnState.code


def test_a_marker_that_is_written_again_leaves_the_guard_of_the_next_transaction():
    """Of transactions v2 it has the next one's epoch. A coordinator that took over writes it again, while that next
    transaction is verified already."""
    machine = leader()
    transact(machine, [in_transaction()])
    end(machine, epoch=1, version=2)
    guard = machine.on_verification(7, 1, 0, True, 5)
    end(machine, epoch=1, version=2)
    assert machine.on_produce([in_transaction(epoch=1)], -1, "next", guard).append is not None


def test_a_transactional_batch_without_transactional_id_is_refused():
    machine = leader()
    effects = machine.on_produce([in_transaction()], -1, "t")
    assert code_of(effects) == TransactionalIdAuthorizationFailed.code


def test_a_plain_batch_inside_a_transaction_is_refused():
    machine = leader()
    transact(machine, [in_transaction()])
    ((_, outcome),) = write(machine, [batch(1, producer_id=7, epoch=0, sequence=1)]).answer
    assert outcome.error_code == InvalidTxnState.code
    assert outcome.error_message == (
        "producer 7 wrote without its transactional id while its transaction is open; send the batch in the transaction"
    )


def test_a_repeated_batch_is_a_duplicate_even_when_its_transaction_is_over():
    machine = leader()
    transact(machine, [in_transaction(2)])
    end(machine)
    effects = machine.on_produce([in_transaction(2)], -1, "again", 0)
    assert (effects.append, effects.answer[0][1].base_offset) == (None, 10)


def test_with_transactions_v2_an_unknown_producer_begins_at_zero():
    machine = leader()
    assert code_of(transact(machine, [in_transaction(sequence=3)], epoch_bump=True)) == OutOfOrderSequenceNumber.code
    machine = leader()
    assert code_of(transact(machine, [in_transaction(sequence=3)])) == 0


def test_what_failed_its_verification_comes_again_before_what_followed():
    machine = leader()
    machine.on_verification(7, 0, 0, False, 5)  # and the coordinator was not there
    assert code_of(transact(machine, [in_transaction(sequence=1)])) == OutOfOrderSequenceNumber.code
    assert code_of(transact(machine, [in_transaction(sequence=0)])) == 0


def test_markers_are_fenced_by_both_epochs():
    machine = leader()
    transact(machine, [in_transaction(epoch=3)])
    assert code_of(end(machine, epoch=2)[0]) == InvalidProducerEpoch.code
    assert code_of(end(machine, epoch=3, coordinator_epoch=5)[1]) == 0
    assert code_of(end(machine, epoch=3, coordinator_epoch=4)[0]) == TransactionCoordinatorFenced.code
    assert code_of(end(machine, epoch=3, coordinator_epoch=5)[1]) == 0, "repeated, for want of an answer"


def test_a_v2_marker_has_a_higher_epoch_or_repeats_itself():
    machine = leader()
    transact(machine, [in_transaction(epoch=3)])
    assert code_of(end(machine, epoch=3, version=2)[0]) == InvalidProducerEpoch.code
    assert code_of(end(machine, epoch=4, version=2)[1]) == 0
    assert code_of(end(machine, epoch=4, version=2)[1]) == 0, "repeated"
    transact(machine, [in_transaction(epoch=4)])
    assert code_of(end(machine, epoch=4, version=2)[0]) == InvalidProducerEpoch.code, "late: that was the one before"
    assert code_of(transact(machine, [in_transaction(epoch=3, sequence=1)])) == InvalidProducerEpoch.code


def test_an_abort_tells_what_the_index_must_know():
    machine = leader()
    transact(machine, [in_transaction(producer_id=8)])
    transact(machine, [in_transaction(2)])
    decided, _ = end(machine, committed=False)
    assert decided.aborted == AbortedTxn(7, 11, 13, 10), "producer 8 is still open at 10"
    assert end(machine, producer_id=8, committed=False)[0].aborted == AbortedTxn(8, 10, 14, 15)
    assert end(machine, committed=False)[0].aborted is None, "there was nothing to abort"


def test_a_transaction_is_in_doubt_until_its_marker_is_committed():
    machine = leader(flush_messages=1)
    effects = machine.on_produce([in_transaction()], -1, "t", machine.on_verification(7, 0, 0, False, 5))
    machine.on_appended(effects.append, -1, "t", 1_000, 100)
    machine.on_flushed(11)
    _, effects = end(machine)
    assert effects.answer == []
    assert machine.last_stable_offset() == 10
    effects = machine.on_flushed(12)
    assert [receiver for receiver, _ in effects.answer] == ["m"]
    assert effects.wake
    assert machine.last_stable_offset() == 12


def test_the_log_start_pulls_the_last_stable_offset():
    machine = leader()
    transact(machine, [in_transaction(3)])
    machine.on_log_start(12)
    assert machine.last_stable_offset() == 12


def test_a_services_batches_have_no_sequence():
    machine = leader()
    for _ in range(3):
        assert code_of(transact(machine, [in_transaction(sequence=-1)])) == 0
    end(machine, epoch=1)
    assert code_of(transact(machine, [in_transaction(sequence=-1)])) == InvalidProducerEpoch.code


def replicated(min_isr: int = 1) -> Leader:
    leader = Leader(
        node_id=1, leader_epoch=4, isr=(1, 2), log_start=0, log_end=0, high_watermark=0, min_isr=min_isr,
        producers=ProducerStates(), replicas=(1, 2, 3), partition_epoch=6, lag_ms=100, mono_ms=1000,
    )  # fmt: skip
    leader.on_live_brokers(frozenset((1, 2, 3)))
    return leader


def written(leader: Leader, receiver: str, acks: int = -1) -> Effects:
    facts = BatchFacts(0, 100, 0, 0, -1, 2, 0, 0, 0, -1, -1, -1, 1)
    effects = leader.on_produce([facts], acks, receiver)
    return leader.on_appended(effects.append, acks, receiver, 0, 5000)


def test_an_acknowledgement_of_all_waits_for_every_member_of_the_isr() -> None:
    leader = replicated()
    leader.on_fetch(2, 0, 0, 1001)
    assert written(leader, "a").answer == []
    effects = leader.on_fetch(2, 1, 0, 1002)
    assert [(receiver, outcome.error_code) for receiver, outcome in effects.answer] == [("a", 0)]
    assert effects.wake


def test_a_follower_that_caught_up_is_proposed_and_waited_for_at_once() -> None:
    leader = replicated()
    proposal = leader.on_fetch(3, 0, 0, 1001).propose
    assert proposal.isr == {1, 2, 3}
    written(leader, "a")
    assert leader.on_fetch(2, 1, 0, 1002).answer == []
    leader.on_isr_accepted(proposal, 7)
    assert leader.isr == (1, 2, 3)
    assert [receiver for receiver, _ in leader.on_fetch(3, 1, 0, 1003).answer] == ["a"]


def test_a_member_that_lags_is_waited_for_until_the_controller_wrote_it_down() -> None:
    leader = replicated()
    written(leader, "a")
    effects = leader.on_tick(1101)
    assert (effects.propose.isr, effects.answer) == ({1}, [])
    assert [receiver for receiver, _ in leader.on_isr_accepted(effects.propose, 7).answer] == ["a"]


def test_the_watermark_stands_still_below_the_minimum_of_in_sync_replicas() -> None:
    leader = replicated(min_isr=2)
    written(leader, "a", acks=1)
    effects = leader.on_tick(1101)
    leader.on_isr_accepted(effects.propose, 7)
    assert (leader.isr, leader.high_watermark) == ((1,), 0)
    (refused,) = leader.on_produce([BatchFacts(0, 9, 0, 0, -1, 2, 0, 0, 0, -1, -1, -1, 1)], -1, "b").answer
    assert refused[1].error_code == NotEnoughReplicas.code


def test_a_write_that_waits_when_the_isr_falls_below_the_minimum_times_out_and_stays_in_the_log() -> None:
    """As with Kafka 3.9 (`Partition.checkEnoughReplicasReachOffset`): the watermark does not reach it before."""
    leader = replicated(min_isr=2)
    written(leader, "a")
    proposal = leader.on_tick(1101).propose
    assert leader.on_isr_accepted(proposal, 7).answer == [], "nobody knows yet whether enough replicas come back"
    deadline = leader.next_deadline()
    assert deadline is not None
    ((receiver, outcome),) = leader.on_expired(deadline).answer
    assert (receiver, outcome.error_code) == ("a", RequestTimedOut.code)
    assert (leader.log_end, leader.high_watermark) == (1, 0)


def test_a_write_that_waits_below_the_minimum_succeeds_when_enough_replicas_come_back() -> None:
    leader = replicated(min_isr=2)
    written(leader, "a")
    leader.on_isr_accepted(leader.on_tick(1101).propose, 7)
    leader.on_live_brokers(frozenset((1, 2, 3)), 1102)
    effects = leader.on_fetch(2, 1, 0, 1103)
    assert (effects.propose.isr, effects.answer, leader.high_watermark) == ({1, 2}, [], 0)
    ((receiver, outcome),) = leader.on_isr_accepted(effects.propose, 8).answer
    assert (receiver, outcome.error_code, leader.high_watermark) == ("a", 0, 1)


def test_who_waits_when_another_leads_is_told_to_ask_there() -> None:
    leader = replicated()
    written(leader, "a")
    ((receiver, outcome),) = leader.on_resigned().answer
    assert (receiver, outcome.error_code) == ("a", NotLeaderOrFollower.code)


def test_a_new_epoch_begins_at_the_log_end_and_keeps_who_waits() -> None:
    leader = replicated()
    written(leader, "a")
    effects = leader.on_order(5, (1, 2, 3), (1,), 8, 1200)
    assert [receiver for receiver, _ in effects.answer] == ["a"]
    assert (leader.leader_epoch, leader.isr) == (5, (1,))
    assert leader.on_order(5, (1, 2, 3), (1, 2), 9, 1300).answer == []
    assert leader.isr == (1,)


def idempotent(sequence: int = 0) -> BatchFacts:
    return BatchFacts(0, 100, 0, 0, -1, 2, 0, 0, 0, 7, 0, sequence, 1)


def test_a_repetition_waits_as_what_it_repeats_does() -> None:
    leader = replicated()
    effects = leader.on_produce([idempotent()], -1, "first", None, 5000)
    leader.on_appended(effects.append, -1, "first", 0, 5000)
    written(leader, "later")
    repeated = leader.on_produce([idempotent()], -1, "again", None, 2000)
    assert (repeated.append, repeated.answer) == (None, [])
    assert leader.next_deadline() == 2000
    assert [receiver for receiver, _ in leader.on_fetch(2, 1, 0, 1002).answer] == ["first", "again"]
    ((receiver, outcome),) = leader.on_produce([idempotent()], -1, "once more", None, 2000).answer
    assert (receiver, outcome.error_code, outcome.base_offset) == ("once more", 0, 0)


def test_a_repetition_that_waits_for_no_follower_is_answered_at_once() -> None:
    leader = replicated()
    effects = leader.on_produce([idempotent()], 1, "first")
    leader.on_appended(effects.append, 1, "first", 0, 5000)
    assert [receiver for receiver, _ in leader.on_produce([idempotent()], 1, "again").answer] == ["again"]


def test_a_repetition_waits_for_the_disk_as_what_it_repeats_does() -> None:
    machine = leader(flush_messages=1)
    effects = machine.on_produce([batch(1, 7, 0, 0)], 1, "first")
    assert machine.on_appended(effects.append, 1, "first", 0, 5000).answer == []
    assert machine.on_produce([batch(1, 7, 0, 0)], 1, "again").answer == []
    assert [receiver for receiver, _ in machine.on_flushed(11).answer] == ["first", "again"]


def test_acknowledgements_held_below_the_minimum_expire_and_are_never_given() -> None:
    leader = replicated(min_isr=2)
    written(leader, "a")
    leader.on_isr_accepted(leader.on_tick(1101).propose, 7)
    ((receiver, outcome),) = leader.on_expired(5000).answer
    assert (receiver, outcome.error_code) == ("a", RequestTimedOut.code)


def test_who_caught_up_while_another_proposal_was_under_way_is_proposed_after_it() -> None:
    leader = Leader(
        node_id=1, leader_epoch=4, isr=(1,), log_start=0, log_end=0, high_watermark=0, producers=ProducerStates(),
        replicas=(1, 2, 3), partition_epoch=6, lag_ms=100, mono_ms=1000,
    )  # fmt: skip
    leader.on_live_brokers(frozenset((1, 2, 3)))
    first = leader.on_fetch(2, 0, 0, 1001).propose
    assert leader.on_fetch(3, 0, 0, 1002).propose is None
    second = leader.on_isr_accepted(first, 7).propose
    assert (first.isr, second.isr) == ({1, 2}, {1, 2, 3})


def test_who_caught_up_before_it_was_alive_is_proposed_when_it_is() -> None:
    leader = replicated()
    leader.on_live_brokers(frozenset((1, 2)))
    assert leader.on_fetch(3, 0, 0, 1001).propose is None
    assert leader.on_live_brokers(frozenset((1, 2, 3))).propose.isr == {1, 2, 3}


def test_a_leader_alone_gets_followers_by_an_order() -> None:
    machine = leader()
    machine.on_order(4, (1, 2), (1,), 3, 1000)
    machine.on_live_brokers(frozenset((1, 2)))
    assert machine.on_fetch(2, 10, 0, 1001).propose.isr == {1, 2}


def test_the_low_watermark_is_that_of_the_living() -> None:
    leader = replicated()
    written(leader, "a", acks=1)
    for node in (2, 3):
        leader.on_fetch(node, 1, 0, 1001)
    leader.on_log_start(1)
    assert leader.low_watermark() == 0
    leader.on_fetch(2, 1, 1, 1002)
    assert leader.low_watermark() == 0
    leader.on_live_brokers(frozenset((1, 2)))
    assert leader.low_watermark() == 1
    assert (
        Leader(
            node_id=1, leader_epoch=0, isr=(1,), log_start=4, log_end=9, high_watermark=9, producers=ProducerStates()
        ).low_watermark()
        == 4
    )


def test_verifications_are_void_when_the_leadership_ends() -> None:
    leader = replicated()
    guard = leader.on_verification(7, 0, 0, False, 5)
    leader.on_resigned()
    assert code_of(leader.on_produce([in_transaction()], -1, "t", guard)) == InvalidTxnState.code


def test_who_left_for_its_lag_is_not_proposed_by_the_clock() -> None:
    leader = replicated(min_isr=2)
    written(leader, "a", acks=1)
    shrunk = leader.on_tick(1101).propose
    assert leader.on_isr_accepted(shrunk, 7).propose is None
    assert (leader.isr, leader.high_watermark) == ((1,), 0), "node 2 holds all below the watermark, and is dead"
    assert leader.on_tick(1151).propose is None


def test_what_a_broker_fetched_before_it_was_gone_counts_no_more() -> None:
    """It may have lost that (KIP-903); only a fetch of its new life tells."""
    leader = replicated()
    leader.on_live_brokers(frozenset((1, 2)))
    assert leader.on_fetch(3, 0, 0, 1001).propose is None
    leader.on_live_brokers(frozenset((1, 2, 3)))
    leader.on_isr_refused(leader.sync.proposal, revert=True)
    leader.on_live_brokers(frozenset((1, 2)))
    assert leader.on_live_brokers(frozenset((1, 2, 3))).propose is None
    assert leader.on_fetch(3, 0, 0, 1002).propose.isr == {1, 2, 3}


def test_who_is_not_in_sync_in_a_new_epoch_must_fetch_in_it() -> None:
    leader = replicated()
    written(leader, "a", acks=1)
    leader.on_fetch(2, 1, 0, 1001)
    leader.on_order(5, (1, 2, 3), (1,), 8, 1002)
    assert leader.on_tick(1003).propose is None
    assert leader.on_fetch(2, 1, 0, 1004).propose.isr == {1, 2}
