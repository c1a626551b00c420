"""Every row of docs/disk-faults.md: a broker over a disk that fails in one way, and what its clients then see."""

from __future__ import annotations

import errno
import time

import pytest

import logkernel
from logkernel.broker.commands import handle
from logkernel.contracts import RequestContext
from logkernel.errors import BY_CODE, CorruptMessage, KafkaStorageError, NotCoordinator
from logkernel.record.batch import parse_header, stamp
from logkernel.record.encode import encode_batch
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.vocabulary import Record

STORAGE_ERROR = KafkaStorageError.code
LOGS = "/a,/b"


def failing(kind: str, part: str, error: int):
    """A fault of one kind of operation on paths with `part` in them."""
    return lambda what, path: error if what == kind and part in path else None


def two_folders(new_machine, *settings: str):
    """A broker over two directories, with a partition in each."""
    machine = new_machine(1, *settings, folders=LOGS)
    machine.boot()
    machine.topic("t", 2)
    assert {machine.produce([b"%d" % n], partition=n)[0] for n in (0, 1)} == {0}
    return machine


def stamped(data: bytearray, offset: int):
    stamp(data, 0, offset, 0)
    return parse_header(data, 0)


def folder_of(machine, partition: int) -> str:
    return machine.broker.storage.directories.directory_of(("t", partition)).path


def online(machine) -> list[str]:
    return [directory.path for directory in machine.broker.storage.directories.online()]


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_a_write_error_takes_its_directory_offline_and_no_other(error, new_machine):
    machine = two_folders(new_machine)
    bad = folder_of(machine, 0)
    machine.disk.fault = failing("append", f"{bad}/t-0/", error)
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    machine.disk.fault = None
    assert machine.produce([b"x"]) == [STORAGE_ERROR], "nothing is tried again before a restart"
    assert machine.produce([b"y"], partition=1) == [0]
    assert online(machine) == [folder_of(machine, 1)]
    machine.kill()
    machine.boot()
    assert (machine.values(partition=0), machine.values(partition=1)) == ([b"0"], [b"1", b"y"])


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT])  # room may be missing only by then
def test_a_sync_error_ends_the_service_of_the_log_and_answers_who_waits(error, new_machine):
    machine = new_machine()
    machine.boot()
    machine.topic(flush_messages=2)
    assert machine.produce([b"a"]) == [0]
    machine.flush_later = True
    waiting = machine.produce([b"b"])
    assert waiting == []
    machine.disk.fault = failing("sync", "/t-0/", error)
    machine.run_flushes()
    assert waiting == [STORAGE_ERROR]
    machine.disk.fault = None
    synced = [line for line in machine.disk.trace if " sync " in line and "/t-0/" in line]
    machine.pass_ms(120_000)
    machine.run_flushes()
    assert [line for line in machine.disk.trace if " sync " in line and "/t-0/" in line] == synced
    assert machine.produce([b"c"]) == [STORAGE_ERROR]
    machine.broker.close()
    assert not machine.disk.exists("/data/.kafka_cleanshutdown"), "the next start must check the log"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_writes_serves_reads_and_goes_on_when_there_is_room(error, machine):
    machine.boot()
    machine.topic()
    assert machine.produce([b"a"]) == [0]
    machine.disk.fault = failing("append", "/t-0/", error)
    assert machine.produce([b"b"]) == [STORAGE_ERROR]
    assert machine.produce([b"c"]) == [STORAGE_ERROR]
    assert machine.values() == [b"a"]
    machine.disk.fault = None
    assert machine.produce([b"d"]) == [0]
    assert machine.values() == [b"a", b"d"]
    machine.kill()
    machine.boot()
    assert machine.values() == [b"a", b"d"]


@pytest.mark.parametrize("kind", ["create", "write", "truncate"])
def test_a_disk_that_fills_up_while_a_segment_is_closed(kind, machine):
    """Whatever step is refused, the next write finds a log that can go on."""
    machine.boot()
    machine.topic(segment_bytes=1 << 20)
    values = [b"%d" % n * 300_000 for n in range(3)]
    for value in values:
        assert machine.produce([value]) == [0]
    machine.disk.fault = failing(kind, "/t-0/", errno.ENOSPC)
    refused = machine.produce([b"x" * 300_000])
    assert refused in ([STORAGE_ERROR], [0])
    machine.disk.fault = None
    kept = [*values, *([b"x" * 300_000] if refused == [0] else [])]
    for n in range(4, 9):
        kept.append(b"%d" % n * 300_000)
        assert machine.produce(kept[-1:]) == [0]
    assert machine.values() == kept
    machine.kill()
    machine.boot()
    assert machine.values() == kept


def test_a_full_disk_keeps_the_checkpoints_that_there_are(machine):
    machine.boot()
    machine.topic()
    machine.produce([b"a"])
    machine.pass_ms(70_000)
    before = machine.disk.read("/data/replication-offset-checkpoint")
    machine.produce([b"b"])
    machine.disk.fault = failing("write", "-checkpoint", errno.ENOSPC)
    machine.pass_ms(70_000)
    assert machine.disk.read("/data/replication-offset-checkpoint") == before
    machine.disk.fault = None
    assert machine.produce([b"c"]) == [0]
    machine.pass_ms(70_000)
    assert machine.disk.read("/data/replication-offset-checkpoint") != before


def test_a_checkpoint_that_cannot_be_written_takes_its_directory_offline(new_machine):
    machine = two_folders(new_machine)
    bad = folder_of(machine, 0)
    machine.disk.fault = failing("sync", f"{bad}/replication-offset-checkpoint", errno.EIO)
    machine.pass_ms(10_000)
    machine.disk.fault = None
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    assert machine.produce([b"y"], partition=1) == [0]


def test_a_read_error_refuses_the_read_and_leaves_the_rest_alone(new_machine):
    machine = two_folders(new_machine)
    path = f"{folder_of(machine, 0)}/t-0/00000000000000000000.log"
    machine.disk.unreadable.add(path)
    with pytest.raises(OSError):
        machine.values(partition=0)
    assert machine.produce([b"y"], partition=1) == [0]
    assert machine.values(partition=1) == [b"1", b"y"]
    machine.disk.unreadable.clear()
    assert machine.values(partition=0) == [b"0"]


def test_rot_found_by_recovery_is_placed_and_the_rest_is_served(new_machine):
    machine = two_folders(new_machine)
    for number in range(20):
        machine.produce([b"v%d" % number], partition=0)
    machine.kill()
    path = f"{folder_of(machine, 0)}/t-0/00000000000000000000.log"
    machine.disk._inode(path).data[200] ^= 1
    machine.boot()
    (damage,) = machine.broker.storage.directories.logs["t", 0].damages
    assert damage.path == path
    assert damage.position <= 200
    assert "checksum" in damage.reason
    assert machine.values(partition=0) == [b"0", b"v0", b"v1"][: len(machine.values(partition=0))]
    assert machine.values(partition=1) == [b"1"]


def test_a_log_that_cannot_be_opened_is_offline_and_the_rest_is_served(new_machine):
    machine = two_folders(new_machine)
    path = f"{folder_of(machine, 0)}/t-0/partition.metadata"
    machine.broker.close()
    machine.disk.write(path, b"version: 0\ntopic_id: rotten")
    machine.boot()
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    assert machine.produce([b"y"], partition=1) == [0]
    assert list(map(str, machine.broker.storage.directories.unreadable)) == ["t-0"]


def test_a_directory_that_vanishes_is_noticed_at_the_next_checkpoint(new_machine):
    machine = two_folders(new_machine)
    bad = folder_of(machine, 0)
    machine.disk.remove_tree(bad)
    machine.pass_ms(5_000)
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    assert machine.produce([b"y"], partition=1) == [0]
    assert online(machine) == [folder_of(machine, 1)]


def no_handles(what: str, path: str) -> int | None:
    return errno.EMFILE if what == "open" else None


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_too_few_file_handles_refuse_what_needs_one_and_cost_nothing(error, machine):
    machine.boot()
    machine.topic(segment_bytes=1 << 20, flush_messages=2)
    kept = [b"%d" % n * 300_000 for n in range(3)]
    for value in kept:
        machine.produce([value])
    machine.disk.fault = lambda what, path: error if no_handles(what, path) else None
    told = [machine.produce([b"x%d" % n * 150_000]) for n in range(4)]
    assert [STORAGE_ERROR] in told or [] in told
    machine.topic("new")
    assert machine.produce([b"a"], topic="new") == [STORAGE_ERROR]
    machine.disk.fault = None
    machine.pass_ms(2_000)
    kept += [b"x%d" % n * 150_000 for n in range(4) if told[n] == [0]]
    assert all(answer for answer in told), "who waited for a flush that was put off has its answer"
    assert machine.produce([b"end"]) in ([0], [])
    machine.pass_ms(2_000)
    assert machine.values() == [*kept, b"end"]
    machine.broker.close()
    machine.boot()
    assert machine.values() == [*kept, b"end"]
    assert machine.produce([b"a"], topic="new") == [0]


def test_too_few_file_handles_at_the_start_refuse_to_start(machine):
    machine.boot()
    machine.topic("t", 5)
    machine.kill()
    machine.disk.fault = lambda what, path: errno.EMFILE if what == "open" and "/t-3" in path else None
    with pytest.raises(OSError, match="Too many open files"):
        machine.boot()
    machine.disk.fault = None
    machine.kill()
    machine.boot()
    assert machine.values(partition=3) == []


def test_metadata_that_cannot_be_synced_is_refused_from_then_on(machine):
    machine.boot()
    machine.topic("before")
    machine.disk.fault = failing("sync", "__logkernel_metadata", errno.EIO)
    with pytest.raises(KafkaStorageError, match="cannot be synced"):
        machine.topic("doubtful")
    machine.disk.fault = None
    with pytest.raises(KafkaStorageError):
        machine.topic("after")
    assert machine.produce([b"a"], topic="before") == [0]
    machine.crash()
    machine.boot()
    assert "before" in machine.broker.cluster.topics
    assert "after" not in machine.broker.cluster.topics


def test_metadata_that_finds_no_room_is_refused_and_goes_on_later(machine):
    machine.boot()
    machine.disk.fault = failing("append", "__logkernel_metadata", errno.ENOSPC)
    with pytest.raises(KafkaStorageError, match="No space left"):
        machine.topic("refused")
    machine.disk.fault = None
    machine.topic("taken")
    machine.crash()
    machine.boot()
    assert sorted(machine.broker.cluster.topics) == ["taken"]


def test_rot_in_the_metadata_log_refuses_to_start_and_a_torn_end_does_not(new_machine):
    machine = new_machine(3)
    machine.boot()
    for number in range(5):
        machine.topic(f"topic-{number}")
    machine.kill()
    path = "/data/__logkernel_metadata-0/00000000000000000000.log"
    whole = bytes(machine.disk.read(path))
    machine.disk.write(path, whole[:150] + bytes([whole[150] ^ 1]) + whole[151:])
    with pytest.raises(CorruptMessage, match=r"byte \d+: .*damaged"):
        machine.boot()
    machine.kill()
    machine.disk.write(path, whole[:-10])
    machine.boot()
    assert "topic-3" in machine.broker.cluster.topics
    machine.broker.close()
    machine.disk.write(path, whole[:-10])
    with pytest.raises(CorruptMessage, match="damaged"):
        machine.boot()


def test_checkpoints_that_cannot_be_read_count_as_empty(machine):
    machine.boot()
    machine.topic()
    machine.produce([b"a"])
    machine.broker.close()
    for name in ("recovery-point", "replication", "log-start"):
        machine.disk.write(f"/data/{name}-offset-checkpoint", b"\0\0\0rot")
    machine.boot()
    assert machine.values() == [b"a"]


def test_a_dead_device_is_an_error_for_clients_and_no_end_of_the_broker(new_machine):
    for seed in range(20):
        machine = new_machine(seed)
        machine.boot()
        machine.topic(flush_messages=3)
        machine.disk.fail_at(machine.disk.operations + machine.random.randint(1, 12), errno.EIO, forever=True)
        told = [machine.produce([b"%d" % number]) for number in range(30)]
        machine.pass_ms(60_000)
        assert told[-1] == [STORAGE_ERROR], seed
        assert isinstance(machine.disk, SimulatedDisk)


def test_rot_found_by_the_checker_is_placed(new_machine):
    """In a sealed segment, below the recovery point, where no broker looks."""
    from logkernel.inspect.findings import Report
    from logkernel.inspect.folder import check_directory

    machine = new_machine()
    machine.boot()
    machine.topic(segment_bytes=1 << 20)
    for number in range(8):
        machine.produce([b"%d" % number * 300_000])
    machine.broker.close()
    path = "/data/t-0/00000000000000000000.log"
    machine.disk._inode(path).data[400_000] ^= 1
    before = machine.disk.operations
    report = Report()
    check_directory(machine.disk, "/data", machine.broker.kernel.codec_for, report)
    (finding,) = report.findings
    assert (finding.severity, finding.path) == ("error", path)
    assert finding.position == 300_072  # where the second batch begins
    assert finding.remedy
    assert machine.disk.operations == before


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_a_disk_without_room_for_an_index_entry_refuses_the_records_too(kind, machine):
    """Else a store into the mapped file would find no block, and the system would end the process."""
    machine.boot()
    machine.topic(index_interval_bytes=100)
    kept = [b"a" * 200]
    assert machine.produce(kept) == [0]
    machine.disk.fault = failing("truncate", f".{kind}", errno.ENOSPC)
    assert machine.produce([b"b" * 200]) == [STORAGE_ERROR]
    assert machine.values() == kept
    machine.disk.fault = None
    kept += [b"%d" % number * 200 for number in range(30)]
    assert {machine.produce([value])[0] for value in kept[1:]} == {0}
    assert machine.values() == kept
    machine.kill()
    machine.boot()
    assert machine.values() == kept


def expiring(machine, segments: int = 6):
    """A log of closed segments, a record each, and an active one, all of them too old by the next look at retention."""
    machine.boot()
    machine.topic(retention_ms=1000, file_delete_delay_ms=60_000)
    for number in range(segments):
        assert machine.produce([b"%d" % number]) == [0]
        machine.broker.replica(("t", 0)).log.roll(machine.clock.wall_ms())
    assert machine.produce([b"active"]) == [0]
    return machine.broker.replica(("t", 0)).log


def test_a_full_disk_is_made_room_on_by_retention(machine):
    """Not even a checkpoint finds room, until something has gone. Nothing went, as that had to be noted first, or the
    directory went offline, as there was no room for another segment."""
    log = expiring(machine)
    names = lambda: [name for name in machine.disk.listdir("/data/t-0") if ".log" in name]  # noqa: E731
    before = len(names())

    def full(kind: str, path: str) -> int | None:
        return errno.ENOSPC if kind in ("write", "append", "create") and len(names()) >= before else None

    machine.disk.fault = full
    assert machine.produce([b"refused"]) == [STORAGE_ERROR]
    machine.pass_ms(301_000)
    assert online(machine) == ["/data"]
    assert log.start_offset == 6, "the closed ones have gone"
    assert machine.values() == [b"active"]
    machine.pass_ms(300_000)  # now there is room for another segment, too
    assert (log.start_offset, log.end_offset) == (7, 7)
    assert machine.produce([b"goes on"]) == [0]
    machine.crash()
    machine.boot()
    assert machine.broker.replica(("t", 0)).log.start_offset == 7


def test_a_flush_that_finds_no_room_for_leader_epochs_is_put_off(new_machine):
    """No sync failed. It took the directory offline, with the first segment that was closed on a full disk."""
    for seed in range(20):  # names are lost in another order each time
        machine = new_machine(seed)
        machine.boot()
        machine.topic(flush_messages=4, segment_bytes=1 << 20)
        values = [b"%d" % number * 300_000 for number in range(4)]
        assert [machine.produce([value]) for value in values[:3]] == [[0]] * 3
        machine.disk.fault = failing("write", "leader-epoch-checkpoint", errno.ENOSPC)
        waiting = machine.produce(values[3:])
        machine.pass_ms(3_000)
        assert waiting == []
        assert online(machine) == ["/data"]
        machine.disk.fault = None
        machine.pass_ms(3_000)
        assert waiting == [0]
        machine.crash()
        machine.boot()
        assert machine.values() == values, seed


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_flush_is_tried_again_only_where_no_file_could_be_opened_for_it(error, new_machine):
    """No sync ends so: whatever else it may have been, it was one that failed. All that it had to do is left to do."""
    again = error in (errno.EMFILE, errno.ENFILE)
    for seed in range(15):  # names are lost in another order each time
        machine = new_machine(seed)
        machine.boot()
        machine.topic(flush_messages=1, segment_bytes=1 << 20)
        values = [b"%d" % number * 300_000 for number in range(4)]
        assert [machine.produce([value]) for value in values[:3]] == [[0]] * 3
        machine.flush_later = True
        waiting = machine.produce(values[3:])
        ((_, done),) = machine.flushes
        machine.flushes.clear()
        done(OSError(error, "told to"))
        machine.broker.settle()
        assert waiting == ([] if again else [STORAGE_ERROR])
        machine.pass_ms(3_000)
        machine.run_flushes()
        assert waiting == [0 if again else STORAGE_ERROR]
        machine.crash()
        machine.boot()
        assert machine.values() == values[: 4 if again else len(machine.values())], seed


def test_retention_on_a_full_disk_leaves_no_hole_whenever_the_power_goes(new_machine):
    """Segments go one by one there, as no checkpoint keeps them from coming back."""
    point = 0
    while True:
        point += 1
        machine = new_machine(point)
        expiring(machine)
        machine.broker.replica(("t", 0)).log.flush()
        machine.pass_ms(299_000)
        machine.disk.fault = lambda kind, path: errno.ENOSPC if kind in ("write", "append", "create") else None
        begun = machine.disk.operations
        machine.disk.fail_at(begun + point, None)
        told = 0
        try:
            for _ in range(30):
                machine.pass_ms(100)
                told = max(told, machine.broker.replica(("t", 0)).log.start_offset)
        except PowerCut:
            machine.crash()
            machine.boot()
            assert machine.broker.replica(("t", 0)).log.start_offset >= told, point
            values = machine.values()
            assert values == [b"0", b"1", b"2", b"3", b"4", b"5", b"active"][-len(values) :], point
        else:
            assert told == 6
            if machine.disk.operations < begun + point:
                assert point > 40
                return


def test_too_few_file_handles_put_cleaning_off(machine):
    """It took the directory offline, and a compacted log was left alone until a restart."""
    expiring(machine)
    machine.topic("c", cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
    replica = machine.broker.replica(("c", 0))
    data = bytearray(encode_batch([Record(b"k", b"v", timestamp_ms=1)]))
    for _ in range(3):
        replica.log.append(data, [stamped(data, replica.log.end_offset)], 0)
    replica.log.roll(0)
    machine.broker.close()
    machine.boot()
    machine.disk.fault = no_handles
    machine.pass_ms(310_000)
    assert online(machine) == ["/data"]
    assert machine.broker.cleaner.uncleanable == {}
    assert machine.broker.replica(("t", 0)).log.start_offset == 0
    machine.disk.fault = None
    machine.pass_ms(310_000)
    assert machine.broker.replica(("t", 0)).log.start_offset == 7
    deadline = time.monotonic() + 20
    while machine.broker.replica(("c", 0)).log.clean_offset != 3:
        assert time.monotonic() < deadline
        machine.broker.cleaner.workers.news.wait(0.01)
        machine.pass_ms(1000)


def test_a_read_error_puts_retention_off(machine):
    log = expiring(machine)
    machine.broker.close()
    machine.boot()
    log = machine.broker.replica(("t", 0)).log
    for segment in log.closed_segments():
        segment.largest_ms = None
    machine.disk.fault = lambda kind, path: errno.EIO if kind == "open" and path.endswith(".timeindex") else None
    machine.pass_ms(301_000)
    assert online(machine) == ["/data"]
    assert log.start_offset == 0
    machine.disk.fault = None
    machine.pass_ms(301_000)
    assert log.start_offset == 7


def test_rot_found_by_the_cleaner_is_placed_and_the_log_is_served_on(tmp_path, caplog):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=1 << 20)
        for number in range(120):
            log.append("t", b"%03d" % number + bytes(20_000), key=b"k%d" % (number % 7))
    rotten = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(rotten.read_bytes())
    data[20_150] ^= 1
    rotten.write_bytes(data)
    with logkernel.open(tmp_path, log_cleaner_backoff_ms=1) as log:
        told: list[dict] = []
        deadline = time.monotonic() + 20
        while not (told and told[-1]["result"]["uncleanable"]):
            assert time.monotonic() < deadline
            log._broker.cleaner.workers.news.wait(0.01)
            log.step()
            handle(log._broker, "status", {}, told.append)
        why = told[-1]["result"]["uncleanable"]["t-0"]
        assert f"{rotten}, byte 20" in why
        assert why in caplog.text
        assert told[-1]["result"]["offline"] == []
        assert len([*log.read("t", offset=2)]) == 118
        log.append("t", b"lives on", key=b"k")


# ---------------------------------------------------------------- the logs of coordinators

OFFSETS = "/data/__consumer_offsets-0/00000000000000000000.log"


def commit(machine, offset: int) -> list[int]:
    """Commit an offset of group g; gives a list into which the error code comes."""
    told: list[int] = []
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, topics=[OffsetCommitRequestTopic(name="t", partitions=[row])]
    )
    machine.broker.submit(
        request, RequestContext(), lambda answer: told.append(answer.topics[0].partitions[0].error_code)
    )
    return told


def committed(machine) -> int | str:
    """The offset that group g has committed, or the error."""
    told: list[int | str] = []

    def answered(answer) -> None:
        (group,) = answer.groups
        told.append(BY_CODE[group.error_code].__name__ if group.error_code else
                    group.topics[0].partitions[0].committed_offset)  # fmt: skip

    asked = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    machine.broker.submit(OffsetFetchRequest(groups=[asked]), RequestContext(), answered)
    (found,) = told
    return found


def coordinating(new_machine):
    """A broker that was started anew, over a log with two commits of group g."""
    machine = new_machine(0, "offsets.topic.num.partitions=1")
    machine.boot()
    machine.topic()
    assert [commit(machine, 7), commit(machine, 9)] == [[0], [0]]
    machine.broker.close()
    machine.boot()
    return machine


def shards(machine) -> list[object]:
    """Those of all services that keep their state in the offsets log."""
    broker = machine.broker
    hosts = broker.sharing(broker._services["OffsetFetchRequest"])
    assert len(hosts) > 1
    return [shard for host in hosts for shard in host._shards.values()]


@pytest.mark.parametrize("fault", ["a read error", "rot"])
def test_a_coordinator_whose_log_cannot_be_read_is_not_there_until_it_can(fault, new_machine, caplog):
    """It was left half loaded, and answered the next request with an offset of long ago."""
    machine = coordinating(new_machine)
    data = machine.disk._inode(OFFSETS).data
    last = len(data) - 5  # in the second commit

    def turn() -> None:
        if fault == "rot":
            data[last] ^= 1
        else:
            machine.disk.unreadable ^= {OFFSETS}

    turn()
    assert [committed(machine), committed(machine)] == ["NotCoordinator"] * 2
    assert commit(machine, 11) == [NotCoordinator.code]
    assert shards(machine) == []
    assert "shard not loaded, its log cannot be read: service=" in caplog.text
    assert "Traceback" not in caplog.text, "the disk failed, not the service"
    assert machine.produce([b"served on"]) == [0]
    machine.topic("other")
    machine.broker.admin.delete("other")  # every shard is to hear of it
    assert shards(machine) == []
    turn()
    if fault == "rot":
        machine.topic("other")
        machine.broker.admin.delete("other")
        assert shards(machine), "those that can be read by now hear of it"
    assert committed(machine) == 9
    assert commit(machine, 11) == [0]
    assert committed(machine) == 11


def test_a_coordinator_whose_log_could_not_be_read_is_loaded_in_a_while_unasked(new_machine):
    """Its members may be gone, and its transactions too old, though nobody asks."""
    machine = coordinating(new_machine)
    machine.disk.unreadable.add(OFFSETS)
    machine.pass_ms(10_000)
    assert shards(machine) == []
    machine.pass_ms(60_000)
    assert shards(machine) == []
    machine.disk.unreadable.clear()
    machine.pass_ms(60_000)
    assert len(shards(machine)) > 1


def test_a_coordinator_that_can_neither_write_nor_read_its_log_refuses_all_who_wait(new_machine):
    """The state that it began anew with was empty, and said so to whoever asked."""
    machine = coordinating(new_machine)
    assert committed(machine) == 9
    machine.disk.fault = failing("append", OFFSETS, errno.ENOSPC)
    machine.disk.unreadable.add(OFFSETS)
    assert commit(machine, 11) == [NotCoordinator.code]
    assert committed(machine) == "NotCoordinator"
    machine.disk.fault = None
    machine.disk.unreadable.clear()
    assert committed(machine) == 9
    assert commit(machine, 11) == [0]


def test_a_coordinator_whose_log_is_offline_does_not_answer_from_an_empty_state(new_machine):
    machine = coordinating(new_machine)
    assert committed(machine) == 9
    machine.disk.fault = failing("append", OFFSETS, errno.EIO)
    assert commit(machine, 11) == [NotCoordinator.code]
    machine.disk.fault = None
    assert committed(machine) == "NotCoordinator"
    machine.kill()
    machine.boot()
    assert committed(machine) == 9
