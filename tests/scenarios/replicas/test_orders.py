"""What a replica manager answers to orders, row by row of its table, and what becomes of those who wait."""

from __future__ import annotations

import errno
from typing import Any
from uuid import UUID

import pytest

from logkernel.broker.replicas.manager import ROOM_MS
from logkernel.config.topic import TopicSettings
from logkernel.errors import (
    FencedLeaderEpoch,
    InconsistentTopicId,
    KafkaStorageError,
    NotLeaderOrFollower,
    PluginError,
    StaleControllerEpoch,
    UnknownTopicOrPartition,
)
from logkernel.vocabulary import TopicPartition

from .conftest import KERNEL, NAME, Make, Node, catch_up

Pair = tuple[Node, Node]


def test_an_older_leader_epoch_is_stale_and_an_equal_one_changes_nothing(pair: Pair) -> None:
    one, _ = pair
    one.order(1, 3)
    before = one.led
    assert one.order(2, 2) == StaleControllerEpoch.code
    assert one.order(2, 3) == 0
    assert one.led is before
    assert one.led.leader_epoch == 3


def test_a_broker_outside_the_assignment_refuses(make: Make) -> None:
    node = make(3)
    assert node.order(1, 0) == UnknownTopicOrPartition.code
    assert not node.replicas.all()


def test_another_topic_of_the_same_name_is_refused(pair: Pair) -> None:
    one, two = pair
    for node, role in ((one, one.led), (two, two.followed)):
        assert node.order(1, 1, topic_id=UUID(int=8)) == InconsistentTopicId.code
        assert role.in_service
        assert role.leader_epoch == 0


def test_a_folder_of_another_topic_is_refused_after_a_start(pair: Pair) -> None:
    _, two = pair
    two.stop()
    assert two.order(1, 1, topic_id=UUID(int=8)) == InconsistentTopicId.code
    assert two.order(1, 1) == 0


def test_a_failed_directory_is_told_and_the_role_ends(pair: Pair) -> None:
    one, two = pair
    two.broker.logs.fail_directory_of(NAME, OSError(5, "gone"))
    two.broker.turn.end()
    assert two.order(2, 1) == KafkaStorageError.code
    assert not two.replicas.all()
    told = one.produce(b"a")
    one.broker.logs.fail_directory_of(NAME, OSError(5, "gone"))
    one.broker.turn.end()
    assert told == [KafkaStorageError.code]


def test_a_follower_is_told_another_leader_and_keeps_its_object(pair: Pair) -> None:
    _, two = pair
    before = two.followed
    assert two.order(3, 1, isr=(3,), replicas=(1, 2, 3)) == 0
    assert two.followed is before
    asked = before.next_fetch(0)
    assert asked is not None
    assert asked.leader_epoch == 1
    assert two.order(-1, 2, isr=(3,), replicas=(1, 2, 3)) == 0
    assert before.next_fetch(0) is None, "nobody leads"


def test_a_leader_goes_on_in_a_newer_epoch_and_answers_who_waits(pair: Pair) -> None:
    one, two = pair
    told = one.produce(b"a")
    before = one.led
    one.replicas.on_live_brokers(frozenset((1,)))
    assert one.order(1, 1, isr=(1,)) == 0
    assert one.led is before
    assert told == [0], "it waits for no follower any more"
    assert [(entry.epoch, entry.start_offset) for entry in one.led.log.epochs.entries] == [(0, 0), (1, 1)]
    assert two.order(1, 1, isr=(1,)) == 0
    catch_up(two, one)


def test_a_leader_without_followers_gets_some(make: Make) -> None:
    one, two = make(1), make(2)
    one.order(1, 0, isr=(1,), replicas=(1,), is_new=True)
    assert one.produce(b"a") == [0]
    assert one.led.end_news is None
    one.order(1, 1, isr=(1,), replicas=(1, 2))
    two.order(1, 1, isr=(1,), replicas=(1, 2), is_new=True)
    one.replicas.on_live_brokers(frozenset((1, 2)))
    catch_up(two, one)
    assert one.accept() == frozenset((1, 2))


def test_who_resigns_tells_who_waits_and_voids_verifications(pair: Pair) -> None:
    one, _ = pair
    told = one.produce(b"a")
    guard = one.led.leader.on_verification(9, 0, 0, False, 0)
    assert guard
    one.order(2, 1)
    assert told == [NotLeaderOrFollower.code]
    one.order(1, 2)
    assert one.led.leader.on_verification(9, 0, 0, False, 0) != guard


def test_readers_learn_that_the_role_ended(pair: Pair) -> None:
    one, _ = pair
    heard: list[int] = []
    reader: Any = type("Reader", (), {"on_news": lambda self: heard.append(1)})()
    one.led.news.subscribe(reader)
    one.order(2, 1)
    assert heard == [1]


def test_observers_hear_of_every_change_of_role(pair: Pair) -> None:
    one, _ = pair
    heard: list[tuple[TopicPartition, bool, bool]] = []
    one.role_observers.append(
        lambda name: heard.append((name, name in one.replicas.led, name in one.replicas.followed))
    )
    one.order(2, 1)
    one.order(2, 1)
    one.order(1, 2)
    one.replicas.stop(NAME, delete=False)
    assert heard == [(NAME, False, True), (NAME, True, False), (NAME, False, False)]


def test_stop_keeps_the_log_and_its_watermark_or_deletes_it(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    assert two.order(1, 3) == 0
    assert two.replicas.stop(NAME, delete=True, leader_epoch=2) == FencedLeaderEpoch.code
    assert two.replicas.stop(NAME, delete=False, leader_epoch=3) == 0
    assert not two.replicas.all()
    assert two.order(1, 4) == 0
    assert (two.followed.log.end_offset, two.followed.high_watermark) == (1, 1)
    assert two.replicas.stop(NAME, delete=True, leader_epoch=-2) == 0
    assert two.replicas.stop(NAME, delete=True) == 0, "again"
    assert two.order(1, 5) == 0
    assert (two.followed.log.end_offset, two.followed.high_watermark) == (0, 0)


def test_a_restart_keeps_the_watermark_of_what_was_not_ordered_yet(pair: Pair) -> None:
    one, two = pair
    one.produce(b"a", acks=1)
    catch_up(two, one)
    two.stop()
    two.broker.scheduler.checkpoint_watermarks()
    two.crash()
    two.order(1, 1)
    assert two.followed.high_watermark == 1


def test_a_flush_under_way_outlives_the_role_that_began_it(pair: Pair) -> None:
    one, _ = pair
    flushes: list[Any] = []
    one.broker.runtime.run_flush = lambda work, done: flushes.append((work, done))
    one.produce(b"a", acks=1)
    one.led.flush()
    one.order(2, 1)
    one.followed.flush()
    assert len(flushes) == 1, "one at a time"
    work, done = flushes.pop()
    work()
    done(None)
    assert one.followed.log.recovery_point == 1
    assert len(flushes) == 1


def test_a_flush_that_fails_after_a_change_of_role_takes_the_directory_offline(pair: Pair) -> None:
    one, _ = pair
    flushes: list[Any] = []
    one.broker.runtime.run_flush = lambda work, done: flushes.append((work, done))
    one.produce(b"a", acks=1)
    one.led.flush()
    one.order(2, 1)
    flushes.pop()[1](OSError(5, "gone"))
    assert one.order(2, 2) == KafkaStorageError.code


def test_a_log_that_lost_its_topics_id_in_a_crash_learns_it_again(pair: Pair) -> None:
    """Found by the world's seed 27: a later topic of the same name would have taken the log for its own."""
    _, two = pair
    two.disk.remove(f"/data/{NAME}/partition.metadata")
    two.disk.forget_locks()
    two.boot()
    assert two.order(1, 1) == 0
    assert two.followed.log.topic_id == two.followed.topic_id
    two.disk.forget_locks()
    two.boot()
    assert two.order(1, 2, topic_id=UUID(int=8)) == InconsistentTopicId.code


def test_a_log_for_which_there_was_no_room_is_made_by_the_next_order(make: Make) -> None:
    node = make(1)
    node.disk.fault = lambda kind, path: errno.ENOSPC if kind == "mkdir" else None
    assert node.order(1, 0, is_new=True) == KafkaStorageError.code
    assert node.replicas.is_offline(*NAME)
    node.disk.fault = None
    assert node.order(1, 0, is_new=True) == 0
    assert not node.replicas.is_offline(*NAME)


def test_a_log_without_room_is_tried_again_before_anybody_is_asked(make: Make) -> None:
    """Every ten seconds the controller was told, and ordered all replicas of the broker again, room or not."""
    node = make(1)
    node.disk.fault = lambda kind, path: errno.ENOSPC if kind == "mkdir" else None
    assert node.order(1, 0, is_new=True) == KafkaStorageError.code
    node.pass_ms(3 * ROOM_MS)
    assert node.came == []
    node.disk.fault = None
    node.pass_ms(ROOM_MS)
    assert node.came == [[NAME]]
    assert NAME in node.broker.logs.directories.logs
    assert node.replicas.is_offline(*NAME), "it has no role yet"
    assert node.order(1, 1) == 0
    node.pass_ms(2 * ROOM_MS)
    assert node.came == [[NAME]]


@pytest.mark.parametrize(
    ("leader", "is_new", "kept"),
    [(1, False, 0), (1, True, 0), (2, True, 0), (2, False, 1)],
    ids=["it follows", "it follows a new one", "it leads a new one", "it leads what was there"],
)
def test_a_log_that_lost_its_topics_id_is_taken_for_ones_own_by_a_leader_alone(
    leader: int, is_new: bool, kept: int, pair: Pair
) -> None:
    """World seed 40869: a follower took the log of an earlier topic for its own, whose epochs were the same."""
    one, two = pair
    one.produce(b"of the topic before", acks=1)
    catch_up(two, one)
    two.disk.remove(f"/data/{NAME}/partition.metadata")
    two.disk.forget_locks()
    two.boot()
    assert two.order(leader, 1, topic_id=UUID(int=8), is_new=is_new) == 0
    replica = two.replicas.held(NAME)
    assert replica.log.end_offset == kept
    assert replica.log.topic_id == UUID(int=8)


@pytest.mark.parametrize("how", ["clean", "recovery point"])
def test_a_log_without_its_topics_id_that_was_synced_is_kept(how: str, pair: Pair) -> None:
    """A follower threw it away, though its leader may have counted it as in sync."""
    one, two = pair
    one.produce(b"x", acks=1)
    catch_up(two, one)
    if how == "clean":
        two.broker.logs.close(two.replicas.watermarks())
    else:
        two.followed.log.flush()
        two.broker.logs.directories.write_recovery_points()
        two.disk.forget_locks()
    two.disk.remove(f"/data/{NAME}/partition.metadata")
    two.boot()
    assert two.order(1, 1) == 0
    assert two.followed.log.end_offset == 1
    assert two.disk.exists(f"/data/{NAME}/partition.metadata")


@pytest.mark.parametrize(("leader", "kept"), [(1, 0), (2, 1)], ids=["it follows", "it leads"])
@pytest.mark.parametrize("path", ["/data/", "partition.metadata"])
def test_a_log_whose_topics_id_finds_no_room_is_had_when_it_does(leader: int, kept: int, path: str, pair: Pair) -> None:
    """All partitions of its directory were offline until a restart; or it was served, and synced, without its id."""
    one, two = pair
    one.produce(b"x", acks=1)
    catch_up(two, one)
    two.disk.remove(f"/data/{NAME}/partition.metadata")
    two.disk.forget_locks()
    two.boot()
    writes = ("write", "write_atomic", "append", "create", "mkdir")
    two.disk.fault = lambda kind, where: errno.ENOSPC if kind in writes and path in where else None
    assert two.order(leader, 1) == KafkaStorageError.code
    assert two.broker.logs.directories.offline() == []
    assert two.replicas.is_offline(*NAME)
    two.disk.fault = None
    assert two.order(leader, 1) == 0
    assert two.replicas.held(NAME).log.end_offset == kept
    assert two.disk.exists(f"/data/{NAME}/partition.metadata")
    assert not two.replicas.is_offline(*NAME)


def test_a_leader_whose_codec_cannot_be_had_keeps_batches_as_they_came(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(name: str, level: int | None = None) -> Any:
        raise PluginError(f"no plugin provides the codec {name!r}; install the plugin")

    monkeypatch.setattr(KERNEL, "codec", missing)
    node = make(1, "compression.type=zstd")
    assert node.order(1, 0, isr=(1,), replicas=(1,), is_new=True) == 0
    assert node.order(1, 1, isr=(1,), replicas=(1,)) == 0
    node.replicas.configure([NAME.topic], lambda topic: TopicSettings(compression_type="lz4"))
    node.replicas.configure([NAME.topic], lambda topic: TopicSettings(compression_type="lz4"))
    assert node.produce(b"a") == [0]
    logged = [row.getMessage() for row in caplog.records if "batches stay" in row.getMessage()]
    assert [("zstd" in line, "lz4" in line) for line in logged] == [(True, False), (False, True)]
