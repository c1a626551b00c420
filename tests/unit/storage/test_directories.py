"""Data directories: ownership, checkpoints, placing, clean and unclean ends, failure of one of several."""

from __future__ import annotations

import errno
from urllib.parse import quote
from uuid import UUID

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.errors import ConfigError, DataDirectoryLocked, KafkaStorageError
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch
from logkernel.storage.checkpoints import parse_offsets
from logkernel.storage.directories import REMOVED_AT_CLOSE, LogDirectories, Needs
from logkernel.storage.directory import CutNotBegun, DataDirectory
from logkernel.storage.disk import RealDisk
from logkernel.storage.file_deleter import PORTION, FileDeleter
from logkernel.storage.names import DELETE_DIR
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.vocabulary import Record, TopicPartition

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
TOPIC_ID = UUID(int=99)


@pytest.fixture(params=["real", "simulated"])
def place(request, tmp_path):
    return (RealDisk(), str(tmp_path)) if request.param == "real" else (SimulatedDisk(), "/top")


@pytest.fixture
def needs(new_ledger):
    return Needs(lambda topic: TopicSettings(segment_bytes=4096), lambda name: new_ledger())


def ids():
    return iter(UUID(int=number) for number in range(1, 100)).__next__


def start(place, needs, names=("a",), **options):
    disk, root = place
    found = LogDirectories.open(disk, [f"{root}/{name}" for name in names], node_id=1, unique=ids(), **options)
    found.load(needs, 1000, threads=2)
    return found


def append(log, count=1):
    for _ in range(count):
        data = encode_batch([Record(None, b"v" * 100, timestamp_ms=1)], base_offset=log.end_offset, leader_epoch=0)
        log.append(data, list(batches(data)), 1000)


def test_a_clean_end_and_a_new_start(place, needs):
    disk, root = place
    dirs = start(place, needs)
    log = dirs.create(T0, TOPIC_ID, 1000)
    append(log, 60)
    log.advance_log_start(3)
    dirs.close({T0: 57})
    assert disk.read(f"{root}/a/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":-1}'
    assert disk.read(f"{root}/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 60\n"
    assert disk.read(f"{root}/a/log-start-offset-checkpoint") == b"0\n1\nt 0 3\n"
    assert disk.read(f"{root}/a/replication-offset-checkpoint") == b"0\n1\nt 0 57\n"
    again = start(place, needs)
    assert again.directories[0].clean
    assert not disk.exists(f"{root}/a/.kafka_cleanshutdown")
    assert again.cluster_id == dirs.cluster_id
    log = again.logs[T0]
    assert (log.start_offset, log.end_offset, log.recovery_point, log.topic_id) == (3, 60, 60, TOPIC_ID)
    assert again.high_watermark(T0) == 57


def test_an_unclean_end_recovers_from_the_checkpoint(place, needs):
    disk, _root = place
    dirs = start(place, needs)
    for name in (T0, T1, T2, TopicPartition("u", 0), TopicPartition("u", 1)):
        append(dirs.create(name, TOPIC_ID, 1000), 40)
    dirs.logs[T0].flush()
    dirs.write_recovery_points()
    path = f"{dirs.logs[T1].folder}/{dirs.logs[T1].facts()[-1].base_offset:020d}.log"
    dirs.abandon()
    disk.write(path, disk.read(path)[:-1])
    again = start(place, needs)
    assert not again.directories[0].clean
    assert {name: log.end_offset for name, log in again.logs.items()} == {
        T0: 40, T1: 39, T2: 40, ("u", 0): 40, ("u", 1): 40,
    }  # fmt: skip
    assert again.logs[T0].recovery_point == 40
    assert again.logs[T1].recovery_point == 0


def test_a_log_that_recovery_cut_below_its_recovery_point_has_another_one_at_once(place, needs):
    """Else the next start would not look at what is written below the old one."""
    disk, root = place
    dirs = start(place, needs)
    log = dirs.create(T0, TOPIC_ID, 1000)
    append(log, 10)
    log.flush()
    dirs.write_recovery_points()
    path = f"{log.folder}/{0:020d}.log"
    data = disk.read(path)
    dirs.abandon()
    disk.write(path, data[: len(data) // 2 + 70] + b"\xee" + data[len(data) // 2 + 71 :])
    again = start(place, needs)
    assert again.logs[T0].end_offset == 5
    assert disk.read(f"{root}/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 5\n"


def test_a_directory_has_one_owner(place, needs):
    disk, root = place
    dirs = start(place, needs)
    with pytest.raises(DataDirectoryLocked):
        start(place, needs)
    dirs.close()
    with pytest.raises(ConfigError, match=r"node.id=1, not 2"):
        DataDirectory.open(disk, f"{root}/a", node_id=2)
    with pytest.raises(ConfigError, match="cluster"):
        DataDirectory.open(disk, f"{root}/a", node_id=1, cluster_id="other")
    start(place, needs).close()


def test_new_logs_go_where_there_are_fewest(place, needs):
    dirs = start(place, needs, ("a", "b"))
    for number in range(6):
        dirs.create(TopicPartition("t", number), TOPIC_ID, 1000)
    assert [len(directory.logs) for directory in dirs.directories] == [3, 3]
    for number in (0, 2, 4):
        dirs.delete(TopicPartition("t", number))
    dirs.create(TopicPartition("v", 0), TOPIC_ID, 1000)
    assert [len(directory.logs) for directory in dirs.directories] == [1, 3]
    assert dirs.create(T1, TOPIC_ID, 1000) is dirs.logs[T1]


@pytest.mark.parametrize("topic", ["../outside", "a/b", "/tmp/x", "nul\0", ""], ids=quote)
def test_a_name_that_is_a_path_is_neither_made_nor_removed(tmp_path, needs, topic):
    (tmp_path / "outside-0").mkdir()
    directories = LogDirectories.open(RealDisk(), [str(tmp_path / "data")], node_id=1)
    directories.load(needs, 0)
    with pytest.raises(KafkaStorageError, match="no log can be called"):
        directories.create(TopicPartition(topic, 0), UUID(int=1), 0)
    directories.delete(TopicPartition(topic, 0))
    assert (tmp_path / "outside-0").is_dir()
    assert directories.online(), "the directory did not fail"
    directories.close()


def test_a_directory_of_a_kafka_over_zookeeper_stays_one(place, needs, caplog):
    """It reads no other version than its own, and makes checkpoints empty."""
    disk, root = place
    meta = b"#Wed Nov 25 22:20:32 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=kzfUeUQVST6WpTtDZkrNew\n"
    disk.mkdir(f"{root}/a")
    disk.write(f"{root}/a/meta.properties", meta)
    for name in ("cleaner", "recovery-point", "log-start", "replication"):
        disk.write(f"{root}/a/{name}-offset-checkpoint", b"")
    dirs = start(place, needs)
    assert dirs.cluster_id == "kzfUeUQVST6WpTtDZkrNew"
    dirs.close()
    assert disk.read(f"{root}/a/meta.properties") == meta
    assert not caplog.records


def test_both_directories_share_the_cluster(place, needs):
    dirs = start(place, needs, ("a", "b"))
    metas = [directory.meta for directory in dirs.directories]
    assert metas[0].cluster_id == metas[1].cluster_id == dirs.cluster_id
    assert metas[0].directory_id != metas[1].directory_id
    dirs.close()
    with pytest.raises(ConfigError):
        start(place, needs, ("a", "b"), cluster_id="elsewhere")


def twice(place, needs):
    """A partition with a record, whose segment lies in another directory as well: (path of the log, of the other)."""
    disk, root = place
    dirs = start(place, needs, ("a", "b"))
    append(dirs.create(T0, TOPIC_ID, 1000))
    here = dirs.directory_of(T0).path
    there = f"{root}/b" if here.endswith("/a") else f"{root}/a"
    disk.mkdir(f"{there}/t-0")
    disk.write(f"{there}/t-0/00000000000000000000.log", disk.read(f"{here}/t-0/00000000000000000000.log"))
    dirs.abandon()
    return here, there


def test_a_partition_in_two_directories_is_refused(place, needs):
    twice(place, needs)
    with pytest.raises(ConfigError, match=f"t-0 lies in {place[1]}/a and in {place[1]}/b"):
        start(place, needs, ("a", "b"))


def test_of_a_partition_in_two_directories_the_one_to_which_nothing_was_ever_written_goes(place, needs):
    disk, _ = place
    here, there = twice(place, needs)
    disk.truncate(f"{there}/t-0/00000000000000000000.log", 0)
    again = start(place, needs, ("a", "b"))
    assert (again.directory_of(T0).path, again.logs[T0].end_offset) == (here, 1)
    assert "t-0" not in disk.listdir(there)


def test_deleted_folders_go_and_foreign_ones_stay(place, needs):
    disk, root = place
    dirs = start(place, needs)
    dirs.create(T0, TOPIC_ID, 1000)
    dirs.delete(T0)
    assert T0 not in dirs.logs
    for folder in (f"t-0.{UUID(int=5).hex}-delete", "__cluster_metadata-0", "t-1.12-future", "notes"):
        disk.mkdir(f"{root}/a/{folder}")
        disk.create(f"{root}/a/{folder}/f")
    dirs.close()
    again = start(place, needs)
    assert not again.logs
    again.file_deleter.remove(100)
    assert {"__cluster_metadata-0", "t-1.12-future", "notes"} <= set(disk.listdir(f"{root}/a"))
    assert not [name for name in disk.listdir(f"{root}/a") if name.endswith("-delete")]


def test_a_rotten_topic_id_keeps_one_log_away(place, needs):
    disk, root = place
    dirs = start(place, needs)
    for name in (T0, T1):
        dirs.create(name, TOPIC_ID, 1000)
    dirs.close()
    disk.write(f"{root}/a/t-0/partition.metadata", b"rot")
    again = start(place, needs)
    assert list(again.logs) == [T1]
    assert "partition.metadata" in str(again.unreadable[T0])


def test_rotten_checkpoints_count_as_zero(place, needs):
    disk, root = place
    dirs = start(place, needs)
    append(dirs.create(T0, TOPIC_ID, 1000), 5)
    dirs.close()
    disk.write(f"{root}/a/recovery-point-offset-checkpoint", b"rot")
    disk.remove(f"{root}/a/.kafka_cleanshutdown")
    again = start(place, needs)
    assert (again.logs[T0].recovery_point, again.logs[T0].end_offset) == (0, 5)


def test_a_failing_directory_goes_offline_alone(needs):
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs, ("a", "b"))
    for name in (T0, T1):
        append(dirs.create(name, TOPIC_ID, 1000))
    disk.fail_at(disk.operations + 1)
    dirs.write_recovery_points()
    (bad,), (good,) = dirs.offline(), dirs.online()
    assert bad.failure.errno == errno.EIO
    with pytest.raises(KafkaStorageError, match="offline"):
        append(dirs.logs[T0])
    append(dirs.logs[T1])
    dirs.delete(T0)
    assert T0 not in dirs.logs
    assert "t-0" in disk.listdir(bad.path)
    assert dirs.directory_of(dirs.create(T2, TOPIC_ID, 1000).name) is good
    dirs.close()
    assert not disk.exists(f"{bad.path}/.kafka_cleanshutdown")
    assert disk.exists(f"{good.path}/.kafka_cleanshutdown")


def test_a_log_that_cannot_be_closed_keeps_no_other_from_being_closed(needs):
    """As when a full disk meets two threads: the second found its files taken away, and no directory got its mark."""
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs, ("a", "b"))
    for name in (T0, T1, T2):
        append(dirs.create(name, TOPIC_ID, 1000))
    good = dirs.directory_of(T1)
    assert dirs.directory_of(T0) is dirs.directory_of(T2) is not good
    disk.fail_at(disk.operations + 1, errno.ENOSPC)
    dirs.close({T1: 1})
    (bad,) = dirs.offline()
    assert bad is dirs.directory_of(T0)
    assert not disk.exists(f"{bad.path}/.kafka_cleanshutdown")
    assert disk.exists(f"{good.path}/.kafka_cleanshutdown")
    again = start((disk.crash(), "/top"), needs, ("a", "b"))
    assert {name: again.logs[name].end_offset for name in (T1, T2)} == {T1: 1, T2: 1}


def test_no_directory_left(needs):
    disk = SimulatedDisk()
    disk.fail_at(1, errno.EROFS, forever=True)
    with pytest.raises(KafkaStorageError, match="Read-only"):
        LogDirectories.open(disk, ["/a", "/b"], node_id=1)


def test_truncation_writes_the_recovery_point_first(place, needs):
    disk, root = place
    dirs = start(place, needs)
    log = dirs.create(T0, TOPIC_ID, 1000)
    append(log, 40)
    log.flush()
    dirs.write_recovery_points()
    dirs.truncate(T0, 10)
    assert disk.read(f"{root}/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 10\n"
    dirs.truncate_fully_and_start_at(T0, 100, 1000)
    assert (log.start_offset, log.end_offset) == (100, 100)
    append(log)
    dirs.abandon()
    again = start(place, needs)
    assert (again.logs[T0].start_offset, again.logs[T0].end_offset) == (100, 101)


def test_a_checkpoint_that_was_begun_earlier_never_replaces_a_later_one(place, needs):
    """One is written on a thread; a truncation meanwhile must not be undone by it."""
    disk, root = place
    dirs = start(place, needs)
    log = dirs.create(T0, TOPIC_ID, 1000)
    append(log, 40)
    log.flush()
    (directory,) = dirs.directories
    earlier = directory.begin_recovery_points()
    dirs.truncate(T0, 10)
    earlier()
    assert disk.read(f"{root}/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 10\n"
    starts = directory.begin_log_starts()
    directory.begin_recovery_points()()
    starts()
    assert disk.read(f"{root}/a/log-start-offset-checkpoint") == b"0\n0\n"


def test_rolls_are_told_with_their_partition(place, new_ledger):
    told = []
    needs = Needs(
        lambda topic: TopicSettings(segment_bytes=1000), lambda name: new_ledger(), lambda *what: told.append(what)
    )
    dirs = start(place, needs)
    append(dirs.create(T2, TOPIC_ID, 1000), 12)
    assert {what[0] for what in told} == {T2}
    assert told[0][1:] == (0, dirs.logs[T2].facts()[0].size_bytes)


def test_a_thousand_partitions(tmp_path, needs):
    import time

    place = (RealDisk(), str(tmp_path))
    dirs = start(place, needs)
    began = time.process_time()
    for number in range(1000):
        dirs.create(TopicPartition("t", number), TOPIC_ID, 1000)
    made = time.process_time() - began
    dirs.abandon()
    began = time.process_time()
    again = start(place, needs)
    opened = time.process_time() - began
    assert len(again.logs) == 1000
    assert made < 2, made
    assert opened < 2, opened
    again.abandon()


def test_files_of_a_great_removal_hold_up_neither_the_end_nor_the_start(place, needs, monkeypatch):
    """Closing after a drop of 10,000 segments unlinked 40,000 files in one go; so did a start after a crash."""
    disk, root = place
    removed: list[str] = []
    plain = type(disk).remove

    def remove(self, path):
        removed.append(path)
        plain(self, path)

    monkeypatch.setattr(type(disk), "remove", remove)

    def folder_names():
        return [name for name in disk.listdir(f"{root}/a/t-0") if name[:20].isdigit()]

    dirs = start(place, needs)
    log = dirs.create(T0, TOPIC_ID, 1000)
    for _ in range(200):
        append(log)
        log.roll(1000)
    log.drop_before(150, 1000)
    dirs.write_log_starts()
    left = len(folder_names())
    dirs.close()
    assert len(folder_names()) > left - REMOVED_AT_CLOSE
    again = start(place, needs)
    log = again.logs[T0]
    assert (log.start_offset, log.first_base_offset, log.end_offset, log.segment_count) == (150, 150, 200, 51)
    assert len(removed) < REMOVED_AT_CLOSE + 10, "the start removed them"
    append(log)
    log.truncate_to(190)
    while log.rename_dropped(7):
        assert log.leaving
    log.purge(1000)
    again.file_deleter.run(pause=lambda seconds: None)
    assert {int(name[:20]) for name in folder_names()} == set(range(150, 191))
    again.close()
    assert start(place, needs).logs[T0].end_offset == 190


def test_a_folder_of_a_deleted_log_goes_file_by_file(place, needs):
    disk, root = place
    dirs = start(place, needs)
    append(dirs.create(T0, TOPIC_ID, 1000), 60)
    dirs.delete(T0)
    (doomed,) = [name for name in disk.listdir(f"{root}/a") if name.endswith("-delete")]
    files = len(disk.listdir(f"{root}/a/{doomed}"))
    assert files > 3
    dirs.file_deleter.remove(3)
    assert len(disk.listdir(f"{root}/a/{doomed}")) == files - 2  # the first was the look into the folder
    dirs.file_deleter.run(pause=lambda seconds: None)
    assert doomed not in disk.listdir(f"{root}/a")
    assert not dirs.file_deleter.waiting


def test_what_the_disk_will_not_let_go_is_said_once_and_found_at_the_next_start(needs, caplog):
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs, ("a", "b"))
    for name in (T0, T1):
        append(dirs.create(name, TOPIC_ID, 1000), 60)
        dirs.logs[name].drop_before(50, 0)
        dirs.logs[name].purge(10**9)
    bad = dirs.logs[T0].folder
    disk.fault = lambda kind, path: errno.EIO if kind == "remove" and path.startswith(bad) else None
    dirs.file_deleter.run(pause=lambda seconds: None)
    assert len([record for record in caplog.records if bad in record.getMessage()]) == 1
    assert [name for name in disk.listdir(bad) if name.endswith(".deleted")]
    assert not [name for name in disk.listdir(dirs.logs[T1].folder) if name.endswith(".deleted")]
    disk.fault = None
    dirs.close()
    again = start((disk, "/top"), needs, ("a", "b"))
    again.file_deleter.run(pause=lambda seconds: None)
    assert not [name for name in disk.listdir(bad) if name.endswith(".deleted")]


def test_a_sweeper_that_is_told_to_stop_stops(place):
    disk, root = place
    disk.mkdir(f"{root}/x")
    paths = [f"{root}/x/{number}" for number in range(3 * PORTION)]
    for path in paths:
        disk.create(path)
    file_deleter = FileDeleter(disk)
    file_deleter.later(paths)
    file_deleter.stop()
    file_deleter.run(pause=lambda seconds: None)
    assert file_deleter.waiting == len(paths)


def test_a_folder_of_which_a_file_cannot_be_removed_is_left_to_the_next_start(place):
    """Found by the world's seed 83: the folder came again and again, for ever."""
    disk, root = place
    folder = f"{root}/t-0.1{DELETE_DIR}"
    for name in ("a", "b"):
        disk.mkdir(folder)
        disk.create(f"{folder}/{name}")

    class Stubborn:
        listdir, remove_tree = disk.listdir, disk.remove_tree

        def remove(self, path):
            raise OSError(errno.EIO, "Input/output error", path)

    file_deleter = FileDeleter(Stubborn())
    file_deleter.later([folder])
    file_deleter.remove(PORTION)
    assert file_deleter.waiting == 0
    assert sorted(disk.listdir(folder)) == ["a", "b"]


def marks_of(disk):
    """What the checkpoint of watermarks says."""
    path = "/top/a/replication-offset-checkpoint"
    return parse_offsets(disk.read(path), path) if disk.exists(path) else {}


def test_no_watermark_is_kept_above_a_log_that_a_power_cut_shortened(needs):
    """Else what the log grows to holds afterwards would count as committed after the next crash."""
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs)
    log = dirs.create(T0, TOPIC_ID, 1000)
    append(log, 20)
    log.flush()
    dirs.write_recovery_points()
    append(log, 10)
    dirs.write_high_watermarks({T0: 30})
    disk = disk.crash()
    dirs = start((disk, "/top"), needs)
    end = dirs.logs[T0].end_offset
    assert end < 30
    assert dirs.high_watermark(T0) == end == marks_of(disk)[T0]
    append(dirs.logs[T0], 30)
    dirs.abandon()
    assert start((disk, "/top"), needs).high_watermark(T0) == end


@pytest.mark.parametrize("how", ["cut", "restarted"])
def test_a_watermark_falls_with_a_cut_before_anything_else(needs, how):
    """World seed 30237: a leader's old watermark lay in the midst of a batch that was written behind a cut."""
    for operation in range(1, 40):
        disk = SimulatedDisk()
        dirs = start((disk, "/top"), needs)
        log = dirs.create(T0, TOPIC_ID, 1000)
        append(log, 20)
        log.flush()
        dirs.write_recovery_points()
        dirs.write_high_watermarks({T0: 18})
        disk.fail_at(disk.operations + operation, None)
        try:
            if how == "cut":
                dirs.truncate(T0, 15)
            else:
                dirs.truncate_fully_and_start_at(T0, 15, 1000)
        except PowerCut:
            disk = disk.crash()
            again = start((disk, "/top"), needs)
            assert again.high_watermark(T0) == marks_of(disk)[T0] <= again.logs[T0].end_offset
            again.abandon()
        else:
            disk.heal()
            break
    else:
        raise AssertionError("the cut never ended")
    assert operation > 3
    assert marks_of(disk)[T0] == 15
    append(dirs.logs[T0], 10)
    dirs.abandon()
    assert start((disk.crash(), "/top"), needs).high_watermark(T0) == 15


@pytest.mark.parametrize("how", ["cut", "restarted"])
def test_a_watermark_that_could_not_be_lowered_is_lowered_by_the_next_try(needs, how):
    """The cut that was put off left the file's watermark above the log, and what came there counted as committed."""
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs)
    log = dirs.create(T0, TOPIC_ID, 1000)
    append(log, 20)
    log.flush()
    dirs.write_high_watermarks({T0: 18})

    def cut():
        if how == "cut":
            dirs.truncate(T0, 15)
        else:
            dirs.truncate_fully_and_start_at(T0, 15, 1000)

    disk.fail_at(disk.operations + 1, errno.ENOSPC)
    with pytest.raises(CutNotBegun):
        cut()
    assert dirs.high_watermark(T0) == marks_of(disk)[T0] == 18
    cut()
    assert dirs.high_watermark(T0) == marks_of(disk)[T0] == 15


def test_a_new_log_has_no_watermark_of_a_deleted_one_of_its_name(needs):
    """World seed 50217: after a crash it stood within the first batch of the new topic."""
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs)
    append(dirs.create(T0, TOPIC_ID, 1000), 2)
    dirs.write_high_watermarks({T0: 2})
    dirs.delete(T0)
    log = dirs.create(T0, UUID(int=98), 2000)
    append(log, 3)
    log.flush()
    dirs.abandon()
    assert start((disk.crash(), "/top"), needs).high_watermark(T0) == 0


def test_a_new_log_goes_where_there_is_room(needs):
    """The first directory was full, and the log was made nowhere."""
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs, names=("a", "b"))
    disk.fault = lambda kind, path: errno.ENOSPC if path.startswith("/top/a/t-0/") else None
    log = dirs.create(T0, TOPIC_ID, 1000)
    assert log.folder == "/top/b/t-0"
    assert not disk.exists("/top/a/t-0"), "what was begun there"
    assert len(dirs.online()) == 2


def test_a_new_log_for_which_no_directory_has_room_says_so(needs):
    disk = SimulatedDisk()
    dirs = start((disk, "/top"), needs, names=("a", "b"))
    disk.fault = lambda kind, path: errno.ENOSPC if "/t-0" in path else None
    with pytest.raises(KafkaStorageError) as caught:
        dirs.create(T0, TOPIC_ID, 1000)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert len(dirs.online()) == 2
    disk.fault = None
    assert dirs.create(T0, TOPIC_ID, 1000).end_offset == 0
