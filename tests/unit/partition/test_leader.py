"""The leader machine: offsets, watermark, parked answers, flushing."""

from logkernel.errors import (
    InvalidProducerEpoch,
    KafkaStorageError,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
)
from logkernel.partition.leader import Leader
from logkernel.partition.producers import ProducerStates
from logkernel.vocabulary import READ_COMMITTED, READ_UNCOMMITTED, BatchFacts


def batch(count=1, producer_id=-1, epoch=-1, sequence=-1, attributes=0):
    return BatchFacts(0, 61 + count, 0, count - 1, -1, 2, attributes, 5, 5, producer_id, epoch, sequence, count)


def leader(isr=(1,), **settings):
    defaults = {"node_id": 1, "leader_epoch": 3, "log_start": 0, "log_end": 10, "high_watermark": 10}
    return Leader(isr=isr, producers=ProducerStates(), **{**defaults, **settings})


def write(machine, batches, acks=-1, ticket="t", deadline=100):
    effects = machine.on_produce(batches, acks, ticket)
    if effects.append is None:
        return effects
    return machine.on_appended(effects.append, acks, ticket, 1_000, deadline)


def test_offsets_and_epoch_are_assigned_in_order():
    machine = leader()
    effects = machine.on_produce([batch(3), batch(2)], 1, "t")
    assert [(f.base_offset, f.last_offset, f.leader_epoch) for f in effects.append] == [(10, 12, 3), (13, 14, 3)]
    assert machine.log_end == 10, "nothing happened before the append did"


def test_alone_the_watermark_follows_the_log_end_at_once():
    machine = leader()
    effects = write(machine, [batch(3)])
    assert [(ticket, outcome.base_offset) for ticket, outcome in effects.answer] == [("t", 10)]
    assert effects.wake
    assert machine.high_watermark == machine.log_end == 13


def test_acks_all_waits_for_the_in_sync_replicas_and_acks_one_does_not():
    machine = leader(isr=(1, 2))
    assert write(machine, [batch()], acks=-1, ticket="all").answer == []
    assert [ticket for ticket, _ in write(machine, [batch()], acks=1, ticket="one").answer] == ["one"]
    assert machine.high_watermark == 10


def test_parked_answers_time_out():
    machine = leader(isr=(1, 2))
    write(machine, [batch()], deadline=100)
    assert machine.next_deadline() == 100
    assert machine.on_expired(99).answer == []
    ((ticket, outcome),) = machine.on_expired(100).answer
    assert (ticket, outcome.error_code) == ("t", RequestTimedOut.code)
    assert machine.next_deadline() is None


def test_too_few_replicas_refuse_acks_all_only():
    machine = leader(min_isr=2)
    ((_, outcome),) = machine.on_produce([batch()], -1, "t").answer
    assert outcome.error_code == NotEnoughReplicas.code
    assert machine.on_produce([batch()], 1, "t").append is not None


def test_flush_messages_hold_answers_and_watermark_until_the_disk_has_it():
    machine = leader(flush_messages=2)
    assert write(machine, [batch()]).persist is None
    effects = write(machine, [batch()], ticket="second")
    assert effects.persist == 12
    assert effects.answer == []
    assert machine.high_watermark == 11
    assert [ticket for ticket, _ in machine.on_flushed(12).answer] == ["second"]
    assert machine.high_watermark == 12


def test_a_partial_flush_promises_no_more_than_it_covered():
    machine = leader(flush_messages=1)
    write(machine, [batch()], ticket="a")
    write(machine, [batch()], ticket="b")
    assert [ticket for ticket, _ in machine.on_flushed(11).answer] == ["a"]
    assert machine.high_watermark == 11
    assert [ticket for ticket, _ in machine.on_flushed(12).answer] == ["b"]


def test_failed_append_leaves_the_state_as_it_was():
    machine = leader()
    machine.on_produce([batch(5)], 1, "t")
    ((_, outcome),) = machine.on_append_failed("t", KafkaStorageError("gone")).answer
    assert outcome.error_code == KafkaStorageError.code
    assert machine.log_end == 10
    assert machine.on_produce([batch()], 1, "t").append[0].base_offset == 10


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


def test_only_five_batches_are_remembered():
    machine = leader()
    for sequence in range(6):
        write(machine, [batch(1, producer_id=7, epoch=0, sequence=sequence)])
    assert machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=1)], -1, "t").answer[0][1].base_offset == 11
    ((_, outcome),) = machine.on_produce([batch(1, producer_id=7, epoch=0, sequence=0)], -1, "t").answer
    assert outcome.error_code == OutOfOrderSequenceNumber.code


def test_open_transaction_holds_the_last_stable_offset():
    machine = leader()
    write(machine, [batch(2, producer_id=7, epoch=0, sequence=0, attributes=0x10)])
    write(machine, [batch(1)])
    assert machine.readable_end(READ_COMMITTED) == 10
    assert machine.readable_end(READ_UNCOMMITTED) == 13
    write(machine, [batch(1, producer_id=7, epoch=0, attributes=0x30)])
    assert machine.readable_end(READ_COMMITTED) == 14


def test_log_start_pulls_the_watermark_never_back():
    machine = leader(high_watermark=2, isr=(1, 2))
    machine.on_log_start(5)
    assert (machine.log_start, machine.high_watermark) == (5, 5)
    machine.on_log_start(1)
    assert (machine.log_start, machine.high_watermark) == (5, 5)
