"""Producer states: what a snapshot keeps, and when an idle producer is forgotten."""

import pytest
from attrs import evolve

from logkernel.errors import OutOfOrderSequenceNumber
from logkernel.partition.producers import ProducerStates
from logkernel.vocabulary import BatchFacts


def batch(sequence, offset, *, timestamp=5, transactional=False, count=1, epoch=0):
    attributes = 0x10 if transactional else 0
    return BatchFacts(
        0, 99, offset, offset + count - 1, 0, 2, attributes, timestamp, timestamp, 7, epoch, sequence, count
    )


def test_entries_survive_a_reload():
    states = ProducerStates()
    states.note(batch(0, 100, count=3))
    other = ProducerStates()
    other.load(states.entries())
    assert other.check_append(batch(0, 0, count=3)) == (100, 5)
    with pytest.raises(OutOfOrderSequenceNumber, match="sequence 5 where 3"):
        other.check_append(batch(5, 0))


def test_open_transaction_survives_a_reload():
    states = ProducerStates()
    states.note(batch(0, 100, transactional=True))
    other = ProducerStates()
    other.load(states.entries())
    assert other.first_unstable_offset == 100


def test_idle_producers_expire_but_not_in_a_transaction():
    states = ProducerStates()
    states.note(batch(0, 100, timestamp=1_000))
    assert states.expire(1_000 + 99, 100) == 0
    assert states.expire(1_000 + 100, 100) == 1
    assert states.check_append(batch(77, 0)) is None, "an unknown producer may start anywhere (KIP-360)"
    states.note(batch(0, 100, timestamp=1_000, transactional=True))
    assert states.expire(10**9, 100) == 0


def test_a_marker_that_a_cleaner_emptied_says_nothing():
    states = ProducerStates()
    facts = batch(0, 100, transactional=True)
    states.note(facts)
    emptied = evolve(facts, attributes=0x30, base_offset=110, last_offset=110, count=0)
    assert states.replay(emptied, b"") is None
    assert states.first_unstable_offset == 100, "a later transaction of the producer stays open"
