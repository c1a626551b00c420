"""The table of `client.sequences`."""

from __future__ import annotations

import pytest

from logkernel.client.producer.batches import Batch
from logkernel.client.producer.sequences import WINDOW, WRAP, Sequences


def batch(count: int = 2) -> Batch:
    made = Batch("t", 0, 1000, 0, 0)
    for _ in range(count):
        made.append(0, None, b"v", ())
    made.close(None)
    return made


def sent(sequences: Sequences, made: Batch, epoch: int = 0) -> Batch:
    assert sequences.may_send(made, 7, epoch)
    made.stamp(7, epoch, sequences.assign(made, 7, epoch), False)
    sequences.wire += 1
    return made


def answered(sequences: Sequences, made: Batch) -> None:
    sequences.wire -= 1
    sequences.acked(made)


@pytest.fixture
def sequences() -> Sequences:
    made = Sequences()
    answered(made, sent(made, batch()))
    return made


def test_numbers_follow_one_another(sequences: Sequences) -> None:
    first, second = sent(sequences, batch(3)), sent(sequences, batch())
    assert (first.sequence, second.sequence) == (2, 5)
    answered(sequences, first)
    assert sequences.last_acked == 4
    answered(sequences, second)
    assert sequences.last_acked == 6
    assert sequences.pending == []


def test_a_number_is_not_given_again_where_answers_come_in_another_order(sequences: Sequences) -> None:
    """Found by the world's seed 17: a record was acknowledged as a duplicate of another one, and was nowhere."""
    first, second = sent(sequences, batch(3)), sent(sequences, batch())
    answered(sequences, second)
    answered(sequences, first)
    refused = sent(sequences, batch())
    sequences.wire -= 1
    sequences.failed(refused)
    assert sent(sequences, batch()).sequence == refused.sequence == 7


def test_answers_in_another_order_wrap_around() -> None:
    made = Sequences()
    answered(made, sent(made, batch()))
    made.next, made.last_acked = WRAP - 1, WRAP - 2
    first, second = sent(made, batch()), sent(made, batch())
    answered(made, second)
    answered(made, first)
    assert made.last_acked == second.sequence + 1 == 1


def test_the_first_of_an_epoch_goes_alone() -> None:
    made = Sequences()
    first = sent(made, batch())
    assert not made.may_send(batch(), 7, 0)
    answered(made, first)
    assert made.may_send(batch(), 7, 0)


def test_five_and_no_more_behind_the_oldest(sequences: Sequences) -> None:
    flying = [sent(sequences, batch()) for _ in range(WINDOW)]
    for later in flying[1:]:
        answered(sequences, later)
    assert not sequences.may_send(batch(), 7, 0), "counted from the oldest, not by how many are left"
    answered(sequences, flying[0])
    assert sequences.may_send(batch(), 7, 0)


def test_what_is_sent_again_goes_alone_and_in_turn(sequences: Sequences) -> None:
    first, second = sent(sequences, batch()), sent(sequences, batch())
    assert not sequences.may_send(first, 7, 0), "something is on the wire"
    sequences.wire = 0
    assert not sequences.may_send(second, 7, 0)
    assert sequences.may_send(first, 7, 0)
    assert sequences.assign(first, 7, 0) == first.sequence


def test_a_refused_batch_leaves_no_gap(sequences: Sequences) -> None:
    refused, second = sent(sequences, batch(3)), sent(sequences, batch())
    sequences.wire -= 1
    sequences.failed(refused)
    sequences.close_gaps()
    assert second.sequence == 5, "it is on the wire under this number"
    sequences.wire -= 1
    sequences.close_gaps()
    assert (second.sequence, sequences.next) == (2, 4)


def test_a_batch_that_was_perhaps_written_keeps_its_number(sequences: Sequences) -> None:
    refused, second = sent(sequences, batch(3)), sent(sequences, batch())
    sequences.wire = 0
    second.maybe_written = True
    sequences.failed(refused)
    sequences.close_gaps()
    assert second.sequence == 5
    assert sequences.unresolved


def test_what_failed_unknown_holds_new_batches_up(sequences: Sequences) -> None:
    lost, second = sent(sequences, batch()), sent(sequences, batch())
    lost.maybe_written = True
    sequences.wire -= 1
    sequences.failed(lost)
    assert not sequences.may_send(batch(), 7, 0)
    assert not sequences.needs_epoch
    answered(sequences, second)
    assert not sequences.unresolved, "the one behind it was taken: there is no gap"
    assert sequences.may_send(batch(), 7, 0)


def test_a_gap_that_stays_needs_an_epoch(sequences: Sequences) -> None:
    lost = sent(sequences, batch())
    lost.maybe_written = True
    sequences.wire = 0
    sequences.failed(lost)
    assert sequences.needs_epoch
    sequences.restart(7, 1)
    assert sent(sequences, batch(), epoch=1).sequence == 0


def test_a_new_epoch_numbers_what_is_pending_from_zero(sequences: Sequences) -> None:
    first, second = sent(sequences, batch(3)), sent(sequences, batch())
    sequences.reset = True
    sequences.wire = 1
    assert not sequences.needs_epoch
    sequences.wire = 0
    sequences.restart(7, 4)
    assert [(made.epoch, made.sequence) for made in (first, second)] == [(4, 0), (4, 3)]
    assert sequences.next == 5


def test_another_partitions_epoch_waits_for_what_is_pending(sequences: Sequences) -> None:
    first = sent(sequences, batch())
    assert not sequences.may_send(batch(), 7, 1)
    answered(sequences, first)
    assert sent(sequences, batch(), epoch=1).sequence == 0


def test_numbers_wrap(sequences: Sequences) -> None:
    sequences.next, sequences.last_acked = WRAP, WRAP - 1
    first = sent(sequences, batch())
    assert first.sequence == WRAP
    assert sequences.is_next(first)
    assert sequences.next == 1
    answered(sequences, first)
    assert sequences.last_acked == 0
