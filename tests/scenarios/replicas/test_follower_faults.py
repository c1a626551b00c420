"""A follower that is answered nonsense, or whose disk fails."""

from __future__ import annotations

import errno

import pytest

from logkernel.attrs_lite import evolve
from logkernel.errors import KafkaStorageError, NotLeaderOrFollower
from logkernel.partition.follower import FetchPosition
from logkernel.record.batch import parse_header, stamp
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionData
from logkernel.vocabulary import Record

from .conftest import NAME, Make, Node, ask, catch_up, fetch_request, follow, row_of

Pair = tuple[Node, Node]


def answer_of(one: Node, two: Node) -> tuple[FetchPosition, PartitionData, bytearray]:
    """A good answer that is not applied yet, and its bytes."""
    position = two.followed.next_fetch(two.clock.now_ms)
    assert position is not None
    row = row_of(ask(one, fetch_request(position, two.node_id))[0])
    data = bytearray(row.records.read())  # type: ignore[union-attr]
    row.records = data
    return position, row, data


def test_bytes_that_rotted_on_their_way_are_refused_and_asked_for_again(pair: Pair) -> None:
    one, two = pair
    one.produce(b"abc", acks=1)
    position, row, data = answer_of(one, two)
    data[-2] ^= 1
    assert not two.followed.apply(position, row, two.clock.now_ms)
    assert two.followed.log.end_offset == 0
    assert two.followed.next_fetch(two.clock.now_ms) is None, "a pause"
    assert two.followed.next_deadline() == two.clock.now_ms + 1000
    two.clock.now_ms += 1000
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_an_epoch_newer_than_the_leaders_is_refused(pair: Pair) -> None:
    one, two = pair
    one.produce(b"abc", acks=1)
    position, row, data = answer_of(one, two)
    data[15] = 9  # leader epoch, which no checksum covers
    two.followed.apply(position, row, 0)
    assert two.followed.log.end_offset == 0


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    one.produce(b"b" * 100, acks=1)
    position, row, data = answer_of(one, two)
    del data[-10:]
    two.followed.apply(position, row, 0)
    assert two.followed.log.end_offset == 1
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_an_answer_to_an_older_fetch_is_dropped(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    position, row, _ = answer_of(one, two)
    catch_up(two, one)
    two.followed.apply(position, row, 0)
    assert two.followed.log.end_offset == 1


def test_an_answer_of_an_older_leader_is_dropped(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    position, row, _ = answer_of(one, two)
    two.order(1, 1)
    two.followed.apply(position, row, 0)
    assert (two.followed.log.end_offset, two.followed.high_watermark) == (0, 0)


def test_errors_of_the_leader_are_pauses_that_grow(pair: Pair) -> None:
    """The first may only mean that the leader has not heard of its role yet."""
    one, two = pair
    pauses = []
    for _ in range(8):
        position = two.followed.next_fetch(two.clock.now_ms)
        assert position is not None
        two.followed.apply(position, PartitionData(0, NotLeaderOrFollower.code), two.clock.now_ms)
        due_ms = two.followed.next_deadline()
        assert due_ms is not None
        pauses.append(due_ms - two.clock.now_ms)
        assert two.followed.next_fetch(due_ms - 1) is None
        two.clock.now_ms = due_ms
    assert pauses == [20, 40, 80, 160, 320, 640, 1000, 1000]
    follow(two, one)
    position = two.followed.next_fetch(two.clock.now_ms)
    assert position is not None
    two.followed.apply(position, PartitionData(0, NotLeaderOrFollower.code), two.clock.now_ms)
    assert two.followed.next_deadline() == two.clock.now_ms + 20


def test_a_full_disk_is_a_pause_and_nothing_is_lost(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    two.disk.fail_at(two.disk.operations + 1, errno.ENOSPC)
    follow(two, one)
    assert two.followed.log.end_offset == 0
    two.clock.now_ms += 1000
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_a_broken_disk_takes_the_directory_offline(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    replica = two.followed
    two.disk.fail_at(two.disk.operations + 1, errno.EIO)
    follow(two, one)
    two.broker.turn.end()
    assert not replica.in_service
    assert replica.next_fetch(0) is None
    assert two.order(1, 1) == KafkaStorageError.code


def test_what_must_be_durable_is_not_claimed_before_it_is(make: Make) -> None:
    one, two = make(1), make(2, "log.flush.interval.messages=1")
    for node in (one, two):
        node.order(1, 0, is_new=True)
    flushes = []
    two.broker.runtime.run_flush = lambda work, done: flushes.append((work, done))
    one.produce(b"a", acks=1)
    follow(two, one)
    assert two.followed.log.end_offset == 1
    assert two.followed.next_fetch(0) is None, "a fetch from offset 1 would be a vote"
    work, done = flushes.pop()
    work()
    done(None)
    assert two.followed.next_fetch(0) is not None


def test_a_flush_that_is_owed_since_a_pause_began_is_not_waited_for_without_end(make: Make) -> None:
    """World seed 41019: nobody asked for a fetch while the pause seemed to go on, and only that began the flush."""
    one, two = make(1), make(2)
    for node in (one, two):
        node.order(1, 0, is_new=True)
    one.produce(b"a", acks=1)
    follow(two, one)
    position = two.followed.next_fetch(two.clock.now_ms)
    assert position is not None
    two.followed.delay(position, two.clock.now_ms)
    two.followed.configure(evolve(two.followed.settings, flush_messages=1))
    assert two.followed.next_deadline() == two.clock.now_ms + 5
    assert two.followed.log.recovery_point == 0, "a question begins nothing"
    two.followed.flush_if_owed()
    assert two.followed.log.recovery_point == 1
    assert two.followed.next_deadline() == two.clock.now_ms + 1000


def test_a_leaders_batch_in_which_its_log_starts_replaces_what_differs(pair: Pair) -> None:
    """World seed 40891: a follower that differed below the leader's log start got a hole in its log."""
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    assert two.order(2, 1, isr=(2,)) == 0
    two.produce(b"only here", acks=1)
    assert one.order(1, 2, isr=(1,)) == 0
    one.produce(*(b"%d" % number for number in range(9)), acks=1)
    one.produce(b"after", acks=1)
    one.led.leader.on_log_start(2)
    one.led.log.advance_log_start(2)
    assert two.order(1, 2, isr=(1,)) == 0
    catch_up(two, one)
    assert two.followed.log.end_offset == one.led.log.end_offset == 11
    assert two.followed.log.start_offset == 2
    part, theirs = two.followed.log.read(2, 1 << 20), one.led.log.read(2, 1 << 20)
    assert part is not None
    assert theirs is not None
    assert part.read() == theirs.read()


def test_a_flush_that_was_under_way_during_a_cut_promises_nothing(pair: Pair) -> None:
    one, two = pair
    for _ in range(4):
        one.produce(b"old" * 10, acks=1)
    catch_up(two, one)
    log = two.followed.log
    flush = log.begin_flush()
    flush.run()
    two.broker.logs.truncate(NAME, 1)
    data = bytearray(encode_batch([Record(None, b"new")]))
    for offset in range(1, 4):
        stamp(data, 0, offset, 0)
        log.append(data, [parse_header(data, 0)], 0)
    log.end_flush(flush)
    assert log.recovery_point <= 1


def test_retention_of_a_follower_stops_at_its_own_watermark(make: Make) -> None:
    settings = ("log.segment.bytes=1048576", "log.retention.bytes=1", "log.retention.check.interval.ms=1000")
    one, two = make(1, *settings[:1]), make(2, *settings)
    for node in (one, two):
        node.order(1, 0, is_new=True)
        node.replicas.on_live_brokers(frozenset((1, 2)))
    for number in range(60):
        one.produce(bytes([number]) * 60_000, acks=1)
    follow(two, one)
    for _ in range(3):
        follow(two, one)
    watermark = two.followed.high_watermark
    assert 0 < watermark < two.followed.log.end_offset
    two.pass_ms(2500)
    assert 0 < two.followed.log.start_offset <= watermark


def test_a_cut_while_a_log_moves_begins_the_move_anew(make: Make) -> None:
    one, two = make(1), make(2, "log.dirs=/data,/other")
    for node in (one, two):
        node.order(1, 0, is_new=True)
        node.replicas.on_live_brokers(frozenset((1, 2)))
    for _ in range(3):
        one.produce(b"a" * 100, acks=1)
    catch_up(two, one)
    directories = two.broker.logs.directories
    target = next(each for each in directories.directories if each is not directories.directory_of(NAME))
    two.broker.moves.start(NAME, target)
    two.pass_ms(2)
    one.produce(b"lost", acks=1)
    follow(two, one)
    one.crash()  # nothing was synced
    one.order(1, 1, isr=(1,))
    two.order(1, 1, isr=(1,))
    one.produce(b"b" * 50, acks=1)
    two.pass_ms(50)
    follow(two, one)
    two.pass_ms(50)
    catch_up(two, one)
    assert directories.directory_of(NAME) is target
    mine, theirs = (node.replicas.find(NAME) for node in (two, one))
    assert mine is not None
    assert theirs is not None
    assert mine.log.read(mine.log.start_offset, 1 << 20).read() == theirs.log.read(0, 1 << 20).read()  # type: ignore


def with_a_cut_ahead(pair: Pair) -> Pair:
    """The second has a record that no leader has any more."""
    one, two = pair
    one.produce(b"both", acks=1)
    catch_up(two, one)
    two.followed.log.flush()
    two.order(2, 1, isr=(2,))
    two.produce(b"lost", acks=1)
    one.order(1, 2, isr=(1,))
    one.produce(b"kept", acks=1)
    two.order(1, 2, isr=(1,))
    return pair


@pytest.mark.parametrize("operation", [1, 2, 3])
def test_a_cut_that_fails_takes_the_directory_offline(pair: Pair, operation: int) -> None:
    """It may be half done, and nobody knows what the log holds."""
    one, two = with_a_cut_ahead(pair)
    replica = two.followed
    two.disk.fail_at(two.disk.operations + operation, errno.EIO)
    follow(two, one)
    two.broker.turn.end()
    assert not replica.in_service
    two.crash()
    two.order(1, 2, isr=(1,))
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_a_cut_that_finds_no_room_for_its_checkpoint_is_put_off(pair: Pair) -> None:
    """Found by chaos on real processes: a follower with a full disk was offline until a restart."""
    one, two = with_a_cut_ahead(pair)
    before = two.segments()
    two.disk.fail_at(two.disk.operations + 1, errno.ENOSPC)
    follow(two, one)
    two.broker.turn.end()
    assert two.followed.in_service
    assert two.segments() == before, "nothing is cut yet"
    two.clock.now_ms += 1000
    catch_up(two, one)
    assert two.segments() == one.segments()


def test_a_follower_that_owes_a_flush_from_an_earlier_life_flushes_and_fetches(pair: Pair) -> None:
    """Found by the world's seed 0: it waited for a flush that nobody began, and never fetched again."""
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    two.settings = (*two.settings, "log.flush.interval.messages=1")
    two.disk.forget_locks()
    two.boot()
    two.order(1, 0)
    assert two.followed.log.unflushed_records == 1
    two.followed.log.failure = OSError(errno.EIO, "Input/output error")
    two.followed.flush_if_owed()
    assert two.followed.next_fetch(two.clock.now_ms) is None, "its directory failed"
    two.followed.log.failure = None
    assert two.followed.next_fetch(two.clock.now_ms) is None
    assert two.followed.log.unflushed_records == 1, "a question begins nothing"
    two.followed.flush_if_owed()
    assert two.followed.log.unflushed_records == 0
    one.produce(b"b", acks=1)
    catch_up(two, one)
    assert two.segments() == one.segments()
