"""Two brokers replicate one partition, change roles, diverge, crash, and end with the same bytes."""

from __future__ import annotations

import errno
import random

import pytest
from hand_clock import HandClock

from logkernel.errors import NotLeaderOrFollower, RequestTimedOut
from logkernel.partition.effects import Outcome
from logkernel.record.control import EndTxnMarker
from logkernel.record.encode import encode_batch
from logkernel.vocabulary import Record

from .conftest import Make, Node, catch_up, follow

Pair = tuple[Node, Node]


class Receiver:
    """Whoever waits for a write."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def deliver(self, outcome: Outcome) -> None:
        self.told.append(outcome.error_code)


def begin_transaction(node: Node, producer: int = 9) -> None:
    """One record of a transaction, written with acks=1."""
    data = encode_batch(
        [Record(None, b"x", timestamp_ms=1)], producer_id=producer, producer_epoch=0, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    guard = node.led.leader.on_verification(producer, 0, 0, False, node.clock.wall_ms())
    receiver = Receiver()
    node.led.produce(bytearray(data), 1, receiver, node.clock.wall_ms(), 10_000, guard)
    assert receiver.told == [0]


def end_transaction(node: Node, producer: int = 9, *, committed: bool) -> None:
    """Its marker, which waits for the followers."""
    node.led.end_transaction(producer, 0, EndTxnMarker(committed, 0), 1, Receiver(), node.clock.wall_ms(), 10_000)


def test_a_follower_ends_with_the_leaders_bytes(make: Make) -> None:
    one, two = make(1, "log.segment.bytes=1048576"), make(2, "log.segment.bytes=1048576")
    for node in (one, two):
        node.order(1, 0, is_new=True)
    for number in range(40):
        one.produce(bytes([number]) * 60_000, acks=1)
    assert len(one.segments()) > 2
    catch_up(two, one, max_bytes=300_000)
    assert two.segments() == one.segments()
    assert two.followed.log.epochs.entries == one.led.log.epochs.entries
    assert two.followed.high_watermark == one.led.high_watermark


def test_acks_all_waits_for_the_follower(pair: Pair) -> None:
    one, two = pair
    told = one.produce(b"a")
    assert told == []
    follow(two, one)
    assert told == [], "its answer says nothing yet: the next fetch does"
    follow(two, one)
    assert told == [0]
    assert two.followed.high_watermark == 1


def test_consumers_see_no_more_than_the_watermark(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    assert one.led.read(0, 1000, 0, min_one=True) is None
    catch_up(two, one)
    assert one.led.read(0, 1000, 0, min_one=True) is not None


def test_a_failover_loses_nothing_acknowledged_and_cuts_what_diverged(pair: Pair) -> None:
    one, two = pair
    told = one.produce(b"both")
    catch_up(two, one)
    lost = one.produce(b"only on 1")
    assert (told, lost) == ([0], [])
    assert two.order(2, 1, isr=(2,)) == 0  # 1 is cut off: it leads on in epoch 0, unheard
    two.produce(b"on 2", acks=1)
    two.produce(b"on 2 again", acks=1)
    assert one.order(2, 1, isr=(2,)) == 0
    assert lost == [NotLeaderOrFollower.code]
    follow(one, two)
    assert one.followed.log.end_offset == 1, "cut by epoch"
    catch_up(one, two)
    assert one.segments() == two.segments()
    assert [entry.epoch for entry in one.followed.log.epochs.entries] == [0, 1]


def test_a_leader_that_wrote_nothing_leaves_no_epoch_behind(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    two.order(2, 1, isr=(2,))  # epoch 1 is noted at 1, on 2 alone
    assert [entry.epoch for entry in two.led.log.epochs.entries] == [0, 1]
    one.order(1, 2, isr=(1,))
    one.produce(b"b", acks=1)
    two.order(1, 2, isr=(1,))
    catch_up(two, one)
    assert [entry.epoch for entry in two.followed.log.epochs.entries] == [0, 2]
    assert two.segments() == one.segments()


def test_a_crashed_follower_fetches_again_what_it_lost(pair: Pair) -> None:
    one, two = pair
    for number in range(20):
        one.produce(b"%d" % number * 500, acks=1)
    catch_up(two, one)
    two.crash()
    assert two.order(1, 0) == 0
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_a_follower_that_stopped_cleanly_goes_on_where_it_was(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    two.stop()
    two.order(1, 0)
    assert (two.followed.log.end_offset, two.followed.high_watermark) == (1, 1)
    one.produce(b"b", acks=1)
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_a_log_that_the_leader_no_longer_has_begins_anew(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    for _ in range(5):
        one.produce(b"x" * 100, acks=1)
    one.led.log.roll(one.clock.wall_ms())
    one.produce(b"last", acks=1)
    one.led.advance_log_start(6)
    one.led.log.drop_before(6)
    follow(two, one)
    assert (two.followed.log.start_offset, two.followed.log.end_offset) == (6, 6)
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_an_empty_follower_begins_at_the_batch_in_which_the_leaders_log_starts(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", b"b", b"c", acks=1)
    one.led.advance_log_start(1)
    follow(two, one)  # offset 0 is out of range: it begins at 1
    catch_up(two, one)
    assert (two.followed.log.start_offset, two.followed.log.end_offset) == (1, 3)
    assert b"".join(two.segments().values()) == b"".join(one.segments().values())


def test_who_takes_over_knows_producers_and_open_transactions(pair: Pair) -> None:
    one, two = pair

    def batch(sequence: int) -> bytes:
        return encode_batch(
            [Record(None, b"x", timestamp_ms=1)], producer_id=5, producer_epoch=0, base_sequence=sequence
        )

    assert one.produce(data=batch(0), acks=1) == [0]
    begin_transaction(one)
    catch_up(two, one)
    two.order(2, 1, isr=(2,))
    assert two.produce(data=batch(0), acks=1) == [0], "a repetition"
    assert two.led.log.end_offset == 2
    assert two.produce(data=batch(1), acks=1) == [0]
    assert two.led.last_stable_offset() == 1, "producer 9 has a transaction open there"


def test_an_aborted_transaction_is_indexed_on_the_follower_too(pair: Pair) -> None:
    one, two = pair
    begin_transaction(one)
    end_transaction(one, committed=False)
    catch_up(two, one)
    aborted = two.followed.log.aborted_in(0, 10)
    assert aborted == one.led.log.aborted_in(0, 10)
    assert [row.producer_id for row in aborted] == [9]
    assert two.followed.last_stable_offset() == 2


def test_an_abort_that_a_full_disk_cannot_index_is_indexed_later(pair: Pair) -> None:
    """Found by chaos: the marker was in the log, so the follower's directory went offline for a full disk, and the
    leader refused a write that it had."""
    one, two = pair
    for node in pair:
        node.disk.fault = lambda kind, path: errno.ENOSPC if path.endswith(".txnindex") else None
    begin_transaction(one)
    end_transaction(one, committed=False)
    assert one.produce(b"behind it", acks=1) == [0]
    catch_up(two, one)
    for node, replica in ((one, one.led), (two, two.followed)):
        node.disk.fault = None
        assert [row.producer_id for row in replica.log.aborted_in(0, 10)] == [9]
        node.stop()
    one.order(1, 1)
    two.order(1, 1)
    for replica in (one.led, two.followed):
        assert [row.producer_id for row in replica.log.aborted_in(0, 10)] == [9]


def test_a_marker_above_the_watermark_leaves_its_transaction_undecided(pair: Pair) -> None:
    one, two = pair
    begin_transaction(one)
    catch_up(two, one)
    end_transaction(one, committed=True)
    follow(two, one)
    assert (two.followed.log.end_offset, two.followed.high_watermark) == (2, 1)
    assert two.followed.last_stable_offset() == 0
    two.order(2, 1, isr=(1, 2))
    assert two.led.last_stable_offset() == 0, "the marker may yet be lost"


def test_acks_all_times_out_while_too_few_are_in_sync(make: Make, clock: HandClock) -> None:
    settings = ("min.insync.replicas=2", "replica.lag.time.max.ms=1000")
    one, two = make(1, *settings), make(2, *settings)
    for node in (one, two):
        node.order(1, 0, is_new=True)
        node.replicas.on_live_brokers(frozenset((1, 2)))
    told = one.produce(b"a", timeout_ms=4000)
    one.pass_ms(2500)
    assert one.accept() == frozenset((1,))
    assert one.led.high_watermark == 0, "held: one of two is too few"
    one.pass_ms(2000)
    assert told == [RequestTimedOut.code]


def test_a_follower_that_lags_leaves_and_joins_again(make: Make) -> None:
    settings = ("replica.lag.time.max.ms=1000",)
    one, two = make(1, *settings), make(2, *settings)
    for node in (one, two):
        node.order(1, 0, is_new=True)
        node.replicas.on_live_brokers(frozenset((1, 2)))
    told = one.produce(b"a", timeout_ms=60_000)
    one.pass_ms(2500)
    assert one.accept() == frozenset((1,))
    assert told == [0]
    assert one.led.leader.isr == (1,)
    catch_up(two, one)
    assert one.accept() == frozenset((1, 2))
    assert one.led.leader.isr == (1, 2)


def test_an_idle_follower_does_not_lag(make: Make) -> None:
    one, two = make(1, "replica.lag.time.max.ms=1000"), make(2)
    for node in (one, two):
        node.order(1, 0, is_new=True)
        node.replicas.on_live_brokers(frozenset((1, 2)))
    one.produce(b"a", acks=1)
    catch_up(two, one)
    one.pass_ms(60_000)
    one.produce(b"b", acks=1)
    one.pass_ms(500)  # a look for who lags, just after the append
    assert one.proposals == []


def test_who_caught_up_before_it_counted_as_alive_joins_when_it_does(make: Make) -> None:
    one, two = make(1), make(2)
    for node in (one, two):
        node.order(1, 0, isr=(1,), is_new=True)
    one.produce(b"a")
    catch_up(two, one)
    assert one.proposals == []
    one.replicas.on_live_brokers(frozenset((1, 2)))
    assert one.accept() == frozenset((1, 2))


@pytest.mark.parametrize("seed", range(5))
def test_roles_change_again_and_again(make: Make, seed: int) -> None:
    chance = random.Random(seed)
    nodes = {1: make(1, "log.segment.bytes=1048576"), 2: make(2, "log.segment.bytes=1048576")}
    leader, epoch = 1, 0
    for node in nodes.values():
        node.order(1, 0, isr=(1, 2), is_new=True)
        node.replicas.on_live_brokers(frozenset((1, 2)))
    acked: list[bytes] = []
    for number in range(60):
        one, two = nodes[leader], nodes[3 - leader]
        value = b"%d-%d" % (seed, number) + bytes(chance.randrange(90_000))
        told = one.produce(value)
        for _ in range(chance.randrange(4)):
            follow(two, one)
        if told == [0]:
            acked.append(value)
        if chance.random() < 0.2:
            epoch += 1
            leader = 3 - leader
            for node in nodes.values():
                assert node.order(leader, epoch, isr=(1, 2)) == 0
        elif chance.random() < 0.1:
            if chance.random() < 0.3:
                two.followed.log.flush()
                two.crash()
            else:
                two.stop()
            assert two.order(leader, epoch, isr=(1, 2)) == 0
    one, two = nodes[leader], nodes[3 - leader]
    catch_up(two, one)
    assert b"".join(two.segments().values()) == b"".join(one.segments().values())
    held = b"".join(one.segments().values())
    assert all(value in held for value in acked)
