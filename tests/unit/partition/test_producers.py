"""Producer states: the drawn tables of verdicts, what a snapshot keeps, and when an idle producer is forgotten."""

import pytest
from attrs import evolve
from drawn import drawn

from logkernel import errors
from logkernel.errors import OutOfOrderSequenceNumber, TransactionCoordinatorFenced
from logkernel.partition import producers as module
from logkernel.partition.producers import MARKER_VERDICTS, Duplicate, ProducerStates
from logkernel.record.control import EndTxnMarker
from logkernel.storage import snapshot
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
    assert other.check_append(batch(0, 0, count=3)) == Duplicate(100, 103)
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


# ---------------------------------------------------------------- the tables, row by row


def found(judge, *args):
    """What is drawn of a verdict: an error's name, "duplicate", or "accepted"."""
    try:
        return "accepted" if judge(*args) is None else "duplicate"
    except errors.KafkaError as error:
        return type(error).__name__


def verdict(cell):
    """The verdict that a cell begins with."""
    return cell.split(":")[0].split(";")[0]


def known(*, transactional=False):
    """Producer 7 wrote sequences 0 to 3 in epoch 5; 4 at offset 104 is the last."""
    states = ProducerStates()
    for sequence in range(5):
        states.note(batch(sequence, 100 + sequence, epoch=5, transactional=transactional))
    return states


def long_known():
    """It wrote fifteen batches, from sequence 0 on."""
    states = ProducerStates()
    for sequence in range(15):
        states.note(batch(sequence, 100 + sequence, epoch=5))
    return states


def wrapped():
    """Its last sequence is the largest that there is."""
    states = ProducerStates()
    states.note(batch(2**31 - 1, 100, epoch=5))
    return states


BATCHES = {
    ("unknown", "any"): [(ProducerStates, 0, sequence) for sequence in (-1, 0, 77)],
    ("lower", "any"): [(known, 4, sequence) for sequence in (-1, 0, 4, 5)],
    ("equal", "a remembered batch's"): [(known, 5, sequence) for sequence in range(5)],
    ("equal", "an older one's, all written since"): [(long_known, 5, sequence) for sequence in range(5)],
    ("equal", "last + 1 (2**31 - 1 wraps to 0)"): [(known, 5, 5), (wrapped, 5, 0)],
    ("equal", "other"): [(known, 5, 6), (known, 5, 77), (wrapped, 5, 1)],
    ("equal", "none"): [(known, 5, -1)],
    ("higher", "0"): [(known, 6, 0)],
    ("higher", "other"): [(known, 6, 1), (known, 6, 5)],
    ("higher", "none"): [(known, 6, -1)],
}
OUT_OF_ORDER = "OutOfOrderSequenceNumber"
BATCH_TABLE = drawn(module.__doc__, "epoch", "sequence", "verdict")


@pytest.mark.parametrize(("epoch", "sequence", "told"), BATCH_TABLE)
def test_a_batch_is_judged_by_epoch_and_sequence_as_drawn(epoch, sequence, told):
    for make, its_epoch, its_sequence in BATCHES[epoch, sequence]:
        assert found(make().check_append, batch(its_sequence, 0, epoch=its_epoch)) == verdict(told)


def test_what_was_in_flight_to_two_leaders_is_remembered():
    """A client had five batches on the way to a leader that lost its place, and sent five later ones to the next; then
    it repeats the first five, which were replicated. Chaos found it with seed 1294444722: Kafka's five are too few."""
    states = known()
    for sequence in range(5, 10):
        states.note(batch(sequence, 100 + sequence, epoch=5))
    assert [states.check_append(batch(sequence, 0, epoch=5)) for sequence in range(11)] == [
        *[Duplicate(100 + sequence, 101 + sequence) for sequence in range(10)], None,
    ]  # fmt: skip


def test_a_batch_whose_offset_is_forgotten_is_known_to_be_written():
    """While its requests to a cut-off leader waited, a client wrote forty later batches through the next one. It
    repeated the first until it gave up, and sent what was in flight again in a new epoch: chaos, seed 1681246305."""
    states = long_known()
    assert states.check_append(batch(0, 0, epoch=5)) == Duplicate(-1, 106), "committed where the oldest known is"
    assert states.check_append(batch(0, 0, epoch=5, count=5)) == Duplicate(-1, 106)
    assert found(states.check_append, batch(3, 0, epoch=5, count=3)) == OUT_OF_ORDER, "it overlaps one that is known"


@pytest.mark.parametrize(
    "states",
    [
        pytest.param(lambda: written_from(3), id="the state began later"),
        pytest.param(lambda: written_from(0, gap=2), id="a cleaner left a gap"),
        pytest.param(lambda: reloaded(long_known()), id="a snapshot does not tell"),
    ],
)
def test_what_may_not_be_written_is_no_duplicate(states):
    assert found(states().check_append, batch(1, 0, epoch=5)) == OUT_OF_ORDER


def written_from(*firsts, gap=None):
    states = ProducerStates()
    for sequence in [*firsts, *range(firsts[-1] + 1, 30)]:
        if sequence != gap:
            states.note(batch(sequence, 100 + sequence, epoch=5))
    return states


def reloaded(states):
    other = ProducerStates()
    other.load(snapshot.decode(snapshot.encode(states.entries())))
    for sequence in range(15, 30):
        other.note(batch(sequence, 100 + sequence, epoch=5))
    return other


def test_an_epoch_without_batches_knows_no_duplicate():
    states = long_known()
    states.end(batch(-1, 200, epoch=6), EndTxnMarker(True, 3))
    assert found(states.check_append, batch(1, 0, epoch=6)) == OUT_OF_ORDER


def test_a_duplicate_is_answered_with_its_first_offset():
    states = ProducerStates()
    states.note(batch(0, 100, count=3))
    assert states.check_append(batch(0, 0, count=3)) == Duplicate(100, 103)


def written(states, sequence, *, epoch=5, guard=None, transactional=True):
    return found(states.check_append, batch(sequence, 0, epoch=epoch, transactional=transactional), guard)


def verified(states, lowest, sequence, *, epoch_bump=False):
    return written(states, sequence, guard=states.verify(7, 5, lowest, epoch_bump, 0))


OPEN = {"transactional": True}
TRANSACTIONS = {
    ("transactional", "yes"): [
        (lambda: written(known(**OPEN), 5, guard=0), "accepted"),
        (lambda: written(known(**OPEN), 6, guard=0), OUT_OF_ORDER),
        (lambda: written(known(**OPEN), 4, guard=0), "duplicate"),
    ],
    ("transactional", "no, and it was not verified"): [
        (lambda: written(known(), 5, guard=0), "InvalidTxnState"),
        (lambda: written(known(), 5, guard=99), "InvalidTxnState"),
        (lambda: written(known(**OPEN), 0, epoch=6, guard=0), "InvalidTxnState"),
    ],
    ("transactional", "no, and it was verified"): [
        (lambda: verified(known(), 5, 5), "accepted"),
        (lambda: verified(known(), 6, 5), "accepted"),
        (lambda: verified(known(), 5, 6), OUT_OF_ORDER),
        (lambda: verified(ProducerStates(), 3, 3), "accepted"),
        (lambda: verified(ProducerStates(), 3, 4), OUT_OF_ORDER),
        (lambda: verified(ProducerStates(), 0, 0, epoch_bump=True), "accepted"),
        (lambda: verified(ProducerStates(), 3, 3, epoch_bump=True), OUT_OF_ORDER),
    ],
    ("transactional", "any, without an id"): [
        (lambda: written(known(), 5), "TransactionalIdAuthorizationFailed"),
        (lambda: written(known(**OPEN), 5), "TransactionalIdAuthorizationFailed"),
    ],
    ("not transactional", "yes"): [(lambda: written(known(**OPEN), 5, transactional=False), "InvalidTxnState")],
    ("not transactional", "no"): [
        (lambda: written(known(), 5, transactional=False), "accepted"),
        (lambda: written(known(), 6, transactional=False), OUT_OF_ORDER),
    ],
}
TRANSACTION_TABLE = drawn(module.__doc__, "batch", "open transaction of its epoch", "verdict")


@pytest.mark.parametrize(("kind", "is_open", "told"), TRANSACTION_TABLE)
def test_a_batch_is_judged_by_its_transaction_as_drawn(kind, is_open, told):
    verdicts = [(judge(), wanted) for judge, wanted in TRANSACTIONS[kind, is_open]]
    assert [judged for judged, _ in verdicts] == [wanted for _, wanted in verdicts]
    if verdict(told) != "as above":
        assert {judged for judged, _ in verdicts} == {verdict(told)}


MARKER_TABLE = drawn(module.__doc__, "epoch", "open transaction", "version", "verdict")
EPOCHS = {"unknown": 5, "lower": 4, "equal": 5, "higher": 6}
VERSIONS = {"any": (0, 1, 2), "0, 1": (0, 1), "2": (2,)}


@pytest.mark.parametrize(("epoch", "is_open", "versions", "told"), MARKER_TABLE)
@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_judged_as_drawn(epoch, is_open, versions, told, committed):
    for version in VERSIONS[versions]:
        states = ProducerStates() if epoch == "unknown" else known(transactional=is_open == "yes")
        marker, facts = EndTxnMarker(committed, 3), batch(-1, 200, epoch=EPOCHS[epoch])
        assert found(states.judge_marker, facts, marker, version) == verdict(told)
        if verdict(told) == "accepted":
            states.end(facts, marker)
            assert (states.first_unstable_offset is not None) == ("ends it" in told), "until it is committed"
            starts_over = found(states.check_append, batch(0, 0, epoch=EPOCHS[epoch])) == "accepted"
            assert starts_over == (epoch != "equal")
            with pytest.raises(TransactionCoordinatorFenced):
                states.judge_marker(facts, EndTxnMarker(committed, 2), 1)


def test_every_row_of_the_tables_is_drawn_and_tried():
    assert [row[:2] for row in BATCH_TABLE] == list(BATCHES)
    assert [row[:2] for row in TRANSACTION_TABLE] == list(TRANSACTIONS)
    rows = {
        (epoch, is_open == "yes", version == 2)
        for epoch, is_open, versions, _ in MARKER_TABLE
        for version in VERSIONS[versions]
    }
    assert rows == set(MARKER_VERDICTS)


def test_a_marker_that_is_replayed_above_the_watermark_leaves_its_transaction_undecided():
    """As a follower's markers are, and those that come again with a cut."""
    states = ProducerStates()
    states.on_watermark(5)
    states.replay(BatchFacts(0, 61, 4, 4, 0, 2, 0x10, 5, 5, 7, 0, 0, 1))
    states.replay(BatchFacts(0, 61, 6, 6, 0, 2, 0x30, 5, 5, 7, 0, -1, 1))
    assert states.first_unstable_offset == 4
    states.on_watermark(7)
    assert states.first_unstable_offset is None


def test_a_marker_that_is_replayed_before_any_watermark_is_known_counts_as_committed():
    states = ProducerStates()
    states.replay(BatchFacts(0, 61, 4, 4, 0, 2, 0x10, 5, 5, 7, 0, 0, 1))
    states.replay(BatchFacts(0, 61, 6, 6, 0, 2, 0x30, 5, 5, 7, 0, -1, 1))
    assert states.first_unstable_offset is None
